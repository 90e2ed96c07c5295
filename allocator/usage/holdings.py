"""Clients' holdings, and their integrals over time.

A change costs a few operations on the rows of its clients; only `take_out` and `renew` visit all
rows.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from allocator.core import FrameworkInfo, Ints, State
from allocator.usage.buckets import NOT_KNOWN

STEP_MS = 900_000
"""Maximum time between two calls of `take_out`, because of `_BITS`."""

_BITS = 20
"""Amounts are split at this bit, so that both integrals of a step fit into an int64: a client holds
less than 2**61 thousandths (`CAPACITY_MAX` of each agent), and a step is less than 2**20 ms."""

RESOURCES_MAX = 32
"""Maximum number of resources that are counted: the first ones of the books."""


class Owner(NamedTuple):
    """The owner of a row; `title` is the framework's own name."""

    role: str
    framework: str
    principal: str
    title: str


Names: TypeAlias = tuple[str, ...]
"""The names under which a row is counted, one for each of `BY`."""

Put: TypeAlias = Callable[[Names, list[dict[str, int]]], None]
"""Receives the integrals of one row: used and offered amounts, by resource."""


class Holdings:
    """What each client holds, and the integrals since the last `take_out`.

    `capacity`: capacity of the cluster, by resource; at least what is held, because an agent that
        shrank may hold more than it has.
    """

    def __init__(
        self, state: State, now_ms: int, place: Callable[[Owner], Names], put: Put
    ) -> None:
        """Start counting, and let the books record which clients change.

        `place`: returns the names for an owner; called once per row until `renew`.
        """
        self.state = state
        self.capacity: dict[str, int] = {}
        self._now_ms = now_ms
        self._place = place
        self._put = put
        self._names: list[Names | None] = []
        # Identifies each row's owner: framework, role, and the framework's information.
        self._marks: list[tuple[int, int, FrameworkInfo | None] | None] = []
        self._not_known = set[int]()
        self._since_ms: Ints = np.zeros(0, np.int64)
        self._choose()
        self._ledger = state.ledger
        self._ledger.changed = []
        self._take(np.flatnonzero(state.clients.framework))
        self.read_capacity()

    def leave(self) -> None:
        self._ledger.changed = None

    def is_of(self, state: State) -> bool:
        """Whether these are the holdings of these books, with all kinds that are bound now."""
        return (
            self.state is state
            and self._ledger is state.ledger
            and self._space_version == state.space.version
        )

    def _choose(self) -> None:
        space = self.state.space
        self._space_version = space.version
        self.resources: list[str] = []
        kinds, columns = [], []
        for handle, kind in enumerate(space.kinds):
            if kind is None or not kind.scalar or kind.shared:
                continue
            if kind.name not in self.resources:
                if len(self.resources) == RESOURCES_MAX:
                    continue
                self.resources.append(kind.name)
            kinds.append(handle)
            columns.append(self.resources.index(kind.name))
        self._kinds, self._columns = np.array(kinds, np.int64), np.array(columns, np.int64)
        shape = (0, 2, len(self.resources))
        # By client, used or offered, and resource: amounts held, and their integrals in two parts.
        self._amount, self._high, self._low = (np.zeros(shape, np.int64) for _ in range(3))
        self._held = np.zeros(len(self.resources), np.int64)  # sum of `_amount`

    @property
    def has_other_capacity(self) -> bool:
        """Whether the capacity to count may have changed since it was read."""
        if self._agents_version != self.state.agents.version:
            return True
        return bool((np.maximum(self._total, self._held) != self._counted).any())

    def read_capacity(self) -> None:
        self._agents_version = self.state.agents.version
        self._total = self._by_resource(self.state.total_by_kind()[:, None])[0]
        self._counted = np.maximum(self._total, self._held)
        self.capacity = dict(zip(self.resources, self._counted.tolist(), strict=True))

    def advance(self, now_ms: int) -> None:
        """Advance the time; the integrals of a row are updated when the row changes."""
        self._now_ms = now_ms

    def skip(self, now_ms: int) -> None:
        """Advance the time without counting it; call `take_out` before."""
        self._since_ms[:] = now_ms
        self._now_ms = now_ms

    def follow(self) -> None:
        changed = self._ledger.changed
        assert changed is not None
        if not changed and not self._not_known:
            return
        rows = np.unique(np.concatenate([self._subscribed(), *changed]))
        changed.clear()
        rows = rows[rows > 0]
        self._settle(rows[rows < len(self._marks)])
        self._take(rows)

    def _subscribed(self) -> Ints:
        infos, framework = self.state.frameworks.info, self.state.clients.framework
        found = [row for row in self._not_known if infos[int(framework[row])] is not None]
        return np.array(found, np.int64)

    def _settle(self, rows: Ints) -> None:
        """Update the integrals of rows (N,) to the current time."""
        span_ms = (self._now_ms - self._since_ms[rows])[:, None, None]
        amount = self._amount[rows]
        self._high[rows] += (amount >> _BITS) * span_ms
        self._low[rows] += (amount & ((1 << _BITS) - 1)) * span_ms
        self._since_ms[rows] = self._now_ms

    def _take(self, rows: Ints) -> None:
        """Copy the holdings of rows (N,) whose integrals are up to date or new."""
        clients, books, infos = self.state.clients, self._ledger.books, self.state.frameworks.info
        self._grow(len(clients.framework))
        offered = self._by_resource(books.client_offered[:, rows])
        used = self._by_resource(books.client_held[:, rows]) - offered
        amount = np.stack([used, offered], axis=1)
        pairs = zip(clients.framework[rows].tolist(), clients.role[rows].tolist(), strict=True)
        holds: list[bool] = np.any(amount, axis=(1, 2)).tolist()
        for row, (framework, role), something in zip(rows.tolist(), pairs, holds, strict=True):
            mark = framework, role, infos[framework]
            if self._marks[row] != mark:
                self._take_out(row)
                self._marks[row], self._names[row] = mark, None
                self._not_known.discard(row)
                if framework and mark[2] is None:
                    self._not_known.add(row)
            if something and self._names[row] is None:
                self._names[row] = self._place(self._owner(row))
        self._held += (amount - self._amount[rows]).sum(axis=(0, 1))
        self._amount[rows] = amount
        self._since_ms[rows] = self._now_ms

    def _by_resource(self, amounts: Ints) -> Ints:
        """Sum amounts by kind (K, N) by resource: (N, R)."""
        chosen = amounts[self._kinds]
        if len(self._kinds) == len(self.resources):  # usually one kind for each, in this order
            return chosen.T
        found = np.zeros((len(self.resources), amounts.shape[1]), np.int64)
        np.add.at(found, self._columns, chosen)
        return found.T

    def _owner(self, row: int) -> Owner:
        mark = self._marks[row]
        assert mark is not None
        _, role, info = mark
        path = self.state.roles.path[role]
        if info is None:
            return Owner(path, NOT_KNOWN, NOT_KNOWN, "")
        return Owner(path, info.framework_id, info.principal, info.name)

    def _grow(self, rows: int) -> None:
        more = rows - len(self._marks)
        if more <= 0:
            return
        self._marks.extend([None] * more)
        self._names.extend([None] * more)
        self._since_ms = np.append(self._since_ms, np.full(more, self._now_ms))
        nothing = np.zeros((more, *self._amount.shape[1:]), np.int64)
        self._amount = np.append(self._amount, nothing, axis=0)
        self._high = np.append(self._high, nothing, axis=0)
        self._low = np.append(self._low, nothing, axis=0)

    # All rows.

    def take_out(self) -> None:
        """Pass all integrals up to now to `put`, and restart them at 0."""
        self._settle(np.flatnonzero(self._amount.any(axis=(1, 2))))
        for row in np.flatnonzero((self._high | self._low).any(axis=(1, 2))).tolist():
            self._take_out(row)

    def _take_out(self, row: int) -> None:
        high, low, names = self._high[row].tolist(), self._low[row].tolist(), self._names[row]
        if names is None:
            return  # it has never held anything
        parts = []
        for coarse, fine in zip(high, low, strict=True):
            sums = ((one << _BITS) + other for one, other in zip(coarse, fine, strict=True))
            named = zip(self.resources, sums, strict=True)
            parts.append({name: amount for name, amount in named if amount})
        self._high[row], self._low[row] = 0, 0
        self._put(names, parts)

    def renew(self) -> None:
        """Determine the names of all clients with holdings again, in the order of rows."""
        holding = np.flatnonzero(np.any(self._amount, axis=(1, 2))).tolist()
        self._names = [None] * len(self._names)
        for row in holding:
            self._names[row] = self._place(self._owner(row))
