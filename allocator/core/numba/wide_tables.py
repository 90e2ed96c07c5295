"""Large tables that are mostly zeros: of kinds and agents, or of agents and clients."""

import mmap
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.array_types import Ints
from allocator.core.numba.compiled import loop, loop_view

_Item = TypeVar("_Item", bound=np.generic)

_UNTOUCHED_BYTES = 1 << 22
"""NumPy requests huge pages for arrays of at least this size, so writing a cell takes 2 MiB."""

_WIDE_BYTES = 1 << 10
"""Rows of at least this size are wide; with shorter ones, several agents share a page. A table of
bits, see `bit_tables`, counts as wide: usually most of its pages are empty."""

STRETCH = 1 << 16
"""Number of cells that are compared at a time."""

_PAGE, _PIECE = 1 << 12, 1 << 18
"""Sizes in bytes: of a page of memory, and of what is checked for zeros at a time."""


def untouched(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
    """Make an array of zeros; in a large wide table, only written pages take memory."""
    zeros = np.zeros(shape, dtype)
    if zeros.nbytes < _UNTOUCHED_BYTES or not is_wide(zeros):
        return zeros
    pages = mmap.mmap(-1, zeros.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # the system has no huge pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.ndarray(shape, dtype, buffer=pages)


def is_wide(array: NDArray[Any]) -> bool:
    if array.ndim > 2:
        return True
    return array.ndim > 1 and array.shape[1] * array.itemsize >= _WIDE_BYTES


def write(into: NDArray[_Item], table: NDArray[_Item]) -> None:
    """Make a table equal to another one (n, K).

    Equal cells are not written, so that unwritten zeros still take no memory.
    """
    step = max(STRETCH // max(into.shape[1], 1), 1)
    for begin in range(0, len(into), step):
        old, new = into[begin : begin + step], table[begin : begin + step]
        if 16 * np.count_nonzero(new) > 15 * new.size:
            old[...] = new  # faster, and nearly all of these pages are in use anyway
            continue
        row, column = np.nonzero(old != new)
        old[row, column] = new[row, column]


def fill(into: NDArray[Any], content: NDArray[Any]) -> None:
    """Make zeros equal to an array of the same size; pages of zeros are not written.

    Both must be contiguous.
    """
    source, target = (each.reshape(-1).view(np.uint8) for each in (content, into))
    whole = len(source) // _PAGE * _PAGE
    for begin in range(0, whole, _PIECE):
        piece = slice(begin, min(begin + _PIECE, whole))
        pages = source[piece].view(np.uint64).reshape(-1, _PAGE // 8)
        some = pages.any(axis=1)
        if some.all():
            target[piece] = source[piece]
        elif some.any():
            target[piece].view(np.uint64).reshape(pages.shape)[some] = pages[some]
    target[whole:] = source[whole:]


def copied(table: NDArray[_Item]) -> NDArray[_Item]:
    """Copy a contiguous array that is mostly zero."""
    copy = untouched(table.shape, table.dtype)
    fill(copy, table)
    return copy


def columns_of(table: Ints, columns: Ints) -> Ints:
    """Copy some columns (n,) of a table that is mostly zero."""
    found = untouched((len(table), len(columns)), np.int64)
    _gather_columns(loop_view(table), loop_view(columns), found)
    return found


@loop
def _gather_columns(table: Ints, columns: Ints, found: Ints) -> None:
    for row in range(len(table)):
        for place in range(len(columns)):
            value = table[row, columns[place]]
            if value != 0:
                found[row, place] = value
