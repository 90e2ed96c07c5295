"""Amounts by row and kind, for rows that have few of many kinds."""

from typing import NamedTuple

import numpy as np

from allocator.core.numba.array_structures import pair
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.snapshot import Grants, Ints, Snapshot


class SparseRows(NamedTuple):
    """N rows of amounts by kind. Row i has the parts ``range(start[i], start[i + 1])``.

    `start` (N + 1,): index of the first part of each row, and the number of parts.
    `kind` (X,): the kind of each part; ascending and distinct within a row.
    `amount` (X,), in thousandths: more than 0.
    """

    start: Ints
    kind: Ints
    amount: Ints

    def take(self, rows: Ints) -> "SparseRows":
        count = np.diff(self.start)[rows]
        start = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(count, out=start[1:])
        # The index of each part in the old arrays: its new index, shifted as much as its row.
        at = np.arange(start[-1]) + np.repeat(self.start[rows] - start[:-1], count)
        return SparseRows(start, self.kind[at], self.amount[at])

    def cut(self, first: int, end: int) -> "SparseRows":
        begin, stop = self.start[first], self.start[end]
        start = self.start[first : end + 1] - begin
        return SparseRows(start, self.kind[begin:stop], self.amount[begin:stop])

    def table(self, first: int, end: int) -> tuple[Ints, Ints]:
        """Return rows as their kinds (K,) and a table (n, K); all must have the same kinds."""
        begin, second, stop = self.start[first], self.start[first + 1], self.start[end]
        kind = self.kind[begin:second]
        return kind, self.amount[begin:stop].reshape(end - first, len(kind))


def joined(tables: list[SparseRows]) -> SparseRows:
    if len(tables) == 1:
        return tables[0]
    # Shift the starts of each piece by the number of parts in the pieces before it.
    ends = np.cumsum([0, *(len(each.kind) for each in tables)])
    starts = [each.start[1:] + end for each, end in zip(tables, ends, strict=False)]
    return SparseRows(
        start=np.concatenate([np.zeros(1, np.int64), *starts]),
        kind=np.concatenate([np.empty(0, np.int64), *(each.kind for each in tables)]),
        amount=np.concatenate([np.empty(0, np.int64), *(each.amount for each in tables)]),
    )


def rows_of(snapshot: Snapshot, grants: Grants) -> SparseRows:
    """Return grants as rows by kind; adds up several parts of one kind in a grant."""
    specials = snapshot.specials
    if not len(grants.special):  # the usual case
        plain = snapshot.filters.plain_kind
        order = np.argsort(plain, kind="stable")
        return SparseRows(*_plain_rows(*map(loop_view, (grants.amount, plain, order))))
    # Each non-zero cell is a part. Special amounts are parts already.
    row, column = np.nonzero(grants.amount)
    kind = snapshot.filters.plain_kind[column]
    amount = grants.amount[row, column]
    row = np.concatenate([row, grants.special_grant])
    kind = np.concatenate([kind, specials.kind[grants.special]])
    amount = np.concatenate([amount, grants.special_amount])
    # Sort by row, then by kind; equal keys become neighbours and are added up.
    key = pair(row, kind)
    order = np.argsort(key, kind="stable")
    key, amount = key[order], amount[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else order
    if len(first) < len(key):
        amount, key = np.add.reduceat(amount, first), key[first]
    start = np.searchsorted(key, np.arange(len(grants) + 1) << np.int64(32))
    return SparseRows(start, key & (2**32 - 1), amount)


@loop
def _plain_rows(amount: Ints, plain_kind: Ints, order: Ints) -> tuple[Ints, Ints, Ints]:
    """Turn amounts by column (G, R) into the fields of `SparseRows`; columns by ascending kind."""
    count, end = amount.size, 0
    start, kind = np.zeros(len(amount) + 1, np.int64), np.empty(count, np.int64)
    part = np.empty(count, np.int64)
    for row in range(len(amount)):
        for column in order:
            if amount[row, column] != 0:
                kind[end], part[end] = plain_kind[column], amount[row, column]
                end += 1
        start[row + 1] = end
    return start, kind[:end], part[:end]


def groups_of(rows: SparseRows) -> tuple[Ints, Ints]:
    """Divide rows into groups with the same kinds.

    Returns `order` (N,): the rows, group by group; groups are in the order of their first rows.
    `end` (G,): the index in `order` after the last row of each group.
    """
    size, count = len(rows.start) - 1, np.diff(rows.start)
    if not size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # Usually all rows have the same kinds.
    if (count == count[0]).all():
        kinds = rows.kind.reshape(size, count[0])
        if (kinds == kinds[0]).all():
            return np.arange(size), np.array([size])
    # For each row: the first row with the same kinds.
    first: dict[bytes, int] = {}
    bounds = zip(rows.start[:-1].tolist(), rows.start[1:].tolist(), strict=True)
    kinds_of_rows = (rows.kind[begin:end].tobytes() for begin, end in bounds)
    leader = np.array([first.setdefault(each, row) for row, each in enumerate(kinds_of_rows)])
    order = np.argsort(leader, kind="stable")
    led = leader[order]
    return order, np.flatnonzero(np.append(led[1:] != led[:-1], True)) + 1
