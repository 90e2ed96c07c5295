"""Which of Mesos's tests, or of its bugs, a test of ours answers to."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def mesos(*names: str) -> Callable[[Test], Test]:
    """Say what a test answers to, such as ``OfferFilter`` or ``MESOS-4302``.

    The table reads the names from the source, so that it needs no test to be imported.
    """
    assert names

    def unchanged(test: Test) -> Test:
        return test

    return unchanged
