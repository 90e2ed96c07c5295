"""Caches results that depend on inputs which rarely change.

Most of a cycle's data about clients equals that of the last cycle: demands, weights, minimums.
`StableArrays` returns the same array as last time if the values are equal; `memoize` returns the
same result if the arrays are the same objects. So a cycle over one agent does not recompute
unchanged data of thousands of clients.
"""

import mmap
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

_Item = TypeVar("_Item", bound=np.generic)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def fixed(array: NDArray[_Item]) -> NDArray[_Item]:
    """Make an array permanently read-only; a view is copied first."""
    if not _is_whole(array) and not is_fixed(array):
        array = array.copy()
    array.flags.writeable = False
    return array


def _is_whole(array: np.ndarray) -> bool:
    """Whether an array is no view of another one; large tables are in a map of their own."""
    return array.base is None or isinstance(array.base, mmap.mmap)


def is_fixed(array: np.ndarray) -> bool:
    """Whether an array can be written neither directly nor through its base."""
    base: object = array.base
    return not array.flags.writeable and (
        _is_whole(array) or (isinstance(base, np.ndarray) and not base.flags.writeable)
    )


@lru_cache(maxsize=32)
def constant(value: float, length: int) -> NDArray[np.float64]:
    """Return an array (length,) of one value; equal arguments give the same object."""
    return fixed(np.full(length, float(value)))


class StableArrays:
    """Arrays by name, which stay the same objects as long as their values are equal."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def __call__(self, name: str, array: NDArray[_Item]) -> NDArray[_Item]:
        """Return a read-only array of these values: the previous array if it is equal."""
        kept = self._kept.get(name)
        if kept is array:
            return array
        if kept is not None and kept.dtype == array.dtype and np.array_equal(kept, array):
            return kept
        # Copy, because the argument may be a part of the books.
        kept = np.array(array, order="C", copy=True)
        kept.flags.writeable = False
        self._kept[name] = kept
        return kept


def memoize(
    size: int = 1,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Cache the last `size` results of a pure function.

    A result is reused if all arguments are the same: arrays must be the same objects, tuples are
    compared item by item, and other values must be equal. Results for writable arrays are not
    cached, since these could change before the next call.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        # The tuple is replaced atomically, so other threads see either the old or the new one.
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
