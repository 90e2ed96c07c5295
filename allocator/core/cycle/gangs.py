"""Gangs: offers clients that start several tasks at once room for all of them, or nothing.

A policy grants task by task and does not know gangs, so a cycle with gangs asks it several times.
The grants that it makes for all clients determine the order: the turn of a gang comes with its
first grant. Then the policy is asked for one gang alone, on what all earlier grants leave. This
places the gang's tasks within all rules. They are granted if the whole gang fits; otherwise the
gang waits. Finally, the policy grants what is left to the clients without a gang.

Gangs that collect come first (`collecting`). What those that do not fit keep counts as held for the
rest of the cycle.
"""

from dataclasses import replace

import numpy as np

from allocator.core.cycle.derived import after, among, charge, counted, joined, mask
from allocator.core.cycle.first_fit import holds, place
from allocator.core.cycle.room import fits_on_plain, parts_on, reached_by, room_in, tasks_on
from allocator.core.numba.array_structures import read_only
from allocator.core.numba.bit_tables import pair_bits
from allocator.core.numba.shared_bits import shared_pairs
from allocator.core.policy import Policy
from allocator.core.snapshot import (
    UNBOUNDED,
    Bools,
    Bounds,
    Grants,
    Ints,
    Lines,
    Snapshot,
    Tier,
)

TURNS_MAX = 16
"""Maximum number of gangs that have their turn in one cycle; the policy is asked for each alone."""

LOOKED_AT_MAX = 64
"""Maximum number of gangs to find room for in one cycle, and of different tasks of all of them; if
there are more, some are drawn at random."""


def allocate(policy: Policy, snapshot: Snapshot, seed: int) -> Grants:
    if snapshot.gangs is None:
        return ask(policy, snapshot, seed)
    given, left = _to_collectors(policy, snapshot, seed)
    return joined(snapshot, [*given, *_to_others(policy, left, seed)])


def _to_collectors(policy: Policy, snapshot: Snapshot, seed: int) -> tuple[list[Grants], Snapshot]:
    """Grant collecting gangs that fit; return the grants, and the snapshot that remains."""
    assert snapshot.gangs is not None
    given: list[Grants] = []
    for client in snapshot.gangs.collects.tolist():
        whole = _place(policy, snapshot, client, seed)
        if whole is None:
            snapshot = charge(snapshot, collected(snapshot, client))
        else:
            snapshot = after(snapshot, [whole])
            given.append(whole)
    return given, snapshot


def _to_others(policy: Policy, snapshot: Snapshot, seed: int) -> list[Grants]:
    """Grant gangs that do not collect, in the order of their turns; then clients without a gang."""
    assert snapshot.gangs is not None
    of_gang = mask(snapshot.gangs.client, snapshot)
    # Leave out gangs that cannot fit, so that they do not use up turns.
    likely = mask(_likely(snapshot, seed), snapshot)
    grants = ask(policy, among(snapshot, likely | ~of_gang), seed)
    mine = of_gang[grants.client]
    if not mine.any():
        return [grants]
    first = np.flatnonzero(mine)
    _, begins = np.unique(grants.client[first], return_index=True)
    placed: list[Grants] = []
    for at in np.sort(first[begins])[:TURNS_MAX].tolist():
        before = grants.some(~mine & (np.arange(len(grants)) < at))
        room = after(snapshot, [before, *placed])
        whole = _place(policy, room, int(grants.client[at]), seed)
        if whole is not None:
            placed.append(whole)
    others = ask(policy, among(after(snapshot, placed), ~of_gang), seed)
    return [*placed, others]


def ask(policy: Policy, snapshot: Snapshot, seed: int) -> Grants:
    if not len(snapshot.tree.client):
        return Grants.none(len(snapshot.resources))
    return policy.allocate(snapshot, seed)


def _likely(snapshot: Snapshot, seed: int) -> Ints:
    """Return the clients whose gangs may fit, judged without asking the policy."""
    assert snapshot.gangs is not None
    clients = np.setdiff1d(snapshot.gangs.client, snapshot.gangs.collects)
    unlike = snapshot.gangs.unlike
    lines = [len(unlike[each].number) if each in unlike else 1 for each in clients.tolist()]
    if sum(lines) > LOOKED_AT_MAX:
        few, rng = min(len(clients), LOOKED_AT_MAX), np.random.default_rng(seed)
        drawn = rng.choice(len(clients), few, replace=False)
        clients = clients[drawn[np.cumsum(np.array(lines)[drawn]) <= LOOKED_AT_MAX]]
    return np.array([each for each in clients.tolist() if _may_fit(snapshot, each)], np.int64)


def _may_fit(snapshot: Snapshot, client: int) -> bool:
    """Whether agents, filters and limits leave room for a gang; ignores guarantees and minimums."""
    return within_limits(snapshot, client) and has_room(snapshot, client)


def has_room(snapshot: Snapshot, client: int) -> bool:
    """Whether agents and filters leave room for a gang."""
    assert snapshot.gangs is not None
    lines = snapshot.gangs.unlike.get(client)
    if lines is not None:
        return place(snapshot, client, lines, agents_open_to(snapshot, client)) is not None
    need = need_of(snapshot, client)
    if snapshot.counts is None or not snapshot.counts.limits_agents()[client]:
        fits = fits_on_plain(snapshot, client, need)
        if fits is not None:
            return fits
    return _tasks_open_to(snapshot, client) >= need


def _tasks_open_to(snapshot: Snapshot, client: int) -> int:
    """Return how many equal tasks of a client agents and filters leave room for."""
    room = tasks_on(snapshot, client, snapshot.demand[client])
    return int(room[agents_open_to(snapshot, client)].sum())


def agents_open_to(snapshot: Snapshot, client: int) -> Ints:
    """Return the candidate agents (n,) from which neither rules nor filters bar a client."""
    agents = snapshot.agents
    every = np.full(len(agents), client)
    barred = shared_pairs(snapshot.excluded, agents, every)
    barred |= pair_bits(snapshot.filters.covered, agents, every)
    gangs = snapshot.gangs
    if gangs is not None and client in gangs.unlike:
        first, end = np.searchsorted(gangs.refuser, (client, client + 1))
        barred |= np.isin(snapshot.handle[agents], gangs.refused[first:end])
    found: Ints = agents[~barred]
    return _within_caps(snapshot, client, found)


def _within_caps(snapshot: Snapshot, client: int, agents: Ints) -> Ints:
    """Choose as many of some agents (n,) as caps on agents allow: those with most room for tasks.

    If several such caps apply, this may leave out agents that one of them would allow.
    """
    counts = snapshot.counts
    if counts is None or not counts.limits_agents()[client]:
        return agents
    held, left = counts.agents_of(client)
    further = agents[~np.isin(agents, held)]
    room = tasks_on(snapshot, client, snapshot.demand[client])[further]
    most = further[np.argsort(-room, kind="stable")[:left]]
    return np.sort(np.append(agents[np.isin(agents, held)], most))


def within_limits(snapshot: Snapshot, client: int) -> bool:
    """Whether limits of roles and frameworks leave room for a gang."""
    bounds, total = snapshot.bounds, total_of(snapshot, client)
    if snapshot.specials.reach.any():
        return True  # special resources may not count against limits
    left = bounds.left[bounds.rows_of(client)]
    return not ((left < total) & (total > 0)).any()


def _place(policy: Policy, snapshot: Snapshot, client: int, seed: int) -> Grants | None:
    """Return grants of a whole gang; None: it does not fit."""
    assert snapshot.gangs is not None
    lines = snapshot.gangs.unlike.get(client)
    if lines is not None:
        return _place_unlike(snapshot, client, lines)
    if not _may_fit(snapshot, client):
        return None
    need = need_of(snapshot, client)
    alone = among(snapshot, mask(np.array([client]), snapshot))
    if snapshot.counts is not None and snapshot.counts.limits_agents()[client]:
        alone = replace(alone, agents=read_only(agents_open_to(snapshot, client)))
    grants = policy.allocate(replace(alone, bounds=_capped(alone, client, need)), seed)
    tasks = tasks_of(snapshot, grants)
    kept = tasks > 0
    total = np.cumsum(np.where(kept, tasks, 0))
    if not len(total) or total[-1] < need:
        return None
    # Keep only the first grants whose tasks are enough.
    return grants.some(kept & (np.arange(len(tasks)) <= np.searchsorted(total, need)))


def _place_unlike(snapshot: Snapshot, client: int, lines: Lines) -> Grants | None:
    grants = place(snapshot, client, lines, agents_open_to(snapshot, client))
    if grants is None:
        return None
    amount, bounds = counted(snapshot, grants), snapshot.bounds
    total = amount.sum(axis=0)
    exceeds = ((bounds.left[bounds.rows_of(client)] < total) & (total > 0)).any()
    if exceeds or not _beside_guarantees(snapshot, grants).all():
        return None
    return grants


def lines_of(snapshot: Snapshot, client: int) -> Lines:
    """Return the tasks of a client's gang; if they are equal, in tasks of the snapshot's demand."""
    assert snapshot.gangs is not None
    lines = snapshot.gangs.unlike.get(client)
    if lines is not None:
        return lines
    count = np.array([need_of(snapshot, client)])
    return Lines(snapshot.demand[client][None], count, np.zeros(1, np.int64))


def total_of(snapshot: Snapshot, client: int) -> Ints:
    lines = lines_of(snapshot, client)
    total: Ints = lines.number @ lines.size
    return total


def need_of(snapshot: Snapshot, client: int) -> int:
    assert snapshot.gangs is not None
    at = np.searchsorted(snapshot.gangs.client, client)
    return int(snapshot.gangs.tasks[at])


def tasks_of(snapshot: Snapshot, grants: Grants) -> Ints:
    """Return the number of tasks of the client's demand in each grant, (G,).

    For a client that is served with all that is free: the number of tasks that fit.
    """
    known = snapshot.characterised[grants.client]
    fit = room_in(snapshot, grants).tasks(snapshot.demand[grants.client])
    return np.where(known, grants.tasks, fit)


def granted(snapshot: Snapshot, grants: Grants) -> Ints:
    """Return the clients (n,) whose gangs are granted."""
    assert snapshot.gangs is not None
    return np.intersect1d(snapshot.gangs.client, grants.client)


def in_part(snapshot: Snapshot, grants: Grants, kept: Bools | None = None) -> Bools:
    """Return which grants belong to a gang that is granted only in part, (G,).

    `kept` (G,): the grants to count; None: all.
    """
    gangs = snapshot.gangs
    if gangs is None or not len(grants):
        return np.zeros(len(grants), np.bool_)
    tasks = np.zeros(len(snapshot.leaf_of_client), np.int64)
    counted = np.minimum(tasks_of(snapshot, grants), gangs.tasks.max())
    np.add.at(tasks, grants.client, counted if kept is None else counted * kept)
    short = np.zeros(len(tasks), np.bool_)
    short[gangs.client] = tasks[gangs.client] < gangs.tasks
    for client in filter(gangs.unlike.__contains__, np.unique(grants.client).tolist()):
        mine = grants.client == client
        given = grants.some(mine if kept is None else mine & kept)
        short[client] = not holds(snapshot, gangs.unlike[client], given)
    return short[grants.client]


def without_collected(snapshot: Snapshot, clients: Ints | None = None) -> Snapshot:
    """Return the snapshot in which all that gangs collected is held.

    `clients` (n,): those whose gangs are meant; None: all.
    """
    assert snapshot.gangs is not None
    collects = snapshot.gangs.collects
    for client in collects if clients is None else collects[np.isin(collects, clients)]:
        snapshot = charge(snapshot, collected(snapshot, int(client)))
    return snapshot


def collected(snapshot: Snapshot, client: int) -> Grants:
    """Return what a gang keeps, in the form of grants; never what guarantees of others need.

    If its client is served with all that is free, it keeps all that is free on its agents.
    """
    assert snapshot.gangs is not None
    agent, wanted = kept_for(snapshot, client)
    if not snapshot.characterised[client]:
        wanted = np.full_like(wanted, UNBOUNDED)
    grant, special, amount = _special_parts(snapshot, client, agent, wanted)
    rest = wanted.copy()
    np.subtract.at(rest, (grant, snapshot.specials.column[special]), amount)
    grants = Grants(
        client=np.full(len(agent), client),
        agent=agent,
        tasks=np.zeros(len(agent), np.int64),
        amount=np.minimum(snapshot.free[agent], np.maximum(rest, 0)),
        special_grant=grant,
        special=special,
        special_amount=amount,
    )
    return grants.some(_beside_guarantees(snapshot, grants))


def kept_for(snapshot: Snapshot, client: int) -> tuple[Ints, Ints]:
    """Return the agents (n,) on which a gang collects, and its need on each, (n, R)."""
    gangs = snapshot.gangs
    assert gangs is not None
    mine = np.flatnonzero(gangs.collector == client)
    size = lines_of(snapshot, client).size[gangs.collects_line[mine]]
    return added_up(gangs.collects_on[mine], gangs.collects_for[mine, None] * size)


def added_up(agent: Ints, amount: Ints) -> tuple[Ints, Ints]:
    """Add up amounts (m, R) by agent (m,); agents are in the order of their first rows."""
    _, first, which = np.unique(agent, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[which]
    total = np.zeros((len(first), amount.shape[1]), np.int64)
    np.add.at(total, place, amount)
    return agent[np.sort(first)], total


def _special_parts(
    snapshot: Snapshot, client: int, agent: Ints, wanted: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return what a gang keeps of special kinds on agents (n,): agent index, kind and amount.

    `wanted` (n, R), in thousandths: its need of each resource.
    """
    specials = snapshot.specials
    grant, part = parts_on(specials, agent)
    special = specials.row[part]
    mine = reached_by(specials, client)[special]
    amount = np.where(
        specials.whole[special],
        specials.free[part],
        np.minimum(specials.free[part], wanted[grant, specials.column[special]]),
    )
    kept = mine & (specials.tier[special] < Tier.SHARED) & (amount > 0)
    kept &= wanted[grant, specials.column[special]] > 0
    return grant[kept], special[kept], amount[kept]


def _beside_guarantees(snapshot: Snapshot, grants: Grants) -> Bools:
    """Return which grants, (G,), leave enough for guarantees after all grants before them."""
    bounds = snapshot.bounds
    if not bounds.required.any():
        return np.ones(len(grants), np.bool_)
    spare, bound = (
        np.maximum(bounds.available - bounds.required, 0),
        bounds.of_client[grants.client],
    )
    while len(bound) and bound[0] >= 0:  # the guarantee of its own role is also available
        spare, bound = spare + bounds.owed[bound[0]], bounds.above[bound]
    kept: Bools = (np.cumsum(counted(snapshot, grants), axis=0) <= spare).all(axis=1)
    return kept


def _capped(snapshot: Snapshot, client: int, need: int) -> Bounds:
    """Limit a client to about one gang, so that the policy does not fill the cluster with it."""
    bounds, demand = snapshot.bounds, snapshot.demand[client]
    if not snapshot.characterised[client]:
        return bounds
    most = np.where(demand > 0, demand * (need + int(snapshot.opening[client])), UNBOUNDED)
    its = np.full((len(bounds.of_client), 1), -1)
    its[client] = 0
    return Bounds(*map(read_only, bounds.with_further(most[None], its)))
