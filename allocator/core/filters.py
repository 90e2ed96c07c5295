"""Refusals: what a client declined on an agent is not offered to it again for a while.

A filter bars whatever its amounts cover. It stands in two doubly linked lists, its agent's (for
cycles) and its client's (for revive). Of two filters of the same pair, one that covers the other
and lives at least as long replaces it, so that steady declining does not pile filters up.
"""

from typing import NamedTuple

import numba
import numpy as np

from allocator.core.arrays import grow, push, unlink
from allocator.core.snapshot import Filters, Ints

_NEVER = np.iinfo(np.int64).max


class Refusals(NamedTuple):
    """The arrays of all filters, as the compiled loops take them.

    Attributes
    ----------
    agent, client : (X,) int64
        0 where the row is free.
    amount : (X, K) int64
        By kind.
    expires_ms : (X,) int64
        Last moment at which the filter is in force.
    of_agent, next_of_agent, previous_of_agent : (A,), (X,), (X,) int64
    of_client, next_of_client, previous_of_client : (C,), (X,), (X,) int64
    spare : (X,) int64
        Free rows, as a stack.
    per_client : (C,) int64
        Filters of each client.
    """

    agent: Ints
    client: Ints
    amount: Ints
    expires_ms: Ints
    of_agent: Ints
    next_of_agent: Ints
    previous_of_agent: Ints
    of_client: Ints
    next_of_client: Ints
    previous_of_client: Ints
    spare: Ints
    per_client: Ints


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
    filters.per_client[client] -= 1
    filters.spare[spare] = row
    return spare + 1


@numba.njit(cache=True)
def _add(
    filters: Refusals, client: Ints, agent: Ints, amount: Ints, expires_ms: Ints, spare: int
) -> int:
    """Add filters; returns how many rows are spare afterwards. There is room for all."""
    for i in range(len(client)):
        row = filters.of_agent[agent[i]]
        covered = False
        while row >= 0 and not covered:
            following = filters.next_of_agent[row]
            if filters.client[row] == client[i]:
                if filters.expires_ms[row] >= expires_ms[i]:
                    covered = _covers(filters.amount[row], amount[i])
                if (
                    not covered
                    and filters.expires_ms[row] <= expires_ms[i]
                    and _covers(amount[i], filters.amount[row])
                ):
                    spare = _remove(filters, row, spare)
            row = following
        if covered:
            continue
        spare -= 1
        row = filters.spare[spare]
        filters.agent[row] = agent[i]
        filters.client[row] = client[i]
        filters.amount[row] = amount[i]
        filters.expires_ms[row] = expires_ms[i]
        filters.per_client[client[i]] += 1
        push(filters.of_agent, filters.next_of_agent, filters.previous_of_agent, agent[i], row)
        push(filters.of_client, filters.next_of_client, filters.previous_of_client, client[i], row)
    return spare


@numba.njit(cache=True)
def _drop_list(filters: Refusals, row: int, following: Ints, spare: int) -> int:
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


class FilterTable:
    """All filters in force."""

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` filters; a refusal beyond that is forgotten, and counted."""
        none = np.empty(0, np.int64)
        self.rows = Refusals(
            agent=none,
            client=none,
            amount=np.empty((0, 0), np.int64),
            expires_ms=none,
            of_agent=none,
            next_of_agent=none,
            previous_of_agent=none,
            of_client=none,
            next_of_client=none,
            previous_of_client=none,
            spare=none,
            per_client=none,
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
        self.rows = rows._replace(
            amount=grow(rows.amount, len(rows.agent), kinds),
            of_agent=_grow_heads(rows.of_agent, agents),
            of_client=_grow_heads(rows.of_client, clients),
            per_client=grow(rows.per_client, clients),
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

    def by_column(self, kind_of_column: Ints) -> Filters:
        """Show the filters to policies, with one column for each of these kinds.

        A resource without a kind (-1) cannot have been refused, and cannot be offered either.
        """
        rows = self.rows
        if np.array_equal(kind_of_column, np.arange(rows.amount.shape[1])):
            amount = rows.amount
        else:
            amount = rows.amount[:, kind_of_column] * (kind_of_column >= 0)
        return Filters(rows.of_agent, rows.next_of_agent, rows.client, np.ascontiguousarray(amount))

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


def _grow_heads(heads: Ints, owners: int) -> Ints:
    larger = grow(heads, owners)
    if len(larger) > len(heads):
        larger[len(heads) :] = -1
    return larger
