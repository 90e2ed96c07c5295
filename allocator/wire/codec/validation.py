"""Validates single values and whole columns of messages."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, Self

import numpy as np

from allocator.core import AMOUNT_MAX, Bools, Ints, quoted
from allocator.v1.session_pb2 import Error, ErrorCode

TEXT_LENGTH_MAX = 64 * 1024

_PREFIX = "ERROR_CODE_"


class WireError(ValueError):
    """A message is rejected, which ends the session.

    `field`: path of the field, such as ``events[3].release.released.agent[17]``.
    `message`: the value, and what would be valid.
    """

    def __init__(self, code: "ErrorCode.ValueType", field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.code = code
        self.field = field
        self.message = message

    def below(self, field: str) -> Self:
        """Return the same error about a larger message, with its field below `field`."""
        path = f"{field}.{self.field}" if self.field else field
        return type(self)(self.code, path, self.message)

    def to_message(self, sequence: int) -> Error:
        return Error(code=self.code, field=self.field, message=self.message, sequence=sequence)


def reject(field: str, message: str) -> NoReturn:
    raise WireError(ErrorCode.ERROR_CODE_VALUE, field, message)


def code_name(code: "ErrorCode.ValueType") -> str:
    """Name of a code in metrics and logs.

    >>> code_name(ErrorCode.ERROR_CODE_SLOW_PEER)
    'slow_peer'
    """
    return ErrorCode.Name(code).removeprefix(_PREFIX).lower()


_FEW = 32

TIME_MAX_MS = 2**53
"""Maximum time and duration, so that sums of two stay far below the int64 maximum."""

UINT32_MAX = 2**32 - 1


def integers(column: Sequence[int], least: int, most: int, field: str) -> Ints:
    """Read a column of integers, which must all be from `least` to `most`. Returns (N,)."""
    if len(column) <= _FEW:
        return np.array(_integer_list(list(column[:]), least, most, field), np.int64)
    values = np.array(column, np.int64)
    if values.min() < least or values.max() > most:
        _refuse_entry(column, least, most, field)
    return values


def _integer_list(entries: list[int], least: int, most: int, field: str) -> list[int]:
    if entries and (min(entries) < least or max(entries) > most):
        _refuse_entry(entries, least, most, field)
    return entries


def _refuse_entry(column: Sequence[int], least: int, most: int, field: str) -> None:
    index = next(i for i, value in enumerate(column) if not least <= value <= most)
    integer(column[index], least, most, f"{field}[{index}]")


def integer(value: int, least: int, most: int, field: str) -> int:
    if not least <= value <= most:
        hint = " (0 names nothing)" if value == 0 and least == 1 else ""
        reject(field, f"is {value}{hint}; it must be from {least} to {most}")
    return value


def handle(value: int, field: str) -> int:
    return integer(value, 1, UINT32_MAX, field)


def handles(column: Sequence[int], field: str, *, least: int = 1) -> Ints:
    return integers(column, least, UINT32_MAX, field)


def handle_list(column: list[int], field: str) -> list[int]:
    return _integer_list(column, 1, UINT32_MAX, field)


def amounts(column: Sequence[int], field: str) -> Ints:
    return integers(column, 0, AMOUNT_MAX, field)


def amount_list(column: list[int], field: str) -> list[int]:
    return _integer_list(column, 0, AMOUNT_MAX, field)


def flags(column: Sequence[bool]) -> Bools:
    return np.array(column, np.bool_)


def distinct(column: Sequence[int] | Sequence[str], field: str) -> None:
    if len(column) > 1 and len(set(column)) < len(column):
        seen = set[object]()
        for index, entry in enumerate(column):
            if entry in seen:
                reject(f"{field}[{index}]", f"is {_shown(entry)} once more; give each only once")
            seen.add(entry)


def _shown(entry: object) -> str:
    return quoted(entry) if isinstance(entry, str) else str(entry)


def same_length(length: int, wanted: int, field: str, other: str) -> None:
    if length != wanted:
        reject(field, f"has {length} entries but {other} has {wanted}; lengths must be equal")


def text(value: str, field: str, *, empty: bool = True) -> str:
    """Check the length of a text, and that it is not empty unless `empty` is set."""
    if not value and not empty:
        reject(field, "is empty; it must name something")
    if len(value) > TEXT_LENGTH_MAX:
        reject(field, f"has {len(value)} characters; at most {TEXT_LENGTH_MAX} are taken")
    return value


def texts(values: Iterable[str], field: str) -> frozenset[str]:
    return frozenset(
        text(value, f"{field}[{index}]", empty=False) for index, value in enumerate(values)
    )


def text_map(values: Mapping[str, str], field: str) -> dict[str, str]:
    return {
        text(key, f"{field} (a key)"): text(value, f"{field}[{key[:80]!r}]")
        for key, value in sorted(values.items())
    }


def time_ms(value: int, field: str, *, least: int = 0) -> int:
    return integer(value, least, TIME_MAX_MS, field)


def times_ms(column: Sequence[int], field: str, *, least: int = 0) -> Ints:
    return integers(column, least, TIME_MAX_MS, field)


def number(value: float, field: str, *, most: float = math.inf) -> float:
    """Check a number, which must be finite, greater than 0 and at most `most`."""
    if not (0 < value <= most and math.isfinite(value)):
        bound = "finite" if math.isinf(most) else f"at most {most:g}"
        reject(field, f"is {value!r}; it must be greater than 0 and {bound}")
    return value
