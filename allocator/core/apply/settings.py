"""Applies operators' events and the master's options to the state."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

import numpy as np

from allocator import rule_kinds
from allocator.core.apply.agents import refresh_drained
from allocator.core.apply.clients import (
    refresh_demands,
    refresh_gangs,
    refresh_rules,
    refresh_weights,
)
from allocator.core.books import budgets
from allocator.core.books.roles import check_depth
from allocator.core.books.state import State
from allocator.core.bounds import quoted, refuse_long
from allocator.core.constraints import parse_constraint
from allocator.core.demand.budget_memory import check_credit
from allocator.core.events import (
    EventError,
    OperatorChange,
    Options,
    SetBudget,
    SetCap,
    SetClaim,
    SetLimit,
    SetPaused,
    SetPolicy,
    SetShadow,
)
from allocator.core.plans.problems import PlanningPolicy
from allocator.core.policy import Policy, PolicySpec
from allocator.core.resources import MILLI
from allocator.core.settings import Settings, matches
from allocator.rule_kinds import Scope, SettingKind, Text, Value

BuildPolicy = Callable[[PolicySpec], Policy]

WEIGHT_MIN, WEIGHT_MAX = rule_kinds.WEIGHT.bounds


def set_options(state: State, event: Options) -> None:
    """Store the master's allocator options; possible only at the start of a session."""
    if len(state.space) or len(state.agents) or len(state.frameworks):
        message = "options come first; begin a new session to change them"
        raise EventError("value", "options", message)
    state.set_options(event)


def set_paused(state: State, event: SetPaused) -> None:
    if state.paused != event.paused:
        state.paused_ms = state.now_ms
    state.paused = event.paused


def set_policy(state: State, event: SetPolicy, build: BuildPolicy) -> Policy:
    try:
        policy = build(event.spec)
    except ValueError as error:
        raise EventError("value", "policy", str(error)) from None
    state.settings.policy = event.spec
    state.plan = None  # the plan is of the previous policy
    return policy


def set_shadow(state: State, event: SetShadow, build: BuildPolicy) -> None:
    if event.spec is None and state.settings.shadow is None:
        raise EventError("value", "shadow", "there is no shadow policy to stop")
    check_shadow(event.spec, build)
    state.settings.shadow = event.spec


def check_shadow(spec: PolicySpec | None, build: BuildPolicy) -> None:
    if spec is None:
        return
    if spec.flat or spec.subtrees:
        message = "policy: flat and subtrees are those of the policy in force; leave them out"
        raise EventError("value", "shadow", message)
    try:
        policy = build(spec)
    except ValueError as error:
        raise EventError("value", "shadow", str(error)) from None
    if isinstance(policy, PlanningPolicy):
        message = f"name: {spec.name} plans, and no plans are made for a shadow policy"
        raise EventError("value", "shadow", message)


def set_rule(state: State, event: OperatorChange) -> None:
    check_rule(state, event)
    if event.takes_back and state.settings.before(event) is None:
        raise EventError("value", *_nothing_there(event))
    state.settings.put(event)
    _REFRESH[event.kind.scope](state, event)


def _nothing_there(event: OperatorChange) -> tuple[str, str]:
    """Return the field and the message of the error that the rule to remove does not exist."""
    kind, (_, *key) = event.kind, event.key
    match kind.scope:
        case Scope.CLUSTER:
            raise AssertionError(event)  # such a setting is not a rule
        case Scope.FRAMEWORKS:
            return kind.name, f"there is no rule for {_whom(*key)}"
        case Scope.ROLE:
            return kind.name, f"there is no {kind.name} of role {quoted(key[0])}"
        case Scope.HOLDERS:
            return kind.name, f"there is no {kind.name} per {key[1]} in role {quoted(key[0])}"
        case Scope.AGENT:
            if kind.value is Value.NOTHING:
                return "agent", f"{quoted(key[0])} is not {kind.field}"
            return "agent", f"there is no {kind.name} of agent {quoted(key[0])}"
        case _:
            assert_never(kind.scope)


def _whom(role: str, framework: str) -> str:
    whom = f"role {quoted(role)}" if role else "any role"
    return f"{whom} and {f'framework {quoted(framework)}' if framework else 'any framework'}"


def check_rule(state: State, event: OperatorChange) -> None:
    """Raise an `EventError` if a rule is invalid by itself."""
    if event.takes_back:
        return
    kind, value = event.kind, getattr(event, event.kind.field)
    for field, text in zip(kind.scope.fields, event.key[1:], strict=True):
        try:
            refuse_long(text)
        except ValueError as error:
            raise EventError("value", field, f"{field} = {quoted(text)}: {error}") from None
    if "role" in kind.scope.fields and kind.scope is not Scope.FRAMEWORKS:
        _check_role(state, event.key[1])
    if kind.scope is Scope.AGENT and not event.key[1].strip():
        raise EventError("value", "agent", "is empty; give an agent's id or host name")
    if isinstance(event, SetCap) and event.per not in rule_kinds.PER:
        raise EventError("value", "per", _refusal("per", event.per, rule_kinds.PER))
    if isinstance(event, SetCap):
        _check_counts(event)
    for option in kind.texts:
        _check_text(option, getattr(event, option.name))
    if isinstance(event, SetBudget):
        _check_budget(event)
    for moment in kind.moments:
        if (at_ms := getattr(event, moment)) < 0:
            raise EventError("value", moment, f"{at_ms}: give milliseconds since 1970; 0: none")
    match kind.value:
        case Value.AMOUNTS | Value.HOURS:
            _check_amounts(kind, value)
        case Value.EXPRESSION:
            try:
                parse_constraint(value)
            except ValueError as error:
                raise EventError("value", kind.field, str(error)) from None
        case Value.NUMBER | Value.COUNT:
            low, high = kind.bounds
            if not low <= value <= high:
                message = f"{value:g} is not possible; give a number from {low:g} to {high:g}"
                raise EventError("value", kind.field, message)
        case Value.POLICY | Value.NOTHING:
            pass
        case _:
            assert_never(kind.value)


def _check_text(text: Text, given: str) -> None:
    if text.values and given not in text.values:
        raise EventError("value", text.name, _refusal(text.name, given, text.values))


def _refusal(name: str, given: str, values: Sequence[str]) -> str:
    choice = f"{', '.join(values[:-1])} or {values[-1]}"
    return f"{name} = {quoted(given)} is not possible; give {choice}"


def _check_counts(event: SetCap) -> None:
    for name in rule_kinds.COUNTS:
        if (count := (event.cap or {}).get(name, 0)) % MILLI:
            message = f"{name}: {count / MILLI:g} is not possible; give a whole number"
            raise EventError("value", "cap", message)


def _check_budget(event: SetBudget) -> None:
    for name, amount in (event.budget or {}).items():
        if amount <= 0:
            message = f"{quoted(name)}: {amount / 1000:g}h is not possible; give more than 0h"
            raise EventError("value", "budget", message)
    try:
        check_credit(event)
    except ValueError as error:
        raise EventError("value", "credit", str(error)) from None


def _check_role(state: State, role: str) -> None:
    if not role or not all(role.split("/")):
        message = f"{quoted(role)} is not a role; write it as 'eng' or 'eng/ads'"
        raise EventError("value", "role", message)
    check_depth(role, state.session_limits.role_depth, "role")


def _check_amounts(kind: SettingKind, amounts: Mapping[str, int]) -> None:
    if not amounts and not kind.empty:
        message = f"is empty; name amounts, or take the {kind.name} back"
        raise EventError("value", kind.field, message)
    if kind.empty and amounts and not any(amounts.values()):
        message = f"all amounts are zero; leave the {kind.name} empty where it is {kind.empty}"
        raise EventError("value", kind.field, message)


def replace_settings(state: State, new: Settings, build: BuildPolicy) -> Policy:
    """Replace all settings, or none if this raises EventError; return the policy."""
    for rule in new.rules():
        check_rule(state, rule)
    check_shadow(new.shadow, build)
    try:
        policy = build(new.policy)
    except ValueError as error:
        raise EventError("value", "policy", str(error)) from None
    if new.policy != state.settings.policy:
        state.plan = None  # the plan is of the previous policy
    state.settings = new.copied()
    for refresh in _REFRESH.values():
        refresh(state, None)
    return policy


def _refresh_nothing(_: State, _change: OperatorChange | None) -> None:
    """Do nothing, because each cycle reads this setting."""


def _refresh_roles(state: State, change: OperatorChange | None) -> None:
    """Store limits, claims, caps, pauses and budgets of roles.

    Adds columns for new resources in them, and marks quotas as changed.
    """
    if isinstance(change, SetBudget):
        budgets.refresh(state, change)
        return
    if change is None:
        budgets.refresh(state, None)
    settings = state.settings
    # Only the changed rule can name a new resource.
    rules = settings.rules() if change is None else [change]
    for rule in rules:
        if isinstance(rule, SetLimit | SetClaim | SetCap):
            amounts = getattr(rule, rule.kind.field) or {}
            is_cap = isinstance(rule, SetCap)
            state.space.quantities(rule_kinds.without_counts(amounts) if is_cap else amounts)
    state.reserve()
    state.quota_version += 1
    # Clients that may be offered nothing do not wait.
    paused = state.paused_roles() if change is None else state.roles.inside(change.key[1])
    if change is None or (change.kind is rule_kinds.PAUSE and not change.takes_back):
        state.clients.waited[paused[state.clients.role]] = 0
    state.clients.version += 1


def _refresh_clients(state: State, change: OperatorChange | None) -> None:
    clients, about = state.clients, state.clients.framework > 0
    if change is not None:
        # Match each pattern only once per role and framework.
        _, role, framework_name = change.key
        roles = [matches(role, path) for path in state.roles.path]
        infos = state.frameworks.info
        frameworks = [info is not None and matches(framework_name, info.name) for info in infos]
        about &= np.array(roles)[clients.role] & np.array(frameworks)[clients.framework]
    rows = np.flatnonzero(about).tolist()
    for name in _OF_FRAMEWORKS if change is None else (change.kind.name,):
        _OF_FRAMEWORKS[name](state, rows)


def _refresh_agents(state: State, change: OperatorChange | None) -> None:
    agents = state.agents
    bound = np.flatnonzero(agents.bound).tolist() if change is None else agents.named(change.key[1])
    for agent in bound:
        refresh_drained(state, agent)


_OF_FRAMEWORKS: Mapping[str, Callable[[State, Sequence[int]], None]] = MappingProxyType(
    {
        rule_kinds.DEMAND.name: refresh_demands,
        rule_kinds.CONSTRAINT.name: refresh_rules,
        rule_kinds.WEIGHT.name: refresh_weights,
        rule_kinds.GANG.name: refresh_gangs,
    }
)
"""By kind of rule: the function that recomputes frameworks' data after a change."""

_REFRESH: Mapping[Scope, Callable[[State, OperatorChange | None], None]] = MappingProxyType(
    {
        Scope.CLUSTER: _refresh_nothing,
        Scope.ROLE: _refresh_roles,
        Scope.HOLDERS: _refresh_roles,
        Scope.FRAMEWORKS: _refresh_clients,
        Scope.AGENT: _refresh_agents,
    }
)
"""The function that recomputes data after a change of a rule, by the rule's scope.

It is called with the change; None: any rule may have changed.
"""

assert _REFRESH.keys() == set(Scope), "a scope that derives nothing"
assert _OF_FRAMEWORKS.keys() == {
    kind.name for kind in rule_kinds.RULES if kind.scope is Scope.FRAMEWORKS
}, "a kind that derives nothing"
