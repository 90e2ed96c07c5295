"""What operators' events and the master's options do to the state."""

from collections.abc import Callable, Mapping

import numpy as np

from allocator.core.apply.agents import refresh_drained
from allocator.core.apply.clients import refresh_client
from allocator.core.books.roles import check_depth
from allocator.core.books.state import State
from allocator.core.constraints import parse_constraint
from allocator.core.demand.demand import Settings, check_demand
from allocator.core.events import (
    EventError,
    Options,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPaused,
    SetPolicy,
    SetShadow,
    SetWeight,
)
from allocator.core.plans.planning import PlanningPolicy
from allocator.core.policy import Policy, PolicySpec

BuildPolicy = Callable[[PolicySpec], Policy]

WEIGHT_MIN, WEIGHT_MAX = 1e-6, 1e6
"""Shares are divided by weights: beyond these bounds nothing but rounding would decide."""


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


def set_shadow(state: State, event: SetShadow, build: BuildPolicy) -> None:
    """Have a policy look on, or none."""
    if event.spec is None and state.settings.shadow is None:
        raise EventError("value", "shadow", "no policy looks on, so there is nothing to stop")
    check_shadow(event.spec, build)
    state.settings.shadow = event.spec


def check_shadow(spec: PolicySpec | None, build: BuildPolicy) -> None:
    """Raise an `EventError` where a policy cannot look on."""
    if spec is None:
        return
    if spec.flat or spec.subtrees:
        message = "policy: competes as the policy in force does; leave out flat and subtrees"
        raise EventError("value", "shadow", message)
    try:
        policy = build(spec)
    except ValueError as error:
        raise EventError("value", "shadow", str(error)) from None
    if isinstance(policy, PlanningPolicy):
        message = f"name: {spec.name} plans, and no plans are made for a policy that only looks on"
        raise EventError("value", "shadow", message)


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


def set_drain(state: State, event: SetDrain) -> None:
    """Offer nothing of an agent any more, or offer it again."""
    drains = state.settings.drains
    if event.drained:
        check_drain(event.agent)
        state.settings.drains = drains | {event.agent}
    elif event.agent in drains:
        state.settings.drains = drains - {event.agent}
    else:
        raise EventError("value", "agent", f"{event.agent!r} is not drained")
    _refresh_agents(state)


def check_drain(agent: str) -> None:
    """Raise an `EventError` where nothing is named to be drained."""
    if not agent.strip():
        raise EventError("value", "agent", "is empty; give an agent's id or host name")


def set_weight(state: State, event: SetWeight) -> None:
    """Set, replace or take back a rule about frameworks' weights."""
    key, weights = (event.role, event.framework_name), state.settings.weights
    if event.weight is None and key not in weights:
        message = f"there is no rule for role {key[0]!r} and framework {key[1]!r}"
        raise EventError("value", "weight", message)
    check_weight(event.weight)
    # As for demands: what was set last stands last.
    weights.pop(key, None)
    if event.weight is not None:
        weights[key] = event
    _refresh_clients(state)


def check_weight(weight: float | None) -> None:
    """Raise an `EventError` where an operator's weight is none."""
    if weight is not None and not WEIGHT_MIN <= weight <= WEIGHT_MAX:
        message = f"{weight:g} is not possible; give a number from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}"
        raise EventError("value", "weight", message)


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
    for agent in new.drains:
        check_drain(agent)
    for rule_of_weight in new.weights.values():
        check_weight(rule_of_weight.weight)
    check_shadow(new.shadow, build)
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
    _refresh_agents(state)
    return policy


def _take_limits(state: State) -> None:
    """Make columns for resources that only the operators' limits name."""
    for limit in state.settings.limits.values():
        state.space.quantities(limit)
    state.reserve()


def _refresh_clients(state: State) -> None:
    for client in np.flatnonzero(state.clients.framework).tolist():
        refresh_client(state, client)


def _refresh_agents(state: State) -> None:
    for agent in np.flatnonzero(state.agents.bound).tolist():
        refresh_drained(state, agent)
