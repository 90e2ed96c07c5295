"""Before a drain begins, offers the agent only to clients whose tasks end in time.

The durations are those that backfill uses: the p95 of what is learnt of similar frameworks. Other
clients, and those of which too little is learnt, are excluded from the agent as by a constraint, so
policies, gangs and plans need nothing new.
"""

import numpy as np

from allocator.core.books.state import State
from allocator.core.cycle.backfilling import REST_MS
from allocator.core.cycle.holders import NEVER, look
from allocator.core.snapshot import Ints


def look_ahead(state: State) -> None:
    """Look up how long clients' tasks run, if agents will be drained; for full cycles.

    As forecasts, this examines all holdings, and rests in proportion to their number.
    """
    if not _some(state):
        return
    clients = state.clients
    since_ms = int(clients.lasts_since_ms.max())
    if since_ms and state.now_ms < since_ms + int(len(state.ledger.rows()) * REST_MS):
        return
    rows = np.flatnonzero(clients.subscribed)
    within_ms = look(state, rows).ends_within_ms(rows)
    clients.lasts_ms[:] = 0
    clients.lasts_ms[rows] = np.where(within_ms == NEVER, 0, within_ms)
    clients.lasts_since_ms[rows] = state.now_ms


def bar(state: State) -> None:
    """Exclude from agents that will be drained the clients whose tasks would not end before."""
    if not _some(state):
        state.eligibility.bar(())
        return
    agents = np.flatnonzero(state.agents.drained_from_ms)
    its = state.agents.drained_from_ms[agents]
    state.eligibility.bar(
        (agents[its == each], _late(state, each - state.now_ms)) for each in np.unique(its).tolist()
    )


def _some(state: State) -> bool:
    """Whether agents may be drained later; without drains, cycles must not look at all agents."""
    return any(state.settings.drains.values())


def _late(state: State, left_ms: int) -> Ints:
    """Return the clients whose tasks may run longer than `left_ms`."""
    lasts_ms = state.clients.lasts_ms
    late = (state.clients.framework > 0) & ((lasts_ms == 0) | (lasts_ms > left_ms))
    return np.flatnonzero(late)
