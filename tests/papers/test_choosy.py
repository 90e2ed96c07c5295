"""Ghodsi et al., EuroSys 2013 (Choosy): sections 3 to 7, and the theorems of the appendix."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from laboratory.papers.choosy import examples as choosy
from laboratory.papers.choosy import examples as choosy_times
from laboratory.papers.choosy import jobs as choosy_jobs
from laboratory.papers.choosy import ramp_up as choosy_ramp_up
from laboratory.papers.choosy.examples import EXAMPLES
from laboratory.solvers import independent
from tests.tiers import examples, seeds

FIG_1 = EXAMPLES["Fig. 1"].eligible


def ones(eligible: np.ndarray) -> np.ndarray:
    """One machine of each type."""
    return np.ones(eligible.shape[1], np.int64)


# Sections 2.2, 4 and 5.1: the examples.


def test_figure_4_whole_machines() -> None:
    """(2, 1, 3, 4); 'the CMMF allocation is not always unique': users 1 and 2 may swap."""
    machines = max_min_whole.solve(FIG_1, ones(FIG_1)).machines.tolist()
    assert machines in ([2, 1, 3, 4], [1, 2, 3, 4])


def test_figure_4_as_printed_is_optimal_and_so_is_its_twin() -> None:
    for user in (0, 1):
        given_ = np.zeros(FIG_1.shape, np.int64)
        holder = [0, 2, 1, user, 3, 2, 2, 3, 3, 3]  # of m1 to m10
        given_[holder, np.arange(10)] = 1
        assert max_min_whole.improvement(given_, FIG_1, ones(FIG_1)) is None


def test_figure_1_divisible_machines() -> None:
    """'The first two users get assigned half of m4 each.'"""
    machines = max_min.solve(FIG_1, ones(FIG_1)).machines
    np.testing.assert_allclose(machines, [1.5, 1.5, 3, 4])


def test_figure_2_independent_allocation() -> None:
    """a1 = {m1, m4/3}, a2 = {m3/2, m4/3}, a3 = {m2, m3/2, m4/3, m6/2, m7/2}, a4 the rest."""
    expected = [
        [1, 0, 0, 1 / 3, 0, 0, 0, 0, 0, 0],
        [0, 0, 1 / 2, 1 / 3, 0, 0, 0, 0, 0, 0],
        [0, 1, 1 / 2, 1 / 3, 0, 1 / 2, 1 / 2, 0, 0, 0],
        [0, 0, 0, 0, 1, 1 / 2, 1 / 2, 1, 1, 1],
    ]
    np.testing.assert_allclose(independent.solve(FIG_1, ones(FIG_1)), expected)


@pytest.mark.parametrize("name", ["Fig. 3", "Sec. 5", "Fig. 5"])
def test_examples_with_one_optimum(name: str) -> None:
    example = EXAMPLES[name]
    count = ones(example.eligible)
    whole = max_min_whole.solve(example.eligible, count).machines
    assert whole.tolist() == list(example.whole)
    np.testing.assert_allclose(max_min.solve(example.eligible, count).machines, example.whole)


# Sections 3 and 4.2.2: properties.


def test_section_3_1_equal_parts_cannot_be_promised() -> None:
    """Ten machines; nine users can use only the first, the last can use all."""
    eligible = np.zeros((10, 10), bool)
    eligible[:, 0] = eligible[9] = True
    machines = max_min.solve(eligible, ones(eligible)).machines
    np.testing.assert_allclose(machines, [1 / 9] * 9 + [9])


@given(arrays(np.bool_, (4, 12)), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_theorem_2_sharing_incentive_is_weighted_max_min(more, owner) -> None:
    """User i contributes k_i machines, which it can use; with weight k_i it gets k_i, as do all."""
    owner = np.array([0, 1, 2, 3, *owner[4:]])
    eligible = more.copy()
    eligible[owner, np.arange(12)] = True
    brought = np.bincount(owner, minlength=4)
    weight = brought.astype(float)
    np.testing.assert_allclose(max_min.solve(eligible, ones(eligible), weight).machines, brought)
    assert max_min_whole.solve(eligible, ones(eligible), weight).machines.tolist() == list(brought)


def test_section_4_2_2_claiming_too_much_can_hurt() -> None:
    """User 1 can only use m1 and claims m2, too: then it may get m2, which it cannot use."""
    can, claims = np.array([[True, False], [True, True]]), np.array([[True, True], [True, True]])
    assert max_min_whole.solve(can, ones(can)).machines.tolist() == [1, 1]
    fair = np.array([[0, 1], [1, 0]])  # user 1 holds m2, user 2 holds m1
    assert max_min_whole.improvement(fair, claims, ones(claims)) is None
    assert independent.solve(claims, ones(can))[0, 0] == independent.solve(can, ones(can))[0, 0]


def test_section_4_2_1_weights() -> None:
    """The smallest x / w is maximised: of six machines, weight 2 gets twice what weight 1 gets."""
    eligible = np.ones((2, 6), bool)
    machines = max_min.solve(eligible, ones(eligible), np.array([2.0, 1.0])).machines
    np.testing.assert_allclose(machines, [4, 2])


# Section 6.1: the online policy.


@pytest.mark.parametrize("name", list(EXAMPLES))
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_choosy_comes_to_the_examples(name: str, seed: int) -> None:
    """If machines become free one by one, the result is the optimum, well within Theorem 4."""
    example = EXAMPLES[name]
    ended = choosy.run(example.eligible, seed)
    assert sorted(ended.machines.tolist()) == sorted(example.whole)
    assert ended.worsened == 0


@examples(2, 15)
@given(
    arrays(np.bool_, (4, 12)), arrays(np.float64, (4, 12), elements=st.floats(0, 1)), st.integers(0)
)
def test_theorem_4_from_any_allocation(eligible, greed, seed) -> None:
    """Within 2 n machines of an optimum from any start, and without a step back."""
    holder = np.where(eligible.any(axis=0), np.where(eligible, greed, -1).argmax(axis=0), -1)
    ended = choosy.run(eligible, seed % 2**32, holder)
    best = max_min_whole.solve(eligible, ones(eligible)).machines
    assert (np.sort(best) - np.sort(ended.machines) <= 2 * len(eligible)).all()
    assert ended.worsened == 0


def test_theorem_4_case_1_free_machines_are_given_away() -> None:
    eligible = np.ones((2, 4), bool)
    holder = np.array([0, -1, -1, -1])
    assert choosy.run(eligible, 0, holder).machines.tolist() == [2, 2]


def test_theorem_4_on_a_staircase() -> None:
    """Shares 1, 2, ..., n along a chain: no single step improves, yet ties let Choosy move on."""
    users = 5
    owner = np.repeat(np.arange(users), np.arange(1, users + 1))
    eligible = np.arange(users)[:, None] == owner
    for user in range(users - 1):
        eligible[user, np.flatnonzero(owner == user + 1)] = True
    start = np.bincount(owner)
    ended = choosy.run(eligible, 0, owner)
    best = max_min_whole.solve(eligible, ones(eligible)).machines
    assert sorted(best.tolist()) == [3, 3, 3, 3, 3]
    assert (np.sort(best) - np.sort(ended.machines) <= 2 * users).all()
    assert sorted(ended.machines.tolist()) >= sorted(start.tolist())


@pytest.mark.long
def test_the_report_on_theorem_4_holds() -> None:
    report = choosy.theorem_4(seed=100, trials=1)
    assert report.holds
    assert [row.cells[0].published for row in report.rows] == [4, 8, 16]  # 2 n


# Section 6.2: ramp-up time.


def remaining(x: np.ndarray, alpha: float) -> np.ndarray:
    """Distribution function of the remaining time of a running task; the shortest task takes 1."""
    x = np.asarray(x, np.float64)
    late = 1 - np.maximum(x, 1.0) ** (1 - alpha) / alpha
    return np.where(x < 1, (alpha - 1) / alpha * x, late)


@pytest.mark.parametrize("alpha", [1.2, 1.9, 3.0])
def test_section_6_2_the_inverse_inverts_the_distribution(alpha: float) -> None:
    part = np.linspace(0, 0.99, 100)
    time = choosy_ramp_up.remaining_inverse(part, alpha)
    np.testing.assert_allclose(remaining(time, alpha), part, atol=1e-12)
    assert (np.diff(time) > 0).all()


def test_section_6_2_the_printed_exponent_does_not() -> None:
    """Printed: m * (alpha * (1 - x)) ** (1 - alpha). The inverse exponent is meant."""
    alpha, part = 1.9, np.array(0.9)
    printed = (alpha * (1 - part)) ** (1 - alpha)
    assert abs(remaining(printed, alpha) - part) > 0.02


def test_section_6_2_the_two_branches_meet() -> None:
    for alpha in (1.5, 1.9, 4.0):
        edge = (alpha - 1) / alpha
        assert choosy_ramp_up.remaining_inverse(np.array(edge), alpha) == pytest.approx(1.0)
        assert remaining(np.array(1.0), alpha) == pytest.approx(edge)


def test_figure_6_under_twice_the_mean_task_time() -> None:
    """'For alpha > 1.9 ... less than twice the mean for pickiness values as high as 0.85.'"""
    for alpha in (1.9, 2.0, 2.5, 3.0):
        assert choosy_ramp_up.ramp_up(0.85, alpha) < 2
    assert choosy_ramp_up.ramp_up(0.95, 1.9) > 2


@pytest.mark.long
def test_figure_6_simulation_confirms_the_formula() -> None:
    report = choosy_ramp_up.figure_6(seed=1, trials=4)
    assert report.holds
    (panel,) = report.panels
    assert [line.points for line in panel.lines] == [False, True] * len(choosy_ramp_up.ALPHAS)


def test_figure_6_tasks_that_run_already_are_what_the_formula_says_of_them() -> None:
    left = list(islice(choosy_ramp_up.tasks(2.5, 20_000, np.random.default_rng(3)), 20_000))
    part = remaining(np.sort(left), 2.5)
    assert np.abs(part - np.linspace(0, 1, len(part))).max() < 0.015  # Kolmogorov, 0.02 %


# Section 7.3: four jobs on Mesos.


@pytest.fixture(scope="module")
def timeline() -> choosy_jobs.Timeline:
    """The script of Figure 14, played once on the real core."""
    return choosy_jobs.play(seed=0)


def test_figure_14_offline_shares() -> None:
    """1/4 each with all four jobs; 1/4 for Spark, 3/8 for Hadoop and MPI without CUDA."""
    assert choosy_jobs.fair_cores(list(choosy_jobs.CAN_USE)) == dict.fromkeys(
        choosy_jobs.CAN_USE, 40.0
    )
    without = choosy_jobs.fair_cores(["Hadoop", "Spark", "MPI"])
    assert without == {"Hadoop": 60.0, "Spark": 40.0, "MPI": 60.0}


@pytest.mark.long
@pytest.mark.parametrize(
    ("from_s", "to_s", "cores"),
    [
        (10, 30, (160, 0, 0, 0)),
        (50, 65, (120, 40, 0, 0)),
        (85, 100, (80, 40, 40, 0)),
        (150, 180, (40, 40, 40, 40)),
        (250, 305, (120, 40, 0, 0)),
        (320, 340, (60, 40, 0, 60)),
    ],
)
def test_figure_14_online_shares(timeline, from_s, to_s, cores) -> None:
    """Means within 3 of 160 cores: occasionally a core is lent for the duration of a task."""
    during = (timeline.time_ms >= from_s * 1000) & (timeline.time_ms < to_s * 1000)
    assert (np.abs(timeline.cores[during].mean(axis=0) - cores) <= 3).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("joined_s", "job", "cores", "seconds"),
    [(30, 1, 40, 5), (65, 2, 40, 5), (100, 3, 40, 4), (305, 3, 60, 4)],
)
def test_figure_14_ramp_up(timeline, joined_s, job, cores, seconds) -> None:
    """'Ramps up within 5 seconds', MPI 'within 4 s'; with tasks of one to four seconds here."""
    late = timeline.time_ms >= (joined_s + seconds) * 1000
    assert timeline.cores[late][0, job] >= cores - 3


@pytest.mark.long
def test_figure_14_no_core_is_used_twice_and_none_is_idle_for_long(timeline) -> None:
    used = timeline.cores.sum(axis=1)
    assert used.max() <= choosy_jobs.CORES
    assert used.mean() > 0.99 * choosy_jobs.CORES


# Section 7.4.


def test_figure_15_the_optimum_is_found_at_its_largest_size() -> None:
    """5000 users, 100,000 machines, 100 types; `reproduce` measures the time."""
    report = choosy_times.figure_15(seed=5, trials=1)
    assert "5000 users, 100000 machines, 100 types" in [row.name for row in report.rows]


@given(arrays(np.bool_, (3, 5)), st.integers(1, 4))
def test_section_5_1_coalescing_does_not_change_shares(eligible, copies) -> None:
    """One type with this many machines, or this many types of one machine."""
    apart = np.repeat(eligible, copies, axis=1)
    together = max_min.solve(eligible, ones(eligible) * copies).machines
    np.testing.assert_allclose(max_min.solve(apart, ones(apart)).machines, together, atol=1e-9)
