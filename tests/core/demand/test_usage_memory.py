"""Averages over time against their definition, in fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.demand.budget_memory import GAP_MS
from allocator.core.demand.usage_memory import ABSENT_MAX, DECAY, SLOTS, UsageMemory

HALF_LIFE_MS = 6_400
SLOT_MS = HALF_LIFE_MS // SLOTS

spans = st.lists(
    st.tuples(st.integers(0, 40 * SLOT_MS), st.integers(0, 10**9)), min_size=1, max_size=12
)


def kept(half_life_ms: int = HALF_LIFE_MS) -> UsageMemory:
    memory = UsageMemory()
    memory.set_half_life(half_life_ms)
    list(memory.pass_time(0))
    return memory


def follow(memory: UsageMemory, lives: list[tuple[int, int]], begun_ms: int = 0) -> float:
    """Hold each amount for its span; returns the average at the end."""
    average, now_ms = 0.0, begun_ms
    for span_ms, held in lives:
        now_ms += span_ms
        for added, factor in memory.pass_time(now_ms):
            average = (average + held * added) * factor
    return average * memory.norm


def defined(lives: list[tuple[int, int]]) -> Fraction:
    """The average by its definition: the integral over each slot, times the slot's weight."""
    q, end_ms = Fraction(DECAY), sum(span for span, _ in lives)
    last, total, begin_ms = end_ms // SLOT_MS, Fraction(0), 0
    for span_ms, held in lives:
        for slot in range(begin_ms // SLOT_MS, (begin_ms + span_ms) // SLOT_MS + 1):
            within = min(begin_ms + span_ms, (slot + 1) * SLOT_MS) - max(begin_ms, slot * SLOT_MS)
            total += held * max(within, 0) * q ** (last - slot)
        begin_ms += span_ms
    return total / (SLOT_MS * q / (1 - q) + end_ms % SLOT_MS)


@given(spans)
def test_averages_equal_the_definition(lives):
    assert follow(kept(), lives) == pytest.approx(float(defined(lives)), rel=1e-12, abs=1e-9)


@given(spans, st.integers(1, 5))
def test_the_number_of_time_updates_does_not_matter(lives, parts):
    often = [
        (span * (part + 1) // parts - span * part // parts, held)
        for span, held in lives
        for part in range(parts)
    ]
    assert follow(kept(), often) == pytest.approx(follow(kept(), lives), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("half_lives", [1, 2, 3, 10])
def test_a_half_life_later_it_is_half_of_the_rest(half_lives):
    average = follow(kept(), [(half_lives * HALF_LIFE_MS, 1000)])
    assert average == pytest.approx(1000 * (1 - 0.5**half_lives), rel=1e-12)


def test_a_year_of_moments_does_not_drift():
    """A constant holding equals its average, after 10,000 half-lives in irregular steps."""
    average = follow(kept(), [(SLOT_MS * 7 + 3, 123_456)] * 100_000)
    assert average == pytest.approx(123_456, rel=1e-9)


def test_a_pause_of_many_half_lives_costs_a_few_steps():
    memory = kept()
    steps = list(memory.pass_time(GAP_MS))
    assert len(steps) <= 3
    average = 5.0
    for added, factor in steps:
        average = (average + 1000 * added) * factor
    assert average * memory.norm == pytest.approx(1000)


@pytest.mark.parametrize("gap_ms", [GAP_MS + 1, 10**15])
def test_time_without_a_message_is_unknown(gap_ms):
    """As after a clock was set forward: no average changes, and time counts again from there on."""
    memory, other = kept(), kept()
    for each in (memory, other):
        list(each.pass_time(SLOT_MS // 2))
    assert list(memory.pass_time(SLOT_MS // 2 + gap_ms)) == []
    assert list(memory.pass_time(2 * SLOT_MS + gap_ms)) == list(other.pass_time(2 * SLOT_MS))


def test_the_average_of_one_who_left_fades_and_returns_with_it():
    memory = kept()
    memory.leave("eng", "f-1", {"cpus": 800.0, "mem": 0.0})
    list(memory.pass_time(HALF_LIFE_MS))
    assert memory.come("eng", "f-1", {"cpus"}) == pytest.approx({"cpus": 400})
    assert memory.come("eng", "f-1", {"cpus"}) == {}


def test_usage_of_unknown_resources_stays_with_the_role():
    memory = kept()
    memory.leave("eng", "f-1", {"cpus": 800.0, "gpus": 8.0})
    assert memory.come("eng", "f-1", {"cpus"}) == {"cpus": 800}
    assert memory.of_roles() == {"eng": {"gpus": 8}}


def test_the_oldest_of_too_many_become_their_roles():
    memory = kept()
    for number in range(ABSENT_MAX + 10):
        memory.leave("eng", f"f-{number}", {"cpus": 1.0})
    assert len(memory.absent) <= ABSENT_MAX
    assert memory.of_roles()["eng"]["cpus"] == ABSENT_MAX + 10
    for number in range(2 * ABSENT_MAX):
        memory.leave(f"r-{number}", "f", {"cpus": 1.0})
    assert len(memory.absent) <= ABSENT_MAX


def test_faded_usage_is_forgotten():
    memory = kept()
    memory.leave("eng", "f-1", {"cpus": 1e6})
    memory.leave("ads", "f-2", {"cpus": 1e15})
    list(memory.pass_time(39 * HALF_LIFE_MS))
    list(memory.pass_time(41 * HALF_LIFE_MS))
    assert set(memory.absent) == {("ads", "f-2")}
    assert memory.of_roles()["ads"]["cpus"] * memory.scale == pytest.approx(1e15 / 2**41)


def test_another_half_life_changes_no_average_now():
    memory = kept()
    average = follow(memory, [(HALF_LIFE_MS * 3 + 50, 1000)])
    memory.set_half_life(10 * HALF_LIFE_MS)
    assert average == pytest.approx(875, rel=0.01)
    assert memory.norm == pytest.approx(1, rel=0.02)


def test_without_a_half_life_nothing_is_kept():
    memory = kept()
    memory.leave("eng", "f-1", {"cpus": 800.0})
    memory.set_half_life(0)
    assert not memory.absent
