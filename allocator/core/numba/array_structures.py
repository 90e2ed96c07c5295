"""Containers that the books consist of: growing arrays, a map from keys to rows, linked lists.

Loops over them are compiled, so that an event about ten thousand rows costs about as much as one
about a single row.
"""

import heapq
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.array_types import BitWords, Bools, Indices, Ints
from allocator.core.numba.compiled import loop, part
from allocator.core.numba.wide_tables import STRETCH, is_wide, untouched, write

FEWEST = 72
"""Minimum number of rows."""

_FEWEST_KEYS = 64

MARK = 0x9E3779B97F4A7C15
"""The factor of hashes of rows: odd, so that its powers are odd, with an irregular bit pattern."""

_FEW_COLUMNS, _MANY_ROWS = 12, 512

_Item = TypeVar("_Item", bound=np.generic)


def grow(array: NDArray[_Item], rows: int, columns: int | None = None) -> NDArray[_Item]:
    """Enlarge an array by doubling to at least these rows (and columns); new cells are zeros."""
    shape = [larger_size(array.shape[0], rows), *array.shape[1:]]
    if columns is not None:
        shape[1] = max(array.shape[1], columns)
    return enlarged(array, tuple(shape))


def grow_by_kind(table: NDArray[_Item], kinds: int, rows: int) -> NDArray[_Item]:
    """Enlarge a table (K, n) to at least these kinds, and by doubling to at least these rows."""
    return enlarged(table, (max(len(table), kinds), larger_size(table.shape[1], rows)))


def enlarged(array: NDArray[_Item], shape: tuple[int, ...]) -> NDArray[_Item]:
    """Enlarge an array to a shape; new cells are zeros."""
    if shape == array.shape:
        return array
    larger = untouched(shape, array.dtype)
    corner = larger[tuple(slice(0, size) for size in array.shape)]
    if is_wide(larger):
        for into, old in zip(corner, array, strict=True) if array.ndim > 2 else [(corner, array)]:
            write(into, old)
    elif array.any():  # zeros take no memory until they are written
        corner[...] = array
    return larger


def larger_size(size: int, wanted: int) -> int:
    """Double a size until it is large enough, always to 56 less than a power of two.

    With a power of two, all amounts of an agent in a table by kind would compete for the same lines
    of the processor's cache. A bit set of that size still fills whole pages.
    """
    size = max(size, FEWEST)
    while size < wanted:
        size = 2 * size + 56
    return size


class DistinctRows(NamedTuple):
    """The distinct rows of a table (n, K), in ascending order.

    `rows` (D, K).
    `which` (n,): index in `rows` of each row of the table.
    `times` (D,): how often each row occurs.
    """

    rows: NDArray[Any]
    which: Ints
    times: Ints


def distinct_rows(table: NDArray[Any]) -> DistinctRows:
    """Find the distinct rows of a table, ten times as fast as `np.unique` with an axis."""
    if not table.shape[1]:
        some_row = min(len(table), 1)
        return DistinctRows(
            table[:some_row], np.zeros(len(table), np.int64), np.full(some_row, len(table))
        )
    if table.dtype == np.int64 and is_wide(table) and (found := _by_marks(table)) is not None:
        return found
    # The first column is the most significant; lexsort expects it last.
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    begins = np.ones(len(table), np.bool_)
    np.any(ordered[1:] != ordered[:-1], axis=1, out=begins[1:])
    which = np.empty(len(table), np.int64)
    which[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    return DistinctRows(ordered[starts], which, np.diff(starts, append=len(table)))


def _by_marks(table: NDArray[Any]) -> DistinctRows | None:
    """Find the distinct rows of a table with many columns, by hash, so that only these are sorted.

    None if all rows are different, or if hashes collide.
    """
    factors = np.cumprod(np.full(table.shape[1], MARK, np.uint64))  # powers of MARK
    _, first, which = np.unique(
        table.view(np.uint64) @ factors, return_index=True, return_inverse=True
    )
    step = max(STRETCH // table.shape[1], 1)
    parts = (slice(start, start + step) for start in range(0, len(table), step))
    same = all((table[part] == table[first[which[part]]]).all() for part in parts)
    if not same or len(first) == len(table):
        return None
    found = distinct_rows(table[first])
    which = found.which[which]
    return DistinctRows(found.rows, which, np.bincount(which))


def some(table: NDArray[Any]) -> Bools:
    """Return which rows (n,) of a table (n, K) are not all zeros."""
    if table.shape[1] > _FEW_COLUMNS or len(table) < _MANY_ROWS:
        return np.asarray(table.any(axis=1))
    result = np.zeros(len(table), np.bool_)
    for column in range(table.shape[1]):
        result |= table[:, column] != 0
    return result


def read_only(array: NDArray[_Item]) -> NDArray[_Item]:
    """Return a read-only view; the array itself if it is read-only already."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def pair(high: Ints | int, low: Ints | int) -> Any:  # noqa: ANN401
    return (np.asarray(high, np.int64) << np.int64(32)) | np.asarray(low, np.int64)


def contains(ordered: Ints, wanted: Ints) -> Bools:
    """Return which numbers, none of them negative, are among sorted ones, (n,)."""
    place = np.searchsorted(ordered, wanted)
    return np.append(ordered, -1)[place] == wanted


def is_in(others: Ints, wanted: Ints) -> Bools:
    """Return which numbers are among others, (n,); `np.isin` hashes keys of pairs: far slower."""
    return contains(np.sort(others), wanted)


def pack(flags: Bools, words: int) -> BitWords:
    """Pack flags into words, lowest bit first."""
    padded = np.zeros(words * 64, np.bool_)
    padded[: len(flags)] = flags
    packed: BitWords = np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
    return packed


def bits(words: BitWords, row: Ints, column: Ints) -> Bools:
    """Look up bits in rows of words (n, W): bit ``c % 64`` of word ``c // 64`` is column c."""
    word = words[row, column >> 6]
    return ((word >> (column & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)


def distinct(values: Ints) -> Ints:
    """Return the distinct numbers, ascending; `np.unique` hashes them: five times as slow."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


class FreeRows:
    """Row numbers that are free, lowest first."""

    def __init__(self, first: int) -> None:
        self._returned: list[int] = []
        self._next = first

    def take(self) -> int:
        if self._returned:
            return heapq.heappop(self._returned)
        self._next += 1
        return self._next - 1

    def give(self, row: int) -> None:
        heapq.heappush(self._returned, row)

    @property
    def limit(self) -> int:
        """One more than the highest row that was ever taken."""
        return self._next


@part()
def _slot(keys: Ints, key: int) -> Any:  # noqa: ANN401
    """Return the slot of a key, or the empty slot where it would be inserted."""
    mask = len(keys) - 1
    # Hash the key, to spread consecutive keys; then probe linearly.
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while keys[slot] != key and keys[slot] != -1:
        slot = (slot + 1) & mask
    return slot


@part()
def find_key(keys: Ints, rows: Ints, key: int) -> int:
    slot = _slot(keys, key)
    return rows[slot] if keys[slot] != -1 else -1


@part()
def put_key(keys: Ints, rows: Ints, key: int, row: int) -> None:
    """Add an absent key; there must be room for it."""
    slot = _slot(keys, key)
    keys[slot] = key
    rows[slot] = row


@part()
def delete_key(keys: Ints, rows: Ints, key: int) -> None:
    mask = len(keys) - 1
    hole = _slot(keys, key)
    if keys[hole] == -1:
        return
    keys[hole] = -1
    # Insert the keys that follow without a gap again: they may belong in the freed slot or before
    # it.
    slot = (hole + 1) & mask
    while keys[slot] != -1:
        moved, row = keys[slot], rows[slot]
        keys[slot] = -1
        put_key(keys, rows, moved, row)
        slot = (slot + 1) & mask


@loop
def _get_many(keys: Ints, rows: Ints, wanted: Ints) -> Ints:
    found = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        slot = _slot(keys, wanted[i])
        found[i] = rows[slot] if keys[slot] != -1 else -1
    return found


@loop
def _claim_many(keys: Ints, rows: Ints, wanted: Ints, fresh: Ints) -> tuple[Ints, Ints]:
    found = np.empty(len(wanted), np.int64)
    first = np.empty(len(fresh), np.int64)
    claimed = 0
    for i in range(len(wanted)):
        slot = _slot(keys, wanted[i])
        if keys[slot] == -1:
            keys[slot] = wanted[i]
            rows[slot] = fresh[claimed]
            first[claimed] = i
            claimed += 1
        found[i] = rows[slot]
    return found, first[:claimed]


@loop
def _delete_many(keys: Ints, rows: Ints, gone: Ints) -> None:
    for key in gone:
        delete_key(keys, rows, key)


class KeyMap:
    """A map from int64 keys (>= 0) to rows, with open addressing."""

    def __init__(self) -> None:
        self._keys = np.full(_FEWEST_KEYS, -1, np.int64)
        self._rows = np.zeros(_FEWEST_KEYS, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, keys: Ints) -> Ints:
        return _get_many(self._keys, self._rows, keys)

    def claim(self, keys: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Look up keys, and assign the next of `rows` to each absent one, in order.

        `keys` (n,): may contain duplicates.
        `rows` (m,): at least as many as there are absent keys.
        Returns (n,): the row of each key; (u,): for each assigned row, in order, the index of its
        key.
        """
        self._make_room(len(rows))
        found, first = _claim_many(self._keys, self._rows, keys, rows)
        self._count += len(first)
        return found, first

    def delete(self, keys: Ints) -> None:
        _delete_many(self._keys, self._rows, keys)
        self._count -= len(keys)

    def lend(self, more: int) -> tuple[Ints, Ints]:
        """Return keys and rows for a loop that adds at most `more`, see `put_key`."""
        self._make_room(more)
        return self._keys, self._rows

    def counted(self, count: int) -> None:
        """Set the number of keys after a loop has changed it."""
        self._count = count

    def _make_room(self, more: int) -> None:
        # Keep the map at most half full, so that searches stay short.
        count = self._count + more
        if count * 2 <= len(self._keys):
            return
        used = self._keys >= 0
        old_keys, old_rows = self._keys[used], self._rows[used]
        size = len(self._keys)
        while size < 4 * count:
            size *= 2
        self._keys = np.full(size, -1, np.int64)
        self._rows = np.zeros(size, np.int64)
        _claim_many(self._keys, self._rows, old_keys, old_rows)


@part()
def push(head: Indices, following: Indices, previous: Indices, owner: int, item: int) -> None:
    first = head[owner]
    following[item] = first
    previous[item] = -1
    if first >= 0:
        previous[first] = item
    head[owner] = item


@part()
def unlink(head: Indices, following: Indices, previous: Indices, owner: int, item: int) -> None:
    before, after = previous[item], following[item]
    # If the item was the head, its successor becomes the head.
    if before >= 0:
        following[before] = after
    else:
        head[owner] = after
    if after >= 0:
        previous[after] = before
