"""Parses and checks requests for changes, equally for dry runs and actual changes."""

from dataclasses import replace
from typing import Any, TypeAlias

import grpc

from allocator.core import OperatorChange, SetDrain, SetPolicy, SetShadow, Settings
from allocator.rule_kinds import KINDS, POLICY, RULES, SHADOW, Scope, SettingKind, Value
from allocator.server.engine.commands import reject
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.wire import WireError
from allocator.wire.settings.operator_settings import (
    read_change,
    read_policy,
    write_change,
    write_policy,
)
from allocator.wire.settings.overlay import KeptChange, read_overlay

Request: TypeAlias = pb.SetPolicyRequest | pb.SetShadowRequest | pb.ChangeRuleRequest

CHANGES_MAX = 10_000

SETS = ("SetPolicy", "SetShadow", "ChangeRule")

SERVICE = pb.DESCRIPTOR.services_by_name["AdminService"]


def messages_of(method: str) -> tuple[type[Any], type[Any]]:
    found = SERVICE.methods_by_name[method]
    return found.input_type._concrete_class, found.output_type._concrete_class  # noqa: SLF001


def field_of(kind: SettingKind) -> str:
    return "rules" if kind.is_rule else kind.name


def listed(kind: SettingKind, settings: Settings) -> Any:  # noqa: ANN401 - a policy, or rules
    if kind is POLICY:
        return write_policy(settings.policy)
    if kind is SHADOW:
        return None if settings.shadow is None else write_policy(settings.shadow)
    return list(map(write_change, settings.standing(kind)))


def read_kind(request: pb.ListRulesRequest, context: grpc.ServicerContext) -> SettingKind:
    """Return the kind of rules that a request names; if there is none, end the call."""
    kind = KINDS.get(request.kind)
    if kind not in RULES:
        known = ", ".join(each.name for each in RULES)
        reject(context, f"kind = {request.kind!r}: is not a kind of rule; give one of {known}")
    return kind


def read_request(request: Request, context: grpc.ServicerContext) -> OperatorChange:
    if isinstance(request, pb.SetPolicyRequest):
        return SetPolicy(read_policy(request.policy))
    if isinstance(request, pb.SetShadowRequest):
        return SetShadow(None if request.remove else read_policy(request.policy))
    try:
        change = read_change(request.change)
    except WireError as error:
        reject(context, str(error))
    if not change.kind.is_rule:
        name = change.kind.name
        reject(context, f"change: {name} is not a rule; call Set{name.capitalize()}")
    _check_said(context, change)
    if change.kind.scope is Scope.FRAMEWORKS:
        _check_patterns(context, change, everybody=request.all)
    return change


def read_changes(
    request: pb.ApplySettingsRequest, context: grpc.ServicerContext
) -> list[KeptChange]:
    if len(request.changes) > CHANGES_MAX:
        reject(context, f"changes: {len(request.changes)} at once; send {CHANGES_MAX} at most")
    try:
        overlay = read_overlay(spb.KeptSettings(changes=request.changes))
    except WireError as error:
        reject(context, str(error))
    changes = list(overlay.changes.values())
    for each in changes:
        _check_said(context, each.change)
    return changes


def instead_of(request: Request, context: grpc.ServicerContext) -> OperatorChange | None:
    """Return the rule that a request expects to replace; None: any."""
    if not isinstance(request, pb.ChangeRuleRequest) or not request.HasField("instead_of"):
        return None
    try:
        return read_change(request.instead_of)
    except WireError as error:
        reject(context, f"instead_of.{error}")


def beside(change: OperatorChange, request: Request) -> list[OperatorChange]:
    """Return the further changes of a request: the same for other agents."""
    if not isinstance(change, SetDrain) or change.takes_back:
        return []
    assert isinstance(request, pb.ChangeRuleRequest)
    return [replace(change, agent=each) for each in request.also]


def is_forced(request: Request) -> bool:
    return isinstance(request, pb.ChangeRuleRequest) and request.force


def _check_said(context: grpc.ServicerContext, change: OperatorChange) -> None:
    """Reject an empty expression, which would match every agent, and the calendar's values."""
    kind, text = change.kind, getattr(change, change.kind.field)
    for name in kind.moments:
        if at_ms := getattr(change, name):
            mend = "only the calendar sets it; leave it out, and give a schedule"
            reject(context, f"{kind.name}.{name} = {at_ms}: {mend}")
    if kind.value is Value.EXPRESSION and text is not None and not text.strip(" ;"):
        mend = "is empty; write clauses, as in 'zone=a|b; ssd', or remove the rule"
        reject(context, f"{kind.name}.{kind.field} = {text!r}: {mend}")


def _check_patterns(
    context: grpc.ServicerContext, change: OperatorChange, *, everybody: bool
) -> None:
    """Reject a rule for all frameworks without `all`, because a pattern may be missing."""
    what, *patterns = change.key
    if not any(patterns) and not everybody:
        text = "give a pattern of roles (--role) or of names (--framework-name), or --all"
        reject(context, f"{what}: the rule would be for every framework; {text}")
    if any(patterns) and everybody:
        text = "leave it out, or --role and --framework-name"
        reject(context, f"{what}: --all does not go with a pattern; {text}")
