"""Forecasts when a gang that collects can begin, from how long tasks on its agents usually run.

A gang can begin when on each of its agents enough has come back for the tasks that it keeps room
for there. For further tasks, enough must come back on agents that it has not chosen yet. A holding
is assumed to end as a whole.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.books.collecting import Collecting
from allocator.core.books.state import State
from allocator.core.cycle.gangs import added_up, lines_of, total_of
from allocator.core.cycle.holders import NEVER, Holders
from allocator.core.cycle.room import tasks_in
from allocator.core.numba.shared_bits import shared_pairs
from allocator.core.snapshot import Ints, Snapshot

ELSEWHERE_MAX = 20_000
"""If a gang has not chosen enough agents, it has no forecast in a cluster with more holdings than
this: looking at them all is expensive, and something will come back on enough agents soon."""


class Forecast(NamedTuple):
    """When a gang can begin, in ms of the master's clock.

    `expected_ms`, `latest_ms`: by the medians and by the p95 of the durations of current holders.
    """

    expected_ms: int
    latest_ms: int


def forecast(
    state: State, snapshot: Snapshot, holders: Holders, client: int, its: Collecting
) -> Forecast | None:
    lines, total = lines_of(snapshot, client), total_of(snapshot, client)
    line, tasks = np.array(its.line, np.int64), np.array(its.tasks, np.int64)
    own = _own_ends_ms(state, holders, total, its, tasks[:, None] * lines.size[line])
    missing = lines.number.copy()
    np.subtract.at(missing, line, tasks)
    ends = [(state.now_ms, state.now_ms)]
    for size, count in zip(lines.size, missing.tolist(), strict=True):
        if count > 0 and own is not None:
            if len(holders.agent) > ELSEWHERE_MAX:
                return None
            ends.append(_rest_ends_ms(state, holders, size, client, count))
    if own is None or max(max(pair) for pair in (own, *ends)) == NEVER:
        return None
    expected_ms, latest_ms = (max(every) for every in zip(own, *ends, strict=True))
    return Forecast(expected_ms, max(expected_ms, latest_ms))


def _needed_on(state: State, holders: Holders, agent: Ints, demand: Ints) -> Holders:
    """Return the holdings on agents (n,) that contain a resource of the demand."""
    here = np.zeros(len(state.agents.bound), np.bool_)
    here[agent] = True
    held = holders.some(np.flatnonzero(here[holders.agent]))
    return held.some(np.any(held.amount[:, demand > 0] > 0, axis=1))


def _own_ends_ms(
    state: State, holders: Holders, total: Ints, its: Collecting, wanted: Ints
) -> tuple[int, int] | None:
    """Return when each agent of a gang has room for its tasks there; None: a holder is unknown.

    `total` (R,): need of the whole gang.
    `wanted` (m, R): its need on each of `its.agent`.
    The two times are those of the last agent, by the medians and by the p95 of durations.
    """
    agent, wanted = added_up(np.array(its.agent, np.int64), wanted)
    order = np.argsort(agent)
    agent, wanted = agent[order], wanted[order]
    free = state.space.by_column(state.free_on(agent))
    lacks = np.flatnonzero((free < wanted).any(axis=1))
    held = _needed_on(state, holders, agent[lacks], total)
    if (held.middle_ms == NEVER).any():
        return None
    found = []
    for ends_ms in (held.middle_ms, held.late_ms):
        place, when_ms, room = _growth(held, ends_ms, agent, free)
        enough = np.flatnonzero((room >= wanted[place]).all(axis=1))
        done, first = np.unique(place[enough], return_index=True)
        all_done = np.array_equal(done, lacks)
        begins_ms = int(when_ms[enough][first].max(initial=state.now_ms))
        found.append(begins_ms if all_done else NEVER)
    return found[0], found[1]


def _rest_ends_ms(
    state: State, holders: Holders, demand: Ints, client: int, missing: int
) -> tuple[int, int]:
    """Return when agents that no gang has chosen have room for the missing tasks of one size.

    Holders with unknown durations count as running forever.
    """
    chosen = [agent for each in state.clients.collecting.values() for agent in each.agent]
    usable = state.agents.ready.copy()
    usable[chosen] = False
    agent = np.flatnonzero(usable)
    barred = shared_pairs(state.eligibility.excluded, agent, np.full(len(agent), client))
    agent = agent[~barred]
    free = state.space.by_column(state.free_on(agent))
    held = _needed_on(state, holders, agent, demand)
    held = held.some(held.middle_ms != NEVER)
    found = []
    for ends_ms in (held.middle_ms, held.late_ms):
        place, when_ms, amounts = _growth(held, ends_ms, agent, free)
        room = tasks_in(amounts, demand)
        before = np.append(0, room[:-1])
        begins = np.append(True, place[1:] != place[:-1])[: len(place)]
        before[: len(place)][begins] = tasks_in(free, demand)[place[begins]]
        order = np.argsort(when_ms, kind="stable")
        total = np.cumsum((room - before[: len(place)])[order])
        at = int(np.searchsorted(total, missing))
        found.append(int(when_ms[order][at]) if at < len(total) else NEVER)
    return found[0], found[1]


def _growth(held: Holders, ends_ms: Ints, agent: Ints, free: Ints) -> tuple[Ints, Ints, Ints]:
    """Return how the free amounts on agents grow with each of n holdings that end.

    `free` (A, R): free amounts now.
    Returns, (n,): index of the agent, ascending; when the holding ends; and (n, R): what is free
    then.
    """
    order = np.lexsort((ends_ms, held.agent))
    place = np.searchsorted(agent, held.agent[order])
    total = np.cumsum(held.amount[order], axis=0)
    first = np.searchsorted(place, place)
    before = np.vstack([np.zeros(free.shape[1], np.int64), total])[first]
    return place, ends_ms[order], free[place] + total - before
