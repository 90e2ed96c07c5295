"""Results that are made again only if what they are made of has changed.

Most of what a cycle gets about clients equals that of the last cycle: demands, weights,
minimums. `StableArrays` gives the same array as last time if the values are the same, and
`memoize` gives the same result if the arrays are the same objects. So a cycle over one agent
does not renew, for each of thousands of clients, what has not changed.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

_Item = TypeVar("_Item", bound=np.generic)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def fixed(array: NDArray[_Item]) -> NDArray[_Item]:
    """Make an array read-only for good: itself if it owns its memory, or a copy."""
    if array.base is not None and not is_fixed(array):
        array = array.copy()
    array.flags.writeable = False
    return array


def is_fixed(array: np.ndarray) -> bool:
    """Whether an array cannot be written: neither through it, nor through what it views."""
    base: object = array.base
    return not array.flags.writeable and (
        base is None or (isinstance(base, np.ndarray) and not base.flags.writeable)
    )


@lru_cache(maxsize=32)
def constant(value: float, length: int) -> NDArray[np.float64]:
    """Return (length,) times the same value, always the same object."""
    return fixed(np.full(length, float(value)))


class StableArrays:
    """Arrays by name: the same object as long as the values are the same."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def __call__(self, name: str, array: NDArray[_Item]) -> NDArray[_Item]:
        """Return an array of these values that is fixed: that of last time if they are equal."""
        kept = self._kept.get(name)
        if kept is array:
            return array
        if kept is not None and kept.dtype == array.dtype and np.array_equal(kept, array):
            return kept
        # A copy, for what was given may be a part of the books, which change.
        kept = np.array(array, order="C", copy=True)
        kept.flags.writeable = False
        self._kept[name] = kept
        return kept


def memoize(
    size: int = 1,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Remember the last results of a pure function.

    A result is given again if all arguments are the same: of arrays the very same objects, of
    tuples the same parts, of other values equal ones. If an array could be written, the result
    is not remembered, for it could be another one by the next call.

    `size`: how many results are kept.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        # A tuple that is replaced as a whole: threads see the one before or the one after.
        latest: tuple[tuple[tuple[Any, ...], _Result], ...] = ()

        @wraps(function)
        def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            nonlocal latest
            key = (*arguments, *named.values())
            for made_of, result in latest:
                if _is_same(made_of, key):
                    return result
            result = function(*arguments, **named)
            if _is_fixed(key):
                latest = ((key, result), *latest[: size - 1])
            return result

        return call

    return decorate


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - whatever functions are called with
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return bool(one == other)


def _is_fixed(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return not isinstance(value, np.ndarray) or is_fixed(value)
