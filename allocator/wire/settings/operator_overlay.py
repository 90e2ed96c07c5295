"""What outlives the process: what operators set, over the configuration, and what was learnt.

The configuration says how the sidecar begins. What an operator sets stands over it, thing by thing:
the policy, and each rule by its patterns; a rule of the configuration that an operator took back
stands here as taken back. So a changed configuration counts wherever no operator said otherwise.
"""

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple, TypeAlias

from allocator.core import (
    Allocator,
    DemandMemory,
    EventError,
    Limits,
    Policy,
    PolicySpec,
    Remembered,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
)
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.errors import refuse
from allocator.wire.settings.operator_settings import (
    OperatorChange,
    read_constraint,
    read_demand,
    read_drain,
    read_limit,
    read_policy,
    read_shadow,
    read_weight,
    write_constraint,
    write_demand,
    write_drain,
    write_limit,
    write_policy,
    write_shadow,
    write_weight,
)

Key: TypeAlias = tuple[str, ...]
"""What a change is about: one of `KINDS`, and its patterns."""

KINDS = ("policy", "demand", "constraint", "limit", "drain", "weight", "shadow")

SINGLE = ("policy", "shadow")
"""Kinds of which there is one: they are settings, not rules."""

TOPICS = ("name", "principal", "user")
"""Kinds of what learnt demands are remembered under."""


class Kept(NamedTuple):
    """A change that an operator made.

    Attributes
    ----------
    change : OperatorChange
    by : str
        Who made it, in words.
    at_ms : int
        When, since 1970.
    """

    change: OperatorChange
    by: str
    at_ms: int


def key_of(change: OperatorChange) -> Key:
    """What a change is about."""
    match change:
        case SetPolicy():
            return ("policy",)
        case SetDemand():
            return "demand", change.role, change.framework_name
        case SetConstraint():
            return "constraint", change.role, change.framework_name
        case SetLimit():
            return "limit", change.role
        case SetDrain():
            return "drain", change.agent
        case SetWeight():
            return "weight", change.role, change.framework_name
        case SetShadow():
            return ("shadow",)


def takes_back(change: OperatorChange) -> bool:
    """Whether a change takes a rule back."""
    match change:
        case SetDemand():
            return change.demand is None
        case SetConstraint():
            return change.expression is None
        case SetLimit():
            return change.limit is None
        case SetDrain():
            return not change.drained
        case SetWeight():
            return change.weight is None
        case SetShadow():
            return change.spec is None
    return False


def rules(settings: Settings) -> dict[Key, OperatorChange]:
    """All rules, each as what sets it, in their order."""
    found: list[OperatorChange] = [*settings.demands.values(), *settings.constraints.values()]
    found += [SetLimit(role, limit) for role, limit in settings.limits.items()]
    found += [SetDrain(agent) for agent in sorted(settings.drains)]
    found += settings.weights.values()
    return {key_of(rule): rule for rule in found}


def configured(settings: Settings) -> set[Key]:
    """What of these settings an operator can take back."""
    return {*rules(settings), *([("shadow",)] if settings.shadow else [])}


class Overlay:
    """What operators set, over the configuration.

    Attributes
    ----------
    changes : dict of Key to Kept
        The latest last.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.changes: dict[Key, Kept] = {}

    def note(self, kept: Kept, configured: Container[Key]) -> None:
        """Take a change that was made; what the configuration does not have needs no taking back.

        Parameters
        ----------
        kept : Kept
        configured : container of Key
            Rules of the configuration; and that a policy looks on, where it says so.
        """
        key = key_of(kept.change)
        self.changes.pop(key, None)
        if not takes_back(kept.change) or key in configured:
            self.changes[key] = kept

    def without(self, kinds: Container[str]) -> "Overlay":
        """Copy it, without some kinds of changes."""
        rest = Overlay()
        rest.changes = {key: kept for key, kept in self.changes.items() if key[0] not in kinds}
        return rest

    def over(
        self, base: Settings, limits: Limits, build: Callable[[PolicySpec], Policy]
    ) -> tuple[Settings, dict[Key, str]]:
        """Put it over settings.

        Parameters
        ----------
        base : Settings
            What the configuration says.
        limits : Limits
        build : callable
            Makes a policy of its specification, or raises ValueError.

        Returns
        -------
        settings : Settings
        refused : dict of Key to str
            What of it is not possible any more, and why; that is left out.
        """
        trial = Allocator(build, base.copied(), limits)
        refused = {}
        for key, kept in self.changes.items():
            if takes_back(kept.change) and key not in configured(base):
                continue
            try:
                trial.step(kept.change)
            except EventError as error:
                refused[key] = str(error)
        return trial.settings, refused


def write_overlay(overlay: Overlay) -> pb.KeptSettings:
    """Write what operators set."""
    return pb.KeptSettings(changes=map(_write_change, overlay.changes.values()))


def _write_change(kept: Kept) -> pb.KeptChange:
    message = pb.KeptChange(by=kept.by, at_ms=kept.at_ms)
    match kept.change:
        case SetPolicy():
            message.policy.CopyFrom(write_policy(kept.change.spec))
        case SetDemand():
            message.demand.CopyFrom(write_demand(kept.change))
        case SetConstraint():
            message.constraint.CopyFrom(write_constraint(kept.change))
        case SetLimit():
            message.limit.CopyFrom(write_limit(kept.change))
        case SetDrain():
            message.drain.CopyFrom(write_drain(kept.change))
        case SetWeight():
            message.weight.CopyFrom(write_weight(kept.change))
        case SetShadow():
            message.shadow.CopyFrom(write_shadow(kept.change))
    return message


def read_overlay(message: pb.KeptSettings) -> Overlay:
    """Read what operators set.

    Raises
    ------
    WireError
        Where a change is none.
    """
    overlay = Overlay()
    for index, each in enumerate(message.changes):
        change = proto_types.part(each, _read_change, f"changes[{index}]")
        overlay.changes[key_of(change)] = Kept(change, each.by, each.at_ms)
    return overlay


def _read_change(message: pb.KeptChange) -> OperatorChange:
    what = message.WhichOneof("change")
    if what is None:
        refuse("change", "is missing; name what was set")
    match what:
        case "policy":
            return SetPolicy(read_policy(message.policy))
        case "demand":
            return read_demand(message.demand)
        case "constraint":
            return read_constraint(message.constraint)
        case "limit":
            return read_limit(message.limit)
        case "drain":
            return read_drain(message.drain)
        case "weight":
            return read_weight(message.weight)
    return read_shadow(message.shadow)


class Learnt(NamedTuple):
    """A copy of what is remembered of demands.

    Attributes
    ----------
    entries : dict of topic to Remembered
    elapsed_ms : int
        The memory's own clock.
    """

    entries: Mapping[tuple[str, str, str], Remembered]
    elapsed_ms: int


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

    Parameters
    ----------
    message : KeptDemands
    now_ms : int
        Since 1970.
    most : int
        So many are kept, those that were taught last.

    Raises
    ------
    WireError
        Where one of them is none.
    """
    memory = DemandMemory()
    away_ms = max(now_ms - message.saved_at_ms, 0)
    kept = message.demands[max(len(message.demands) - most, 0) :]
    for index, each in enumerate(kept):
        place = f"demands[{index}]"
        amounts = proto_types.part(each.demand, proto_types.read_quantities, f"{place}.demand")
        positive = amounts and all(amounts.values()) and each.weight and each.age_ms >= 0
        if each.kind not in TOPICS or not positive:
            refuse(place, "is no demand that could be remembered")
        taught_ms = -(each.age_ms + away_ms)
        memory.entries[each.role, each.kind, each.who] = Remembered(amounts, each.weight, taught_ms)
    return memory
