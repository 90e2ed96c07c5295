"""Filters: what a client declined on an agent is not offered to it again for a while.

A filter bars any offer whose amounts it covers. Each filter is in three doubly linked lists: by
agent (for cycles), by client (for revive) and by expiry time. Of two filters of the same pair, one
that covers the other and lasts at least as long replaces it, so repeated declines do not accumulate
filters. `coverage` computes for each pair whether a filter covers all that could be offered.
"""

import numpy as np

from allocator.core.bounds import FILTER_BYTES_MAX, FRAMEWORK_FILTERS_MAX
from allocator.core.filters import coverage, filter_arrays
from allocator.core.filters.coverage import Forms, Offerable
from allocator.core.filters.filter_arrays import (
    COLUMNS,
    MAYBE_WORDS,
    PAGES,
    FilterArrays,
    page_of,
)
from allocator.core.filters.rest_kind_filters import RestKindFilters
from allocator.core.numba.bit_tables import packed, rows_of, words_for
from allocator.core.numba.columns import grown, new_arrays
from allocator.core.numba.compiled import loop_view
from allocator.core.numba.wide_tables import columns_of, untouched
from allocator.core.snapshot import Bools, Filters, Ints

_ROW_BYTES = 64
"""Approximate size in bytes of a filter, without its amounts."""


class FilterTable:
    """All filters in force."""

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` filters; drop and count those beyond it."""
        self.rows = grown(new_arrays(FilterArrays, COLUMNS), COLUMNS, page=PAGES)
        self.forgotten = 0
        self.rest_kinds = RestKindFilters()
        self._seen: Ints = np.empty((0, 0), np.int64)
        self._forms: Forms | None = None
        self._limit = limit
        self._spare = 0
        self._since_ms = 0

    def __len__(self) -> int:
        return len(self.rows.spare) - self._spare

    def reserve(self, *, agents: int = 0, clients: int = 0, kinds: int = 0) -> None:
        self._make_rows(0)
        words = words_for(clients)
        sizes = {"filter": 0, "agent": agents, "client": clients, "kind": kinds, "word": words}
        sizes["maybe"] = min(words, MAYBE_WORDS)
        self.rows = grown(self.rows, COLUMNS, **sizes)

    def has_room(self, count: int) -> bool:
        """Whether `count` more filters fit without limiting any framework to its part."""
        return len(self) + count <= self._most() // 2

    def satiated(self, framework: Ints) -> tuple[int, ...]:
        """Return the frameworks with as many filters as one may have; they get no more offers.

        When half of the rows are in use, a framework may have as many as are free.

        Otherwise they could add filters without end. If filters were forgotten instead, agents
        would still be granted to the framework, and the host, which knows these filters, would
        reject the decisions.

        `framework` (C,): the framework of each client.
        """
        most = FRAMEWORK_FILTERS_MAX
        if not self.has_room(0):
            most = min(most, max(self._most() - len(self), 1))
        if len(self) < most:
            return ()
        own = np.bincount(framework, self.rows.per_client[: len(framework)])
        return tuple(np.flatnonzero(own >= most).tolist())

    def add(
        self,
        client: Ints,
        agent: Ints,
        kind: Ints,
        amount: Ints,
        expires_ms: Ints,
        framework: Ints,
    ) -> None:
        """Add filters, in force up to and including `expires_ms` (N,).

        `kind` (k,), `amount` (N, k): the refused amounts.
        `framework` (C,): the framework of each client.
        """
        if not self.has_room(len(client)):
            kept = self._within_share(framework, client, self._most() - len(self))
            self.forgotten += len(client) - len(kept)
            client, agent, amount = client[kept], agent[kept], amount[kept]
            expires_ms = expires_ms[kept]
        if not len(client):
            return
        self._make_rows(len(client))
        # A filter that has expired already goes into the page that the next `expire` checks first.
        expires_ms = np.maximum(expires_ms, self._since_ms - 1)
        rows = client, agent, kind, np.ascontiguousarray(amount), expires_ms
        self._spare = filter_arrays.add(self.rows, *rows, self._spare)

    def _most(self) -> int:
        """Return the maximum number of filters, whose size depends on the number of kinds."""
        row_bytes = _ROW_BYTES + 8 * len(self.rows.amount)
        return min(self._limit, FILTER_BYTES_MAX // row_bytes)

    def _within_share(self, framework: Ints, client: Ints, free: int) -> Ints:
        """Choose which filters to keep when few rows are free.

        No framework gets more rows than remain free, so that others can still add filters.
        """
        own = np.bincount(framework, self.rows.per_client[: len(framework)])
        who = framework[client]
        order = np.argsort(who, kind="stable")
        ranked = who[order]
        before = np.empty(len(who), np.int64)
        before[order] = np.arange(len(who)) - np.searchsorted(ranked, ranked)
        return np.flatnonzero(2 * before + own[who] < free)[: max(free, 0)]

    def refuse_rest(self, client: int, agent: int, kind: int, amount: int, expires_ms: int) -> None:
        """Do not offer a client this amount of a rest kind, see `RestKindFilters`."""
        self.rest_kinds.add(client, agent, kind, amount, expires_ms)
        self.rows.stale[agent] = True

    def expire(self, now_ms: int) -> None:
        self.rows.stale[self.rest_kinds.expire(now_ms)] = True
        self._spare = filter_arrays.expire(self.rows, self._since_ms, now_ms, self._spare)
        self._since_ms = now_ms

    def drop_agent(self, agent: int) -> None:
        self.rest_kinds.drop_agent(agent)
        rows = self.rows
        self._spare = filter_arrays.drop_list(
            rows, rows.of_agent[agent], rows.next_of_agent, self._spare
        )

    def drop_client(self, client: int) -> None:
        if len(self.rest_kinds):
            self.rows.stale[self.rest_kinds.drop_client(client)] = True
        rows = self.rows
        self._spare = filter_arrays.drop_list(
            rows, rows.of_client[client], rows.next_of_client, self._spare
        )

    def of_client(self, client: int, most: int) -> tuple[Ints, Ints]:
        """List at most `most` filters of a client; return `agent`, `expires_ms` (n,)."""
        found: list[int] = []
        row = int(self.rows.of_client[client])
        while row >= 0 and len(found) < most:
            found.append(row)
            row = int(self.rows.next_of_client[row])
        rows = np.array(found, np.int64)
        return self.rows.agent[rows].astype(np.int64), self.rows.expires_ms[rows]

    def show(self, offerable: Offerable, takes: Ints, agents: Ints, touched: Bools) -> Filters:
        """Return the filters on the agents of a cycle, for policies.

        `takes` (C,): clients' capabilities, see `ClientTable`.
        `agents` (J,): rows, ascending.
        `touched` (A,): agents whose free amounts may have changed since the last call; cleared.
        """
        rows = self.rows
        # Always use the same memory layout: another one would compile the loop again.
        offerable = Offerable._make(map(loop_view, offerable))
        # With more agents or resources than before, recompute all bits.
        if self._seen.shape != (len(rows.stale), offerable.free.shape[1]):
            self._seen = untouched((len(rows.stale), offerable.free.shape[1]), np.int64)
            rows.stale[:] = True
        forms = Forms(offerable.demand, offerable.known, offerable.opening, takes)
        coverage.mark_stale(rows, coverage.changed_clients(self._forms, forms))
        self._forms = forms
        known = packed(offerable.known, rows.covered)
        coverage.refresh(rows, offerable, agents, touched, self._seen, known)
        every = len(agents) == len(rows.stale)  # then the lists need not be selected
        return Filters(
            head=rows.of_agent if every else rows.of_agent[agents],
            next=rows.next_of_agent,
            client=rows.client,
            amount=rows.amount,
            plain_kind=offerable.plain_kind,
            largest=rows.largest if every else columns_of(rows.largest, agents),
            covered=rows.covered if every else rows_of(rows.covered, agents),
        )

    def _make_rows(self, more: int) -> None:
        old = len(self.rows.agent)
        if self._spare >= more and old:
            return
        self.rows = rows = grown(self.rows, COLUMNS, filter=old + max(more, old, 8))
        # Push in reverse, so that the lowest new row is taken first.
        fresh = np.arange(len(rows.agent) - 1, old - 1, -1)
        rows.spare[self._spare : self._spare + len(fresh)] = fresh
        self._spare += len(fresh)

    def check(self) -> None:
        """Verify that each filter is in all of its lists, and that no row is lost; slow."""
        rows = self.rows
        live = np.flatnonzero(rows.agent > 0)
        assert len(live) == len(self)
        assert sorted(rows.spare[: self._spare].tolist() + live.tolist()) == list(
            range(len(rows.agent))
        )
        page = np.array([page_of(each) for each in rows.expires_ms.tolist()])
        # Each kind of list contains exactly the rows in use.
        for heads, following, owner in (
            (rows.of_agent, rows.next_of_agent, rows.agent),
            (rows.of_client, rows.next_of_client, rows.client),
            (rows.of_page, rows.next_of_page, page),
        ):
            seen = []
            for head in np.flatnonzero(heads >= 0):
                row = heads[head]
                while row >= 0:
                    assert owner[row] == head
                    seen.append(row)
                    row = following[row]
            assert sorted(seen) == live.tolist()
        assert (
            np.bincount(rows.client[live], minlength=len(rows.per_client)) == rows.per_client
        ).all()
