"""Converts values to columns."""

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allocator.core.checkpoint.classes import declared, names_of
from allocator.core.checkpoint.columns import Array, CheckpointError, Column

_DTYPE_KINDS = "biuf"
_TYPES_MAX = 256


def to_columns(value: object) -> Column:
    """Convert a value and its contents to columns. Raises CheckpointError for unknown types."""
    return _column([value])


def _column(values: list[Any]) -> Column:
    """Make a column of values of one type; values of several types make a mixed column."""
    kinds = list(dict.fromkeys(map(type, values)))
    if len(kinds) > 1:
        return _mixed(values, kinds)
    maker = _MAKERS.get(kinds[0] if kinds else types.NoneType)
    if maker is not None:
        return maker(values)
    if issubclass(kinds[0], np.generic):
        return Column("scalar", len(values), arrays=[np.asarray(value) for value in values])
    return _objects(values)


def _mixed(values: list[Any], kinds: list[type]) -> Column:
    """Make a column with a part for each type, and the index of each value's part."""
    if len(kinds) > _TYPES_MAX:
        raise CheckpointError(f"{len(kinds)} types in one collection; at most {_TYPES_MAX}")
    number = {kind: index for index, kind in enumerate(kinds)}
    which = np.fromiter((number[type(value)] for value in values), np.uint8, len(values))
    parts = [_column([value for value in values if type(value) is kind]) for kind in kinds]
    return Column("mixed", len(values), arrays=[which], parts=parts)


def _objects(values: list[Any]) -> Column:
    """Make a column with a part for each attribute; all objects must have the same attributes."""
    kind: Any = type(values[0])
    names = names_of(values[0])
    if declared(kind) is None and any(names_of(value) != names for value in values):
        raise CheckpointError(f"objects of {kind.__qualname__} have different attributes")
    title = f"{kind.__module__}:{kind.__qualname__}"
    parts = [_column([getattr(value, name) for value in values]) for name in names]
    return Column("object", len(values), texts=[title, *names], parts=parts)


def _none(values: list[Any]) -> Column:
    return Column("none", len(values))


def _flags(values: list[bool]) -> Column:
    return Column("bool", len(values), arrays=[np.array(values, np.bool_)])


def _integers(values: list[int]) -> Column:
    try:
        return Column("int", len(values), arrays=[np.array(values, np.int64)])
    except OverflowError:
        return Column("long", len(values), texts=list(map(str, values)))


def _floats(values: list[float]) -> Column:
    return Column("float", len(values), arrays=[np.array(values, np.float64)])


def _texts(values: list[str]) -> Column:
    """Make a column of the distinct texts, and the index of each value's text."""
    number = {text: index for index, text in enumerate(dict.fromkeys(values))}
    which = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
    return Column("text", len(values), texts=list(number), arrays=[which])


def _arrays(values: list[Array]) -> Column:
    for value in values:
        if value.dtype.kind not in _DTYPE_KINDS:
            raise CheckpointError(f"arrays of {value.dtype} are not supported")
    return Column("array", len(values), arrays=values)


def _lengths(values: Sequence[Any]) -> Array:
    return np.fromiter(map(len, values), np.int64, len(values))


def _sequences(values: list[Any]) -> Column:
    """Make a column of the lengths of sequences, with the items of all of them in one part."""
    items = [item for value in values for item in value]
    kind = type(values[0]).__name__
    return Column(kind, len(values), arrays=[_lengths(values)], parts=[_column(items)])


def _sets(values: list[Any]) -> Column:
    """Make a column of sorted items: sets are unordered, and equal sets must give equal columns."""
    try:
        items = [item for value in values for item in sorted(value)]
    except TypeError:
        raise CheckpointError("sets whose items cannot be sorted are not supported") from None
    kind = type(values[0]).__name__
    return Column(kind, len(values), arrays=[_lengths(values)], parts=[_column(items)])


def _mappings(values: list[dict[Any, Any]]) -> Column:
    keys = [key for value in values for key in value]
    items = [item for value in values for item in value.values()]
    parts = [_column(keys), _column(items)]
    return Column("dict", len(values), arrays=[_lengths(values)], parts=parts)


_MAKERS: dict[type, Callable[[list[Any]], Column]] = {
    types.NoneType: _none,
    bool: _flags,
    int: _integers,
    float: _floats,
    str: _texts,
    np.ndarray: _arrays,
    list: _sequences,
    tuple: _sequences,
    set: _sets,
    frozenset: _sets,
    dict: _mappings,
}
