"""When a gang that collects is expected to begin: by how long those run that hold its agents.

The gang begins when on each of its agents enough has come back for the tasks that it keeps room
for. A holder is taken to end as a whole, at a quantile of the durations learnt of its like, given
how long it has run already. If one of those that stand in the way has no learnt durations, there is
no forecast.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.books.collecting import Collecting
from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.cycle.gangs import need_of
from allocator.core.demand.durations import ends_after_ms
from allocator.core.snapshot import Bools, Ints, Snapshot


class Forecast(NamedTuple):
    """When a gang begins, in milliseconds of the master's clock.

    `expected_ms`, `latest_ms`: by the medians, and by the p95, of what its holders need.
    """

    expected_ms: int
    latest_ms: int


class _Held(NamedTuple):
    """Holdings on the agents of a gang that stand in its way, n of them.

    `place` (n,): on which of its agents.
    `client` (n,); `amount` (n, R), in thousandths.
    `began_ms` (n,): since when something is in use; now if nothing is; -1 if that is not known.
    """

    place: Ints
    client: Ints
    amount: Ints
    began_ms: Ints

    def some(self, rows: Ints | Bools) -> "_Held":
        return _Held._make(column[rows] for column in self)


def forecast(state: State, snapshot: Snapshot, client: int, its: Collecting) -> Forecast | None:
    """When a gang begins; None: it collects on too few agents yet, or durations are not known."""
    tasks, demand = np.array(its.tasks, np.int64), snapshot.demand[client]
    if int(tasks.sum()) < need_of(snapshot, client):
        return None
    agent = np.array(its.agent, np.int64)
    free = state.space.by_column(state.free_on(agent))
    held = _in_the_way(state, agent, demand, _room(free, demand) < tasks)
    ends = _ends_ms(state, held)
    if ends is None:
        return None
    expected_ms, latest_ms = (
        _enough_ms(state.now_ms, held, free, demand, tasks, each) for each in ends
    )
    if expected_ms is None or latest_ms is None:
        return None
    return Forecast(expected_ms, max(expected_ms, latest_ms))


def _room(free: Ints, demand: Ints) -> Ints:
    """How many tasks fit into amounts (n, R), (n,)."""
    column = demand > 0
    room: Ints = (free[:, column] // demand[column]).min(axis=1)
    return room


def _in_the_way(state: State, agent: Ints, demand: Ints, lacks: Bools) -> _Held:
    """Who holds something that the gang needs, on those of its agents (n,) that lack room."""
    books, keys = state.ledger.books, state.ledger.holders(agent)
    place, client = keys >> 32, keys & (2**32 - 1)
    rows = state.ledger.find(client, agent[place])
    amount = state.space.by_column(books.held[rows])
    used = (books.held[rows] != books.offered[rows]).any(axis=1)
    began_ms = np.where(used, books.used_ms[rows], state.now_ms)
    needed = lacks[place] & (amount[:, demand > 0] > 0).any(axis=1)
    return _Held(place, client, amount, began_ms).some(needed)


def _ends_ms(state: State, held: _Held) -> tuple[Ints, Ints] | None:
    """When holdings end, by the medians and by the p95, (n,) each; None: not all are known."""
    memory, settings = state.memory, state.settings
    if (held.began_ms < 0).any():
        return None
    middle, late = held.began_ms.copy(), held.began_ms.copy()
    for client in np.unique(held.client).tolist():
        topic = topic_of(state, client)
        counts = topic and memory.durations.counts(settings, topic, memory.elapsed_ms)
        if counts is None:
            return None
        mine = held.client == client
        age_ms = state.now_ms - held.began_ms[mine]
        middle[mine] += ends_after_ms(counts, age_ms, 50)
        late[mine] += ends_after_ms(counts, age_ms, 95, up=True)
    return middle, late


def _enough_ms(
    now_ms: int, held: _Held, free: Ints, demand: Ints, tasks: Ints, ends_ms: Ints
) -> int | None:
    """When there is room for the tasks (n,) on each of the agents; None: never."""
    order = np.lexsort((ends_ms, held.place))
    place, amount = held.place[order], held.amount[order]
    total = np.cumsum(amount, axis=0)
    first = np.searchsorted(place, np.arange(len(tasks)))
    before = np.vstack([np.zeros_like(demand), total])[first]
    room = _room(free[place] + total - before[place], demand)
    enough = np.flatnonzero(room >= tasks[place])
    lacking = np.flatnonzero(_room(free, demand) < tasks)
    done, at = np.unique(place[enough], return_index=True)
    if not np.array_equal(done, lacking):
        return None
    return max(now_ms, int(ends_ms[order][enough][at].max(initial=0)))
