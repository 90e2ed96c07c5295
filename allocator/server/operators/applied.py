"""Several changes as one: the resulting settings, and the differences."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from allocator import policies
from allocator.core import (
    EventError,
    OperatorChange,
    SessionLimits,
    SetDrain,
    Settings,
    taken_back,
)
from allocator.rule_kinds import POLICY, SHADOW
from allocator.server.config import Config
from allocator.server.config.scheduled import SCHEDULES_MAX
from allocator.server.operators import calendar
from allocator.server.operators.setting_rows import scope_of, value_of
from allocator.server.system import timetable
from allocator.server.system.timetable import ScheduleError
from allocator.v1 import admin_pb2 as pb
from allocator.wire.settings.history import Replaced
from allocator.wire.settings.overlay import KeptChange, Key, Overlay, configured


class Base(NamedTuple):
    """The settings of the configuration."""

    settings: Settings
    scheduled: tuple[KeptChange, ...]

    @staticmethod
    def of(config: Config) -> "Base":
        return Base(config.settings(), tuple(config.scheduled()))

    @property
    def keys(self) -> set[Key]:
        return configured(self.settings) | {each.key for each in self.scheduled}


class Applied(NamedTuple):
    """The settings with all changes.

    `overlay`: operators' settings from then on.
    `holding`: the scheduled rules in force, and announced drains.
    `differing`: the changes that differ from what is set.
    `replaced`: all differences, including removals, except those by schedules.
    """

    settings: Settings
    overlay: Overlay
    holding: tuple[KeptChange, ...]
    differing: tuple[KeptChange, ...]
    replaced: tuple[Replaced, ...]

    @property
    def rows(self) -> list[pb.SettingChange]:
        return list(map(in_words, self.replaced))


def applied(
    changes: Sequence[KeptChange],
    now: Settings,
    base: Base,
    overlay: Overlay,
    limits: SessionLimits,
    *,
    now_ms: int,
    by: str,
    prune: bool,
) -> Applied:
    """Compute the resulting settings; nothing is changed.

    `now`, `base`: the settings in force, and those of the configuration.
    `now_ms`: the time of the calendar.
    `by`: the author of the changes.
    `prune`: remove operators' settings that no change is about.

    Raises EventError for the first invalid change.
    """
    before = overlay.scheduled(base.scheduled)
    if before:  # some settings in force may be the calendar's
        now, _ = overlay.over(base.settings, limits, policies.build)
    mine = {each.key: each for each in base.scheduled}
    differing = tuple(
        each for each in changes if value_of(_present(each, now, before)) != value_of(each.change)
    )
    new = overlay.without(())
    if prune:
        wanted = {each.key for each in changes}
        new.changes = {key: kept for key, kept in new.changes.items() if key in wanted}
    at_ms, known = int(time.time() * 1000), base.keys
    for each in differing:
        _check(each, now_ms)
        if value_of(_present(each, base.settings, mine)) == value_of(each.change):
            new.changes.pop(each.key, None)  # as configured
        else:
            new.note(each._replace(by=by, at_ms=at_ms), known)
    after = new.scheduled(base.scheduled)
    if len(after) > max(SCHEDULES_MAX, len(before)):
        text = f"{len(after)} scheduled rules: at most {SCHEDULES_MAX}; remove some"
        raise EventError("value", "schedule", text)
    holding = calendar.for_core(after.values(), now_ms)
    standing, refused = new.over(base.settings, limits, policies.build)
    settings, set_by_calendar = standing, [each for each in differing if each.key in after]
    if set_by_calendar and not refused:  # each must be possible, even if not in force now
        _, refused = new.over(base.settings, limits, policies.build, set_by_calendar)
    if holding and not refused:
        settings, refused = new.over(base.settings, limits, policies.build, holding)
    for key, why in refused.items():
        scope = f" {scope_of(key)}" if scope_of(key) else ""
        raise EventError("value", key[0], f"{key[0]}{scope}: {why}")
    replaced = (*differences(now, standing), *_scheduled_differences(before, after))
    return Applied(settings, new, holding, differing, replaced)


def _present(
    change: KeptChange, settings: Settings, scheduled: Mapping[Key, KeptChange]
) -> OperatorChange | None:
    if change.schedule is None:
        return settings.before(change.change)
    found = scheduled.get(change.key)
    return None if found is None else found.change


def _check(change: KeptChange, now_ms: int) -> None:
    """Raise an EventError if a scheduled rule will never be in force."""
    schedule, rule = change.schedule, change.change
    if schedule is None or rule.takes_back:
        return
    try:
        timetable.check(schedule)
    except ScheduleError as error:
        raise EventError("value", rule.kind.name, f"{error.field} = {error}") from None
    if timetable.window(schedule, now_ms) is None:
        text = f"{timetable.in_words(schedule)}: is over already; give a later time"
        raise EventError("value", rule.kind.name, text)


def differences(before: Settings, after: Settings) -> Iterator[Replaced]:
    old, new = _standing(before), _standing(after)
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        # Compare first: formatting costs more, and most settings are unchanged.
        if was != now and value_of(was) != value_of(now):
            yield Replaced(was, now or taken_back(old[key]))


def _scheduled_differences(
    before: Mapping[Key, KeptChange], after: Mapping[Key, KeptChange]
) -> Iterator[Replaced]:
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key), after.get(key)
        if was is None or now is None or value_of(was.change) != value_of(now.change):
            known = now or was
            assert known is not None
            then = taken_back(known.change) if now is None else now.change
            yield Replaced(None if was is None else was.change, then, known.schedule)


def in_words(replaced: Replaced) -> pb.SettingChange:
    key = replaced.after.key
    before, after = value_of(replaced.before), value_of(replaced.after)
    row = pb.SettingChange(key=key[0], scope=scope_of(key), before=before, after=after)
    if replaced.schedule is not None:
        row.when = timetable.in_words(replaced.schedule)
    return row


def steps(now: Settings, wanted: Settings) -> Iterable[OperatorChange | Settings]:
    """Return the changes that lead from some settings to others, or the others as a whole.

    Single changes cost less. But of several rules that match, the latest may apply, and a change
    makes its rule the latest.
    """
    changes = [step for each in differences(now, wanted) for step in _steps(each)]
    reached = now.copied()
    for each in changes:
        reached.put(each)
    same = reached == wanted and list(reached.rules()) == list(wanted.rules())
    return changes if same else [wanted]


def _steps(replaced: Replaced) -> Sequence[OperatorChange]:
    """Return the changes to make. The core keeps a drain's earlier time, so remove it first."""
    match replaced.before, replaced.after:
        case SetDrain() as before, SetDrain() as after if after.from_ms > before.from_ms:
            return [taken_back(before), after]
        case _:
            return [replaced.after]


def _standing(settings: Settings) -> dict[Key, OperatorChange]:
    standing = (*settings.standing(POLICY), *settings.standing(SHADOW), *settings.rules())
    return {each.key: each for each in standing}
