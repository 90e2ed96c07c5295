"""What comes back of decisions that named the rest of an agent."""

import numpy as np

from allocator.core.books.open_decisions import OpenDecisions
from allocator.core.books.state import State
from allocator.core.events import Outcomes

REST_REFUSED_MS = 60_000
"""How long who got nothing of a rest kind is kept from it."""


def refuse_rest(state: State, event: Outcomes, decided: OpenDecisions) -> None:
    """Bar clients from the rest of an agent for some time when they got nothing of it.

    `decided`: the decisions that are settled.
    """
    client, agent, amounts = decided
    columns = {kind: column for column, kind in enumerate(event.kind.tolist())}
    for kind in state.space.rest:
        # Decisions that named this kind, as positions in their list of parts.
        part = np.flatnonzero(amounts.kind == kind)
        # Which decisions gave nothing of it: nothing was offered at all, or a part without this
        # kind.
        nothing = ~event.offered
        if kind in columns:
            nothing[event.partial] = event.amount[:, columns[kind]] == 0
        else:
            nothing |= event.partial
        # From parts to the decisions that they belong to.
        row = np.searchsorted(amounts.start, part, "right") - 1
        kept = nothing[row] & (client[row] > 0)
        for one, much in zip(row[kept].tolist(), amounts.amount[part[kept]].tolist(), strict=True):
            until_ms = state.now_ms + REST_REFUSED_MS
            state.filters.refuse_rest(int(client[one]), int(agent[one]), kind, much, until_ms)
