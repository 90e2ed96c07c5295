"""Named tuples of arrays that compiled functions hand on as one pointer.

Numba hands a named tuple on field by field, and an array as eight numbers. With sixty arrays every
call then has hundreds of arguments, and compiling takes a minute for each loop. `as_pointer` writes
the tuple down once; the functions below it get a pointer, and read the fields that they use.

A pointer owns nothing: its maker keeps the arrays alive until the last use: `keep_alive`.
Interpreted, both functions do nothing; `numba_types` says how they are compiled.
"""

from typing import Any, TypeVar

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])


def as_pointer(fields: _Tuple) -> _Tuple:
    """Make a pointer to a named tuple for compiled functions, which only read the tuple.

    The arrays may be written; which arrays they are does not change.
    """
    return fields


def keep_alive(fields: tuple[Any, ...]) -> None:
    """Keep the arrays of a tuple that was lent alive until here."""
