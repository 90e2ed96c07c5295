"""What comes back of decisions that named the rest of an agent."""

import numpy as np

from allocator.core.events import Settle
from allocator.core.open_decisions import OpenDecisions
from allocator.core.state import State

REST_REFUSED_MS = 60_000
"""How long who got nothing of a rest kind is kept from it."""


def refuse_rest(state: State, event: Settle, decided: OpenDecisions) -> None:
    """Keep those from the rest who got nothing of it.

    Parameters
    ----------
    state : State
    event : Settle
    decided : OpenDecisions
        The decisions that are settled.
    """
    client, agent, amounts = decided
    columns = {kind: column for column, kind in enumerate(event.kind.tolist())}
    row_of_part = np.repeat(np.arange(len(client)), np.diff(amounts.start))
    for kind in state.space.rest:
        nothing = ~event.offered
        if kind in columns:
            nothing[event.partial] = event.amount[:, columns[kind]] == 0
        else:
            nothing |= event.partial
        for part in np.flatnonzero(amounts.kind == kind).tolist():
            row = int(row_of_part[part])
            if nothing[row] and client[row]:
                state.filters.refuse_rest(
                    int(client[row]),
                    int(agent[row]),
                    kind,
                    int(amounts.amount[part]),
                    state.now_ms + REST_REFUSED_MS,
                )
