"""Reads and writes operators' policies, rules and changes, the types of settings.proto."""

from typing import Any, TypeAlias, assert_never

from allocator.core import (
    EVENT_OF_KIND,
    AdoptPlan,
    ForgetUsage,
    OperatorChange,
    PolicySpec,
    SetPolicy,
    SetShadow,
    Settings,
)
from allocator.rule_kinds import KINDS, POLICY, SHADOW, SettingKind, Value
from allocator.v1 import settings_pb2
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject

OperatorEvent: TypeAlias = OperatorChange | Settings | ForgetUsage | AdoptPlan
"""An event between messages: a change, all settings at once, a reset of averages, or a plan."""


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


def write_change(change: OperatorChange) -> settings_pb2.OperatorChange:
    """Write a change; the value of a removed rule is empty."""
    message = settings_pb2.OperatorChange(remove=change.takes_back)
    part = getattr(message, change.kind.name)
    part.SetInParent()
    match change:
        case SetPolicy() | SetShadow():
            if change.spec is not None:
                part.CopyFrom(write_policy(change.spec))
        case _:
            _write_rule(change, part)
    return message


def read_change(message: settings_pb2.OperatorChange) -> OperatorChange:
    """Read a change. Raises WireError if there is none, or if an amount is invalid."""
    name = message.WhichOneof("change")
    if name is None:
        reject("change", "is missing; name what to set")
    kind, part = KINDS[name], getattr(message, name)
    if kind is POLICY:
        if message.remove:
            reject("remove", "a policy cannot be removed, only replaced")
        return SetPolicy(read_policy(part))
    if kind is SHADOW:
        return SetShadow(None if message.remove else read_policy(part))
    return _read_rule(kind, part, removed=message.remove)


def _write_rule(rule: OperatorChange, message: Any) -> None:  # noqa: ANN401 - as the kind says
    kind, value = rule.kind, getattr(rule, rule.kind.field)
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


def _read_rule(
    kind: SettingKind,
    message: Any,  # noqa: ANN401 - as the kind says
    *,
    removed: bool,
) -> OperatorChange:
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
