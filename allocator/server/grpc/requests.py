"""Parses and checks requests for changes, in the same way for dry runs and actual changes."""

from dataclasses import replace
from typing import Any

import grpc

from allocator.core import OperatorChange, SetPolicy, Settings
from allocator.rule_kinds import KINDS, POLICY, SHADOW, Scope, SettingKind, Value
from allocator.server.engine.commands import reject
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.wire import WireError
from allocator.wire.settings.operator_settings import (
    read_change,
    read_policy,
    write_policy,
    write_rule,
)
from allocator.wire.settings.overlay import KeptChange, read_overlay

CHANGES_MAX = 10_000
"""Maximum number of settings in one call."""

SETS = {f"Set{kind.title}": kind for kind in KINDS.values()}
"""The calls that set something, with the kind that they set."""


SERVICE = pb.DESCRIPTOR.services_by_name["AdminService"]


def messages_of(method: str) -> tuple[type[Any], type[Any]]:
    """Return the classes of the request and of the response of a call."""
    found = SERVICE.methods_by_name[method]
    return found.input_type._concrete_class, found.output_type._concrete_class  # noqa: SLF001


def field_of(kind: SettingKind) -> str:
    """Return the field of a response that lists the settings of a kind."""
    return kind.plural if kind.is_rule else kind.name


def listed(kind: SettingKind, settings: Settings) -> Any:  # noqa: ANN401 - a policy, or rules
    """Convert the settings in force of a kind to messages."""
    if kind is POLICY:
        return write_policy(settings.policy)
    if kind is SHADOW:
        return None if settings.shadow is None else write_policy(settings.shadow)
    return list(map(write_rule, settings.standing(kind)))


def read_request(
    kind: SettingKind,
    request: Any,  # noqa: ANN401 - as the kind says
    context: grpc.ServicerContext,
) -> OperatorChange:
    """Parse the change that a request asks for; if it is invalid, end the call."""
    if kind is POLICY:
        return SetPolicy(read_policy(request.policy))
    try:
        change = read_change(kind, request)
    except WireError as error:
        reject(context, str(error))
    if kind is SHADOW:
        return change
    _check_said(context, change)
    if kind.scope is Scope.FRAMEWORKS:
        _check_patterns(context, change, everybody=request.all)
    return change


def read_changes(
    request: pb.ApplySettingsRequest, context: grpc.ServicerContext
) -> list[KeptChange]:
    """Parse several changes; if one of them is invalid, end the call."""
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


def instead_of(kind: SettingKind, request: Any) -> OperatorChange | None:  # noqa: ANN401
    """Return what a request expects to replace; None: anything."""
    if "instead_of" not in request.DESCRIPTOR.fields_by_name or not request.HasField("instead_of"):
        return None
    return read_change(kind, type(request)(**{kind.name: request.instead_of}))


def beside(change: OperatorChange, request: Any) -> list[OperatorChange]:  # noqa: ANN401
    """Return the further changes of a request: the same for other agents."""
    if change.kind.scope is not Scope.AGENT or change.takes_back:
        return []
    return [replace(change, agent=each) for each in request.also]


def is_forced(kind: SettingKind, request: Any) -> bool:  # noqa: ANN401
    """Whether to apply the change even if it looks like a mistake."""
    return bool(kind.refused) and request.force


def _check_said(context: grpc.ServicerContext, change: OperatorChange) -> None:
    """Reject an empty expression, which would hold for every agent, and what the calendar sets."""
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
