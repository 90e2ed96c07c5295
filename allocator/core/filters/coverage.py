"""Computes which filters cover all that their clients could be offered: a bit for each pair.

Only the agents of a cycle are updated; the bits of other agents may be out of date. A bit is
recomputed only after filters were dropped, or free amounts or the form of a client's offers
changed. Filters that stay in force therefore cost cycles nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from allocator.core.filters.filter_arrays import FilterArrays, bit_of, maybe_word
from allocator.core.numba.array_structures import some
from allocator.core.numba.bit_tables import (
    clear_word,
    has_bit,
    keep_bits,
    set_bit,
    width,
    word_of,
)
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.snapshot import BitTable, BitWords, Bools, Filters, Ints, Snapshot


class Offerable(NamedTuple):
    """What each client could be offered if no other client were served, from the snapshot.

    `free` (J, R), `start` (J + 1,), `row`, `special_free` (E,), `kind` (S,), `reach` (S, W): for
        the agents of the cycle, see `Specials`.
    `plain_kind` (R,); `demand` (C, R), in thousandths; `known` (C,).
    `opening` (C,): see `opening_tasks`.
    """

    free: Ints
    start: Ints
    row: Ints
    special_free: Ints
    kind: Ints
    reach: BitWords
    plain_kind: Ints
    demand: Ints
    known: Bools
    opening: Ints


@part()
def _covers_all(
    filters: FilterArrays | Filters, offerable: Offerable, place: int, row: int
) -> bool:
    """Return whether a filter covers all that its client could be offered on its agent."""
    client = filters.client[row]
    first, end = offerable.start[place], offerable.start[place + 1]
    known, opening = offerable.known[client], offerable.opening[client]
    if known and opening != 1 and first < end:
        return False  # the number of tasks depends on special resources
    # Plain resources: the tasks that an offer begins with, or all that is free.
    for r in range(offerable.free.shape[1]):
        offered = offerable.demand[client, r] * opening if known else offerable.free[place, r]
        kind = offerable.plain_kind[r]
        if offered > (filters.amount[kind, row] if kind >= 0 else 0):
            return False
    # Compare all special resources that the client may have: a task may take any of them, and the
    # remaining ones are offered whole.
    for e in range(first, end):
        special = offerable.row[e]
        reached = offerable.reach[special, client >> 6] & bit_of(client) != np.uint64(0)
        if reached and offerable.special_free[e] > filters.amount[offerable.kind[special], row]:
            return False
    return True


@part()
def _look_through(filters: FilterArrays, offerable: Offerable, place: int, agent: int) -> None:
    """Recompute all bits of an agent from its filters."""
    # Clear the bits of clients that may have filters, without writing zeros to unwritten pages.
    for first in range(filters.maybe.shape[1]):
        if filters.maybe[agent, first] != np.uint64(0):
            for word in range(first, width(filters.covered), filters.maybe.shape[1]):
                if word_of(filters.covered, agent, word) != np.uint64(0):
                    clear_word(filters.covered, agent, word)
            filters.maybe[agent, first] = np.uint64(0)
    for kind in range(len(filters.largest)):
        if filters.largest[kind, agent] != 0:
            filters.largest[kind, agent] = 0
    row = filters.of_agent[agent]
    while row >= 0:
        client = filters.client[row]
        filters.maybe[agent, maybe_word(filters, client)] |= bit_of(client)
        for kind in range(len(filters.amount)):
            if filters.amount[kind, row] != 0:
                most = max(filters.largest[kind, agent], filters.amount[kind, row])
                filters.largest[kind, agent] = most
        if not has_bit(filters.covered, agent, client) and _covers_all(
            filters, offerable, place, row
        ):
            set_bit(filters.covered, agent, client)
        row = filters.next_of_agent[row]
    filters.fresh[agent] = 0


@part()
def _look_at_fresh(filters: FilterArrays, offerable: Offerable, place: int, agent: int) -> None:
    """Compute the bits of filters that were added to an agent since its last update."""
    row = filters.of_agent[agent]
    # Filters are added at the head of the list, so fresh ones come first.
    while row >= 0 and filters.fresh[agent] > 0:
        if _covers_all(filters, offerable, place, row):
            set_bit(filters.covered, agent, filters.client[row])
        filters.fresh[agent] -= 1
        row = filters.next_of_agent[row]
    filters.fresh[agent] = 0


@part()
def _is_beyond(filters: FilterArrays, offerable: Offerable, place: int, agent: int) -> bool:
    """Return whether an agent has more of some resource free than any filter there covers."""
    for r in range(offerable.free.shape[1]):
        kind = offerable.plain_kind[r]
        if offerable.free[place, r] > (filters.largest[kind, agent] if kind >= 0 else 0):
            return True
    return False


@part()
def _is_as_seen(seen: Ints, offerable: Offerable, place: int, agent: int) -> bool:
    """Return whether free amounts equal those for which the agent's bits were computed."""
    for r in range(offerable.free.shape[1]):
        if offerable.free[place, r] != seen[agent, r]:
            return False
    return True


@loop
def refresh(
    filters: FilterArrays,
    offerable: Offerable,
    agents: Ints,
    touched: Bools,
    seen: Ints,
    known: BitTable,
) -> None:
    """Update the bits of some agents.

    `agents` (J,): the agents of `offerable`, distinct rows.
    `touched` (A,): agents whose free amounts may have changed; cleared.
    `seen` (A, R): the free amounts that each agent's bits are for; -1: special resources were free.
    `known` (B, 1, V): bits of the clients that are offered whole tasks.
    """
    for place in range(len(agents)):
        agent = agents[place]
        # Without filters there are no bits, whatever is free.
        if filters.of_agent[agent] < 0 and not filters.stale[agent]:
            touched[agent] = False
        if filters.stale[agent] or touched[agent]:
            plain = offerable.start[place] == offerable.start[place + 1]
            # Filters were dropped, or special resources are or were free: recompute everything.
            if filters.stale[agent] or not plain or (len(seen[agent]) and seen[agent, 0] < 0):
                _look_through(filters, offerable, place, agent)
            elif not _is_as_seen(seen, offerable, place, agent):
                if _is_beyond(filters, offerable, place, agent):
                    # Clients that are offered all that is free are no longer covered. Offers of
                    # whole tasks do not depend on what is free, so their bits stay.
                    keep_bits(filters.covered, agent, known)
                else:
                    _look_through(filters, offerable, place, agent)
            # Record the free amounts that these bits are for. Without filters this is not needed,
            # because an agent's first filter marks its bits as stale.
            if filters.of_agent[agent] >= 0:
                for r in range(offerable.free.shape[1]):
                    seen[agent, r] = offerable.free[place, r] if plain else -1
            filters.stale[agent] = False
            touched[agent] = False
        if filters.fresh[agent] > 0:
            _look_at_fresh(filters, offerable, place, agent)


def covering(
    snapshot: Snapshot, agents: Ints, known: Bools, most: int = 2**31
) -> tuple[Ints, Ints]:
    """Return the filters that cover all that their client could be offered, as for `covered`.

    `agents` (n,): rows of the snapshot. If they have more than `most` filters, the result is empty.
    `known` (C,): the clients that are offered whole tasks.
    Returns the agent and the client of each of these filters.
    """
    arrays: tuple[Any, ...] = snapshot.filters
    filters = Filters(*map(loop_view, arrays))
    offerable = Offerable(*map(loop_view, offerable_of(snapshot, known)))
    found: tuple[Ints, Ints] = _covering(filters, offerable, loop_view(agents), most)
    return found


def offerable_of(snapshot: Snapshot, known: Bools) -> Offerable:
    specials = snapshot.specials
    return Offerable(
        free=snapshot.free,
        start=specials.start,
        row=specials.row,
        special_free=specials.free,
        kind=specials.kind,
        reach=specials.reach,
        plain_kind=snapshot.filters.plain_kind,
        demand=snapshot.demand,
        known=known,
        opening=snapshot.opening,
    )


@loop
def _covering(filters: Filters, offerable: Offerable, agents: Ints, most: int) -> tuple[Ints, Ints]:
    count = 0
    for agent in agents:
        row = filters.head[agent]
        while row >= 0 and count <= most:
            count += 1
            row = filters.next[row]
    end, size = 0, count if count <= most else 0
    owner, client = np.empty(size, np.int64), np.empty(size, np.int64)
    for agent in agents[: len(agents) if size > 0 else 0]:
        row = filters.head[agent]
        while row >= 0:
            if _covers_all(filters, offerable, agent, row):
                owner[end], client[end] = agent, filters.client[row]
                end += 1
            row = filters.next[row]
    return owner[:end], client[:end]


class Forms(NamedTuple):
    """What determines the form of offers: fields of `Offerable`, and `ClientTable.takes`."""

    demand: Ints
    known: Bools
    opening: Ints
    takes: Ints


def changed_clients(before: Forms | None, now: Forms) -> Ints:
    """Return the rows of clients whose offers have changed their form, see `Forms`."""
    if before is None or before.demand.shape != now.demand.shape:
        return np.arange(len(now.known))
    same = before.known is now.known and before.demand is now.demand
    same &= before.opening is now.opening
    if same and before.takes is now.takes:  # identical arrays: no need to compare values
        return np.empty(0, np.int64)
    changed = before.known != now.known
    changed |= before.opening != now.opening
    changed |= some(before.demand != now.demand)
    changed |= before.takes != now.takes
    return np.flatnonzero(changed)


@loop
def mark_stale(filters: FilterArrays, clients: Ints) -> None:
    """Mark the agents on which some clients have filters for recomputation."""
    for client in clients:
        row = filters.of_client[client]
        while row >= 0:
            filters.stale[filters.agent[row]] = True
            row = filters.next_of_client[row]
