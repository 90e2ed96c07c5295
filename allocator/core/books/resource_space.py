"""The resource space: all kinds of resources, and the column that each kind belongs to."""

from collections.abc import Iterable, Mapping

import numpy as np

from allocator.core.events import EventError
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.resources import Kind
from allocator.core.snapshot import Bools, Ints


@loop
def _add_by_column(
    amounts: Ints, rows: Ints, kinds: Ints, column_of_kind: Ints, columns: Ints
) -> None:
    for kind in kinds:
        column = column_of_kind[kind]
        for place in range(len(rows)):
            columns[place, column] += amounts[kind, rows[place]]


NOWHERE = "(unknown resource)"
"""The column for all names that no agent has; a demand in this column fits nowhere."""


class ResourceSpace:
    """Kinds by handle, and columns by name.

    A name gets a permanent column when a kind or an operator's quota, limit or default minimum
    first mentions it. Names in frameworks' input do not get columns.

    `column_of_kind` (K,).
    `scalar_kind`, `bounded_kind`, `shared_kind` (K,): the property of the same name of each kind;
        False if the handle is not bound.
    `rest`: handles of kinds with `Kind.rest`.
    `version`: grows whenever a kind is bound.
    """

    def __init__(self, limit: int, excluded: frozenset[str]) -> None:
        """Allow at most `limit` kinds; names in `excluded` do not count towards shares."""
        self._limit = limit
        self._excluded = excluded
        self.kinds: list[Kind | None] = []
        self.rest: list[int] = []
        self.names: list[str] = []
        self._column: dict[str, int] = {}
        self._nowhere = -1
        self._not_scalar: set[str] = set()
        self.version = 0
        self.column_of_kind: Ints = np.empty(0, np.int64)
        self._is_plain = True
        self.scalar_kind: Bools = np.empty(0, np.bool_)
        self.bounded_kind: Bools = np.empty(0, np.bool_)
        self.shared_kind: Bools = np.empty(0, np.bool_)

    def __len__(self) -> int:
        return len(self.kinds)

    def column(self, name: str) -> int:
        """Return the column of a resource; creates it if necessary."""
        if name not in self._column:
            self._column[name] = len(self.names)
            self.names.append(name)
        return self._column[name]

    def check_kind(self, handle: int, kind: Kind, field: str) -> None:
        if not 0 <= handle < self._limit:
            message = f"kind {handle} is out of range; handles of kinds are 0 to {self._limit - 1}"
            raise EventError("limit", field, message)
        known = self.kinds[handle] if handle < len(self.kinds) else None
        if known is not None and known != kind:
            message = f"kind {handle} is bound to {known}; bind {kind.name!r} to another handle"
            raise EventError("handle", field, message)

    def bind(self, handle: int, kind: Kind) -> None:
        more = handle + 1 - len(self.kinds)
        if more > 0:
            self.kinds.extend([None] * more)
            self.column_of_kind = np.append(self.column_of_kind, np.zeros(more, np.int64))
            self.scalar_kind = np.append(self.scalar_kind, np.zeros(more, np.bool_))
            self.bounded_kind = np.append(self.bounded_kind, np.zeros(more, np.bool_))
            self.shared_kind = np.append(self.shared_kind, np.zeros(more, np.bool_))
        self.kinds[handle] = kind
        self.version += 1
        self.column_of_kind[handle] = self.column(kind.name)
        # Usually each name has one kind, in the same order; then no conversion is needed.
        self._is_plain = bool((self.column_of_kind == np.arange(len(self.kinds))).all())
        self.scalar_kind[handle] = kind.scalar
        self.bounded_kind[handle] = kind.bounded
        self.shared_kind[handle] = kind.shared
        if kind.rest and handle not in self.rest:
            self.rest.append(handle)
        if not kind.scalar:
            self._not_scalar.add(kind.name)

    def vector(self, amounts: Mapping[int, int], field: str) -> Ints:
        """Return amounts by kind as a row (K,). Raises EventError if a kind is not bound."""
        self.check_bound(amounts, field)
        row = np.zeros(len(self.kinds), np.int64)
        for handle, amount in amounts.items():
            row[handle] = amount
        return row

    def has(self, kinds: Iterable[int]) -> bool:
        known = self.kinds
        return all(0 <= kind < len(known) and known[kind] is not None for kind in kinds)

    def check_bound(self, kinds: Iterable[int], field: str) -> None:
        for handle in kinds:
            if not self.has((handle,)):
                message = f"kind {handle} is not bound; define it before it is used"
                raise EventError("handle", field, message)

    def unknown(self, quantities: Mapping[str, int]) -> frozenset[str]:
        """Return the names of non-zero amounts that have no column."""
        column = self._column
        found = [name for name, amount in quantities.items() if amount and name not in column]
        return frozenset(found)

    def make_nowhere(self) -> None:
        if self._nowhere < 0:
            self._nowhere = len(self.names)
            self.names.append(NOWHERE)

    def demanded(self, quantities: Mapping[str, int]) -> list[int]:
        """Return a framework's amounts by column (R,); names without a column count as `NOWHERE`.

        For such names, `make_nowhere` must have created the column.
        """
        row = [0] * len(self.names)
        for name, amount in quantities.items():
            if amount:
                column = self._column.get(name, self._nowhere)
                assert column >= 0, f"make the column for {name} first"
                row[column] = max(row[column], amount)
        return row

    def quantities(self, quantities: Mapping[str, int]) -> Ints:
        """Return amounts by name as a row of columns (R,); new names get a column."""
        columns = [self.column(name) for name in quantities]
        row = np.zeros(len(self.names), np.int64)
        row[columns] = list(quantities.values())
        return row

    def named(self, row: Ints) -> dict[str, int]:
        """Return a row of columns as amounts by name, without zeros."""
        return {self.names[column]: int(row[column]) for column in np.flatnonzero(row)}

    @property
    def counted(self) -> Bools:
        skipped = self._excluded | self._not_scalar
        return np.array([name not in skipped for name in self.names], np.bool_)

    @property
    def scalar(self) -> Bools:
        return np.array([name not in self._not_scalar for name in self.names], np.bool_)

    @property
    def plain_kind(self) -> Ints:
        """The plain kind of each column, (R,); -1: none.

        If a name has several plain kinds (for example ranges and sets), this is the first one; the
        others are treated as special kinds that every client may have.
        """
        plain = np.full(len(self.names), -1, np.int64)
        # In reverse, so that the first kind of a name is written last.
        for handle, kind in reversed(list(enumerate(self.kinds))):
            if kind is not None and kind.plain:
                plain[self._column[kind.name]] = handle
        return plain

    def by_column(
        self, amounts: Ints, rows: Ints | None = None, *, kinds: Bools | None = None
    ) -> Ints:
        """Sum amounts (K, n) by name: (n, R).

        `rows` (m,): only of these, (m, R). `kinds` (K,): only amounts of these kinds.
        """
        is_plain = self._is_plain and len(amounts) == len(self.names) == len(self.kinds)
        if is_plain and rows is None and kinds is None:
            return amounts.T.copy()
        rows = np.arange(amounts.shape[1]) if rows is None else rows
        columns = np.zeros((len(rows), len(self.names)), np.int64)
        # The books may have more kinds than are bound.
        most = min(len(amounts), len(self.kinds))
        some = np.arange(most) if kinds is None else np.flatnonzero(kinds[:most])
        of_kind = loop_view(self.column_of_kind)
        selected = loop_view(rows), loop_view(some)
        _add_by_column(loop_view(amounts), *selected, of_kind, columns)
        return columns
