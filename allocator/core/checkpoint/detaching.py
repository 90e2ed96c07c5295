"""Copies the core's state, so that a checkpoint can be made while the core continues."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from allocator.core.checkpoint.classes import assemble, names_of, never_changes
from allocator.core.checkpoint.columns import Array, Column
from allocator.core.checkpoint.flattening import to_columns
from allocator.core.numba.wide_tables import copied

_LARGE_BYTES = 1 << 19


class Detached:
    """An immutable copy of a value, for checkpoints and for hypothetical questions."""

    def __init__(self, value: object) -> None:
        self.value: Any = self._copy(value)

    def columns(self) -> Column:
        """Convert the copy to columns. Objects restored from them share nothing with this copy."""
        return to_columns(Detached(self.value).value)

    def _copy(self, value: Any) -> Any:  # noqa: ANN401
        kind: Any = type(value)
        if kind is np.ndarray:
            return _copy_of(value)
        if kind is list or kind is tuple:
            return kind(self._each(value))
        if kind is dict:
            return dict(zip(value, self._each(value.values()), strict=True))
        if kind is set:
            return set(value)
        if never_changes(kind):
            return value
        names = names_of(value)
        return assemble(kind, names, [self._copy(getattr(value, name)) for name in names])

    def _each(self, values: Iterable[Any]) -> Iterable[Any]:
        """Copy values, unless all of them have immutable types."""
        values = list(values)
        if all(map(never_changes, set(map(type, values)))):
            return values
        return [self._copy(value) for value in values]


def nbytes_of(value: Any) -> int:  # noqa: ANN401
    """Return the total size in bytes of the arrays in a value."""
    kind: Any = type(value)
    if kind is np.ndarray:
        return int(value.nbytes)
    if kind is set or never_changes(kind):
        return 0
    if kind is list or kind is tuple:
        return _nbytes_of_all(value)
    if kind is dict:
        return _nbytes_of_all(value.values())
    return _nbytes_of_all(getattr(value, name) for name in names_of(value))


def _nbytes_of_all(values: Iterable[Any]) -> int:
    values = list(values)
    if all(map(never_changes, set(map(type, values)))):
        return 0
    return sum(map(nbytes_of, values))


def _copy_of(array: Array) -> Array:
    """Copy an array without writing pages of zeros, so that they take no memory."""
    if array.nbytes < _LARGE_BYTES or not array.flags.c_contiguous:
        return array.copy()
    return copied(array)
