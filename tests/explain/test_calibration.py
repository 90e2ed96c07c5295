"""Corrections of forecasts: closed forms, and coverage under random errors."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.explain import Calibration, Corrections, NextOffer
from allocator.explain.calibration import (
    OF_EACH_MAX,
    OPEN_MAX,
    PRINCIPALS_MAX,
    SIZES,
    WAITS_ENOUGH,
    WAITS_MIN,
    WINDOW,
    Correction,
    Outcome,
    correction,
    size_of,
)

SECOND = 1000


def offer(expected_ms: int, latest_ms: int | None = None) -> NextOffer:
    return NextOffer(expected_ms, 3 * expected_ms if latest_ms is None else latest_ms, "so", SECOND)


def ended(*ratios: float) -> list[Outcome]:
    return [Outcome(ratio, True, wait) for wait, ratio in enumerate(ratios)]


# Closed forms.


def known(outcomes: Sequence[Outcome]) -> Correction:
    found = correction(outcomes)
    assert found is not None
    return found


def those(calibration: Calibration[int], now_ms: int = 0, size: int = 0, who="") -> Correction:
    found = calibration.corrections(now_ms).of(who, size)
    assert found is not None
    return found


def test_percentiles_of_waits_that_ended():
    """Of 100 ratios, the median is the 50th; the p95 has the rank ceil(0.95 * 101) = 96."""
    found = known(ended(*range(1, 101)))
    assert found == Correction(50, 96, 100, 100)


def test_with_fewer_than_nineteen_waits_the_p95_is_the_largest_ratio():
    assert known(ended(*range(1, 19))).p95 == 18
    assert known(ended(*range(1, 40))).p95 == 38, "ceil(0.95 * 40) = 38 of 39"


def test_waits_count_for_the_p95_rather_than_forecasts():
    """38 forecasts of two waits show no more of the p95 than two."""
    found = known([Outcome(ratio, True, ratio % 2) for ratio in range(1, 39)])
    assert found == Correction(19, 38, 38, 2)


def test_waits_that_have_not_ended_count_as_longer():
    """Kaplan-Meier: 1 of 4 ends at 1; of the 2 left after the one cut off, 1 ends at 3.

    So 1/4 does not exceed 1, and 1 - 3/4 * 1/2 = 5/8 does not exceed 3.
    """
    rows = [Outcome(1, True, 0), Outcome(2, False, 1), Outcome(3, True, 2), Outcome(4, False, 3)]
    found = known(rows)
    assert (found.p50, found.p95) == (3, 4)
    assert (found.forecasts, found.waits) == (2, 2)
    assert correction([Outcome(5, False, 0)]) is None


def test_a_wait_that_ends_counts_before_one_cut_off_at_the_same_ratio():
    assert known([Outcome(2, False, 0), Outcome(2, True, 1)]).p50 == 2


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.booleans(), st.integers(0, 30)), max_size=60),
    st.randoms(),
)
def test_corrections_do_not_depend_on_the_order_and_the_p95_is_the_larger(rows, chance):
    outcomes = [Outcome(*row) for row in rows]
    found = correction(outcomes)
    chance.shuffle(outcomes)
    assert correction(outcomes) == found
    if found is not None:
        assert found.p50 <= found.p95 <= max(each.ratio for each in outcomes)


def test_a_corrected_forecast_is_scaled_and_says_what_it_rests_on():
    by = Corrections({"": ended(*[0.5] * 10, *[4.0] * 9)})
    found = by.corrected(offer(8 * SECOND))
    assert (found.expected_ms, found.latest_ms) == (4 * SECOND, 32 * SECOND)
    assert found.text == "so; corrected by what came of 19 earlier forecasts"
    now = by.corrected(offer(0, 0))
    assert (now.expected_ms, now.latest_ms) == (SECOND, 4 * SECOND), "nothing is decided sooner"
    unknown = by.corrected(offer(8 * SECOND, -1))
    assert unknown.latest_ms == 32 * SECOND, "a p95 that was not known is, after a correction"
    assert by.corrected(NextOffer.none("x")) == NextOffer.none("x")
    assert Corrections().corrected(offer(8 * SECOND)) == offer(8 * SECOND)


def test_sizes_are_powers_of_two_intervals():
    seconds = (0, 1, 3, 4, 15, 16, 64, 256, 1023, 1024, 10**9)
    sizes = [size_of(offer(each * SECOND)) for each in seconds]
    assert sizes == [0, 0, 1, 2, 3, 4, 6, 8, 9, 10, SIZES - 1]


# What is remembered.


def waited(
    calibration: Calibration[int], waits: int, expected_ms: int, lasts_ms: int, principal: str = ""
) -> None:
    """Forecasts whose offers come."""
    for who in range(waits):
        calibration.expect(who, 0, offer(expected_ms), Corrections(), principal)
        calibration.came(who, lasts_ms)


def test_few_waits_correct_nothing_and_more_correct_those_of_similar_sizes():
    calibration = Calibration[int]()
    waited(calibration, WAITS_MIN - 1, SECOND, 2 * SECOND)
    assert calibration.corrections(0).of("", 0) is None
    waited(calibration, 1, SECOND, 2 * SECOND)
    assert those(calibration) == Correction(2, 2, WAITS_MIN, WAITS_MIN)
    waited(calibration, WAITS_ENOUGH, 100 * SECOND, 100 * SECOND)
    its = Correction(1, 1, WAITS_ENOUGH, WAITS_ENOUGH)
    assert [those(calibration, size=size) for size in (4, 6, 9)] == [its] * 3, "6 is the nearest"
    found = calibration.corrections(0).corrected(offer(100 * SECOND))
    assert found.expected_ms == 100 * SECOND
    assert those(calibration, size=0).waits == WAITS_ENOUGH + WAITS_MIN, "size 0 has too few"


# Other principals.


def test_a_principal_with_enough_waits_is_corrected_by_these_alone():
    calibration = Calibration[int]()
    waited(calibration, WAITS_ENOUGH, SECOND, 2 * SECOND, "mine")
    waited(calibration, WINDOW, SECOND, 9 * SECOND, "other")
    assert those(calibration, who="mine") == Correction(2, 2, WAITS_ENOUGH, WAITS_ENOUGH)
    assert those(calibration, who="other").p50 == 9


def test_of_each_principal_few_outcomes_correct_forecasts_of_others():
    """Of 40 + 20, those of the busy one are at most 20, and the latest."""
    calibration = Calibration[int]()
    for number in range(20):
        waited(calibration, 2, SECOND, 2 * SECOND, f"p{number}")
    waited(calibration, WINDOW, SECOND, 3 * SECOND, "busy")
    waited(calibration, WINDOW, SECOND, 9 * SECOND, "busy")
    found = those(calibration, who="new")
    assert (found.p50, found.p95, found.forecasts) == (2, 9, 40 + OF_EACH_MAX)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.floats(0.01, 1e3)), max_size=80), st.integers(0, 99)
)
def test_one_principal_moves_the_median_of_others_by_a_bounded_rank(told, seed):
    """Four principals have 20 outcomes each. A fifth one makes of its forecasts what it likes.

    At most 20 of 100 are its own, so the median of all is between the 30th and the 51st of the 80
    others. A principal that has enough outcomes is not affected.
    """
    chance, calibration, ratios = Random(seed), Calibration[int](), []
    for number in range(4):
        for who in range(OF_EACH_MAX):
            ratios.append(chance.lognormvariate(0, 1))
            calibration.expect(who, 0, offer(SECOND), Corrections(), f"p{number}")
            calibration.came(who, round(1000 * ratios[-1]) + 1)
    before = [those(calibration, who=f"p{number}") for number in range(4)]
    for who, (how, ratio) in enumerate(told, 1000):
        calibration.expect(who, 0, offer(SECOND), Corrections(), "hostile")
        if how < 4:
            calibration.came(who, round(1000 * ratio) + 1)
        elif how < 7:
            calibration.left(who, round(1000 * ratio) + 1)
    after = those(calibration, 10_000, who="new")
    ratios = sorted(round(1000 * each) / 1000 + 0.001 for each in ratios)
    assert ratios[29] - 1e-9 <= after.p50 <= ratios[50] + 1e-9
    assert [those(calibration, 10_000, who=f"p{number}") for number in range(4)] == before


def test_forecasts_of_one_principal_do_not_keep_those_of_others_from_being_remembered():
    """It waits for offers that never come, and its forecasts are not late for years."""
    calibration = Calibration[int]()
    for who in range(2 * OPEN_MAX):
        calibration.expect(who, who, offer(10**9), Corrections(), "hostile")
    assert len(calibration.everyone()) == OPEN_MAX
    for who in range(1000, 1000 + WAITS_ENOUGH):
        calibration.expect(who, 1000, offer(SECOND), Corrections(), "mine")
    for who in range(1000, 1000 + WAITS_ENOUGH):
        calibration.came(who, 3000)
    assert those(calibration, 3000, who="mine") == Correction(2, 2, WAITS_ENOUGH, WAITS_ENOUGH)


def test_the_number_of_principals_is_bounded():
    calibration = Calibration[int]()
    for number in range(2 * PRINCIPALS_MAX):
        waited(calibration, 1, SECOND, SECOND, f"p{number}")
        waited(calibration, 1, SECOND, SECOND, "steady")
    known = calibration.corrections(0).known
    assert len(known) == PRINCIPALS_MAX
    assert len(known["steady"]) > 1


@pytest.mark.parametrize(
    ("came_s", "result"), [(9, "early"), (10, "held"), (30, "held"), (31, "late"), (None, "late")]
)
def test_results_are_counted_once(came_s, result):
    calibration = Calibration[str]()
    calibration.expect("x", 0, offer(10 * SECOND), Corrections())
    calibration.tick((came_s or 40) * SECOND)
    if came_s:
        calibration.came("x", came_s * SECOND)
    calibration.left("x", 50 * SECOND)
    results = calibration.results
    counts = {name: getattr(results, name) for name in ("early", "held", "late", "withdrawn")}
    assert counts == dict.fromkeys(counts, 0) | {result: 1}


def test_an_offer_does_not_answer_a_forecast_made_at_the_same_time():
    calibration = Calibration[str]()
    calibration.expect("x", 5 * SECOND, offer(SECOND), Corrections())
    calibration.came("x", 5 * SECOND)
    assert calibration.everyone() == ["x"]
    assert calibration.awaited(5 * SECOND) == {"x"}
    assert calibration.awaited(6 * SECOND) == set(), "then it gets another forecast"


def test_what_is_remembered_is_bounded():
    calibration = Calibration[int]()
    for who in range(3 * OPEN_MAX):
        calibration.expect(who, who, offer(SECOND), Corrections())
        calibration.tick(who)
    assert len(calibration.everyone()) <= OPEN_MAX
    waited(calibration, 3 * WINDOW, SECOND, SECOND)
    assert those(calibration).forecasts <= WINDOW


def test_waits_that_do_not_end_lengthen_forecasts():
    """Five short waits ended, ten others already take twenty times their forecasts."""
    calibration = Calibration[int]()
    for who in range(10, 20):
        calibration.expect(who, 0, offer(SECOND), Corrections())
    waited(calibration, 5, SECOND, SECOND)
    found = those(calibration, 20 * SECOND)
    assert (found.p50, found.p95) == (20, 20)


# Coverage.


def life(seed: int, bias: float, spread: float, forecasts: int = 1500) -> np.ndarray:
    """Whether each offer came before the corrected p50 and p95; errors are log-normal."""
    chance, calibration = Random(seed), Calibration[int]()
    pending: list[tuple[int, int, int]] = []
    held, corrections = [], Corrections()
    for who in range(forecasts):
        now_ms = 10 * SECOND * who
        for when_ms, waits, _ in sorted(each for each in pending if each[0] <= now_ms):
            calibration.came(waits, when_ms)
        pending = [each for each in pending if each[0] > now_ms]
        raw = offer(round(chance.choice([5, 50, 500]) * SECOND))
        if who % 20 == 0:
            corrections = calibration.corrections(now_ms)
        shown = calibration.expect(who, now_ms, raw, corrections)
        lasts_ms = round(bias * raw.expected_ms * chance.lognormvariate(0, spread)) + 1
        pending.append((now_ms + lasts_ms, who, lasts_ms))
        if who >= 300:
            held.append((lasts_ms <= shown.expected_ms, lasts_ms <= shown.latest_ms))
    return np.array(held).mean(axis=0)


@pytest.mark.parametrize(("bias", "spread"), [(1.0, 0.5), (0.2, 1.0), (6.0, 0.3), (3.0, 1.5)])
def test_under_stationary_errors_corrected_forecasts_hold_as_often_as_they_say(bias, spread):
    """Whatever the bias: half before the p50, 95 % before the p95, within 4 standard errors.

    A window of 200 contributes as much to the variance as some 200 more forecasts would.
    """
    early, held = life(7, bias, spread)
    assert early == pytest.approx(0.5, abs=4 * (0.25 / 250) ** 0.5)
    assert 0.95 - 4 * (0.0475 / 250) ** 0.5 <= held <= 0.99


def test_the_same_history_gives_the_same_corrections():
    assert (life(3, 2.0, 1.0, 400) == life(3, 2.0, 1.0, 400)).all()
