"""Converts columns back to values."""

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar

import numpy as np

from allocator.core.checkpoint.classes import (
    assemble,
    declared,
    derived,
    is_ours,
    names_of,
    never_changes,
)
from allocator.core.checkpoint.columns import CheckpointError, Column

_Value = TypeVar("_Value")
_SETS = {"set": set, "frozenset": frozenset}
_MISFITS = (
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Exceptions that inconsistent columns may cause."""


def restore(column: Column, like: _Value) -> _Value:
    """Make a value from columns.

    `like`: a fresh value, made by the same version of the code. Classes, their attributes and the
        types of their arrays must equal those of this value; `DERIVED` attributes are copied from
        it.
    Raises CheckpointError if the columns are damaged, or of another version.
    """
    examples: dict[type, object] = {}
    _collect(like, examples)
    try:
        (value,) = _Reader(examples).read(column)
    except CheckpointError:
        raise
    except _MISFITS as error:
        raise CheckpointError(f"the checkpoint is inconsistent: {error}") from None
    _check_shape(value, like)
    return value


def _check_shape(value: Any, like: Any) -> None:  # noqa: ANN401
    if type(value) is not type(like) or (type(like) is tuple and len(value) != len(like)):
        raise CheckpointError(f"expected {type(like).__name__}, found {type(value).__name__}")
    if type(like) is tuple:
        for one, other in zip(value, like, strict=True):
            _check_shape(one, other)


def _collect(value: Any, examples: dict[type, object]) -> None:  # noqa: ANN401
    kind: Any = type(value)
    if kind is tuple:
        for each in value:
            _collect(each, examples)
    elif is_ours(kind) and kind not in examples and not never_changes(kind):
        examples[kind] = value
        for name in names_of(value):
            _collect(getattr(value, name), examples)


class _Reader:
    """Makes values from columns, and checks their types against examples."""

    def __init__(self, examples: Mapping[type, object]) -> None:
        self._examples = examples

    def read(self, column: Column) -> list[Any]:
        reader = getattr(self, f"_read_{column.kind}", None)
        if reader is None:
            raise CheckpointError(
                f"unknown kind of column {column.kind!r}; is it of another version?"
            )
        values: list[Any] = reader(column)
        if len(values) != column.count:
            raise CheckpointError(f"expected {column.count} values, found {len(values)}")
        return values

    def _read_none(self, column: Column) -> list[Any]:
        return [None] * column.count

    def _read_bool(self, column: Column) -> list[Any]:
        return _only(column, np.bool_)

    def _read_int(self, column: Column) -> list[Any]:
        return _only(column, np.int64)

    def _read_long(self, column: Column) -> list[Any]:
        return list(map(int, column.texts))

    def _read_float(self, column: Column) -> list[Any]:
        return _only(column, np.float64)

    def _read_text(self, column: Column) -> list[Any]:
        return [column.texts[index] for index in _places(column, len(column.texts))]

    def _read_array(self, column: Column) -> list[Any]:
        return list(column.arrays)

    def _read_scalar(self, column: Column) -> list[Any]:
        return [array[()] for array in column.arrays]

    def _read_mixed(self, column: Column) -> list[Any]:
        # Each part yields its values in order; the array selects the next part.
        parts = [iter(self.read(part)) for part in column.parts]
        return [next(parts[index]) for index in _places(column, len(parts))]

    def _read_list(self, column: Column) -> list[Any]:
        (items,) = map(self.read, column.parts)
        return _cut(items, _only(column, np.int64))

    def _read_tuple(self, column: Column) -> list[Any]:
        return list(map(tuple, self._read_list(column)))

    def _read_set(self, column: Column) -> list[Any]:
        return list(map(_SETS[column.kind], self._read_list(column)))

    _read_frozenset = _read_set

    def _read_dict(self, column: Column) -> list[Any]:
        keys, items = map(self.read, column.parts)
        lengths = _only(column, np.int64)
        pairs = zip(_cut(keys, lengths), _cut(items, lengths), strict=True)
        return [dict(zip(key, item, strict=True)) for key, item in pairs]

    def _read_object(self, column: Column) -> list[Any]:
        title, *names = column.texts
        kind = self._class(title, names)
        example = self._examples.get(kind)
        parts = [self.read(part) for part in column.parts]
        # The attributes of tables must have the same types as in a fresh table.
        for name, part in zip(names, parts, strict=True):
            if example is not None and not is_dataclass(kind):
                _check_like(getattr(example, name), part, f"{kind.__qualname__}.{name}")
        # Derived attributes come from the fresh object.
        rows = zip(*parts, strict=True) if parts else iter([()] * column.count)
        made = [assemble(kind, names, row) for row in rows]
        for name in derived(kind):
            for each in made:
                setattr(each, name, getattr(example, name))
        return made

    def _class(self, title: str, names: list[str]) -> Any:  # noqa: ANN401
        """Find a loaded class of this package by its name, and check its fields."""
        module, _, name = title.partition(":")
        kind = getattr(sys.modules.get(module), name, None)
        if not isinstance(kind, type) or kind.__module__ != module or not is_ours(kind):
            raise CheckpointError(f"unknown class {title!r}; is it of another version?")
        expected = declared(kind)
        if expected is None:
            if kind not in self._examples:
                raise CheckpointError(f"a checkpoint must not contain {title!r}")
            expected = names_of(self._examples[kind])
        if list(expected) != names:
            differing = ", ".join(sorted(set(expected) ^ set(names))) or "the order of its fields"
            raise CheckpointError(f"{title!r} differs in {differing}; is it of another version?")
        return kind


def _only(column: Column, dtype: type) -> list[Any]:
    """Return the numbers of a column that has a single array, and check the array's type."""
    (array,) = column.arrays
    if array.dtype != dtype or array.ndim != 1:
        raise CheckpointError(f"a column of {column.kind} holds {array.dtype}")
    return array.tolist()


def _places(column: Column, size: int) -> list[int]:
    """Return and check indices of texts or parts: each must be less than `size`."""
    (array,) = column.arrays
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise CheckpointError(f"a column of {column.kind} holds {array.dtype}")
    if len(array) and not (array.min() >= 0 and array.max() < size):
        raise CheckpointError(f"a column of {column.kind} has an index out of range")
    return array.tolist()


def _cut(items: list[Any], lengths: list[int]) -> list[list[Any]]:
    """Cut items into lists of the given lengths, whose sum must be the number of items."""
    if min(lengths, default=0) < 0 or sum(lengths) != len(items):
        raise CheckpointError(f"expected {sum(lengths)} items, found {len(items)}")
    end, cut = 0, []
    for length in lengths:
        cut.append(items[end : end + length])
        end += length
    return cut


def _check_like(example: object, values: list[Any], place: str) -> None:
    """Raise a `CheckpointError` if a field's values differ in type from an example."""
    if example is None:
        return
    for value in values:
        if type(value) is not type(example):
            expected = type(example).__name__
            raise CheckpointError(f"{place} is a {type(value).__name__}, it must be a {expected}")
        if isinstance(example, np.ndarray) and isinstance(value, np.ndarray):
            found, right = (value.dtype, value.ndim), (example.dtype, example.ndim)
            if found != right:
                raise CheckpointError(f"{place} is an array of {found}, it must be of {right}")
