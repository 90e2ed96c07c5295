"""Removes frameworks and agents beyond `limits.frameworks` and `limits.agents` from events.

A principal may register too many frameworks or agents. To protect other principals, those that
registered first are served. The books do not record what frameworks beyond a limit hold; the module
ensures that these resources are not granted twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from allocator.core.books.state import State
from allocator.core.events import AddAgents, AddFilters, Event, Exclude, Hold, UpdateAllocation
from allocator.core.snapshot import Bools, Ints


def within_limits(state: State, event: Event) -> Event | None:
    """Remove what is beyond the limits from an event; None if nothing remains."""
    of_many = _OF_MANY.get(type(event))
    if of_many is not None:
        return of_many(state, event)
    framework, agent = getattr(event, "framework", 0), getattr(event, "agent", 0)
    if isinstance(agent, int) and agent > state.session_limits.agents:
        return None
    if isinstance(framework, int) and framework > state.session_limits.frameworks:
        # The operation changes the agent's resources in any case; treat them as free.
        return replace(event, framework=0) if isinstance(event, UpdateAllocation) else None
    return event


def _hold(state: State, event: Hold) -> Event:
    kept = _known(state, event.holdings.framework, event.holdings.agent)
    return event if kept.all() else Hold(event.holdings.cut(kept))


def _add_filters(state: State, event: AddFilters) -> Event:
    kept = _known(state, event.refused.framework, event.refused.agent)
    return event if kept.all() else AddFilters(event.refused.cut(kept), event.expires_ms[kept])


def _exclude(state: State, event: Exclude) -> Event:
    kept = _known(state, event.framework, event.agent)
    return event if kept.all() else event.cut(kept)


def _add_agents(state: State, event: AddAgents) -> Event | None:
    kept = event.agent <= state.session_limits.agents
    return event if kept.all() else _some(event, kept)


_OF_MANY: Mapping[type, Callable[[State, Any], Event | None]] = MappingProxyType(
    {Hold: _hold, AddFilters: _add_filters, Exclude: _exclude, AddAgents: _add_agents}
)
"""By event that names several agents or frameworks: the function that removes some."""


def _known(state: State, framework: Ints, agent: Ints) -> Bools:
    found: Bools = (framework <= state.session_limits.frameworks) & (
        agent <= state.session_limits.agents
    )
    return found


def note_beyond(state: State, event: Event) -> None:
    for name, most in (
        ("agent", state.session_limits.agents),
        ("framework", state.session_limits.frameworks),
    ):
        largest = int(np.max(getattr(event, name, 0), initial=0))
        if largest > most:
            state.beyond[f"{name}s"] = max(state.beyond[f"{name}s"], largest)


def _some(event: AddAgents, kept: Bools) -> AddAgents | None:
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
