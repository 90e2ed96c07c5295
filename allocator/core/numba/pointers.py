"""Named tuples of arrays, passed between compiled functions as one pointer.

Numba passes a named tuple field by field, and an array as eight numbers. With sixty arrays every
call then has hundreds of arguments, and compiling takes a minute for each loop. `as_pointer` stores
the tuple once; callees get a pointer, and read the fields that they use.

A pointer owns nothing: its maker keeps the arrays alive until the last use: `keep_alive`.
Interpreted, both functions do nothing; `numba_types` has their compiled versions.
"""

from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])


def as_pointer(fields: _Tuple) -> _Tuple:
    """Make a pointer to a named tuple, which compiled functions only read.

    They may write to its arrays, but not replace them.
    """
    return fields


def keep_alive(fields: tuple[Any, ...]) -> None:
    """Keep the arrays of a tuple passed by pointer alive until here."""
