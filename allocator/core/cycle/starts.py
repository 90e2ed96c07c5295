"""Forecasts when a gang that collects can begin, from how long tasks on its agents usually run.

A gang can begin when on each of its agents enough has come back for the tasks that it keeps room
for there. If these are fewer than its tasks, enough for the others must come back on agents that it
has not chosen yet. A holding is assumed to end as a whole.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.books.collecting import Collecting
from allocator.core.books.eligibility import bits
from allocator.core.books.state import State
from allocator.core.cycle.gangs import need_of, tasks_in
from allocator.core.cycle.holders import NEVER, Holders
from allocator.core.snapshot import Ints, Snapshot

ELSEWHERE_MAX = 20_000
"""If a gang has not chosen enough agents, a cluster with more holdings than this has no forecast:
looking at them all is expensive, and something will come back on enough agents soon."""


class Forecast(NamedTuple):
    """When a gang can begin, in milliseconds of the master's clock.

    `expected_ms`, `latest_ms`: by the medians and by the p95 of the durations of current holders.
    """

    expected_ms: int
    latest_ms: int


def forecast(
    state: State, snapshot: Snapshot, holders: Holders, client: int, its: Collecting
) -> Forecast | None:
    """Forecast when a gang can begin; None: unknown."""
    demand = snapshot.demand[client]
    own = _own_ends_ms(state, holders, demand, its)
    missing = need_of(snapshot, client) - sum(its.tasks)
    rest = (state.now_ms, state.now_ms)
    if missing > 0 and own is not None:
        if len(holders.agent) > ELSEWHERE_MAX:
            return None
        rest = _rest_ends_ms(state, holders, demand, client, missing)
    if own is None or max(*own, *rest) == NEVER:
        return None
    expected_ms, latest_ms = (max(pair) for pair in zip(own, rest, strict=True))
    return Forecast(expected_ms, max(expected_ms, latest_ms))


def _needed_on(state: State, holders: Holders, agent: Ints, demand: Ints) -> Holders:
    """Return the holdings on agents (n,) that contain a resource of the demand."""
    here = np.zeros(len(state.agents.bound), np.bool_)
    here[agent] = True
    held = holders.some(np.flatnonzero(here[holders.agent]))
    return held.some(np.any(held.amount[:, demand > 0] > 0, axis=1))


def _own_ends_ms(
    state: State, holders: Holders, demand: Ints, its: Collecting
) -> tuple[int, int] | None:
    """Return when each agent of a gang has room for its tasks there; None: a holder is unknown.

    The two times are those of the last agent, by the medians and by the p95 of durations.
    """
    order = np.argsort(np.array(its.agent, np.int64))
    agent, tasks = np.array(its.agent, np.int64)[order], np.array(its.tasks, np.int64)[order]
    free = state.space.by_column(state.free_on(agent))
    lacks = np.flatnonzero(tasks_in(free, demand) < tasks)
    held = _needed_on(state, holders, agent[lacks], demand)
    if (held.middle_ms == NEVER).any():
        return None
    found = []
    for ends_ms in (held.middle_ms, held.late_ms):
        place, when_ms, room = _growth(held, ends_ms, agent, free, demand)
        enough = np.flatnonzero(room >= tasks[place])
        done, first = np.unique(place[enough], return_index=True)
        all_done = np.array_equal(done, lacks)
        begins_ms = int(when_ms[enough][first].max(initial=state.now_ms))
        found.append(begins_ms if all_done else NEVER)
    return found[0], found[1]


def _rest_ends_ms(
    state: State, holders: Holders, demand: Ints, client: int, missing: int
) -> tuple[int, int]:
    """Return when agents that no gang has chosen have room for the missing tasks.

    Holders with unknown durations count as running forever.
    """
    chosen = [agent for each in state.clients.collecting.values() for agent in each.agent]
    usable = state.agents.ready.copy()
    usable[chosen] = False
    agent = np.flatnonzero(usable)
    barred = bits(state.eligibility.excluded, agent, np.full(len(agent), client))
    agent = agent[~barred]
    free = state.space.by_column(state.free_on(agent))
    held = _needed_on(state, holders, agent, demand)
    held = held.some(held.middle_ms != NEVER)
    found = []
    for ends_ms in (held.middle_ms, held.late_ms):
        place, when_ms, room = _growth(held, ends_ms, agent, free, demand)
        before = np.append(0, room[:-1])
        begins = np.append(True, place[1:] != place[:-1])[: len(place)]
        before[: len(place)][begins] = tasks_in(free, demand)[place[begins]]
        order = np.argsort(when_ms, kind="stable")
        total = np.cumsum((room - before[: len(place)])[order])
        at = int(np.searchsorted(total, missing))
        found.append(int(when_ms[order][at]) if at < len(total) else NEVER)
    return found[0], found[1]


def _growth(
    held: Holders, ends_ms: Ints, agent: Ints, free: Ints, demand: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return how the room for tasks on agents (A,) grows with each of n holdings that end.

    Returns, (n,): index of the agent, ascending; when the holding ends; tasks that then fit there.
    """
    order = np.lexsort((ends_ms, held.agent))
    place = np.searchsorted(agent, held.agent[order])
    total = np.cumsum(held.amount[order], axis=0)
    first = np.searchsorted(place, place)
    before = np.vstack([np.zeros_like(demand), total])[first]
    return place, ends_ms[order], tasks_in(free[place] + total - before, demand)
