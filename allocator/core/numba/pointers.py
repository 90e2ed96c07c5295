"""Passes named tuples of arrays between compiled functions as one pointer.

Numba passes a named tuple field by field, and each array as eight numbers. With sixty arrays every
call has hundreds of arguments, and each loop takes a minute to compile. `as_pointer` stores the
tuple once, and callees read the fields that they use.

A pointer does not own the arrays: the function that made it keeps them alive until their last use,
by `keep_alive`. In plain Python both functions do nothing; `numba_types` has the compiled versions.
"""

from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])


def as_pointer(fields: _Tuple) -> _Tuple:
    """Make a pointer to a named tuple, whose arrays may be written but not replaced."""
    return fields


def keep_alive(fields: tuple[Any, ...]) -> None:
    """Keep the arrays of a tuple that was passed by pointer alive until this call."""
