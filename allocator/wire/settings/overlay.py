"""The overlay: operators' changes on top of the configuration. It outlives the process.

Operators' changes override the configuration one by one: the policy, and each rule by its patterns.
The removal of a configured rule is also an entry of the overlay. So a change of the configuration
takes effect wherever no operator has overridden it.
"""

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple, TypeAlias

from allocator.core import (
    Allocator,
    EventError,
    OperatorChange,
    Policy,
    PolicySpec,
    SessionLimits,
    Settings,
)
from allocator.rule_kinds import SHADOW
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject
from allocator.wire.settings.operator_settings import read_change, write_change
from allocator.wire.settings.schedule import Schedule, read_schedule, write_schedule

Key: TypeAlias = tuple[str, ...]
"""Identifies what is changed: `OperatorChange.key`, and the schedule of a scheduled rule."""


class KeptChange(NamedTuple):
    """An operator's change."""

    change: OperatorChange
    by: str
    at_ms: int
    schedule: Schedule | None = None

    @property
    def key(self) -> Key:
        """Of several changes with one key, the latest applies."""
        return self.change.key if self.schedule is None else (*self.change.key, self.schedule.text)


def configured(settings: Settings) -> set[Key]:
    return {each.key for each in (*settings.rules(), *settings.standing(SHADOW))}


class Overlay:
    """Operators' changes on top of the configuration; the latest is last in `changes`."""

    def __init__(self) -> None:
        self.changes: dict[Key, KeptChange] = {}

    def note(self, kept: KeptChange, configured: Container[Key]) -> None:
        """Record a change; the removal of something that is not `configured` leaves no entry."""
        key = kept.key
        self.changes.pop(key, None)
        if not kept.change.takes_back or key in configured:
            self.changes[key] = kept

    def without(self, kinds: Container[str]) -> "Overlay":
        rest = Overlay()
        rest.changes = {key: kept for key, kept in self.changes.items() if key[0] not in kinds}
        return rest

    def scheduled(self, base: Iterable[KeptChange] = ()) -> dict[Key, KeptChange]:
        """All scheduled rules, by key, the latest last; `base`: those of the configuration."""
        found = {each.key: each for each in base}
        for key, kept in self.changes.items():
            if kept.schedule is not None:
                found.pop(key, None)
                if not kept.change.takes_back:
                    found[key] = kept
        return found

    def over(
        self,
        base: Settings,
        limits: SessionLimits,
        build: Callable[[PolicySpec], Policy],
        holding: Iterable[KeptChange] = (),
    ) -> tuple[Settings, dict[Key, str]]:
        """Apply the overlay to the settings of the configuration.

        `build`: makes a policy from its specification, or raises ValueError.
        `holding`: the scheduled rules in force.

        Returns the settings, and the changes that are no longer possible and left out, with
            reasons.
        """
        trial = Allocator(build, base.copied(), limits)
        refused, known = {}, configured(base)
        mine = [each for each in self.changes.values() if each.schedule is None]
        for kept in (*mine, *holding):
            if kept.change.takes_back and kept.key not in known:
                continue
            try:
                trial.step(kept.change)
            except EventError as error:
                refused[kept.key] = str(error)
        return trial.settings, refused


def write_overlay(overlay: Overlay) -> pb.KeptSettings:
    return pb.KeptSettings(changes=map(write_kept, overlay.changes.values()))


def write_kept(kept: KeptChange) -> pb.KeptChange:
    message = pb.KeptChange(by=kept.by, at_ms=kept.at_ms, change=write_change(kept.change))
    if kept.schedule is not None:
        message.schedule.CopyFrom(write_schedule(kept.schedule))
    return message


def read_overlay(message: pb.KeptSettings) -> Overlay:
    """Read operators' changes. Raises WireError if one is invalid."""
    overlay = Overlay()
    for index, each in enumerate(message.changes):
        kept = proto_types.part(each, read_kept, f"changes[{index}]")
        overlay.changes[kept.key] = kept
    return overlay


def read_kept(message: pb.KeptChange) -> KeptChange:
    change = read_change(message.change)
    if not message.HasField("schedule"):
        return KeptChange(change, message.by, message.at_ms)
    if not change.kind.scheduled:
        reject("schedule", f"a {change.kind.name} cannot be scheduled; leave out the schedule")
    return KeptChange(change, message.by, message.at_ms, read_schedule(message.schedule))
