"""How much of a gang fits, for explanations."""

import numpy as np

from allocator.core.cycle.first_fit import decreasing, placed_on
from allocator.core.cycle.gangs import agents_open_to, lines_of
from allocator.core.cycle.room import Room, reached_by, room_on
from allocator.core.snapshot import Bools, Ints, Lines, Snapshot, Tier


def tasks_that_fit(snapshot: Snapshot, client: int, agents: Ints) -> tuple[int, int]:
    """Return how many tasks of a gang fit now on some agents (n,), and on how many of these."""
    lines, agents = (
        lines_of(snapshot, client),
        np.intersect1d(agents, agents_open_to(snapshot, client)),
    )
    room = room_on(snapshot, client, agents)
    tasks, _ = placed_on(lines, decreasing(snapshot, lines), room, snapshot.handle[agents])
    return int(tasks.sum()), int(np.count_nonzero(tasks.any(axis=0)))


def tasks_collected(snapshot: Snapshot, client: int) -> int:
    """Return the number of tasks of a gang that fit where it collects."""
    gangs = snapshot.gangs
    assert gangs is not None
    mine = gangs.collector == client
    on, agents = gangs.collects_on[mine], np.unique(gangs.collects_on[mine])
    size = lines_of(snapshot, client).size[gangs.collects_line[mine]]
    lines = Lines(size, gangs.collects_for[mine], snapshot.handle[on])
    order = np.arange(len(on)).tolist()
    room = room_on(snapshot, client, agents)
    tasks, _ = placed_on(lines, order, room, snapshot.handle[agents])
    return int(tasks.sum())


def tasks_at_most(snapshot: Snapshot, client: int, capacity: Ints, usable: Bools) -> int:
    """Return how many tasks of a gang fit on empty agents, and into what limits leave.

    `capacity` (H, R), in thousandths, and `usable` (H,): by handle.
    """
    lines = lines_of(snapshot, client)
    order, handle = decreasing(snapshot, lines), np.flatnonzero(usable)
    none = np.zeros((len(handle), capacity.shape[1]), np.int64)
    specials = snapshot.specials
    shared = none.copy()
    column = specials.column[reached_by(specials, client) & (specials.tier == Tier.SHARED)]
    shared[:, column] = capacity[np.ix_(handle, column)]
    tasks, _ = placed_on(lines, order, Room(capacity[handle], none, shared), handle)
    most = int(tasks.sum())
    for bound in snapshot.bounds.rows_of(client):
        left, within = snapshot.bounds.left[bound], 0
        for line in order:
            size = lines.size[line]
            some = np.flatnonzero(size)
            fit = min(int((left[some] // size[some]).min()), int(lines.number[line]))
            within += max(fit, 0)
            left = left - max(fit, 0) * size
        most = min(most, within)
    return most
