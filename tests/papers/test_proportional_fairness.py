"""Bonald and Roberts, Performance Evaluation 2014: sections 2 and 4, and section 3.4's formula."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.fluid import proportional_fairness
from allocator.solvers.fluid.proportional_fairness import ProportionalSolution
from laboratory.papers.bonald import examples as paper
from laboratory.solvers import water_filling
from tests.tiers import examples


def optimum(*demand) -> ProportionalSolution:
    """Proportionally fair allocation of jobs on resources of capacity 1."""
    need = np.array(demand, float)
    return proportional_fairness.solve(need, np.ones(need.shape[1]), np.ones(len(need)))


def drf(*demand) -> np.ndarray:
    """DRF allocation of jobs on resources of capacity 1."""
    need, ones = np.array(demand, float), np.ones(len(demand[0]))
    speed = water_filling.rate(need, ones, np.ones(len(need)))
    return water_filling.solve(need, ones, speed).tasks


def jobs(largest: int = 6):
    """Requirements of two to six jobs on two or three resources."""
    shape = st.tuples(st.integers(2, largest), st.integers(2, 3))
    return arrays(np.float64, shape, elements=st.floats(0.05, 1))


# Section 2.4.


@pytest.mark.parametrize("case", paper.PF, ids=lambda case: case.name)
def test_examples_of_proportional_fairness(case: paper.Example) -> None:
    solution = optimum(*case.demand)
    np.testing.assert_allclose(solution.tasks, case.tasks, atol=1e-9)
    if not case.departure:
        np.testing.assert_allclose(solution.prices, case.prices, atol=1e-9)


@pytest.mark.parametrize("case", paper.PF, ids=lambda case: case.name)
def test_section_4_1_serving_the_most_deprived_job_comes_there(case: paper.Example) -> None:
    found = paper.filled("pf", case.demand)
    assert (np.abs(found - case.tasks) <= 1 / paper.POOL + 1e-9).all()


def test_remark_4_prices_as_printed_contradict_equation_3() -> None:
    """Printed nu = (1, 1) gives 1 / phi1 = 1/2 + 1, so phi1 = 2/3 and not 4/5."""
    need, tasks = np.array([[1 / 2, 1], [1, 1 / 3]]), np.array([4 / 5, 3 / 5])
    np.testing.assert_allclose(1 / tasks, need @ [3 / 2, 1 / 2])
    assert not np.allclose(1 / tasks, need @ [1, 1])
    np.testing.assert_allclose(optimum(*need).prices, [3 / 2, 1 / 2], atol=1e-9)


@given(jobs())
def test_equations_3_to_5(need: np.ndarray) -> None:
    solution = optimum(*need)
    np.testing.assert_allclose(1 / solution.tasks, need @ solution.prices, rtol=1e-8)
    slack = 1 - solution.tasks @ need
    np.testing.assert_allclose(solution.prices * slack, 0, atol=1e-8)
    assert solution.prices.sum() == pytest.approx(len(need))


@examples(5, 15)
@given(jobs(4))
def test_equation_9_gradient_descent_finds_the_same_prices(need: np.ndarray) -> None:
    """nu <- (nu + gamma * (sum of psi a - 1))+, in the paper's form and a small step."""
    solution = optimum(*need)
    step, prices = 0.05, np.full(need.shape[1], 1.0)
    for _ in range(20_000):
        used = (need / (need @ prices)[:, None]).sum(axis=0)
        prices = np.maximum(prices + step * (used - 1), 0)
    np.testing.assert_allclose(1 / (need @ prices), solution.tasks, rtol=1e-3)


@given(jobs())
def test_proposition_4_sharing_incentive(need: np.ndarray) -> None:
    dominant = optimum(*need).tasks * need.max(axis=1)
    assert (dominant >= 1 / len(need) - 1e-9).all()


def test_proposition_5_a_lie_can_pay() -> None:
    """Job 1 claims 2/3 of resource 1 instead of 1/2: 3/4 instead of 2/3."""
    assert optimum((2 / 3, 1), (1, 1 / 2)).tasks[0] > optimum((1 / 2, 1), (1, 1 / 2)).tasks[0]


def test_remarks_3_and_4_a_lie_can_cost() -> None:
    true = optimum((1 / 2, 1), (1, 1 / 2)).tasks
    assert (optimum((1, 1), (1, 1 / 2)).tasks < true).all()
    true = optimum((1 / 2, 1), (1, 1 / 3)).tasks
    assert (optimum((2 / 3, 1), (1, 1 / 3)).tasks < true).all()


@given(jobs(), st.floats(0.01, 100))
def test_proposition_6_scale_invariance(need: np.ndarray, factor: float) -> None:
    scaled = need.copy()
    scaled[0] *= factor
    shares = optimum(*need).tasks[:, None] * need
    np.testing.assert_allclose(optimum(*scaled).tasks[:, None] * scaled, shares, rtol=1e-7)


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.just(1)), elements=st.floats(0.01, 1)))
def test_local_fairness_of_one_resource(need: np.ndarray) -> None:
    """Equation 5 and below: phi * a = 1 / n where there is one resource; DRF, too (sec. 2.3)."""
    np.testing.assert_allclose(optimum(*need).tasks * need[:, 0], 1 / len(need), rtol=1e-9)
    np.testing.assert_allclose(drf(*need) * need[:, 0], 1 / len(need), rtol=1e-9)


@given(jobs())
def test_proportional_fairness_does_not_heed_what_is_not_scarce(need: np.ndarray) -> None:
    """'Unlike DRF, PF is not biased by non-bottlenecked resources.'"""
    solution = optimum(*need)
    scarce = solution.prices > 0
    assume(not scarce.all())
    np.testing.assert_allclose(optimum(*need[:, scarce]).tasks, solution.tasks, rtol=1e-7)


# Section 2.3.


def test_remark_2_drf_heeds_a_resource_that_is_not_saturated() -> None:
    found = drf((1, 1 / 3), (1 / 2, 1))
    np.testing.assert_allclose(found, [2 / 3, 2 / 3])
    assert found @ [1 / 3, 1] == pytest.approx(8 / 9)  # resource 2 is not saturated


def test_remark_2_without_resource_2() -> None:
    """Printed (1, 2) would need twice the capacity; equal shares of it are (1/2, 1)."""
    np.testing.assert_allclose(drf((1, 0), (1 / 2, 0)), [1 / 2, 1])
    assert np.array([1, 2]) @ [1, 1 / 2] > 1


@given(jobs())
def test_proposition_1_drf_has_the_sharing_incentive(need: np.ndarray) -> None:
    assert (drf(*need) * need.max(axis=1) >= 1 / len(need) - 1e-9).all()


@given(jobs(), st.floats(0.01, 100))
def test_proposition_3_drf_is_scale_invariant(need: np.ndarray, factor: float) -> None:
    scaled = need.copy()
    scaled[0] *= factor
    shares = drf(*need)[:, None] * need
    np.testing.assert_allclose(drf(*scaled)[:, None] * scaled, shares, rtol=1e-7)


def test_plain_max_min_is_not_locally_fair() -> None:
    """Section 2.3: equal task volumes give shares in proportion to requirements."""
    need = np.array([[0.2], [0.6]])
    tasks = water_filling.solve(need, np.ones(1), np.ones(2)).tasks
    np.testing.assert_allclose(tasks, [1 / 0.8, 1 / 0.8])
    np.testing.assert_allclose(tasks * need[:, 0], [0.25, 0.75])


# Section 3.4.


@pytest.mark.parametrize("others", [1, 2, 5])
@pytest.mark.parametrize("claim", [0.1, 0.2, 0.4, 0.7, 1.0])
def test_section_3_4_what_a_false_claim_gets(others: int, claim: float) -> None:
    """phi1(n) = min((1 - alpha) / (1 - alpha beta), 1 / (beta (n + 1))), with alpha = 1/10.

    The printed first term has a factor 1/n more. That contradicts the paper's own optimum below,
    at which the two terms are equal.
    """
    alpha = 0.1
    found = optimum((1, claim), *[(alpha, 1)] * others).tasks[0]
    expected = min((1 - alpha) / (1 - alpha * claim), 1 / (claim * (others + 1)))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("others", [1, 2, 5])
def test_section_3_4_the_best_claim(others: int) -> None:
    """beta = 1 / (1 + n (1 - alpha)) maximises phi1(n)."""
    alpha = 0.1
    best = 1 / (1 + others * (1 - alpha))
    claims = [best, best - 0.02, best + 0.02, alpha]
    gained = [optimum((1, claim), *[(alpha, 1)] * others).tasks[0] for claim in claims]
    assert gained[0] > max(gained[1:])


# Section 4.2.


def test_section_4_2_zero_load_service_rate() -> None:
    """(500/100) / (401/100 + 1/99 + ... + 1) = 0.54."""
    assert paper.zero_load_rate() == pytest.approx(0.54, abs=0.005)


def test_the_report_explains_every_difference() -> None:
    report = paper.examples()
    assert report.holds
    assert [row.name for row in report.rows if not row.agrees] == [
        "Remark 4, true",
        "Remark 2, DRF without resource 2",
    ]
