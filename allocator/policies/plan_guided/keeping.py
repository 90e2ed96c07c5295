"""Keeps freed parts of a task together until they add up to a task.

A plan may give an agent's room to one client, while another client frees it in pieces smaller than
a task of the first. Each piece would go back to the other client, forever. Therefore, if a client
lacks a task of its part of a group, free resources smaller than that task are kept from other
clients, but only if the task is a small part of the agent. Other clients are barred only where they
could use little apart from these resources.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import Bools, Floats, Ints, Snapshot, shared_pairs
from allocator.core.numba.bit_tables import packed, pair_bits
from allocator.core.snapshot import BitTable
from allocator.policies.filling import Criterion, characterised
from allocator.policies.filling.scene.loop_arrays import Agents, Places

SMALL = 0.01
"""Maximum size of a task whose parts are kept, as a fraction of the agent."""

BESIDE = 0.05
"""A client that could use more than this fraction of the agent's other resources is not barred."""

_WHOLE = 0.999  # of a task; allows for rounding
_LOOKS_MAX = 10**6  # maximum pairs of clients and agents examined per cycle; else nothing is kept


class Wish(NamedTuple):
    """What clients should have of a group, and what they have.

    `part` (C,): as in `Plan`.
    `progress`: the criterion that measures what they have.
    `measure` (K, P): what each place has of the group now; the loops update it.
    """

    part: Floats
    progress: Criterion
    measure: Floats


def behind(snapshot: Snapshot, places: Places, wish: Wish) -> Ints:
    """Return the clients (n,) that lack at least one task of their part of a group."""
    clients = snapshot.tree.client
    clients = clients[(wish.part[clients] > 0) & characterised(snapshot)[clients]]
    if not len(clients):
        return clients
    per_unit = 1 / np.maximum(wish.progress.denominator[0], 1e-300)
    has = (wish.measure[:, places.of_client[clients]].T * per_unit).max(axis=1, initial=0)
    task = (snapshot.demand[clients] * per_unit[:-1]).max(axis=1, initial=0)
    return clients[has + _WHOLE * task <= wish.part[clients]]


def parts_of_tasks(snapshot: Snapshot, agents: Agents, late: Ints) -> BitTable:
    """Keep parts of tasks for clients that lack a task; return which clients must not get them.

    `agents`: the agents of a group, with what is free now.
    `late` (n,): clients that lack a task of the group.
    Returns (B, J, V): bits of the clients that each agent must not serve.
    """
    row, (blocks, _, words) = agents.row, agents.barred.shape
    kept = np.zeros((blocks, len(row), words), np.uint64)
    if not len(row) or len(late) * len(row) > _LOOKS_MAX:
        return kept
    free, capacity = agents.free[row], snapshot.capacity[row]
    unknown = packed(~characterised(snapshot), kept)
    for client in late.tolist():
        demand = snapshot.demand[client]
        lacks = free < demand
        part = lacks & (free > 0)
        small = ~lacks | (demand <= SMALL * capacity)
        barred = np.zeros(len(row), np.bool_)
        pairs = row, np.full(len(row), client)
        barred |= shared_pairs(agents.excluded, *pairs)
        for table in (agents.covered, agents.barred):
            barred |= pair_bits(table, *pairs)
        waits = part.any(axis=1) & small.all(axis=1) & ~barred
        for resource in np.flatnonzero(part[waits].any(axis=0)).tolist():
            here = waits & part[:, resource]
            needs = _take_little(snapshot, free[here], BESIDE * capacity[here], resource, client)
            kept[:, here] |= packed(needs, kept)
        # Clients of unknown demand take all that is free, so bar them where all of it is kept.
        kept[:, waits & (part | (free == 0)).all(axis=1)] |= unknown
    return kept


def _take_little(
    snapshot: Snapshot, free: Ints, little: Floats, resource: int, waiting: int
) -> Bools:
    """Return the clients (C,) that need a resource, but could use little of the others with it.

    `free`, `little` (J, R), in thousandths: on the agents where the waiting client lacks a task.
    """
    known = np.flatnonzero(characterised(snapshot) & (snapshot.demand[:, resource] > 0))
    demand = snapshot.demand[known]
    tasks = snapshot.demand[waiting, resource] / demand[:, resource]
    used = np.minimum(tasks[:, None] * demand, free.max(axis=0))
    return mask(known[(used <= little.min(axis=0)).all(axis=1)], len(snapshot.demand))


def mask(clients: Ints, count: int) -> Bools:
    """Return flags (C,) of clients (n,)."""
    flags = np.zeros(count, np.bool_)
    flags[clients] = True
    return flags
