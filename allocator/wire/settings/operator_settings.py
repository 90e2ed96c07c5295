"""What operators set, read and written: the nouns of settings.proto that the core knows, too.

And what outlives the process: what operators set, over the configuration, and what was learnt.
The configuration says how the sidecar begins. What an operator sets stands over it, thing by thing:
the policy, and each rule by its patterns; a rule of the configuration that an operator took back
stands here as taken back. So a changed configuration counts wherever no operator said otherwise.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, TypeAlias, assert_never

from google.protobuf.message import Message

from allocator.core import (
    CHANGES,
    AdoptPlan,
    Allocator,
    DemandMemory,
    EventError,
    Limits,
    OperatorChange,
    Policy,
    PolicySpec,
    Remembered,
    SetPolicy,
    SetShadow,
    Settings,
)
from allocator.settable import KINDS, SHADOW, SettingKind, Value
from allocator.v1 import settings_pb2
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject

OperatorEvent: TypeAlias = OperatorChange | Settings | AdoptPlan
"""A change, or all settings at once; or a plan, which comes in between messages as they do."""


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
    """Write a change as files keep it: the request that asks for it, or the policy."""
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
    """Read a change of a kind: what `write_change` gives.

    Raises WireError where an amount is none.
    """
    if kind.value is not Value.POLICY:
        return read_rule(kind, getattr(message, kind.name), removed=message.remove)
    if kind.name == "policy":
        return SetPolicy(read_policy(message))
    return SetShadow(None if message.remove else read_policy(message.policy))


def write_rule(rule: OperatorChange) -> Message:
    """Write a rule, with an empty value where it is taken back."""
    kind, value = rule.kind, getattr(rule, rule.kind.field)
    message = _empty_rule(kind)
    for name in (*kind.scope.fields, *(flag.name for flag in kind.flags)):
        setattr(message, name, getattr(rule, name))
    match kind.value:
        case Value.AMOUNTS:
            getattr(message, kind.field).CopyFrom(proto_types.write_quantities(value or {}))
        case Value.EXPRESSION | Value.NUMBER:
            if value is not None:
                setattr(message, kind.field, value)
        case Value.NOTHING:
            pass
        case Value.POLICY:
            raise AssertionError(kind)  # is no rule
        case _:
            assert_never(kind.value)
    return message


def read_rule(
    kind: SettingKind,
    message: Any,  # noqa: ANN401 - as the kind says
    *,
    removed: bool = False,
) -> OperatorChange:
    """Read a rule, or that it is taken back; raises as `read_change` does."""
    value: object
    match kind.value:
        case Value.AMOUNTS:
            place = f"{kind.name}.{kind.field}"
            amounts = getattr(message, kind.field)
            value = proto_types.part(amounts, proto_types.read_quantities, place)
        case Value.EXPRESSION | Value.NUMBER:
            value = getattr(message, kind.field)
        case Value.NOTHING:
            value = not removed
        case Value.POLICY:
            raise AssertionError(kind)  # is no rule
        case _:
            assert_never(kind.value)
    if removed and kind.value is not Value.NOTHING:
        value = None
    names = (*kind.scope.fields, *(flag.name for flag in kind.flags))
    change: OperatorChange = CHANGES[kind.name](
        **{name: getattr(message, name) for name in names}, **{kind.field: value}
    )
    return change


def _empty_rule(kind: SettingKind) -> Message:
    """Make the message of a kind's rules, such as Demand."""
    request = getattr(settings_pb2, f"Set{kind.title}Request")()
    rule: Message = getattr(request, kind.name)
    return type(rule)()


Key: TypeAlias = tuple[str, ...]
"""What a change is about, as `OperatorChange.key` says."""

TOPICS = ("name", "principal", "user")
"""Kinds of what learnt demands are remembered under."""


class Kept(NamedTuple):
    """A change that an operator made."""

    change: OperatorChange
    by: str
    """Who made it, in words."""
    at_ms: int
    """When, since 1970."""


def configured(settings: Settings) -> set[Key]:
    """What of these settings an operator can take back."""
    return {each.key for each in (*settings.rules(), *settings.standing(SHADOW))}


class Overlay:
    """What operators set, over the configuration; the latest of `changes` last."""

    def __init__(self) -> None:
        self.changes: dict[Key, Kept] = {}

    def note(self, kept: Kept, configured: Container[Key]) -> None:
        """Take a change that was made; what the configuration does not have needs no taking back.

        `configured` has what the configuration says: its rules, and that a policy looks on.
        """
        key = kept.change.key
        self.changes.pop(key, None)
        if not kept.change.takes_back or key in configured:
            self.changes[key] = kept

    def without(self, kinds: Container[str]) -> "Overlay":
        """Copy it, without some kinds of changes."""
        rest = Overlay()
        rest.changes = {key: kept for key, kept in self.changes.items() if key[0] not in kinds}
        return rest

    def over(
        self, base: Settings, limits: Limits, build: Callable[[PolicySpec], Policy]
    ) -> tuple[Settings, dict[Key, str]]:
        """Put it over the settings of the configuration.

        `build` makes a policy of its specification, or raises ValueError. Given back beside the
        settings is what of it is not possible any more, and why; that is left out.
        """
        trial = Allocator(build, base.copied(), limits)
        refused = {}
        for key, kept in self.changes.items():
            if kept.change.takes_back and key not in configured(base):
                continue
            try:
                trial.step(kept.change)
            except EventError as error:
                refused[key] = str(error)
        return trial.settings, refused


def write_overlay(overlay: Overlay) -> pb.KeptSettings:
    return pb.KeptSettings(changes=map(_write_change, overlay.changes.values()))


def _write_change(kept: Kept) -> pb.KeptChange:
    message = pb.KeptChange(by=kept.by, at_ms=kept.at_ms)
    getattr(message, kept.change.kind.name).CopyFrom(write_change(kept.change))
    return message


def read_overlay(message: pb.KeptSettings) -> Overlay:
    """Read what operators set.

    Raises WireError where a change is none.
    """
    overlay = Overlay()
    for index, each in enumerate(message.changes):
        change = proto_types.part(each, _read_change, f"changes[{index}]")
        overlay.changes[change.key] = Kept(change, each.by, each.at_ms)
    return overlay


def _read_change(message: pb.KeptChange) -> OperatorChange:
    what = message.WhichOneof("change")
    if what is None:
        reject("change", "is missing; name what was set")
    return read_change(KINDS[what], getattr(message, what))


class Learnt(NamedTuple):
    """A copy of what is remembered of demands."""

    entries: Mapping[tuple[str, str, str], Remembered]
    elapsed_ms: int
    """The memory's own clock."""


def copy_learnt(memory: DemandMemory) -> Learnt:
    """Copy what is remembered; on the thread that teaches."""
    return Learnt(dict(memory.entries), memory.elapsed_ms)


def write_learnt(learnt: Learnt, now_ms: int) -> pb.KeptDemands:
    """Write what is remembered, at this time since 1970."""
    return pb.KeptDemands(
        saved_at_ms=now_ms,
        demands=(
            pb.KeptDemand(
                role=role,
                kind=kind,
                who=who,
                demand=proto_types.write_quantities(entry.amounts),
                weight=entry.weight,
                age_ms=learnt.elapsed_ms - entry.taught_ms,
            )
            for (role, kind, who), entry in learnt.entries.items()
        ),
    )


def read_learnt(message: pb.KeptDemands, now_ms: int, most: int) -> DemandMemory:
    """Read what is remembered; it is older by the time that has passed since.

    `now_ms` is since 1970. Of more than `most` those count that were taught last.

    Raises WireError where one of them is none.
    """
    memory = DemandMemory()
    away_ms = max(now_ms - message.saved_at_ms, 0)
    kept = message.demands[max(len(message.demands) - most, 0) :]
    for index, each in enumerate(kept):
        place = f"demands[{index}]"
        amounts = proto_types.part(each.demand, proto_types.read_quantities, f"{place}.demand")
        positive = amounts and all(amounts.values()) and each.weight and each.age_ms >= 0
        if each.kind not in TOPICS or not positive:
            reject(place, "is no demand that could be remembered")
        taught_ms = -(each.age_ms + away_ms)
        memory.entries[each.role, each.kind, each.who] = Remembered(amounts, each.weight, taught_ms)
    return memory
