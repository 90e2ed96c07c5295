"""Places the unlike tasks of a gang on agents, by first-fit decreasing.

A policy grants tasks of one size, so it decides when such a gang has its turn, but not where its
tasks go. Tasks for a certain agent are placed first, then all others, the largest first by their
dominant share of the cluster; each on the first agent with room, in the order of handles. First fit
may fail although another arrangement would fit.

An agent that the client refused is left out until the refusal expires, whatever its amount.
"""

import numpy as np

from allocator.core.cycle.minimums import reaches_own
from allocator.core.cycle.room import (
    Room,
    all_of,
    parts_on,
    reached_by,
    room_in,
    room_on,
    tasks_on,
)
from allocator.core.snapshot import Bools, Grants, Ints, Lines, Snapshot, Tier

_TRIES_MAX = 4
"""Maximum number of attempts, each without the agents whose offers were below the minimum."""


def decreasing(snapshot: Snapshot, lines: Lines) -> list[int]:
    share = (lines.size / np.maximum(snapshot.total, 1)).max(axis=1)
    order: list[int] = np.lexsort((-share, lines.agent == 0)).tolist()
    return order


def placed_on(lines: Lines, order: list[int], room: Room, handle: Ints) -> tuple[Ints, Room]:
    """Place as many tasks as possible on n agents (handles) by first fit, line by line in `order`.

    Returns the number of tasks of each line on each agent, (l, n), and the room that is left.
    """
    tasks = np.zeros((len(lines.number), len(handle)), np.int64)
    for line in order:
        size, count, agent = lines.size[line], int(lines.number[line]), int(lines.agent[line])
        fit = np.minimum(room.tasks(size), count)
        if agent:
            fit[handle != agent] = 0
        tasks[line] = np.clip(count - (np.cumsum(fit) - fit), 0, fit)
        room = room.without(tasks[line], size)
    return tasks, room


def place(snapshot: Snapshot, client: int, lines: Lines, agents: Ints) -> Grants | None:
    """Return grants of a whole gang on some agents (n,), ascending; None: it does not fit."""
    order = decreasing(snapshot, lines)
    for _ in range(_TRIES_MAX):
        some = _candidates(snapshot, client, lines, agents)
        if some is None:
            return None
        room = room_on(snapshot, client, some)
        tasks, left = placed_on(lines, order, room, snapshot.handle[some])
        if (tasks.sum(axis=1) < lines.number).any():
            return None
        used = np.flatnonzero(tasks.any(axis=0))
        if snapshot.characterised[client]:
            shares = _use_of_shared(lines, tasks[:, used], room.some(used))
            taken = Room(room.usual - left.usual, room.revocable - left.revocable, room.shared)
            number = tasks[:, used].sum(axis=0)
            grants = _grants(snapshot, client, some[used], number, taken.some(used), shares)
        else:
            grants = all_of(snapshot, client, some[used])
        amount = grants.amount.copy()
        column = snapshot.specials.column[grants.special]
        np.add.at(amount, (grants.special_grant, column), grants.special_amount)
        rows = snapshot.minimum_rows[grants.client]
        enough = reaches_own(amount, snapshot.minimum, rows)
        if enough.all():
            return grants
        agents = np.setdiff1d(agents, grants.agent[~enough])
    return None


def holds(snapshot: Snapshot, lines: Lines, grants: Grants) -> bool:
    """Whether grants to a gang have room for all of its tasks; True if `place` made them."""
    agents, which = np.unique(grants.agent, return_inverse=True)
    parts = room_in(snapshot, grants)
    room = Room._make(np.zeros((len(agents), amounts.shape[1]), np.int64) for amounts in parts)
    for amounts, part in zip(room, parts, strict=True):
        np.add.at(amounts, which, part)
    tasks, _ = placed_on(lines, decreasing(snapshot, lines), room, snapshot.handle[agents])
    return bool((tasks.sum(axis=1) >= lines.number).all())


def _candidates(snapshot: Snapshot, client: int, lines: Lines, agents: Ints) -> Ints | None:
    """Return the agents that first fit may choose, ascending; None: some line does not fit.

    Each task makes at most one agent unfit for the following ones. So of the agents with room for a
    line, only the first ones matter, as many as the gang has tasks.
    """
    most, found = int(lines.number.sum()), []
    for size, count, only in zip(lines.size, lines.number.tolist(), lines.agent, strict=True):
        those = agents if not only else agents[snapshot.handle[agents] == only]
        fit = tasks_on(snapshot, client, size)[those]
        if int(np.minimum(fit, count).sum()) < count:
            return None
        found.append(those[fit > 0][:most])
    return np.unique(np.concatenate(found))


def _use_of_shared(lines: Lines, tasks: Ints, room: Room) -> Bools:
    """Return which resources tasks take from shared amounts, (n, R); `tasks` (l, n)."""
    found = np.zeros(room.shared.shape, np.bool_)
    for size, mine in zip(lines.size, tasks, strict=True):
        found |= (mine > 0)[:, None] & (size > 0) & (room.shared >= size)
    return found


def _grants(
    snapshot: Snapshot, client: int, agents: Ints, tasks: Ints, taken: Room, shares: Bools
) -> Grants:
    """Return what tasks take on agents (n,), in the form of grants.

    `tasks` (n,): their number on each.
    `taken`: the usual and revocable amounts that they take.
    `shares` (n, R): whether they use shared amounts, which are granted whole.
    """
    specials = snapshot.specials
    grant, part = parts_on(specials, agents)
    special = specials.row[part]
    mine = reached_by(specials, client)[special]
    amount = np.zeros(len(part), np.int64)
    usual, revocable = taken.usual.copy(), taken.revocable.copy()
    entries = list(zip(grant.tolist(), special.tolist(), specials.free[part].tolist(), strict=True))

    def take(tier: Tier, wanted: Ints) -> None:
        for at, (place, kind, free) in enumerate(entries):
            where = place, int(specials.column[kind])
            if specials.tier[kind] != tier or not mine[at] or wanted[where] <= 0:
                continue
            amount[at] = free if specials.whole[kind] else min(free, int(wanted[where]))
            if tier != Tier.SHARED:
                wanted[where] = max(int(wanted[where]) - int(amount[at]), 0)

    take(Tier.RESERVED, usual)
    plain = np.minimum(usual, snapshot.free[agents])
    usual = usual - plain
    take(Tier.OPEN, usual)
    take(Tier.REVOCABLE, revocable)
    take(Tier.SHARED, shares.astype(np.int64))
    some = amount > 0
    return Grants(
        client=np.full(len(agents), client),
        agent=agents,
        tasks=tasks,
        amount=plain,
        special_grant=grant[some],
        special=special[some],
        special_amount=amount[some],
    )
