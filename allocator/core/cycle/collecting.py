"""Collecting: a gang that does not fit when its turn comes keeps what becomes free for itself.

A gang waits like any client, even while no agent has room for one of its tasks. If it has waited
for `patience_cycles`, and would fit if others held nothing, it collects, until it fits or
`collect_ms` have passed; then it has to wait again. Gangs choose agents in the order in which they
began to collect. No two gangs collect on the same agent, so they cannot block each other.

Frameworks declare gangs themselves, and must not idle what others need. A gang may need more than
its client's fair share. After its collection its principal therefore rests: none of its gangs
begins to collect, for so long that on average the principal keeps no more than that share.

Each full cycle chooses again where a gang collects: first agents with room for whole tasks, then
those that lack least for one more, and last full agents. What is collected stays free, so the gang
mostly keeps the same agents, and its room does not shrink.
"""

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from allocator.core.books.collecting import Collecting
from allocator.core.books.gang_offers import collectors, note_end, patience_of, principal_of
from allocator.core.books.state import State
from allocator.core.cycle.backfilling import (
    forecasts,
    keep_forecasts,
    kept_lent,
    with_guests,
)
from allocator.core.cycle.derived import charge
from allocator.core.cycle.first_fit import decreasing, placed_on
from allocator.core.cycle.gangs import (
    agents_open_to,
    collected,
    lines_of,
    total_of,
    within_limits,
    without_collected,
)
from allocator.core.cycle.room import Room, reached_by, tasks_in, tasks_on
from allocator.core.cycle.servable import servable
from allocator.core.numba.shared_bits import shared_pairs
from allocator.core.snapshot import Bools, Gangs, Ints, Lines, Snapshot, Tier

COLLECTING_MAX = 16
"""Maximum number of gangs that collect at the same time."""

BEGUN_MAX = 4
"""Maximum number of gangs considered for a new collection per cycle; each looks at all agents."""

FULL_MAX = 1024
"""Maximum number of full agents on which a gang collects at the same time."""

RESTS_MAX = 1000
"""Maximum number of resting principals; while there are more, no gang begins to collect."""


def renew(state: State, snapshot: Snapshot, limit: Ints) -> Snapshot:
    """Decide, in a full cycle, which gangs collect, and where; `limit` (Q, R): as in `Bounds`."""
    clients, gangs = state.clients, snapshot.gangs
    if gangs is None:
        clients.collecting.clear()
        return snapshot
    _note_rests(state, snapshot)
    within = set(_may_collect(snapshot).tolist())
    going = {each: its for each, its in collectors(state).items() if each in within}
    ended = [
        each
        for each, its in going.items()
        if state.now_ms - its.since_ms >= state.settings.collect_ms
    ]
    for each in ended:
        note_end(state, going.pop(each))
        clients.waited[each] = 0
    # What an ended collection frees is offered to all, before another gang may keep it.
    if not ended:
        _begin(state, snapshot, limit, going)
    clients.collecting = _chosen(state, snapshot, going)
    snapshot = replace(snapshot, gangs=collected_on(state, gangs, snapshot.handle))
    _note_kept(state, snapshot)
    found = forecasts(state, snapshot)
    keep_forecasts(state, found)
    return with_guests(state, snapshot, found)


def _may_collect(snapshot: Snapshot) -> Ints:
    """Return the clients with a gang that are neither over budget nor under a cap on agents.

    The agents of a gang that collects are not chosen within such a cap.
    """
    assert snapshot.gangs is not None
    clients, last, counts = snapshot.gangs.client, snapshot.over_budget, snapshot.counts
    if counts is not None:
        clients = clients[~counts.limits_agents()[clients]]
    return clients if last is None else clients[~last[clients]]


def _note_kept(state: State, snapshot: Snapshot) -> None:
    assert snapshot.gangs is not None
    for client in snapshot.gangs.collects.tolist():
        grants = collected(snapshot, client)
        kept = grants.amount.sum(axis=0)
        column = snapshot.specials.column[grants.special]
        np.add.at(kept, column, grants.special_amount)
        its = state.clients.collecting[client]
        state.clients.collecting[client] = its._replace(kept=tuple(kept.tolist()))
        snapshot = charge(snapshot, grants)


def collected_on(state: State, gangs: Gangs, handle: Ints) -> Gangs:
    """Return gangs with what they collect on the agents of this cycle (A handles)."""
    within = set(gangs.client.tolist())
    collects = [each for each in collectors(state) if each in within]
    owner, agent, line, tasks = [], [], [], []
    for each in collects:
        its = state.clients.collecting[each]
        place = np.searchsorted(handle, its.agent)
        here = place < len(handle)
        here[here] = handle[place[here]] == np.array(its.agent, np.int64)[here]
        owner.append(np.full(np.count_nonzero(here), each))
        agent.append(place[here])
        line.append(np.array(its.line, np.int64)[here])
        tasks.append(np.array(its.tasks, np.int64)[here])
    none = np.empty(0, np.int64)
    return gangs._replace(
        collects=np.array(collects, np.int64),
        collector=np.concatenate([none, *owner]),
        collects_on=np.concatenate([none, *agent]),
        collects_line=np.concatenate([none, *line]),
        collects_for=np.concatenate([none, *tasks]),
    )


def _begin(state: State, snapshot: Snapshot, limit: Ints, going: dict[int, Collecting]) -> None:
    """Start collections of gangs that have waited long enough, at most one of each principal."""
    assert snapshot.gangs is not None
    clients, patience = state.clients, state.settings.patience_cycles
    rests = clients.rests = {who: end for who, end in clients.rests.items() if end > state.now_ms}
    if not patience or not state.settings.collect_ms or len(rests) >= RESTS_MAX:
        return
    late = _may_collect(snapshot)
    late = late[clients.waited[late] >= patience]
    order = np.lexsort((late, clients.served[late], -clients.waited[late]))
    principals = {principal_of(state, each) for each in going}
    looked_at = 0
    for each in late[order].tolist():
        if len(going) >= COLLECTING_MAX or looked_at == BEGUN_MAX:
            return
        principal = principal_of(state, each)
        if principal in principals or principal in rests:
            continue
        if clients.waited[each] < patience_of(state, each):
            continue
        looked_at += 1
        if _is_too_large(state, snapshot, limit, each):
            clients.too_large.add(each)
            clients.waited[each] = 0
            continue
        clients.too_large.discard(each)
        if not within_limits(snapshot, each) or _waits_for_itself(state, snapshot, each):
            clients.waited[each] = 0  # collecting would not help
            continue
        going[each] = Collecting(state.now_ms)
        principals.add(principal)


def _note_rests(state: State, snapshot: Snapshot) -> None:
    """Record how long principals of collecting gangs must rest if their collections end now."""
    for client, its in state.clients.collecting.items():
        if snapshot.leaf_of_client[client] < 0:
            continue
        excess = _kept_share(state, snapshot, client, its) / _fair_share(snapshot, client) - 1
        if excess > 0:
            rest_ms = int((state.now_ms - its.since_ms) * excess)
            state.clients.rests[principal_of(state, client)] = state.now_ms + rest_ms


def _kept_share(state: State, snapshot: Snapshot, client: int, its: Collecting) -> float:
    """Return the dominant share of what a gang keeps when its collection is complete."""
    wanted = total_of(snapshot, client)
    if not snapshot.characterised[client]:
        agents = state.space.by_column(state.agents.capacity, np.array(its.agent, np.int64))
        wanted = np.maximum(wanted, agents.sum(axis=0))
    return float((wanted / np.maximum(snapshot.total, 1)).max())


def _fair_share(snapshot: Snapshot, client: int) -> float:
    """Return a client's part of the cluster by weights, among clients that want offers now."""
    tree, share = snapshot.tree, 1.0
    node = int(snapshot.leaf_of_client[client])
    while (above := int(tree.parent[node])) >= 0:
        siblings = tree.child[tree.child_start[above] : tree.child_start[above + 1]]
        share *= float(tree.weight[node] / tree.weight[siblings].sum())
        node = above
    return share


def _is_too_large(state: State, snapshot: Snapshot, limit: Ints, client: int) -> bool:
    """Whether a gang exceeds limits, or all agents that it may use even if nothing were held."""
    total = total_of(snapshot, client)
    if not snapshot.specials.reach.any():
        rows = [row for row in snapshot.bounds.rows_of(client) if row < len(limit)]
        if ((limit[rows] < total) & (total > 0)).any():
            return True
    return not _fits_beside(state, snapshot, client)


def _waits_for_itself(state: State, snapshot: Snapshot, client: int) -> bool:
    """Whether a gang has no room until tasks of its own client end, even if no others ran.

    It may be all that the client wants: frameworks such as Spark do not suppress offers.
    """
    rows = state.ledger.rows_of_client(client)
    return len(rows) > 0 and not _fits_beside(state, snapshot, client, rows)


def _fits_beside(state: State, snapshot: Snapshot, client: int, rows: Ints | None = None) -> bool:
    """Whether a gang fits on the agents that it may use, if they hold only these ledger rows."""
    lines, total = lines_of(snapshot, client), total_of(snapshot, client)
    agents = _allowed(state, client, state.agents.ready)
    room = _room_when_empty(state, snapshot, client, agents, total, rows)
    tasks, _ = placed_on(lines, decreasing(snapshot, lines), room, agents)
    return bool((tasks.sum(axis=1) >= lines.number).all())


def _allowed(state: State, client: int, some: Bools) -> Ints:
    """Return those of some agents (H,), by handle, from which no rule bars a client: handles."""
    agents = np.flatnonzero(some)
    barred = shared_pairs(state.eligibility.excluded, agents, np.full(len(agents), client))
    found: Ints = agents[~barred]
    return found


def _room_when_empty(
    state: State,
    snapshot: Snapshot,
    client: int,
    agents: Ints,
    total: Ints,
    beside: Ints | None = None,
) -> Room:
    """Return the room for tasks of a client on each agent (n handles) if it were empty.

    `total` (R,): zeros for resources that no task needs; these are left out.
    `beside` (m,): rows of the ledger that stay as they are, at most one for each agent; `agents`
        must be ascending then. None: nothing stays.
    """
    books, rows = state.ledger.books, np.zeros(0, np.int64) if beside is None else beside
    rows = rows[np.isin(books.agent[rows], agents)]
    held_on = np.searchsorted(agents, books.agent[rows])
    specials, shape = snapshot.specials, (len(agents), len(total))
    mine = reached_by(specials, client)
    room = Room(*(np.zeros(shape, np.int64) for _ in Room._fields))
    for column in np.flatnonzero(total).tolist():
        special = np.flatnonzero(mine & (specials.column == column))
        tier, kind = specials.tier[special], specials.kind[special]
        plain = int(snapshot.filters.plain_kind[column])
        usual = set(kind[tier < Tier.REVOCABLE].tolist()) | ({plain} if plain >= 0 else set())
        revocable = set(kind[tier == Tier.REVOCABLE].tolist())
        shared = set(kind[tier == Tier.SHARED].tolist())
        for into, kinds in zip(room, (usual, revocable, shared), strict=True):
            amounts = state.agents.capacity[np.ix_(sorted(kinds), agents)]
            if kinds is shared:  # tasks do not use it up
                into[:, column] = amounts.max(axis=0, initial=0)
            else:
                amounts[:, held_on] -= books.held[np.ix_(sorted(kinds), rows)]
                into[:, column] = np.maximum(amounts, 0).sum(axis=0)
    return room


def _chosen(
    state: State, snapshot: Snapshot, going: dict[int, Collecting]
) -> dict[int, Collecting]:
    """Choose where each gang collects, in the order in which the collections began."""
    lent = {client: kept_lent(state, client, its) for client, its in going.items() if its.lent}
    taken = np.zeros(len(state.agents.ready), np.bool_)
    taken[[agent for places in lent.values() for agent, _ in places]] = True
    found = {}
    for client, its in going.items():
        places = dict(lent.get(client, {}))
        still_lent = {agent for agent, _ in places}
        lines = _missing(lines_of(snapshot, client), places)
        if lines.number.any():
            places |= _places(state, snapshot, client, taken, lines)
        found[client] = its._replace(
            agent=tuple(agent for agent, _ in places),
            line=tuple(line for _, line in places),
            tasks=tuple(places.values()),
            lent=tuple(each for each in its.lent if each in still_lent),
        )
    return found


_Places: TypeAlias = dict[tuple[int, int], int]
"""Number of tasks by agent (handle) and line."""


def _missing(lines: Lines, places: _Places) -> Lines:
    number = lines.number.copy()
    for (_, line), tasks in places.items():
        number[line] -= tasks
    return lines._replace(number=np.maximum(number, 0))


def _places(state: State, snapshot: Snapshot, client: int, taken: Bools, lines: Lines) -> _Places:
    """Choose where to collect for missing tasks.

    `taken` (H,), by handle: agents that this or another gang has already; the new ones are added.
    """
    agents = agents_open_to(snapshot, client)
    agents = agents[~taken[snapshot.handle[agents]]]
    found = _spread_over(state, snapshot, client, snapshot.handle[agents], lines, agents)
    lines = _missing(lines, found)
    if lines.number.any():
        # What becomes free on a full agent may be offered before the next full cycle.
        full = _full_agents(state, snapshot, client, taken, lines)
        found |= _spread_over(state, snapshot, client, full, lines)
    taken[[agent for agent, _ in found]] = True
    return found


def _full_agents(state: State, snapshot: Snapshot, client: int, taken: Bools, lines: Lines) -> Ints:
    """Return a few agents (n handles) that are no candidates, because too little is free there.

    If they were empty, they would have room for a missing task. Those on which the client collects
    already come first, so that it keeps them, and those where a task must run.
    """
    others = state.agents.ready & ~taken
    others[snapshot.handle[snapshot.agents]] = False
    full = _allowed(state, client, others)
    room = _room_when_empty(state, snapshot, client, full, lines.number @ lines.size)
    fits = np.zeros(len(full), np.bool_)
    for size in lines.size[lines.number > 0]:
        fits |= room.tasks(size) > 0
    full = full[fits]
    its = state.clients.collecting.get(client)
    first = np.isin(full, [*(its.agent if its else ()), *lines.agent.tolist()])
    return np.concatenate([full[first], full[~first]])[:FULL_MAX]


def _spread_over(
    state: State,
    snapshot: Snapshot,
    client: int,
    handle: Ints,
    lines: Lines,
    agents: Ints | None = None,
) -> _Places:
    """Choose where to collect among agents (n handles).

    `agents` (n,): their rows in the snapshot; None: nothing is free on them.
    """
    room = _room_when_empty(state, snapshot, client, handle, lines.number @ lines.size)
    none = np.zeros((len(handle), len(snapshot.resources)), np.int64)
    free, used = none if agents is None else snapshot.free_by_column[agents], none.copy()
    found: _Places = {}
    for line in decreasing(snapshot, lines):
        size, need, only = lines.size[line], int(lines.number[line]), int(lines.agent[line])
        most, fit = np.minimum(room.tasks(size), need), np.zeros(len(handle), np.int64)
        if agents is not None:
            fit = np.minimum(tasks_on(snapshot, client, size)[agents], need)
        if used.any():  # by lines before
            fit = np.minimum(fit, tasks_in(np.maximum(free - used, 0), size))
        if only:
            most[handle != only] = fit[handle != only] = 0
        tasks = _most_at_once(free - used, size, need, fit, most)
        room, used = room.without(tasks, size), used + tasks[:, None] * size
        some = np.flatnonzero(tasks)
        found |= {
            (agent, line): count
            for agent, count in zip(handle[some].tolist(), tasks[some].tolist(), strict=True)
        }
    return found


def _most_at_once(free: Ints, size: Ints, need: int, fit: Ints, most: Ints) -> Ints:
    """Choose for how many tasks of a size (R,) a gang collects on each agent, (n,).

    `free` (n, R): of all kinds; less than 0 if more is chosen for other tasks.
    `fit`, `most` (n,): how many fit now, and if the agent were empty; at most `need`.
    """
    # First, whole tasks that there is room for.
    order = np.argsort(-fit, kind="stable")
    before = np.cumsum(fit[order]) - fit[order]
    tasks = np.zeros(len(fit), np.int64)
    tasks[order] = np.clip(need - before, 0, fit[order])
    # Then the missing tasks, evenly; agents that lack least for another task get the remainder.
    missing = need - int(tasks.sum())
    if missing:
        more = np.clip(most - tasks, 0, missing)
        wanted = (tasks + 1)[:, None] * size - free
        lack = (wanted[:, size > 0] / size[size > 0]).max(axis=1)
        tasks += _spread(more, missing, np.argsort(lack, kind="stable"))
    return tasks


def _spread(most: Ints, count: int, order: Ints) -> Ints:
    """Divide a count evenly into parts (n,) of at most `most` (n,); `order` gets the remainders."""
    low, high = 0, count
    while low < high:  # find the largest common maximum of the parts whose sum is at most `count`
        middle = (low + high + 1) // 2
        if int(np.minimum(most, middle).sum()) <= count:
            low = middle
        else:
            high = middle - 1
    parts = np.minimum(most, low)
    further = order[most[order] > low][: count - int(parts.sum())]
    parts[further] += 1
    return parts


def waiting(state: State, snapshot: Snapshot, clients: Ints) -> tuple[Ints, Ints]:
    """Return the clients that waited in a full cycle, among clients (n,) that were offered nothing.

    `snapshot`: as it was at the start of the cycle.
    Returns the clients that some agent could serve, or whose gang waits; and the clients without a
        gang that could be served even without the resources that gangs keep.
    """
    able = servable(snapshot, clients)
    gangs = snapshot.gangs
    if gangs is None:
        return clients[able], clients[able]
    single = clients[able & ~np.isin(clients, gangs.client)]
    # A gang waits for room on all agents together, unless it refuses some of them.
    refuses = state.filters.rows.per_client[clients] > 0
    able |= np.isin(clients, gangs.client) & ~refuses
    if len(gangs.collects):
        single = single[servable(without_collected(snapshot), single)]
    return clients[able], single
