"""Marks tests with the tests or bugs of Mesos that they correspond to."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def mesos(*names: str) -> Callable[[Test], Test]:
    """State the corresponding test or bug, such as ``OfferFilter`` or ``MESOS-4302``.

    The table reads the names from the source, so that it does not have to import tests.
    """
    assert names

    def unchanged(test: Test) -> Test:
        return test

    return unchanged
