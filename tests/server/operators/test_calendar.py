"""Scheduled rules: after any events, the settings in force equal those of a simple twin."""

import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from allocator import policies
from allocator.core import (
    Allocator,
    EventError,
    OperatorChange,
    SessionLimits,
    SetBudget,
    SetConstraint,
    SetDrain,
    SetLimit,
    SetPause,
    Settings,
    SetWeight,
    taken_back,
)
from allocator.server.config import Config, Loaded
from allocator.server.operators import audit
from allocator.server.operators.applied import Base
from allocator.server.operators.calendar import BACK_MS, Clock
from allocator.server.operators.operators import Operators, Requester, in_force
from allocator.server.system import timetable
from allocator.wire.settings.overlay import (
    KeptChange,
    Overlay,
    read_kept,
    read_overlay,
    write_overlay,
)
from allocator.wire.settings.schedule import Schedule
from tests.tiers import seeds

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
BEGIN_MS = 1_795_000_000_000

CONFIG = Config.model_validate(
    {
        "limit": [
            {"role": "a", "resources": "cpus:9"},
            {"role": "a", "resources": "cpus:1", "every": "0 */6 * * *", "for": "1h"},
        ],
        "weight": [{"role": "a*", "weight": 3.0}, {"role": "*a", "weight": 5.0}],
    }
)


class Loop:
    """The core's thread, without a thread."""

    def __init__(self, settings: Settings) -> None:
        self.session_limits = SessionLimits()
        self.allocator = Allocator(policies.build, settings, self.session_limits)
        self.steps: list[Any] = []

    def step(self, event: Any) -> None:
        self.steps.append(event)
        if isinstance(event, Settings):
            self.allocator.reconfigure(event)
        else:
            self.allocator.step(event)

    def call(self, work: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - as the core's thread does
            done.set_exception(error)
        return done


class Sidecar:
    """Operators' settings at a time that the test sets."""

    def __init__(self, config: Config | None = None, at_ms: int = BEGIN_MS) -> None:
        self.config, self.at_ms = config or Config(), at_ms
        self.begin(Overlay())

    def begin(self, overlay: Overlay) -> None:
        """Start, with what an earlier process saved."""
        clock = Clock(lambda: self.at_ms / 1000)
        base, limits = Base.of(self.config), SessionLimits()
        found = in_force(base, overlay, limits, clock.now_ms())
        loop: Any = Loop(found.settings)
        loaded = Loaded(self.config, {})
        self.loop = loop
        self.operators = Operators(loop, loaded, overlay, clock=clock, holding=found.holding)
        self.tick()

    def restart(self) -> None:
        self.begin(read_overlay(write_overlay(self.operators.overlay)))

    def tick(self) -> None:
        """What the calendar's thread does when it looks at the clock."""
        if self.operators._is_due(self.operators.clock.now_ms()):
            self.operators._follow_calendar()

    def set(self, change: OperatorChange) -> None:
        self.operators.set(change, _REQUESTER).result(0)

    def schedule(self, change: OperatorChange, schedule: Schedule, *, prune: bool = False) -> None:
        kept = KeptChange(change, "", 0, schedule)
        self.operators.apply([kept], _REQUESTER, prune=prune).result(0)

    @property
    def rules(self) -> list[OperatorChange]:
        return list(self.loop.allocator.settings.rules())


_REQUESTER = Requester("test", lambda: True)


class Twin:
    """A naive implementation: the other rules in order, then those that hold, in order."""

    def __init__(self, config: Config) -> None:
        self.base = {each.key: each for each in config.settings().rules()}
        self.scheduled = {each.key: each for each in config.scheduled()}

    def set(self, change: OperatorChange) -> None:
        self.base.pop(change.key, None)
        if not change.takes_back:
            self.base[change.key] = change

    def schedule(self, change: OperatorChange, schedule: Schedule) -> None:
        kept = KeptChange(change, "", 0, schedule)
        before = self.scheduled.get(kept.key)
        if before is None or before.change != change:
            self.scheduled.pop(kept.key, None)
            if not change.takes_back:
                self.scheduled[kept.key] = kept

    def rules(self, at_ms: int) -> list[OperatorChange]:
        settings = Settings()
        for each in self.base.values():
            settings.put(each)
        for kept in self.scheduled.values():
            assert kept.schedule is not None
            if timetable.holds(kept.schedule, at_ms):
                settings.put(kept.change)
            elif isinstance(kept.change, SetDrain):
                begins = (at for at, begins in timetable.changes(kept.schedule, at_ms) if begins)
                for from_ms in islice(begins, 1):
                    settings.put(replace(kept.change, from_ms=from_ms))
        return list(settings.rules())


def some_change(chance: random.Random) -> OperatorChange:
    role = chance.choice(("a", "a/b"))
    pattern = chance.choice(("a*", "*a", ""))
    changes: list[OperatorChange] = [
        SetLimit(role, {"cpus": chance.randint(1, 4) * 1000}),
        SetBudget(role, {"cpus": chance.randint(1, 4) * 1000}, chance.choice(("day", "week"))),
        SetPause(role),
        SetDrain(chance.choice(("h1", "h2"))),
        SetWeight(pattern, "x", float(chance.randint(1, 4))),
        SetConstraint(pattern, "x", f"zone={chance.choice('ab')}"),
    ]
    return chance.choice(changes)


def some_schedule(chance: random.Random, now_ms: int) -> Schedule:
    hour = chance.randrange(24)
    bounds = (0, now_ms + chance.randint(1, 30) * HOUR_MS)
    if chance.random() < 0.5:
        every = chance.choice((f"0 {hour} * * *", "30 */3 * * *", "0 * * * 1-5"))
        for_ms = chance.choice((10, 45, 60)) * MINUTE_MS
        return Schedule(0, chance.choice(bounds), every, for_ms, "Europe/Berlin")
    from_ms = now_ms + chance.randint(-5, 20) * HOUR_MS
    return Schedule(from_ms, max(from_ms, now_ms) + chance.randint(1, 9) * HOUR_MS)


def live(seed: int, turns: int) -> int:
    """Play random changes, hours and restarts; returns how often the calendar changed something."""
    chance = random.Random(seed)
    sidecar, twin, high_ms, flips = Sidecar(CONFIG), Twin(CONFIG), BEGIN_MS, 0
    for _ in range(turns):
        kind = chance.random()
        if kind < 0.25:
            change = some_change(chance)
            if chance.random() < 0.3:
                change = taken_back(change)
            if change.takes_back and change.key not in twin.base:
                with pytest.raises(EventError):
                    sidecar.set(change)
            else:
                sidecar.set(change)
                twin.set(change)
        elif kind < 0.5:
            change, schedule = some_change(chance), some_schedule(chance, high_ms)
            if twin.scheduled and chance.random() < 0.3:
                kept = chance.choice(list(twin.scheduled.values()))
                assert kept.schedule is not None
                change, schedule = taken_back(kept.change), kept.schedule
            if change.takes_back or timetable.window(schedule, high_ms) is not None:
                sidecar.schedule(change, schedule)
                twin.schedule(change, schedule)
        elif kind < 0.55:
            sidecar.at_ms = high_ms  # a restart counts from the clock as it is
            sidecar.restart()
        else:
            back = chance.random() < 0.2
            sidecar.at_ms = high_ms + chance.randrange(0, 5 * 60) * MINUTE_MS
            if back:
                sidecar.at_ms = high_ms - chance.randrange(BACK_MS)
            high_ms = max(high_ms, sidecar.at_ms)
            before = sidecar.rules
            sidecar.tick()
            flips += before != sidecar.rules
            assert not (back and before != sidecar.rules), "nothing is applied twice"
        assert sidecar.rules == twin.rules(high_ms)
    return flips


@pytest.mark.parametrize("seed", seeds(2, 22))
def test_the_settings_in_force_equal_the_slow_twins(seed):
    assert live(seed, 40 if seed < 2 else 150)


LIMIT, OTHER = SetLimit("a", {"cpus": 1000}), SetLimit("a", {"cpus": 2000})
SOON = Schedule(BEGIN_MS + HOUR_MS, BEGIN_MS + 2 * HOUR_MS)


def test_the_rule_for_the_same_holds_again_as_it_stands_then():
    sidecar = Sidecar()
    sidecar.schedule(LIMIT, SOON)
    assert sidecar.rules == []
    sidecar.at_ms += HOUR_MS
    sidecar.tick()
    assert sidecar.rules == [LIMIT]
    sidecar.set(OTHER)
    assert sidecar.rules == [LIMIT]
    assert sidecar.operators.holds_instead(OTHER) is not None
    sidecar.at_ms += HOUR_MS
    sidecar.tick()
    assert sidecar.rules == [OTHER]
    assert not sidecar.operators.scheduled, "and what is over is forgotten"


def test_a_drain_is_announced_with_its_time_and_again_when_it_ends():
    sidecar, drain = Sidecar(at_ms=BEGIN_MS), SetDrain("h1")
    schedule = Schedule(every="0 */6 * * *", for_ms=HOUR_MS)
    sidecar.schedule(drain, schedule)
    found = timetable.window(schedule, BEGIN_MS)
    assert found is not None
    announced = replace(drain, from_ms=found.begin_ms)
    for _ in range(2):
        assert sidecar.rules == [announced]
        assert sidecar.operators.holds_instead(drain) is None
        sidecar.restart()
    sidecar.at_ms = found.begin_ms
    sidecar.tick()
    assert sidecar.rules == [drain]
    assert sidecar.operators.holds_instead(drain) is not None
    sidecar.at_ms = found.end_ms
    sidecar.tick()
    announced = replace(drain, from_ms=found.begin_ms + 6 * HOUR_MS)
    assert sidecar.rules == [announced]
    assert sidecar.loop.steps == [drain, taken_back(drain), announced]
    sidecar.set(drain)
    assert sidecar.rules == [drain], "it is drained now, whatever comes"
    sidecar.set(taken_back(drain))
    assert sidecar.rules == [announced]
    sidecar.schedule(taken_back(drain), schedule)
    assert sidecar.rules == []


def test_a_start_in_the_middle_applies_it_and_one_that_was_missed_is_not_applied():
    sidecar = Sidecar()
    sidecar.schedule(LIMIT, SOON)
    sidecar.at_ms += HOUR_MS + 1
    sidecar.restart()
    assert sidecar.rules == [LIMIT]
    sidecar = Sidecar()
    sidecar.schedule(LIMIT, SOON)
    sidecar.at_ms += 3 * HOUR_MS
    sidecar.restart()
    assert (sidecar.rules, sidecar.loop.steps) == ([], [])


def test_a_clock_set_back_a_bit_repeats_nothing_and_one_set_back_far_counts():
    hour_ms = BEGIN_MS - BEGIN_MS % HOUR_MS
    sidecar = Sidecar(at_ms=hour_ms)
    sidecar.schedule(LIMIT, Schedule(every="0 * * * *", for_ms=30 * MINUTE_MS))
    assert sidecar.rules == [LIMIT]
    sidecar.at_ms = hour_ms + 40 * MINUTE_MS
    sidecar.tick()
    for back in (20, 40, 50, 200):
        sidecar.at_ms = hour_ms + (40 - back) * MINUTE_MS
        sidecar.tick()
        # By the last of these times, it holds again: the clock was corrected.
        assert sidecar.rules == ([LIMIT] if back == 200 else [])


def test_changes_of_the_calendar_are_audited_and_are_no_history(monkeypatch):
    lines: list[dict[str, Any]] = []
    sink = type("Sink", (), {"info": lambda _self, _event, **said: lines.append(said)})()
    monkeypatch.setattr(audit, "_audit_log", sink)
    sidecar = Sidecar()
    sidecar.schedule(LIMIT, SOON)
    last = sidecar.operators.history.last
    lines.clear()
    for _ in range(2):
        sidecar.at_ms += HOUR_MS
        sidecar.tick()
    assert [(each["who"], each["old"], each["new"]) for each in lines[:2]] == [
        ("calendar", "", "cpus:1"),
        ("calendar", "cpus:1", ""),
    ]
    assert lines[2]["over"].endswith("(UTC)")
    assert sidecar.operators.history.last == last


def test_a_rule_by_calendar_can_be_reverted_and_reset():
    sidecar = Sidecar(CONFIG)
    sidecar.schedule(SetPause("a"), SOON)
    history = sidecar.operators.history
    (removal,) = history.replaced_by(history.last)
    overlay = read_overlay(write_overlay(sidecar.operators.overlay))
    assert [each.schedule for each in overlay.changes.values()] == [SOON]
    sidecar.operators.apply([read_kept(removal)], _REQUESTER, prune=False).result(0)
    assert len(sidecar.operators.scheduled) == 1, "that of the configuration"
    sidecar.schedule(SetPause("a"), SOON)
    sidecar.operators.reset(["pause"], _REQUESTER, 1.0)
    assert [each.change.kind.name for each in sidecar.operators.scheduled] == ["limit"]


def test_single_changes_do_where_they_lead_to_the_same():
    """Weights are an exception: of several that match, the latest counts."""
    sidecar = Sidecar(CONFIG)
    sidecar.schedule(LIMIT, SOON)
    sidecar.at_ms += HOUR_MS
    sidecar.tick()
    assert sidecar.loop.steps[-1] == LIMIT
    sidecar.schedule(SetWeight("a*", "", 9.0), SOON)
    sidecar.at_ms += HOUR_MS
    sidecar.tick()
    assert isinstance(sidecar.loop.steps[-1], Settings)
    weights = [each.weight for each in sidecar.loop.allocator.settings.weights.values()]
    assert weights == [3.0, 5.0]


@pytest.mark.parametrize(
    ("change", "schedule", "text"),
    [
        (LIMIT, Schedule(every="x", for_ms=HOUR_MS), "every = 'x': give minute"),
        (LIMIT, Schedule(until_ms=BEGIN_MS), "is over already; give a later time"),
        (LIMIT, Schedule(zone="Mars/X", until_ms=2 * BEGIN_MS), "tz = 'Mars/X': there is no"),
        (SetLimit("a//b", {"cpus": 1}), SOON, "'a//b' is not a role"),
    ],
)
def test_a_bad_one_is_refused_and_changes_nothing(change, schedule, text):
    sidecar = Sidecar()
    with pytest.raises(EventError, match=text):
        sidecar.schedule(change, schedule)
    assert not sidecar.operators.scheduled


def test_the_number_of_scheduled_rules_is_limited():
    sidecar = Sidecar()
    many = [KeptChange(LIMIT, "", 0, SOON._replace(until_ms=2 * BEGIN_MS + n)) for n in range(201)]
    with pytest.raises(EventError, match="201 scheduled rules: at most 200; remove some"):
        sidecar.operators.apply(many, _REQUESTER, prune=False).result(0)
    sidecar.operators.apply(many[1:], _REQUESTER, prune=False).result(0)
    assert len(sidecar.operators.scheduled) == 200
