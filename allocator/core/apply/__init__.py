"""Applies events to the state.

Each event has a function that validates the whole event before it changes anything. Start with
`holdings`: launches, declines and outcomes.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from allocator.core import events
from allocator.core.apply import agents, frameworks, holdings, settings
from allocator.core.apply.within_limits import note_beyond, within_limits
from allocator.core.books.state import State
from allocator.core.settings import EVENT_OF_KIND
from allocator.rule_kinds import RULES

_HANDLERS: Mapping[type, Callable[[State, Any], None]] = MappingProxyType(
    {
        events.Options: settings.set_options,
        events.Define: frameworks.define,
        events.AddAgent: agents.add_agent,
        events.AddAgents: agents.add_agents,
        events.UpdateAgent: agents.update_agent,
        events.RemoveAgent: agents.remove_agent,
        events.ActivateAgent: agents.activate_agent,
        events.SetWhitelist: agents.set_whitelist,
        events.SetUnavailability: agents.set_unavailability,
        events.AddFramework: frameworks.add_framework,
        events.UpdateFramework: frameworks.update_framework,
        events.RemoveFramework: frameworks.remove_framework,
        events.ActivateFramework: frameworks.activate_framework,
        events.Suppress: frameworks.suppress,
        events.Revive: frameworks.revive,
        events.Request: frameworks.request,
        events.SetWeights: frameworks.set_weights,
        events.SetQuota: frameworks.set_quota,
        events.Hold: holdings.hold,
        events.Release: holdings.release,
        events.AddFilters: holdings.add_filters,
        events.Transition: holdings.transition,
        events.UpdateAllocation: holdings.update_allocation,
        events.Exclude: holdings.exclude,
        events.InverseOffer: holdings.inverse_offer,
        events.Outcomes: holdings.settle,
        events.SetPaused: settings.set_paused,
        **dict.fromkeys((EVENT_OF_KIND[kind.name] for kind in RULES), settings.set_rule),
    }
)


def apply(state: State, event: events.Event) -> None:
    """Apply one event, except `SetPolicy` and `SetShadow`, which `Allocator` itself handles.

    Raises EventError if the event is invalid; then nothing has changed.
    """
    found = within_limits(state, event)
    if found is not None:
        _HANDLERS[type(found)](state, found)
    if found is not event:
        note_beyond(state, event)
