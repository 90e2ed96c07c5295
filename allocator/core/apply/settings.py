"""What operators' events and the master's options do to the state."""

from collections.abc import Callable, Mapping

import numpy as np

from allocator.core.apply.frameworks import refresh_client
from allocator.core.constraints import parse_constraint
from allocator.core.demand import Settings, check_demand
from allocator.core.events import (
    EventError,
    Options,
    SetConstraint,
    SetDemand,
    SetLimit,
    SetPaused,
    SetPolicy,
)
from allocator.core.policy import Policy, PolicySpec
from allocator.core.roles import check_depth
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
    state.plan = None  # it was another policy's
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
        check_constraint(event.expression)
        # As for demands: what was set last stands last.
        state.settings.constraints.pop(key, None)
        state.settings.constraints[key] = event
    _refresh_clients(state)


def check_constraint(expression: str | None) -> None:
    """Raise an `EventError` where an expression about agents is none."""
    try:
        parse_constraint(expression or "")
    except ValueError as error:
        raise EventError("value", "expression", str(error)) from None


def set_limit(state: State, event: SetLimit) -> None:
    """Set, replace or take back what a role is granted at most."""
    limits = state.settings.limits
    if event.limit is None:
        if event.role not in limits:
            message = f"there is no limit of role {event.role!r}"
            raise EventError("value", "limit", message)
        del limits[event.role]
    else:
        check_limit(state, event.role, event.limit)
        limits[event.role] = event.limit
        _take_limits(state)
    state.quota_version += 1


def check_limit(state: State, role: str, limit: Mapping[str, int]) -> None:
    """Raise an `EventError` where an operator's limit on a role is not possible."""
    if not role or not all(role.split("/")):
        message = f"{role!r} is not a role; write it as 'eng' or 'eng/ads'"
        raise EventError("value", "role", message)
    check_depth(role, state.limits.role_depth, "role")
    if not limit:
        raise EventError("value", "limit", "is empty; name amounts, or take the limit back")


def replace_settings(state: State, new: Settings, build: BuildPolicy) -> Policy:
    """Take over all settings at once; gives the policy.

    Raises
    ------
    EventError
        Where one of them is not possible; then none has changed.
    """
    for rule in new.demands.values():
        check_demand(rule.demand, "demand")
    for each in new.constraints.values():
        check_constraint(each.expression)
    for role, limit in new.limits.items():
        check_limit(state, role, limit)
    try:
        policy = build(new.policy)
    except ValueError as error:
        raise EventError("value", "policy", str(error)) from None
    if new.policy != state.settings.policy:
        state.plan = None  # it was another policy's
    state.settings = new.copied()
    _take_limits(state)
    state.quota_version += 1
    _refresh_clients(state)
    return policy


def _take_limits(state: State) -> None:
    """Make columns for resources that only the operators' limits name."""
    for limit in state.settings.limits.values():
        state.space.quantities(limit)
    state.reserve()


def _refresh_clients(state: State) -> None:
    for client in np.flatnonzero(state.clients.framework).tolist():
        refresh_client(state, client)
