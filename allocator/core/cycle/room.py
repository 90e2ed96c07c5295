"""How many tasks fit into what is free on agents, or into grants."""

from typing import NamedTuple

import numpy as np

from allocator.core.numba.bit_tables import has_bit
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.shared_bits import SharedBits, for_loops, has_shared_bit
from allocator.core.snapshot import BitTable, Bools, Grants, Ints, Snapshot, Specials, Tier

MANY = 2**31
"""A number of tasks larger than any gang."""


class Room(NamedTuple):
    """Amounts for tasks at n places, (n, R) each, in thousandths.

    A task takes a resource entirely from `usual` or entirely from `revocable` amounts, and does not
    use up `shared` ones, see `Tier`.
    """

    usual: Ints
    revocable: Ints
    shared: Ints

    def tasks(self, size: Ints) -> Ints:
        """Return how many tasks of a size, (R,) or by place (n, R), fit, (n,)."""
        fit = np.full(len(self.usual), MANY)
        for column in np.flatnonzero(size.any(axis=0) if size.ndim > 1 else size).tolist():
            wanted, one = size[..., column], np.maximum(size[..., column], 1)
            here = self.usual[:, column] // one + self.revocable[:, column] // one
            here = np.where(self.shared[:, column] >= one, MANY, here)
            np.minimum(fit, np.where(wanted > 0, here, MANY), out=fit)
        return np.where(np.any(size > 0, axis=-1), np.maximum(fit, 0), 0)

    def without(self, tasks: Ints, size: Ints) -> "Room":
        """Return the room beside tasks of a size (R,); `tasks` (n,): their number at each place."""
        needed = np.where(self.shared >= np.maximum(size, 1), 0, tasks[:, None] * size)
        usual = np.minimum(needed, self.usual // np.maximum(size, 1) * size)
        return Room(self.usual - usual, self.revocable - (needed - usual), self.shared)

    def some(self, places: Ints) -> "Room":
        return Room._make(amounts[places] for amounts in self)


def room_in(snapshot: Snapshot, grants: Grants) -> Room:
    specials = snapshot.specials
    usual, revocable = grants.amount.copy(), np.zeros_like(grants.amount)
    shared = np.zeros_like(grants.amount)
    tier, column = specials.tier[grants.special], specials.column[grants.special]
    for into, part in (
        (usual, tier < Tier.REVOCABLE),
        (revocable, tier == Tier.REVOCABLE),
        (shared, tier == Tier.SHARED),
    ):
        at = grants.special_grant[part], column[part]
        np.add.at(into, at, grants.special_amount[part])
    return Room(usual, revocable, shared)


def room_on(snapshot: Snapshot, client: int, agents: Ints) -> Room:
    return room_in(snapshot, all_of(snapshot, client, agents))


def tasks_on(snapshot: Snapshot, client: int, size: Ints) -> Ints:
    """Return how many tasks of a client and of a size (R,) fit on each agent, (A,)."""
    if not size.any():
        return np.zeros(len(snapshot.free), np.int64)
    fit = tasks_in(snapshot.free, size)
    agents = np.flatnonzero(np.diff(snapshot.specials.start))
    if len(agents):
        fit[agents] = room_on(snapshot, client, agents).tasks(size)
    return fit


def fits_on_plain(snapshot: Snapshot, client: int, need: int) -> bool | None:
    """Return whether candidate agents without special resources have room for tasks of a client.

    Agents from which rules or filters bar the client do not count; limits and caps are ignored.
    None: they do not, but agents with special resources may.
    """
    found = _count_up_to(
        need,
        client,
        loop_view(snapshot.demand[client]),
        loop_view(snapshot.agents),
        loop_view(snapshot.free),
        loop_view(snapshot.specials.start),
        for_loops(snapshot.excluded),
        loop_view(snapshot.filters.covered),
    )
    return None if found < 0 else bool(found >= need)


@loop
def _count_up_to(
    need: int,
    client: int,
    size: Ints,
    agents: Ints,
    free: Ints,
    special_start: Ints,
    excluded: SharedBits,
    covered: BitTable,
) -> int:
    """Count the tasks of a size (R,) that fit on agents (n,), until there are at least `need`.

    -1: there are fewer, but some agents have special resources; these were left out.
    """
    total, special = 0, False
    for agent in agents:
        if special_start[agent] < special_start[agent + 1]:
            special = True
            continue
        fit = -1  # the demand is unknown
        for r in range(len(size)):
            if size[r] > 0:
                fit = free[agent, r] // size[r] if fit < 0 else min(fit, free[agent, r] // size[r])
                if fit == 0:
                    break
        if fit <= 0:
            continue
        if not has_shared_bit(excluded, agent, client) and not has_bit(covered, agent, client):
            total += fit
            if total >= need:
                return total
    return -1 if special else total


def tasks_in(amounts: Ints, size: Ints) -> Ints:
    """Return how many tasks of a size (R,) fit into each row of amounts (n, R), (n,)."""
    tasks = np.full(len(amounts), MANY)
    for column in np.flatnonzero(size).tolist():
        np.minimum(tasks, amounts[:, column] // int(size[column]), out=tasks)
    return tasks


def all_of(snapshot: Snapshot, client: int, agents: Ints) -> Grants:
    """Return all that a client may have on agents (n,), in the form of grants."""
    specials = snapshot.specials
    grant, part = parts_on(specials, agents)
    mine = reached_by(specials, client)[specials.row[part]] & (specials.free[part] > 0)
    return Grants(
        client=np.full(len(agents), client),
        agent=agents,
        tasks=np.zeros(len(agents), np.int64),
        amount=snapshot.free[agents],
        special_grant=grant[mine],
        special=specials.row[part[mine]],
        special_amount=specials.free[part[mine]],
    )


def reached_by(specials: Specials, client: int) -> Bools:
    """Return which special kinds a client may have, (S,)."""
    found: Bools = specials.reach[:, client // 64] >> np.uint64(client % 64) & np.uint64(1) != 0
    return found


def parts_on(specials: Specials, agents: Ints) -> tuple[Ints, Ints]:
    """Return entries of special resources on agents (n,): the index of the agent, and the entry."""
    count = np.diff(specials.start)[agents]
    of_agent = np.repeat(np.arange(len(agents)), count)
    within = np.arange(len(of_agent)) - np.repeat(np.cumsum(count) - count, count)
    return of_agent, specials.start[agents][of_agent] + within
