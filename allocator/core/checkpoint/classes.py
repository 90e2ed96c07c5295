"""Defines which objects a checkpoint may contain, and which of their attributes are saved."""

import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from allocator.core.checkpoint.columns import CheckpointError

_PACKAGE = "allocator.core"
_ATOMS = frozenset({types.NoneType, bool, int, float, str, frozenset})
_IMMUTABLE = (tuple, frozenset, Mapping, Sequence, typing.Union, types.UnionType)


def is_ours(kind: type) -> bool:
    """Whether a class belongs to the core and its name resolves to it."""
    module = kind.__module__
    if module != _PACKAGE and not module.startswith(f"{_PACKAGE}."):
        return False
    # A checkpoint stores only the name of the class.
    return getattr(sys.modules[module], kind.__qualname__, None) is kind


def is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def derived(kind: type) -> tuple[str, ...]:
    """Return the attributes of a class that are computed from others."""
    return getattr(kind, "DERIVED", ())


@cache
def declared(kind: type) -> tuple[str, ...] | None:
    """Return the fields that a class declares; None: each object has its own attributes."""
    if is_named_tuple(kind):
        return tuple(kind._fields)  # type: ignore[attr-defined]
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def names_of(value: object) -> tuple[str, ...]:
    """Return the attributes of an object that are saved."""
    kind: Any = type(value)
    if not is_ours(kind) or not (declared(kind) or hasattr(value, "__dict__")):
        raise CheckpointError(
            f"{kind.__module__}.{kind.__qualname__} cannot be saved in a checkpoint"
        )
    own = declared(kind)
    if own is not None:
        return own
    return tuple(name for name in vars(value) if name not in derived(kind))


@cache
def never_changes(kind: Any) -> bool:  # noqa: ANN401 - a type, or a part of a type hint
    """Whether values of a type are immutable by its declaration, so that copies can share them."""
    if kind in _ATOMS or kind is Ellipsis:
        return True
    # A frozen object is immutable only if all of its fields are.
    if isinstance(kind, type) and is_dataclass(kind):
        parameters = kind.__dataclass_params__  # type: ignore[attr-defined]
        return parameters.frozen and all(map(never_changes, typing.get_type_hints(kind).values()))
    if isinstance(kind, type) and is_named_tuple(kind):
        return all(map(never_changes, typing.get_type_hints(kind).values()))
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return True
    origin = typing.get_origin(kind)
    return origin in _IMMUTABLE and all(map(never_changes, typing.get_args(kind)))


def assemble(kind: Any, names: Sequence[str], values: Sequence[object]) -> Any:  # noqa: ANN401
    """Make an object from its attributes, without calling its code."""
    if is_named_tuple(kind):
        return tuple.__new__(kind, values)
    # Frozen classes do not allow plain assignments.
    made = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made
