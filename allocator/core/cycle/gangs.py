"""Gangs: offers clients that start several tasks at once room for all of them, or nothing.

A policy grants task by task and does not know gangs, so a cycle with gangs asks it several times.
The grants that it makes for all clients determine the order: the turn of a gang comes with its
first grant. Then the policy is asked for one gang alone, on what all earlier grants leave. This
places the gang's tasks within all rules. They are granted if the whole gang fits; otherwise the
gang waits. Finally, the policy grants what is left to the clients without a gang.

Gangs that collect come first (`collecting`). What those that do not fit keep counts as held for the
rest of the cycle.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from allocator.core.cycle.first_fit import holds, place
from allocator.core.cycle.room import fits_on_plain, parts_on, reached_by, room_in, tasks_on
from allocator.core.filters.coverage import covering
from allocator.core.numba.array_structures import (
    bits,
    clear_bits,
    distinct,
    is_in,
    pack,
    pair,
    read_only,
    set_bits,
)
from allocator.core.numba.wide_tables import untouched
from allocator.core.policy import Policy
from allocator.core.snapshot import (
    UNBOUNDED,
    BitWords,
    Bools,
    Bounds,
    Floats,
    Grants,
    Ints,
    Lines,
    Snapshot,
    Tier,
    Tree,
)

TURNS_MAX = 16
"""Maximum number of gangs that have their turn in one cycle; the policy is asked for each alone."""

FILTERS_MAX = 100_000
"""Maximum number of filters that are examined again after each gang. If its agents have more, some
offers there may be covered by filters, and the module does not make them."""

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
    barred = bits(snapshot.excluded, agents, every) | bits(snapshot.filters.covered, agents, every)
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


def after(snapshot: Snapshot, given: Sequence[Grants]) -> Snapshot:
    """Return the snapshot as a cycle after these grants would take it."""
    grants = joined(snapshot, given)
    if not len(grants):
        return snapshot
    charged = charge(_with_earlier(snapshot, grants), grants)
    served = _behind(snapshot, distinct(grants.client))
    return replace(charged, tree=snapshot.tree._replace(served=read_only(served)))


def _with_earlier(snapshot: Snapshot, grants: Grants) -> Snapshot:
    new, before = snapshot.new_pairs(grants), snapshot.earlier
    if before is not None:
        new = new[~is_in(before.pair, new)]
        grants = joined(snapshot, [before, grants])
    more = np.bincount(new & (2**32 - 1), minlength=len(snapshot.agents_held))
    agents_held: Ints | Floats = snapshot.agents_held + more
    agents_held.flags.writeable = False
    return replace(snapshot, earlier=grants, agents_held=agents_held)


def charge(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """Return the snapshot with these grants held, but without a turn of their clients."""
    free, held, specials = snapshot.free.copy(), snapshot.held.copy(), snapshot.specials
    np.subtract.at(free, grants.agent, grants.amount)
    # Grants may overlap: those before a gang's turn do not consider gangs placed earlier.
    np.maximum(free, 0, out=free)
    np.add.at(held, grants.client, grants.amount)
    special_free = specials.free.copy()
    if len(grants.special):
        agent, client = grants.agent[grants.special_grant], grants.client[grants.special_grant]
        place = specials.entries(agent, grants.special)
        np.subtract.at(special_free, place, grants.special_amount)
        np.maximum(special_free, 0, out=special_free)
        column = specials.column[grants.special]
        np.add.at(held, (client, column), grants.special_amount)
    charged = replace(
        snapshot,
        free=read_only(free),
        held=read_only(held),
        specials=specials._replace(free=read_only(special_free)),
        bounds=_charged(snapshot, grants),
    )
    charged = with_counts(charged, grants)
    return _with_more_covered(charged, distinct(grants.agent))


def _with_more_covered(snapshot: Snapshot, agents: Ints) -> Snapshot:
    """Return the snapshot with the bits of filters that cover what is left on agents (n,)."""
    filters = snapshot.filters
    agent, client = covering(snapshot, agents, snapshot.characterised, FILTERS_MAX)
    more = ~bits(filters.covered, agent, client)
    if snapshot.earlier is not None:  # filters do not bar what joins an offer
        more &= ~is_in(snapshot.earlier.pair, pair(agent, client))
    if not more.any():
        return snapshot
    covered = filters.covered.copy()
    set_bits(covered, agent[more], client[more])
    return replace(snapshot, filters=filters._replace(covered=covered))


def with_counts(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """Return a snapshot charged with grants, with what they leave of caps on tasks and agents."""
    before = snapshot.counts
    if before is None:
        return snapshot
    counts = before.charged(grants.client, grants.agent, counted(snapshot, grants))
    left = snapshot.bounds.left.copy()
    # Of a started task, what is missing was not in the bound before.
    mine = left[counts.first : counts.first + len(counts.bounded)]
    np.minimum(mine, counts.left(), out=mine)
    bounds = snapshot.bounds._replace(left=read_only(left))
    charged = replace(snapshot, bounds=bounds, counts=counts)
    return barred(charged, counts.newly_full(before))


def barred(snapshot: Snapshot, clients: Bools) -> Snapshot:
    """Return the snapshot in which clients (C,) are kept from agents that full caps do not allow.

    Others are as in the snapshot. What is open to a client changes only when one of its caps
    becomes full.
    """
    counts = snapshot.counts
    if counts is None or not clients.any():
        return snapshot
    excluded = _with(snapshot.excluded, pack(clients, snapshot.excluded.shape[1]), snapshot.agents)
    agent, client = counts.open_to(clients)
    stays = ~bits(snapshot.excluded, agent, client)
    agent, client = agent[stays], client[stays]
    clear_bits(excluded, agent, client)
    excluding = snapshot.excluding.copy()
    excluding[snapshot.agents] = True
    return replace(snapshot, excluded=read_only(excluded), excluding=read_only(excluding))


def _with(words: BitWords, more: BitWords, agents: Ints) -> BitWords:
    """Add bits (W,) to the words (A, W) of some agents; others may be left out."""
    if 2 * len(agents) > len(words):
        return words | more
    found = untouched(words.shape, np.uint64)
    found[agents] = words[agents] | more
    return found


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


def _behind(snapshot: Snapshot, clients: Ints) -> Ints:
    tree = snapshot.tree
    served = tree.served.copy()
    turn, node = served[-1] + 1, snapshot.leaf_of_client[clients]
    while len(node):
        served[node] = turn
        above = tree.parent[node]
        node = np.unique(above[above >= 0])
    return served


def _charged(snapshot: Snapshot, grants: Grants) -> Bounds:
    bounds = snapshot.bounds
    if not len(bounds.above):
        return bounds
    amount = counted(snapshot, grants)
    left, owed = bounds.left.copy(), bounds.owed.copy()
    limited = bounds.left < UNBOUNDED
    bound = bounds.of_client[grants.client]
    while (inside := np.flatnonzero(bound >= 0)).size:
        np.subtract.at(left, bound[inside], amount[inside])
        np.subtract.at(owed, bound[inside], amount[inside])
        bound = np.where(bound >= 0, bounds.above[bound], -1)
    for own in bounds.further[grants.client].T:
        inside = np.flatnonzero(own >= 0)
        np.subtract.at(left, own[inside], amount[inside])
    owed = np.maximum(owed, 0)
    available = np.where(
        bounds.available < UNBOUNDED, bounds.available - amount.sum(axis=0), UNBOUNDED
    )
    return bounds._replace(
        left=read_only(np.where(limited, left, UNBOUNDED)),
        owed=read_only(owed),
        available=read_only(available),
        required=read_only(owed.sum(axis=0)),
    )


def counted(snapshot: Snapshot, grants: Grants) -> Ints:
    """Return what counts against quota, (G, R): plain amounts, and special bounded ones."""
    amount = grants.amount.copy()
    part = np.flatnonzero(snapshot.specials.bounded[grants.special])
    at = grants.special_grant[part], snapshot.specials.column[grants.special[part]]
    np.add.at(amount, at, grants.special_amount[part])
    return amount


def _capped(snapshot: Snapshot, client: int, need: int) -> Bounds:
    """Limit a client to about one gang, so that the policy does not fill the cluster with it."""
    bounds, demand = snapshot.bounds, snapshot.demand[client]
    if not snapshot.characterised[client]:
        return bounds
    most = np.where(demand > 0, demand * (need + int(snapshot.opening[client])), UNBOUNDED)
    its = np.full((len(bounds.of_client), 1), -1)
    its[client] = 0
    return Bounds(*map(read_only, bounds.with_further(most[None], its)))


def among(snapshot: Snapshot, taking_part: Bools) -> Snapshot:
    """Return the snapshot in which only the clients `taking_part` (C,) are served."""
    tree = snapshot.tree
    leaves, nodes = len(tree.client), len(tree.parent)
    kept = np.zeros(nodes, np.bool_)
    kept[:leaves] = taking_part[tree.client]
    node = np.append(np.flatnonzero(kept), nodes - 1)
    while len(node):
        kept[node] = True
        above = tree.parent[node]
        node = np.unique(above[above >= 0])
    number = np.cumsum(kept) - 1
    # Holdings of clients that are not served count for the nearest remaining role above them.
    nearest = np.arange(nodes)
    while (gone := ~kept[nearest]).any():
        nearest[gone] = tree.parent[nearest[gone]]
    parent = tree.parent[kept]
    parent = np.where(parent >= 0, number[parent], -1)
    child_start = np.zeros(len(parent) + 1, np.int64)
    np.cumsum(np.bincount(parent[:-1], minlength=len(parent)), out=child_start[1:])
    client = tree.client[kept[:leaves]]
    leaf_of_client = np.full(len(snapshot.leaf_of_client), -1, np.int64)
    leaf_of_client[client] = np.arange(len(client))
    fewer = Tree(
        client=read_only(client),
        parent=read_only(parent),
        child_start=read_only(child_start),
        child=read_only(np.argsort(parent[:-1], kind="stable")),
        weight=read_only(tree.weight[kept]),
        served=read_only(tree.served[kept]),
        scheme=read_only(tree.scheme[kept]),
    )
    return replace(
        snapshot,
        tree=fewer,
        leaf_of_client=read_only(leaf_of_client),
        parent_of_client=read_only(number[nearest[snapshot.parent_of_client]]),
    )


def with_gangs_among(snapshot: Snapshot, taking_part: Bools, may_collect: Bools) -> Snapshot:
    """Return the snapshot in which only some of the clients are served, with their gangs.

    `taking_part` (C,): these clients; `may_collect` (C,): whose gangs may go on collecting.
    """
    fewer, every = among(snapshot, taking_part), snapshot.gangs
    if every is None:
        return fewer
    mine = taking_part[every.client]
    if not mine.any():
        return replace(fewer, gangs=None)
    collects = every.collects[(taking_part & may_collect)[every.collects]]
    its = every._replace(
        client=every.client[mine], tasks=every.tasks[mine], collects=collects, guests=None
    )
    return replace(fewer, gangs=its)


def mask(clients: Ints, snapshot: Snapshot) -> Bools:
    found = np.zeros(len(snapshot.leaf_of_client), np.bool_)
    found[clients] = True
    return found


def joined(snapshot: Snapshot, several: Sequence[Grants]) -> Grants:
    if not several:
        return Grants.none(len(snapshot.resources))
    columns = {
        each.name: np.concatenate([getattr(grants, each.name) for grants in several])
        for each in fields(Grants)
    }
    firsts = np.cumsum([0, *map(len, several)])[:-1]
    columns["special_grant"] = np.concatenate(
        [grants.special_grant + first for grants, first in zip(several, firsts, strict=True)]
    )
    return Grants(**columns)
