"""What operators' events and the master's options do to the state."""

from collections.abc import Callable

import numpy as np

from allocator.core.apply.frameworks import refresh_client
from allocator.core.constraints import parse_constraint
from allocator.core.demand import check_demand
from allocator.core.events import (
    EventError,
    Options,
    SetConstraint,
    SetDemand,
    SetPaused,
    SetPolicy,
)
from allocator.core.policy import Policy, PolicySpec
from allocator.core.state import State

BuildPolicy = Callable[[PolicySpec], Policy]


def set_options(state: State, event: Options) -> None:
    """Take over how the master set its allocator up; only before anything is known."""
    if len(state.space) or len(state.agents) or len(state.frameworks):
        message = "options come first; begin a new session to change them"
        raise EventError("value", "options", message)
    state.set_options(event)


def set_paused(state: State, event: SetPaused) -> None:
    """Hold decisions back, or not."""
    if state.paused != event.paused:
        state.paused_ms = state.now_ms
    state.paused = event.paused


def set_policy(state: State, event: SetPolicy, build: BuildPolicy) -> Policy:
    """Build the policy, then take its name over."""
    try:
        policy = build(event.spec)
    except ValueError as error:
        raise EventError("value", "policy", str(error)) from None
    state.settings.policy = event.spec
    return policy


def set_demand(state: State, event: SetDemand) -> None:
    """Set, replace or take back a demand rule."""
    key = (event.role, event.framework_name)
    check_demand(event.demand, "demand")
    if event.demand is None and key not in state.settings.demands:
        message = f"there is no rule for role {key[0]!r} and framework {key[1]!r}"
        raise EventError("value", "demand", message)
    state.settings.demands.pop(key, None)
    if event.demand is not None:
        state.settings.demands[key] = event
    _refresh_clients(state)


def set_constraint(state: State, event: SetConstraint) -> None:
    """Set, replace or take back a constraint rule."""
    key = (event.role, event.framework_name)
    if event.expression is None:
        if key not in state.settings.constraints:
            message = f"there is no rule for role {key[0]!r} and framework {key[1]!r}"
            raise EventError("value", "constraint", message)
        del state.settings.constraints[key]
    else:
        try:
            parse_constraint(event.expression)
        except ValueError as error:
            raise EventError("value", "expression", str(error)) from None
        state.settings.constraints[key] = event
    _refresh_clients(state)


def _refresh_clients(state: State) -> None:
    for client in np.flatnonzero(state.clients.framework).tolist():
        refresh_client(state, client)
