"""What comes back of decisions that named the rest of an agent."""

import numpy as np

from allocator.core.events import Settle
from allocator.core.snapshot import Ints
from allocator.core.state import State

REST_REFUSED_MS = 60_000
"""How long who got nothing of a rest kind is kept from it."""


def refuse_rest(state: State, event: Settle, decided: tuple[Ints, Ints, Ints]) -> None:
    """Keep those from the rest who got nothing of it.

    Parameters
    ----------
    state : State
    event : Settle
    decided : (N,), (N,), (N, K) int64
        Clients (0: void), agents and amounts of the decisions that are settled.
    """
    client, agent, amount = decided
    columns = {kind: column for column, kind in enumerate(event.kind.tolist())}
    for kind in state.space.rest:
        if kind >= amount.shape[1]:
            continue
        nothing = ~event.offered
        if kind in columns:
            nothing[event.partial] = event.amount[:, columns[kind]] == 0
        else:
            nothing |= event.partial
        for row in np.flatnonzero(nothing & (amount[:, kind] > 0) & (client > 0)).tolist():
            state.filters.refuse_rest(
                int(client[row]),
                int(agent[row]),
                kind,
                int(amount[row, kind]),
                state.now_ms + REST_REFUSED_MS,
            )
