"""What is beyond `limits.frameworks` and `limits.agents` is passed over, as if it were not there.

Whoever may register frameworks or agents may register many, and nobody else must suffer: those that
came first are served. What is beyond holds nothing here; the module sees that nothing is given
twice.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from allocator.core.events import AddAgents, Event, Exclude, Hold, Refuse, UpdateAllocation
from allocator.core.snapshot import Bools, Ints
from allocator.core.state import State


def within_limits(state: State, event: Event) -> Event | None:
    """Leave out of an event what is beyond the limits; None where nothing is left."""
    framework, agent = getattr(event, "framework", 0), getattr(event, "agent", 0)
    if isinstance(agent, int) and agent > state.limits.agents:
        return None
    if isinstance(framework, int) and framework > state.limits.frameworks:
        # Resources that it turned into others are there all the same.
        return replace(event, framework=0) if isinstance(event, UpdateAllocation) else None
    match event:
        case Hold(holdings):
            kept = _known(state, holdings.framework, holdings.agent)
            return event if kept.all() else Hold(holdings.cut(kept))
        case Refuse(refused):
            kept = _known(state, refused.framework, refused.agent)
            return event if kept.all() else Refuse(refused.cut(kept), event.expires_ms[kept])
        case Exclude():
            kept = _known(state, event.framework, event.agent)
            return event if kept.all() else event.cut(kept)
        case AddAgents():
            kept = event.agent <= state.limits.agents
            return event if kept.all() else _some(event, kept)
    return event


def _known(state: State, framework: Ints, agent: Ints) -> Bools:
    found: Bools = (framework <= state.limits.frameworks) & (agent <= state.limits.agents)
    return found


def note_beyond(state: State, event: Event) -> None:
    """Note what an event names beyond the limits, of which something was left out."""
    for name, most in (("agent", state.limits.agents), ("framework", state.limits.frameworks)):
        largest = int(np.max(getattr(event, name, 0), initial=0))
        if largest > most:
            state.beyond[f"{name}s"] = max(state.beyond[f"{name}s"], largest)


def _some(event: AddAgents, kept: Bools) -> AddAgents | None:
    """Some of several agents."""
    if not kept.any():
        return None
    rows: Any = np.flatnonzero(kept)
    return AddAgents(
        agent=event.agent[rows],
        info=tuple(event.info[row] for row in rows.tolist()),
        kind=event.kind,
        capacity=event.capacity[rows],
        active=event.active[rows],
        unavailable_from_ms=event.unavailable_from_ms[rows],
        unavailable_for_ms=event.unavailable_for_ms[rows],
    )
