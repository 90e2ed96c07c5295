"""Budgets of roles: what they hold over time is counted exactly, and periods are the calendar's."""

from calendar import monthrange
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.core import DEMAND_LABEL, EventError, PolicySpec, SetBudget, budget_rows
from allocator.core.demand.budget_memory import GAP_MS
from allocator.core.demand.periods import DAY_MS, HOUR_MS, period_of, read_day, write_day
from tests.core.session import Session
from tests.world.nouns import Framework
from tests.world.world import World

MINUTE_MS = 60_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def day_of(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()


class Gpus:
    """One agent with gpus; `hold` sets what a role's framework holds."""

    def __init__(self, start: str = "2026-11-05", *rules: SetBudget) -> None:
        self.world = World(PolicySpec("drf", "listed", "characterised"))
        self.world.bind("gpus", "cpus", roles=["eng", "eng/ads", "ops"])
        self.agent = self.world.agent("gpus:64;cpus:64")
        self.now_ms = at(start)
        self.world.allocator.advance(self.now_ms)
        for rule in rules:
            self.world.allocator.step(rule)

    @property
    def memory(self):
        return self.world.allocator.state.memory.budgets

    def hold(self, role: str, amounts: str) -> Framework:
        framework = self.world.framework(role)
        self.world.hold(framework, role, self.agent, amounts)
        return framework

    def pass_time(self, minutes: float) -> None:
        """In steps of half an hour at most, as a master's batches come."""
        until_ms = self.now_ms + round(minutes * MINUTE_MS)
        while self.now_ms < until_ms:
            self.now_ms = min(self.now_ms + 30 * MINUTE_MS, until_ms)
            self.world.allocator.advance(self.now_ms)

    def used(self, role: str = "eng", name: str = "gpus") -> Any:
        """In resource-hours."""
        return Fraction(self.memory.spent[role].used.get(name, 0), 1000 * HOUR_MS)


def test_ten_gpus_use_five_gpu_hours_in_half_an_hour():
    it = Gpus("2026-11-05", SetBudget("eng", {"gpus": 5000}))
    it.hold("eng", "gpus:10")
    it.pass_time(30 - 1 / MINUTE_MS)
    assert not it.memory.over
    it.pass_time(1 / MINUTE_MS)
    assert it.memory.over == {"eng": False}
    assert it.used() == 5


def test_a_role_uses_what_the_roles_below_it_hold():
    it = Gpus("2026-11-05", SetBudget("eng", {"gpus": 5000}), SetBudget("eng/ads", {"gpus": 5000}))
    it.hold("eng", "gpus:4")
    it.hold("eng/ads", "gpus:6")
    it.hold("ops", "gpus:20")
    it.pass_time(30)
    assert (it.used("eng"), it.used("eng/ads")) == (5, 3)
    assert list(it.memory.over) == ["eng"]


def test_the_next_period_begins_with_nothing_used():
    it = Gpus("2026-11-30T23:30", SetBudget("eng", {"gpus": 5000}, hard=True))
    it.hold("eng", "gpus:20")
    it.pass_time(30 - 1 / MINUTE_MS)
    assert it.memory.over == {"eng": True}
    it.pass_time(1 / MINUTE_MS)
    assert (it.used(), it.memory.over) == (0, {})
    it.pass_time(15)
    assert (it.used(), it.memory.over) == (5, {"eng": True})


@pytest.mark.parametrize(
    ("per", "now", "begins", "ends"),
    [
        ("month", "2026-11-28T12:00", "2026-11-01", "2026-12-01"),
        ("month", "2026-12-31T23:59", "2026-12-01", "2027-01-01"),
        ("month", "2028-02-29T12:00", "2028-02-01", "2028-03-01"),
        ("month", "2027-02-28T12:00", "2027-02-01", "2027-03-01"),
        ("month", "2100-02-28T12:00", "2100-02-01", "2100-03-01"),
        ("week", "2026-11-28T12:00", "2026-11-23", "2026-11-30"),
        ("week", "2026-11-30T00:00", "2026-11-30", "2026-12-07"),
        ("week", "2028-02-29T00:00", "2028-02-28", "2028-03-06"),
        ("day", "2028-02-29T23:59", "2028-02-29", "2028-03-01"),
    ],
)
def test_periods_are_those_of_the_calendar(per, now, begins, ends):
    assert tuple(map(day_of, period_of(per, at(now)))) == (begins, ends)
    assert period_of(per, period_of(per, at(now))[1] - 1) == period_of(per, at(now))


def test_days_are_those_of_the_proleptic_calendar():
    for number in (*range(-700_000, 2_900_000, 1997), *range(10_950, 11_100), 47_540, 47_541):
        day = date.fromordinal(719_163 + number)
        assert write_day(number) == day.isoformat()
        assert read_day(day.isoformat()) == number
        begin_ms, end_ms = period_of("month", number * DAY_MS)
        assert write_day(begin_ms // DAY_MS) == day.replace(day=1).isoformat()
        assert (end_ms - begin_ms) // DAY_MS == monthrange(day.year, day.month)[1]
        begin_ms, end_ms = period_of("week", number * DAY_MS)
        assert number - begin_ms // DAY_MS == day.weekday()
    begin_ms, end_ms = period_of("month", 2**62)
    assert begin_ms < end_ms


@pytest.mark.parametrize("text", ["2027-02-29", "2026-13-01", "2026-00-01", "2026-1-1", "soon"])
def test_a_day_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match=text):
        read_day(text)


@pytest.mark.parametrize(("gpus", "carried"), [(0, 5), (4, 1), (20, 0)])
def test_unused_budget_is_carried_over_once(gpus, carried):
    """4 gpus for an hour leave 1 of 5 hours."""
    it = Gpus("2026-11-05T23:00", SetBudget("eng", {"gpus": 5000}, "day", carry_over=True))
    framework = it.hold("eng", f"gpus:{gpus}") if gpus else None
    it.pass_time(60)
    (row,) = budget_rows(it.world.allocator.state)
    assert row.spent.granted(row.rule) == {"gpus": (5 + carried) * 1000 * HOUR_MS}
    if framework:
        it.world.remove_framework(framework)
    it.pass_time(3 * 24 * 60)
    (row,) = budget_rows(it.world.allocator.state)
    assert row.spent.granted(row.rule) == {"gpus": 10 * 1000 * HOUR_MS}, "at most one period's"


def test_a_credit_is_for_one_period_and_is_not_carried_over():
    rule = SetBudget("eng", {"gpus": 5000}, "day", True, False, "gpus:2h", "2026-11-05")
    it = Gpus("2026-11-05T23:00", rule)
    it.hold("eng", "gpus:6")
    it.pass_time(60 - 1 / MINUTE_MS)
    assert not it.memory.over, "6 of 7 hours"
    it.pass_time(1 / MINUTE_MS)
    (row,) = budget_rows(it.world.allocator.state)
    assert row.spent.granted(rule) == {"gpus": 6 * 1000 * HOUR_MS}, "1 of 5 is left, 2 were credit"


def test_a_clock_that_is_set_back_counts_nothing_twice_and_loses_nothing():
    """A failover, within a month, and back into the month before."""
    it = Gpus("2026-12-01T00:10", SetBudget("eng", {"gpus": 5_000_000}))
    it.hold("eng", "gpus:10")
    it.pass_time(30)
    before = it.world.allocator
    after = Gpus("2026-11-30T23:30", SetBudget("eng", {"gpus": 5_000_000}))
    after.world.allocator.remember(before)
    after.world.allocator.advance(after.now_ms)
    after.hold("eng", "gpus:10")
    after.pass_time(60)
    assert after.used() == 15
    assert day_of(after.memory.spent["eng"].begin_ms) == "2026-12-01", "it has begun"


def test_time_without_a_message_is_unknown():
    it = Gpus("2026-11-05", SetBudget("eng", {"gpus": 5_000_000}))
    it.hold("eng", "gpus:10")
    it.now_ms += GAP_MS
    it.world.allocator.advance(it.now_ms)
    it.now_ms += GAP_MS + 1
    it.world.allocator.advance(it.now_ms)
    assert it.used() == 10
    it.world.allocator.advance(it.now_ms + 40 * DAY_MS)
    assert (it.used(), day_of(it.memory.spent["eng"].begin_ms)) == (0, "2026-12-01")


def test_a_budget_that_is_removed_is_forgotten():
    it = Gpus("2026-11-05", SetBudget("eng", {"gpus": 1000}))
    it.hold("eng", "gpus:10")
    it.pass_time(30)
    it.world.allocator.step(SetBudget("eng", {"gpus": 9000}))
    assert (it.used(), it.memory.over) == (5, {}), "another amount of the same period"
    it.world.allocator.step(SetBudget("eng", None))
    assert not it.memory.spent
    assert not it.memory.over
    it.world.allocator.step(SetBudget("eng", {"gpus": 9000}))
    assert it.used() == 0


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            SetBudget("eng", {"gpus": 1}, "year"),
            "per = 'year' is not possible; give",
        ),
        (SetBudget("eng", {}), "is empty"),
        (SetBudget("eng", {"gpus": -1000}), "'gpus': -1h is not possible; give more than 0h"),
        (SetBudget("eng", {"gpus": 0}), "'gpus': 0h is not possible"),
        (SetBudget("", {"gpus": 1}), "is not a role"),
        (SetBudget("eng", {"gpus": 1}, credit="gpus:1h"), "belong together"),
        (SetBudget("eng", {"gpus": 1}, credit_from="2026-11-01"), "belong together"),
        (
            SetBudget("eng", {"gpus": 1}, credit="gpus:1h", credit_from="2026-11-05"),
            "credit_from = 2026-11-05 is not the first day of a month; give 2026-11-01",
        ),
        (
            SetBudget("eng", {"gpus": 1}, credit="gpus:1h", credit_from="soon"),
            "credit_from = 'soon' is not a date; write it as 2026-11-01",
        ),
        (
            SetBudget("eng", {"gpus": 1}, credit="gpus:1", credit_from="2026-11-01"),
            "'gpus:1' is not a number of hours; add an h, as in 'gpus:500h'",
        ),
        (
            SetBudget("eng", {"gpus": 1}, credit="cpus:1h", credit_from="2026-11-01"),
            "'cpus' is not in the budget",
        ),
    ],
)
def test_a_budget_that_is_none_is_refused(rule, text):
    it = Gpus()
    with pytest.raises(EventError) as found:
        it.world.allocator.step(rule)
    assert text in str(found.value)
    assert not it.memory.spent


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.sampled_from(["eng", "eng/ads", "ops"]), st.integers(1, 3)),
        st.tuples(st.just("leave"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("pass"), st.integers(1, 2 * GAP_MS), st.just(0)),
        st.tuples(st.just("jump"), st.integers(0, 70 * DAY_MS), st.just(0)),
    ),
    max_size=25,
)


class SlowBudget:
    """Each piece of held time, added up by its period when asked."""

    def __init__(self, rule: SetBudget, start_ms: int) -> None:
        self.rule = rule
        self.pieces: list[tuple[int, int, int]] = []
        self.latest_ms = start_ms

    def hold(self, since_ms: int, until_ms: int, amount: int) -> None:
        if until_ms - since_ms <= GAP_MS:
            self.pieces.append((since_ms, until_ms, amount))
        self.latest_ms = until_ms

    def used(self, begin_ms: int, end_ms: int) -> int:
        return sum(
            max(min(until_ms, end_ms) - max(since_ms, begin_ms), 0) * amount
            for since_ms, until_ms, amount in self.pieces
        )

    def carried(self, start_ms: int, begin_ms: int) -> int:
        """Period by period from the first one."""
        budget, left = (self.rule.budget or {})["gpus"] * HOUR_MS, 0
        now_ms = period_of(self.rule.per, start_ms)[0]
        while now_ms < begin_ms:
            end_ms = period_of(self.rule.per, now_ms)[1]
            left = min(max(budget + left - self.used(now_ms, end_ms), 0), budget)
            now_ms = end_ms
        return left if self.rule.carry_over else 0


@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from(["month", "week", "day"]), st.booleans())
def test_random_histories_are_counted_exactly(steps, per, carry_over):
    rule = SetBudget("eng", {"gpus": 7000}, per, carry_over)
    it = Gpus("2028-02-28T20:00", rule)
    start_ms, slow, holders = it.now_ms, SlowBudget(rule, it.now_ms), []
    for what, first, number in steps:
        if what == "hold":
            holders.append((it.hold(first, f"gpus:{number}"), first, number))
        elif what == "leave" and holders:
            framework, _, _ = holders.pop(first % len(holders))
            it.world.remove_framework(framework)
        elif what in {"pass", "jump"}:
            held = sum(1000 * gpus for _, role, gpus in holders if role.startswith("eng"))
            slow.hold(it.now_ms, it.now_ms + first, held)
            it.now_ms += first
            it.world.allocator.advance(it.now_ms)
        (row,) = budget_rows(it.world.allocator.state)
        begin_ms, end_ms = period_of(per, it.now_ms)
        assert (row.spent.begin_ms, row.spent.end_ms) == (begin_ms, end_ms)
        assert row.spent.used.get("gpus", 0) == slow.used(begin_ms, end_ms)
        carried = slow.carried(start_ms, begin_ms)
        assert row.spent.carried.get("gpus", 0) == carried
        granted = 7000 * HOUR_MS + carried
        assert bool(it.memory.over) == (slow.used(begin_ms, end_ms) >= granted)


def test_when_a_budget_runs_out_follows_from_what_is_held_now():
    it = Gpus("2026-11-05", SetBudget("eng", {"gpus": 5000, "cpus": 100_000}))
    (row,) = budget_rows(it.world.allocator.state)
    assert row.runs_out_ms == -1
    it.hold("eng", "gpus:3;cpus:1")
    it.pass_time(60)
    (row,) = budget_rows(it.world.allocator.state)
    assert row.runs_out_ms == 40 * MINUTE_MS, "2 of 5 hours are left, of 3 gpus"
    it.pass_time(40)
    (row,) = budget_rows(it.world.allocator.state)
    assert row.runs_out_ms == 0


def test_cycles_do_no_more_without_budgets(monkeypatch):
    session = Session()
    session.agent(1, 8, 16)
    session.framework(1, 1, labels={DEMAND_LABEL: "cpus:1;mem:1"})

    def fail(*_args, **_kwargs):
        raise AssertionError("asked for budgets")

    monkeypatch.setattr("allocator.core.books.budgets._held", fail)
    monkeypatch.setattr("allocator.core.books.state.State.over_budget", fail)
    monkeypatch.setattr("allocator.core.cycle.within_budgets._among", fail)
    assert session.cycle(0)
