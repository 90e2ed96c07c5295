"""Reads and writes operators' policies, rules and changes: the types of settings.proto."""

from typing import Any, TypeAlias, assert_never

from google.protobuf.message import Message

from allocator.core import (
    EVENT_OF_KIND,
    AdoptPlan,
    OperatorChange,
    PolicySpec,
    SetPolicy,
    SetShadow,
    Settings,
)
from allocator.rule_kinds import SettingKind, Value
from allocator.v1 import settings_pb2
from allocator.wire.codec import proto_types

OperatorEvent: TypeAlias = OperatorChange | Settings | AdoptPlan
"""An event between messages: a change, all settings at once, or a plan."""


def write_policy(spec: PolicySpec) -> settings_pb2.Policy:
    return proto_types.write_fields(spec, settings_pb2.Policy)


def read_policy(message: settings_pb2.Policy) -> PolicySpec:
    return PolicySpec(
        message.name,
        message.selection,
        message.mode or "oblivious",
        message.flat,
        dict(sorted(message.parameters.items())),
        dict(sorted(message.subtrees.items())),
    )


def write_change(change: OperatorChange) -> Message:
    """Write a change as files store it: the request that makes it, or the policy."""
    if isinstance(change, SetPolicy):
        return write_policy(change.spec)
    request = getattr(settings_pb2, f"Set{change.kind.title}Request")(remove=change.takes_back)
    if isinstance(change, SetShadow):
        if change.spec is not None:
            request.policy.CopyFrom(write_policy(change.spec))
    else:
        getattr(request, change.kind.name).CopyFrom(write_rule(change))
    return request


def read_change(kind: SettingKind, message: Any) -> OperatorChange:  # noqa: ANN401
    """Read a change of a kind: the inverse of `write_change`.

    Raises WireError if an amount is invalid.
    """
    if kind.value is not Value.POLICY:
        return read_rule(kind, getattr(message, kind.name), removed=message.remove)
    if kind.name == "policy":
        return SetPolicy(read_policy(message))
    return SetShadow(None if message.remove else read_policy(message.policy))


def write_rule(rule: OperatorChange) -> Message:
    """Write a rule; the value is empty if the rule is removed."""
    kind, value = rule.kind, getattr(rule, rule.kind.field)
    message = _empty_rule(kind)
    for name in (*kind.scope.fields, *kind.options, *kind.moments):
        setattr(message, name, getattr(rule, name))
    match kind.value:
        case Value.AMOUNTS | Value.HOURS:
            getattr(message, kind.field).CopyFrom(proto_types.write_quantities(value or {}))
        case Value.EXPRESSION | Value.NUMBER | Value.COUNT:
            if value is not None:
                setattr(message, kind.field, value)
        case Value.NOTHING:
            pass
        case Value.POLICY:
            raise AssertionError(kind)  # not a rule
        case _:
            assert_never(kind.value)
    return message


def read_rule(
    kind: SettingKind,
    message: Any,  # noqa: ANN401 - as the kind says
    *,
    removed: bool = False,
) -> OperatorChange:
    """Read a rule, or its removal; raises WireError as `read_change` does."""
    value: object
    match kind.value:
        case Value.AMOUNTS | Value.HOURS:
            place = f"{kind.name}.{kind.field}"
            amounts = getattr(message, kind.field)
            value = proto_types.part(amounts, proto_types.read_quantities, place)
        case Value.EXPRESSION | Value.NUMBER | Value.COUNT:
            value = getattr(message, kind.field)
        case Value.NOTHING:
            value = not removed
        case Value.POLICY:
            raise AssertionError(kind)  # not a rule
        case _:
            assert_never(kind.value)
    if removed and kind.value is not Value.NOTHING:
        value = None
    names = (*kind.scope.fields, *kind.options, *kind.moments)
    change: OperatorChange = EVENT_OF_KIND[kind.name](
        **{name: getattr(message, name) for name in names}, **{kind.field: value}
    )
    return change


def _empty_rule(kind: SettingKind) -> Message:
    """Make an empty message of a kind's rules, such as Demand."""
    request = getattr(settings_pb2, f"Set{kind.title}Request")()
    rule: Message = getattr(request, kind.name)
    return type(rule)()
