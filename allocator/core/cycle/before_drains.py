"""Before a drain begins, offers the agent only to clients whose tasks end in time.

The calendar announces a drain (`SetDrain.from_ms`). In the last `Settings.drain_ahead_ms` before
it, the agent is offered only to clients whose tasks almost certainly (p95 of learnt durations) end
before it begins. Clients with unknown durations count as ending too late. Other clients are barred
as by a constraint, so policies, gangs and plans need nothing new. If the drain does not follow when
it should, no client is offered the agent.
"""

import numpy as np

from allocator.core.books.eligibility import NONE_LATE, Late, as_set
from allocator.core.books.state import State
from allocator.core.cycle.backfilling import REST_MS
from allocator.core.cycle.holders import NEVER, look
from allocator.core.demand.durations import EDGES_MS


def look_ahead(state: State) -> None:
    """Look up how long clients' tasks run, if a drain begins soon; for full cycles.

    Examines all holdings, and pauses for `REST_MS` afterwards.
    """
    if not _begins_soon(state):
        return
    clients = state.clients
    rest_ms = int(len(state.ledger.rows()) * REST_MS)
    if clients.looked_ms and state.now_ms < clients.looked_ms + rest_ms:
        return
    rows = np.flatnonzero(clients.subscribed)
    within_ms = look(state, rows).ends_within_ms(rows)
    clients.lasts_ms[rows] = np.where(within_ms == NEVER, 0, within_ms)
    clients.looked_ms = state.now_ms


def bar(state: State) -> None:
    """Bar clients from agents that are drained before their tasks end."""
    if not _begins_soon(state):
        state.eligibility.bar(NONE_LATE)
        return
    from_ms, clients = state.agents.drained_from_ms, state.clients
    agents = np.flatnonzero((from_ms > 0) & (from_ms <= _until_ms(state)))
    # Durations are edges of buckets, so agents differ only by the number of edges before the drain.
    left = np.searchsorted(EDGES_MS, from_ms[agents] - state.now_ms, side="right")
    lefts, group = np.unique(left, return_inverse=True)
    needed = np.searchsorted(EDGES_MS, clients.lasts_ms)
    needed[clients.lasts_ms == 0] = len(EDGES_MS)  # unknown
    late = (as_set(clients.subscribed & (needed >= each)) for each in lefts)
    state.eligibility.bar(Late(agents, group, tuple(late)))


def _until_ms(state: State) -> int:
    """Return the time before which a drain must begin to count as soon."""
    return state.now_ms + state.settings.drain_ahead_ms


def _begins_soon(state: State) -> bool:
    """Whether a drain begins soon; if not, cycles need not look at all agents."""
    until_ms, ahead = _until_ms(state), state.settings.drain_ahead_ms > 0
    return ahead and any(0 < each <= until_ms for each in state.settings.drains.values())
