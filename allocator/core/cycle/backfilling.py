"""Backfill: offers the room that a gang collects to clients whose tasks end before the gang begins.

What a gang collects is idle until its last task fits. Its *guests* are clients whose gangs do not
collect, or that have none, and whose tasks almost certainly (p95 of learnt durations) end before
the gang is expected to begin, and before its collection ends. After all other grants of a cycle,
guests are offered what is left on the gang's agents, and guests with a gang also what is left on
other agents. Agents of the gang that have guests are *lent*: what comes back there before the
gang's expected start is kept for the gang.

Durations are observed, never stated by frameworks. If a guest's tasks run longer than earlier ones,
the gang begins later, but after its expected start it lends nothing more.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from allocator.core.books.collecting import Collecting
from allocator.core.books.state import State
from allocator.core.cycle.derived import after, joined, mask, with_gangs_among
from allocator.core.cycle.gangs import allocate, granted
from allocator.core.cycle.holders import Outlook, look
from allocator.core.cycle.starts import Forecast, forecast
from allocator.core.demand.durations import EDGES_MS
from allocator.core.numba.array_structures import pack
from allocator.core.numba.bit_tables import in_blocks
from allocator.core.numba.shared_bits import SharedBits, shared_pairs, shared_width, with_bits
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Grants, Ints, Snapshot

FORECASTS_MAX = 4
"""Maximum number of gangs with guests in one cycle: those whose collections are the oldest."""

REST_MS = 0.01
"""Pause after making forecasts, in ms per holding of the cluster, so that forecasts use at most a
twentieth of the time: with a million holdings, one takes half a second of processor time."""

TOPIC_REST_MS = 1.0
"""The same for each topic with learnt durations: 1,000 of them took 64 ms on a busy machine."""


class Forecasts(NamedTuple):
    """The expected starts of gangs, where known, by client.

    `outlook`: the data behind the forecasts; None: no forecasts were made.
    """

    of_client: dict[int, Forecast]
    outlook: Outlook | None


def forecasts(state: State, snapshot: Snapshot) -> Forecasts:
    """Forecast when the gangs that collect begin; empty while forecasts pause."""
    assert snapshot.gangs is not None
    collecting = list(state.clients.collecting.items())[:FORECASTS_MAX]
    memory = state.memory
    durations = memory.durations
    if not (collecting and durations.entries) or memory.elapsed_ms < durations.rests_until_ms:
        return Forecasts({}, None)
    outlook = look(state, np.setdiff1d(snapshot.tree.client, snapshot.gangs.collects))
    every = {
        client: forecast(state, snapshot, outlook.holders, client, its)
        for client, its in collecting
    }
    known = {client: found for client, found in every.items() if found is not None}
    return Forecasts(known, outlook)


def keep_forecasts(state: State, found: Forecasts) -> None:
    """Store the forecasts of gangs that had none, or that now begin earlier."""
    collecting, memory = state.clients.collecting, state.memory
    if found.outlook is not None:
        rest_ms = len(found.outlook.holders.agent) * REST_MS
        rest_ms += len(found.outlook.within_ms) * TOPIC_REST_MS
        memory.durations.rests_until_ms = memory.elapsed_ms + int(rest_ms)
    for client, (expected_ms, latest_ms) in found.of_client.items():
        its = collecting[client]
        if its.expected_ms < 0:
            collecting[client] = its._replace(expected_ms=expected_ms, latest_ms=latest_ms)
        elif expected_ms < its.expected_ms:
            collecting[client] = its._replace(expected_ms=expected_ms)


def with_guests(state: State, snapshot: Snapshot, found: Forecasts) -> Snapshot:
    """Return the snapshot with the guests of each gang that has a forecast."""
    gangs, outlook, collecting = snapshot.gangs, found.outlook, state.clients.collecting
    left_ms = {client: _left_ms(state, collecting[client]) for client in found.of_client}
    if outlook is None or gangs is None or max(left_ms.values(), default=0) < EDGES_MS[0]:
        return snapshot
    clients = np.setdiff1d(snapshot.tree.client, gangs.collects)
    if snapshot.over_budget is not None:
        clients = clients[~snapshot.over_budget[clients]]
    within_ms = outlook.ends_within_ms(clients)
    guests = np.zeros((len(gangs.collects), len(snapshot.leaf_of_client)), np.bool_)
    for row, client in enumerate(gangs.collects.tolist()):
        guests[row, clients] = within_ms <= left_ms.get(client, -1)
    return replace(snapshot, gangs=gangs._replace(guests=guests)) if guests.any() else snapshot


def _left_ms(state: State, its: Collecting) -> int:
    """Return for how long, in ms, a gang does not need what it keeps."""
    until_ms = min(its.expected_ms, its.since_ms + state.settings.collect_ms)
    return until_ms - state.now_ms


def with_backfill(policy: Policy, snapshot: Snapshot, grants: Grants, seed: int) -> Grants:
    """Let the policy also grant what gangs keep to their guests, after all other `grants`."""
    gangs = snapshot.gangs
    if gangs is None or gangs.guests is None:
        return grants
    waits = gangs.guests.any(axis=1) & ~np.isin(gangs.collects, grants.client)
    lends = np.isin(gangs.collector, gangs.collects[waits])
    agents = np.intersect1d(gangs.collects_on[lends], snapshot.agents)
    left = after(snapshot, [grants])
    agents = agents[left.free_by_column[agents].any(axis=1)]
    if not len(agents):
        return grants
    guests: Bools = np.any(gangs.guests[waits], axis=0)
    guests &= ~mask(granted(snapshot, grants), snapshot)
    if guests[gangs.client].any():
        agents = snapshot.agents
    excluded, excluding = _barred(left, agents)
    only = with_gangs_among(left, guests, may_collect=np.zeros_like(guests))
    only = replace(only, agents=agents, excluded=excluded, excluding=excluding)
    return joined(snapshot, [grants, allocate(policy, only, seed)])


def _barred(snapshot: Snapshot, agents: Ints) -> tuple[SharedBits, Bools]:
    """Return exclusions that keep all clients but a gang's guests from its agents (n,)."""
    gangs = snapshot.gangs
    assert gangs is not None
    assert gangs.guests is not None
    words = shared_width(snapshot.excluded)
    others = in_blocks(np.array([pack(~guests, words) for guests in gangs.guests]))
    mine = np.isin(gangs.collects_on, agents)
    row = {client: at for at, client in enumerate(gangs.collects.tolist())}
    owner = np.array([row[each] for each in gangs.collector[mine].tolist()], np.int64)
    its_agents, excluding = gangs.collects_on[mine], snapshot.excluding.copy()
    excluded = with_bits(snapshot.excluded, its_agents, others[:, owner])
    excluding[its_agents] = True
    return excluded, excluding


def note_lent(state: State, snapshot: Snapshot, grants: Grants) -> None:
    """Record for each collecting gang on which of its agents it had guests in this cycle."""
    gangs = snapshot.gangs
    if gangs is None or gangs.guests is None:
        return
    for row, client in enumerate(gangs.collects.tolist()):
        its = state.clients.collecting.get(client)
        if its is None:
            continue
        mine = gangs.collects_on[gangs.collector == client]
        given = np.isin(grants.agent, mine) & gangs.guests[row, grants.client]
        lent = np.unique(snapshot.handle[grants.agent[given]]).tolist()
        if lent:
            lent = tuple(sorted({*its.lent, *lent}))
            state.clients.collecting[client] = its._replace(lent=lent)
            state.memory.durations.starts.lent += len(np.unique(grants.pair[given]))


def kept_lent(state: State, client: int, its: Collecting) -> dict[tuple[int, int], int]:
    """Return what a gang keeps on agents that it lent: tasks by agent (handle) and line.

    Nothing after the gang's expected start, even if guests still run: the gang chooses again from
    all agents.
    """
    if state.now_ms > its.expected_ms:
        return {}
    lent = np.array(its.lent, np.int64)
    lent = lent[state.agents.ready[lent]]
    barred = shared_pairs(state.eligibility.excluded, lent, np.full(len(lent), client))
    usable = set(lent[~barred].tolist())
    places = zip(its.agent, its.line, its.tasks, strict=True)
    return {(agent, line): tasks for agent, line, tasks in places if agent in usable}
