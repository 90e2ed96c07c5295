"""Refusals: what a client declined on an agent is not offered to it again for a while.

A filter bars whatever its amounts cover. It stands in two doubly linked lists, its agent's (for
cycles) and its client's (for revive). Of two filters of the same pair, one that covers the other
and lives at least as long replaces it, so that steady declining does not pile filters up.

For cycles there is a bit for each pair that says whether a filter covers all that the client could
be offered on the agent. It is worked out again only where something has changed since: so filters
that stay in force cost a cycle nothing, however many they are.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from allocator.core.arrays import grow, push, unlink
from allocator.core.snapshot import Bools, Filters, Indices, Ints, Words

_NEVER = np.iinfo(np.int64).max


class Refusals(NamedTuple):
    """The arrays of all filters, as the compiled loops take them.

    Attributes
    ----------
    agent, client : (X,) int32
        0 where the row is free.
    amount : (X, K) int64
        By kind.
    expires_ms : (X,) int64
        Last moment at which the filter is in force.
    of_agent, next_of_agent, previous_of_agent : (A,), (X,), (X,) int32
    of_client, next_of_client, previous_of_client : (C,), (X,), (X,) int32
    spare : (X,) int32
        Free rows, as a stack.
    per_client : (C,) int64
        Filters of each client.
    maybe : (A, W) uint64
        Bit ``c % 64`` of word ``c // 64``: client c may have a filter on the agent; where it is not
        set, it has none.
    covered : (A, W) uint64
        The same bits: a filter covers all that the client could be offered, see `Filters`.
    stale : (A,) bool
        The agent's row of `covered` has to be worked out again.
    shown : (A,) bool
        The agent had filters when that was done last.
    """

    agent: Indices
    client: Indices
    amount: Ints
    expires_ms: Ints
    of_agent: Indices
    next_of_agent: Indices
    previous_of_agent: Indices
    of_client: Indices
    next_of_client: Indices
    previous_of_client: Indices
    spare: Indices
    per_client: Ints
    maybe: Words
    covered: Words
    stale: Bools
    shown: Bools


class Offerable(NamedTuple):
    """What clients could be offered if they were alone: from the snapshot that is being taken.

    Attributes
    ----------
    free : (A, R), start : (A + 1,), row, special_free : (E,), kind : (S,), reach : (S, W)
        Of the agents, see `Specials`.
    plain_kind : (R,) int64
    demand : (C, R) int64, thousandths
    known : (C,) bool
    """

    free: Ints
    start: Ints
    row: Ints
    special_free: Ints
    kind: Ints
    reach: Words
    plain_kind: Ints
    demand: Ints
    known: Bools


@numba.njit(cache=True)
def _bit(client: int) -> Any:  # noqa: ANN401
    return np.uint64(1) << np.uint64(client & 63)


@numba.njit(cache=True)
def _covers(larger: Ints, smaller: Ints) -> bool:
    for k in range(len(larger)):
        if larger[k] < smaller[k]:
            return False
    return True


@numba.njit(cache=True)
def _remove(filters: Refusals, row: int, spare: int) -> int:
    agent, client = filters.agent[row], filters.client[row]
    unlink(filters.of_agent, filters.next_of_agent, filters.previous_of_agent, agent, row)
    unlink(filters.of_client, filters.next_of_client, filters.previous_of_client, client, row)
    filters.agent[row] = 0
    filters.client[row] = 0
    filters.expires_ms[row] = _NEVER
    filters.stale[agent] = True
    filters.per_client[client] -= 1
    filters.spare[spare] = row
    return spare + 1


@numba.njit(cache=True)
def _add(
    filters: Refusals, client: Ints, agent: Ints, amount: Ints, expires_ms: Ints, spare: int
) -> int:
    """Add filters; returns how many rows are spare afterwards. There is room for all."""
    for i in range(len(client)):
        spare, covered = _replace(filters, client[i], agent[i], amount[i], expires_ms[i], spare)
        if covered:
            continue
        spare -= 1
        row = filters.spare[spare]
        filters.agent[row] = agent[i]
        filters.client[row] = client[i]
        filters.amount[row] = amount[i]
        filters.expires_ms[row] = expires_ms[i]
        filters.per_client[client[i]] += 1
        filters.stale[agent[i]] = True
        filters.maybe[agent[i], client[i] >> 6] |= _bit(client[i])
        push(filters.of_agent, filters.next_of_agent, filters.previous_of_agent, agent[i], row)
        push(filters.of_client, filters.next_of_client, filters.previous_of_client, client[i], row)
    return spare


@numba.njit(cache=True)
def _replace(
    filters: Refusals, client: int, agent: int, amount: Ints, expires_ms: int, spare: int
) -> tuple[int, bool]:
    """Drop the pair's filters that a new one makes superfluous.

    Returns how many rows are spare, and whether it is the new one that is superfluous.
    """
    if filters.maybe[agent, client >> 6] & _bit(client) == np.uint64(0):
        return spare, False
    row = filters.of_agent[agent]
    while row >= 0:
        following = filters.next_of_agent[row]
        if filters.client[row] == client:
            lives = filters.expires_ms[row]
            if lives >= expires_ms and _covers(filters.amount[row], amount):
                return spare, True
            if lives <= expires_ms and _covers(amount, filters.amount[row]):
                spare = _remove(filters, row, spare)
        row = following
    return spare, False


@numba.njit(cache=True)
def _drop_list(filters: Refusals, row: int, following: Indices, spare: int) -> int:
    while row >= 0:
        after = following[row]
        spare = _remove(filters, row, spare)
        row = after
    return spare


@numba.njit(cache=True)
def _expire(filters: Refusals, end: int, now_ms: int, spare: int) -> int:
    for row in range(end):
        if filters.expires_ms[row] < now_ms:
            spare = _remove(filters, row, spare)
    return spare


@numba.njit(cache=True)
def _covers_all(filters: Refusals, offerable: Offerable, row: int) -> bool:
    """Say whether a filter covers all that its client could be offered on its agent."""
    agent, client = filters.agent[row], filters.client[row]
    first, end = offerable.start[agent], offerable.start[agent + 1]
    known = offerable.known[client]
    if known and first < end:
        return False  # of what a task would be made is not known before
    for r in range(offerable.free.shape[1]):
        offered = offerable.demand[client, r] if known else offerable.free[agent, r]
        kind = offerable.plain_kind[r]
        if offered > (filters.amount[row, kind] if kind >= 0 else 0):
            return False
    for e in range(first, end):
        special = offerable.row[e]
        reached = offerable.reach[special, client >> 6] & _bit(client) != np.uint64(0)
        if reached and offerable.special_free[e] > filters.amount[row, offerable.kind[special]]:
            return False
    return True


@numba.njit(cache=True)
def _cover(filters: Refusals, offerable: Offerable, agents: Ints) -> None:
    """Work out the bits of some agents."""
    for agent in agents:
        filters.covered[agent] = np.uint64(0)
        filters.maybe[agent] = np.uint64(0)
        row = filters.of_agent[agent]
        while row >= 0:
            word, bit = filters.client[row] >> 6, _bit(filters.client[row])
            filters.maybe[agent, word] |= bit
            if filters.covered[agent, word] & bit == np.uint64(0) and _covers_all(
                filters, offerable, row
            ):
                filters.covered[agent, word] |= bit
            row = filters.next_of_agent[row]
        filters.stale[agent] = False


@numba.njit(cache=True)
def _mark_stale(filters: Refusals, clients: Ints) -> None:
    for client in clients:
        row = filters.of_client[client]
        while row >= 0:
            filters.stale[filters.agent[row]] = True
            row = filters.next_of_client[row]


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
            spare=none,
            per_client=np.empty(0, np.int64),
            maybe=np.empty((0, 0), np.uint64),
            covered=np.empty((0, 0), np.uint64),
            stale=np.empty(0, np.bool_),
            shown=np.empty(0, np.bool_),
        )
        self.forgotten = 0
        self._limit = limit
        self._spare = 0
        self._next_expiry_ms = _NEVER

    def __len__(self) -> int:
        return len(self.rows.spare) - self._spare

    def reserve(self, *, agents: int = 0, clients: int = 0, kinds: int = 0) -> None:
        """Make room for so many agents, clients and kinds."""
        rows = self.rows
        words = max(rows.maybe.shape[1], -(-clients // 64), 1)
        self.rows = rows._replace(
            amount=grow(rows.amount, len(rows.agent), kinds),
            of_agent=_grow_heads(rows.of_agent, agents),
            of_client=_grow_heads(rows.of_client, clients),
            per_client=grow(rows.per_client, clients),
            maybe=grow(rows.maybe, agents, words),
            covered=grow(rows.covered, agents, words),
            stale=grow(rows.stale, agents),
            shown=grow(rows.shown, agents),
        )
        self._make_rows(0)

    def add(self, client: Ints, agent: Ints, amount: Ints, expires_ms: Ints) -> None:
        """Keep refusals: amounts (N, K) by kind, in force up to and including `expires_ms`."""
        room = self._limit - len(self)
        if len(client) > room:
            self.forgotten += len(client) - room
            client, agent, amount = client[:room], agent[:room], amount[:room]
            expires_ms = expires_ms[:room]
        if not len(client):
            return
        self._make_rows(len(client))
        self._spare = _add(self.rows, client, agent, amount, expires_ms, self._spare)
        self._next_expiry_ms = min(self._next_expiry_ms, int(expires_ms.min()))

    def expire(self, now_ms: int) -> None:
        """Drop what is not in force any more."""
        if self._next_expiry_ms >= now_ms:
            return
        self._spare = _expire(self.rows, len(self.rows.agent), now_ms, self._spare)
        self._next_expiry_ms = int(self.rows.expires_ms.min(initial=_NEVER))

    def drop_agent(self, agent: int) -> None:
        """Forget what was refused on an agent."""
        rows = self.rows
        self._spare = _drop_list(rows, rows.of_agent[agent], rows.next_of_agent, self._spare)

    def drop_client(self, client: int) -> None:
        """Forget what a client refused."""
        rows = self.rows
        self._spare = _drop_list(rows, rows.of_client[client], rows.next_of_client, self._spare)

    def forget_covered(self, clients: Ints) -> None:
        """What these clients could be offered is not what it was."""
        _mark_stale(self.rows, clients)

    def show(self, offerable: Offerable, touched: Bools) -> Filters:
        """Show the filters to policies.

        Parameters
        ----------
        offerable : Offerable
        touched : (A,) bool
            On which agents something else is free than when they were shown last; cleared.
        """
        rows = self.rows
        stale = rows.stale | touched[: len(rows.stale)]
        agents = np.flatnonzero(stale & ((rows.of_agent >= 0) | rows.shown))
        _cover(rows, offerable, agents)
        rows.shown[agents] = rows.of_agent[agents] >= 0
        rows.stale[:] = False
        touched[:] = False
        return Filters(
            head=rows.of_agent,
            next=rows.next_of_agent,
            client=rows.client,
            amount=rows.amount,
            plain_kind=offerable.plain_kind,
            covered=rows.covered,
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
            spare=grow(rows.spare, size),
        )
        fresh = np.arange(len(rows.agent) - 1, old - 1, -1)
        rows.expires_ms[fresh] = _NEVER
        rows.spare[self._spare : self._spare + len(fresh)] = fresh
        self._spare += len(fresh)

    def check(self) -> None:
        """Verify that each filter is in both of its lists, and that no row is lost."""
        rows = self.rows
        live = np.flatnonzero(rows.agent > 0)
        assert len(live) == len(self)
        assert sorted(rows.spare[: self._spare].tolist() + live.tolist()) == list(
            range(len(rows.agent))
        )
        for heads, following, owner in (
            (rows.of_agent, rows.next_of_agent, rows.agent),
            (rows.of_client, rows.next_of_client, rows.client),
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


def _grow_heads(heads: Indices, owners: int) -> Indices:
    larger = grow(heads, owners)
    if len(larger) > len(heads):
        larger[len(heads) :] = -1
    return larger
