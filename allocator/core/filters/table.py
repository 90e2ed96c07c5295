"""Refusals: what a client declined on an agent is not offered to it again for a while.

A filter bars whatever its amounts cover. It stands in three doubly linked lists: its agent's (for
cycles), its client's (for revive), and that of the moment at which it expires. Of two filters of
the same pair, one that covers the other and lives at least as long replaces it, so that steady
declining does not pile filters up.

For cycles there is a bit for each pair that says whether a filter covers all that the client could
be offered on the agent, see `coverage`.
"""

import numpy as np

from allocator.core.filters import coverage, refusals
from allocator.core.filters.coverage import Offerable
from allocator.core.filters.refusals import NEVER, PAGES, Refusals, page_of
from allocator.core.filters.rest import RestRefusals
from allocator.core.numba.array_structures import grow, grow_heads, pack
from allocator.core.numba.compiled import loop_view
from allocator.core.snapshot import Bools, Filters, Ints


class FilterTable:
    """All filters in force."""

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` filters; a refusal beyond that is forgotten, and counted."""
        none = np.empty(0, np.int32)
        self.rows = Refusals(
            agent=none,
            client=none,
            amount=np.empty((0, 0), np.int64),
            expires_ms=np.empty(0, np.int64),
            of_agent=none,
            next_of_agent=none,
            previous_of_agent=none,
            of_client=none,
            next_of_client=none,
            previous_of_client=none,
            of_page=np.full(PAGES, -1, np.int32),
            next_of_page=none,
            previous_of_page=none,
            spare=none,
            per_client=np.empty(0, np.int64),
            maybe=np.empty((0, 0), np.uint64),
            covered=np.empty((0, 0), np.uint64),
            stale=np.empty(0, np.bool_),
            fresh=np.empty(0, np.int32),
            largest=np.empty((0, 0), np.int64),
        )
        self.forgotten = 0
        self.rest = RestRefusals()
        self._seen: Ints = np.empty((0, 0), np.int64)
        self._shown: Offerable | None = None
        self._limit = limit
        self._spare = 0
        self._since_ms = 0

    def __len__(self) -> int:
        return len(self.rows.spare) - self._spare

    def reserve(self, *, agents: int = 0, clients: int = 0, kinds: int = 0) -> None:
        """Make room for so many agents, clients and kinds."""
        rows = self.rows
        words = max(rows.maybe.shape[1], -(-clients // 64), 1)
        self.rows = rows._replace(
            amount=grow(rows.amount, len(rows.agent), kinds),
            of_agent=grow_heads(rows.of_agent, agents),
            of_client=grow_heads(rows.of_client, clients),
            per_client=grow(rows.per_client, clients),
            maybe=grow(rows.maybe, agents, words),
            covered=grow(rows.covered, agents, words),
            stale=grow(rows.stale, agents),
            fresh=grow(rows.fresh, agents),
            largest=grow(rows.largest, agents, kinds),
        )
        self._make_rows(0)

    def add(self, client: Ints, agent: Ints, amount: Ints, expires_ms: Ints) -> None:
        """Keep refusals: amounts (N, K) by kind, in force up to and including `expires_ms`."""
        room = self._limit - len(self)
        # There is no room for all: the first ones are kept.
        if len(client) > room:
            self.forgotten += len(client) - room
            client, agent, amount = client[:room], agent[:room], amount[:room]
            expires_ms = expires_ms[:room]
        if not len(client):
            return
        self._make_rows(len(client))
        # What is over already goes with what will be over next.
        expires_ms = np.maximum(expires_ms, self._since_ms - 1)
        self._spare = refusals.add(self.rows, client, agent, amount, expires_ms, self._spare)

    def refuse_rest(self, client: int, agent: int, kind: int, amount: int, expires_ms: int) -> None:
        """Keep a client from so much of a rest kind, see `RestRefusals`."""
        self.rest.add(client, agent, kind, amount, expires_ms)
        self.rows.stale[agent] = True

    def expire(self, now_ms: int) -> None:
        """Drop what is not in force any more."""
        self.rows.stale[self.rest.expire(now_ms)] = True
        self._spare = refusals.expire(self.rows, self._since_ms, now_ms, self._spare)
        self._since_ms = now_ms

    def drop_agent(self, agent: int) -> None:
        """Forget what was refused on an agent."""
        self.rest.drop_agent(agent)
        rows = self.rows
        self._spare = refusals.drop_list(
            rows, rows.of_agent[agent], rows.next_of_agent, self._spare
        )

    def drop_client(self, client: int) -> None:
        """Forget what a client refused."""
        if len(self.rest):
            self.rows.stale[self.rest.drop_client(client)] = True
        rows = self.rows
        self._spare = refusals.drop_list(
            rows, rows.of_client[client], rows.next_of_client, self._spare
        )

    def of_client(self, client: int, most: int) -> tuple[Ints, Ints]:
        """Look at the filters of one client, at most so many of them.

        Returns `agent`, `expires_ms` (n,).
        """
        found: list[int] = []
        row = int(self.rows.of_client[client])
        while row >= 0 and len(found) < most:
            found.append(row)
            row = int(self.rows.next_of_client[row])
        rows = np.array(found, np.int64)
        return self.rows.agent[rows].astype(np.int64), self.rows.expires_ms[rows]

    def show(self, offerable: Offerable, agents: Ints, touched: Bools) -> Filters:
        """Show the filters on some agents to policies.

        `agents` (J,): rows, ascending: those that `offerable` is about.
        `touched` (A,): on which agents something else may be free than when they were shown last;
            cleared.
        """
        rows = self.rows
        # One layout, whatever it was cut from: another one would be compiled for anew.
        offerable = Offerable._make(map(loop_view, offerable))
        # More agents or resources than before: all bits are worked out anew.
        if self._seen.shape != (len(rows.stale), offerable.free.shape[1]):
            self._seen = np.zeros((len(rows.stale), offerable.free.shape[1]), np.int64)
            rows.stale[:] = True
        # So are those of clients that are offered things in another way.
        coverage.mark_stale(rows, coverage.changed_clients(self._shown, offerable))
        self._shown = offerable
        known = pack(offerable.known, rows.covered.shape[1])
        coverage.refresh(rows, offerable, agents, touched, self._seen, known)
        every = len(agents) == len(rows.stale)  # then they are shown as they are
        return Filters(
            head=rows.of_agent if every else rows.of_agent[agents],
            next=rows.next_of_agent,
            client=rows.client,
            amount=rows.amount,
            plain_kind=offerable.plain_kind,
            largest=rows.largest if every else rows.largest[agents],
            covered=rows.covered if every else rows.covered[agents],
        )

    def _make_rows(self, more: int) -> None:
        """Make rows until `more` are spare."""
        old = len(self.rows.agent)
        if self._spare >= more and old:
            return
        rows = self.rows
        size = old + max(more, old, 8)
        self.rows = rows = rows._replace(
            agent=grow(rows.agent, size),
            client=grow(rows.client, size),
            amount=grow(rows.amount, size),
            expires_ms=grow(rows.expires_ms, size),
            next_of_agent=grow(rows.next_of_agent, size),
            previous_of_agent=grow(rows.previous_of_agent, size),
            next_of_client=grow(rows.next_of_client, size),
            previous_of_client=grow(rows.previous_of_client, size),
            next_of_page=grow(rows.next_of_page, size),
            previous_of_page=grow(rows.previous_of_page, size),
            spare=grow(rows.spare, size),
        )
        # The stack gives the lowest of the further rows first.
        fresh = np.arange(len(rows.agent) - 1, old - 1, -1)
        rows.expires_ms[fresh] = NEVER
        rows.spare[self._spare : self._spare + len(fresh)] = fresh
        self._spare += len(fresh)

    def check(self) -> None:
        """Verify that each filter is in all of its lists, and that no row is lost."""
        rows = self.rows
        live = np.flatnonzero(rows.agent > 0)
        assert len(live) == len(self)
        assert sorted(rows.spare[: self._spare].tolist() + live.tolist()) == list(
            range(len(rows.agent))
        )
        page = np.array([page_of(each) for each in rows.expires_ms.tolist()])
        # All kinds of lists hold exactly the rows that are in use.
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
