"""Keep parts of tasks together until they add up to one.

A plan wants an agent's room for one client, but another client frees it in pieces smaller than a
task of the first. So each piece would go back to the other client, forever. Therefore, if a client
lacks a task of its part of a group, free resources smaller than that task are kept from other
clients that need them, but only if the task is a small part of the agent. Nothing else stays idle
for it: others are barred only where they could use little besides such a part.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import Bools, Floats, Ints, Snapshot
from allocator.core.snapshot import BitWords
from allocator.policies.filling import Criterion, characterised
from allocator.policies.filling.scene.loop_arrays import Agents, Places

SMALL = 0.01
"""Part of an agent: only a task that needs no more of it may have parts kept free."""

BESIDE = 0.05
"""Part of an agent: a client that could use more of the other resources is not barred."""

_WHOLE = 0.999  # of a task; allows for rounding
_LOOKS_MAX = 10**6  # pairs of clients and agents examined per cycle; beyond, nothing is kept
_BITS = 64


class Wish(NamedTuple):
    """What clients are to have of a group, and what they have.

    `part` (C,): as in `Plan`.
    `progress`: the criterion that measures it.
    `measure` (K, P): what each place has of the group now; the loops update it.
    """

    part: Floats
    progress: Criterion
    measure: Floats


def behind(snapshot: Snapshot, places: Places, wish: Wish) -> Ints:
    """Clients (n,) that lack at least one task of their part of a group."""
    clients = snapshot.tree.client
    clients = clients[(wish.part[clients] > 0) & characterised(snapshot)[clients]]
    if not len(clients):
        return clients
    per_unit = 1 / np.maximum(wish.progress.denominator[0], 1e-300)
    has = (wish.measure[:, places.of_client[clients]].T * per_unit).max(axis=1, initial=0)
    task = (snapshot.demand[clients] * per_unit[:-1]).max(axis=1, initial=0)
    return clients[has + _WHOLE * task <= wish.part[clients]]


def parts_of_tasks(snapshot: Snapshot, agents: Agents, late: Ints) -> BitWords:
    """Bar clients from free resources kept for clients that lack a task, (J, W): bits.

    `agents`: those of a group, with what is free now.
    `late` (n,): clients that lack a task of the group.
    """
    row, width = agents.row, agents.barred.shape[1]
    kept = np.zeros((len(row), width), np.uint64)
    if not len(row) or len(late) * len(row) > _LOOKS_MAX:
        return kept
    free, capacity = agents.free[row], snapshot.capacity[row]
    unknown = words_of(np.flatnonzero(~characterised(snapshot)), width)
    for client in late.tolist():
        demand = snapshot.demand[client]
        lacks = free < demand
        # Of an exhausted resource there is nothing to keep.
        part = lacks & (free > 0)
        small = ~lacks | (demand <= SMALL * capacity)
        bit = np.uint64(1 << client % _BITS)
        barred = (agents.barred[row, client // _BITS] & bit) != 0
        waits = part.any(axis=1) & small.all(axis=1) & ~barred
        for resource in np.flatnonzero(part[waits].any(axis=0)).tolist():
            here = waits & part[:, resource]
            needs = _take_little(snapshot, free[here], BESIDE * capacity[here], resource, client)
            kept[here] |= words_of(needs, width)
        # Clients that take all that is free are barred if all of it is such parts.
        kept[waits & (part | (free == 0)).all(axis=1)] |= unknown
    return kept


def _take_little(
    snapshot: Snapshot, free: Ints, little: Floats, resource: int, waiting: int
) -> Ints:
    """Clients (n,) that need a resource, and with less of it than a task use little of the others.

    `free`, `little` (J, R), in thousandths: on the agents where the waiting client lacks a task.
    """
    known = np.flatnonzero(characterised(snapshot) & (snapshot.demand[:, resource] > 0))
    demand = snapshot.demand[known]
    tasks = snapshot.demand[waiting, resource] / demand[:, resource]
    used = np.minimum(tasks[:, None] * demand, free.max(axis=0))
    return known[(used <= little.min(axis=0)).all(axis=1)]


def words_of(clients: Ints, width: int) -> BitWords:
    """Set the bits of clients, (width,)."""
    bits: Bools = np.zeros(width * _BITS, np.bool_)
    bits[clients] = True
    return np.packbits(bits, bitorder="little").view(np.uint64)
