"""Fluid proportional fairness: its certificate, an independent solver, and refusals."""

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from allocator.solvers import NotOptimal
from allocator.solvers.fluid import proportional_fairness
from allocator.solvers.fluid.proportional_fairness import TOLERANCE, solve

SIZES = st.sampled_from([0.0, 0.0, 0.001, 0.5, 1.0, 2.0, 3.0, 1000.0])


def clarabel_optimum(demand: np.ndarray, capacity: np.ndarray, weight: np.ndarray) -> float:
    """Sum of weight * log(tasks) at the optimum, by an exponential-cone program."""
    frameworks, resources = demand.shape
    # Variables: tasks x and bounds t with (t, 1, x) in the exponential cone, t <= log(x).
    cone = sparse.lil_matrix((3 * frameworks, 2 * frameworks))
    for f in range(frameworks):
        cone[3 * f, frameworks + f] = -1.0
        cone[3 * f + 2, f] = -1.0
    need = demand / capacity
    upper = sparse.csc_matrix(np.hstack([need.T, np.zeros((resources, frameworks))]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    result = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * frameworks, 2 * frameworks)),
        np.concatenate([np.zeros(frameworks), -weight]),
        sparse.csc_matrix(sparse.vstack([upper, cone])),
        np.concatenate([np.ones(resources), np.tile([0.0, 1.0, 0.0], frameworks)]),
        [clarabel.NonnegativeConeT(resources), *[clarabel.ExponentialConeT()] * frameworks],
        settings,
    ).solve()
    assert str(result.status) == "Solved"
    return -float(result.obj_val)


@given(st.data())
def test_the_certificate_holds(data: st.DataObject) -> None:
    frameworks, resources = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    demand = data.draw(arrays(np.float64, (frameworks, resources), elements=SIZES))
    demand[:, 0] = np.where(demand.any(axis=1), demand[:, 0], 1.0)
    capacity = data.draw(arrays(np.float64, resources, elements=st.floats(0.1, 1e6)))
    weight = data.draw(arrays(np.float64, frameworks, elements=st.floats(0.01, 100)))
    solution = solve(demand, capacity, weight)
    need = demand / capacity
    used = solution.tasks @ need
    assert (solution.prices >= 0).all()
    np.testing.assert_allclose(weight / solution.tasks, need @ solution.prices, rtol=1e-8)
    assert (used <= 1 + 1e-9).all()
    assert (solution.prices * (1 - used) <= 1e-8 * weight.sum()).all()
    assert solution.prices.sum() == pytest.approx(weight.sum())  # equation (5) of the paper
    assert solution.residual <= TOLERANCE


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_the_one_of_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 5, (12, 3)) + np.eye(3)[rng.integers(0, 3, 12)]
    capacity, weight = rng.uniform(10, 50, 3), rng.uniform(0.5, 2, 12)
    ours = float(weight @ np.log(solve(demand, capacity, weight).tasks))
    assert ours == pytest.approx(clarabel_optimum(demand, capacity, weight), abs=1e-5)


def test_a_resource_that_is_not_saturated_costs_nothing_exactly() -> None:
    prices = solve(np.array([[2 / 3, 1.0], [1.0, 0.5]]), np.ones(2), np.ones(2)).prices
    assert prices.tolist() == [2.0, 0.0]


def test_almost_saturated_resources_are_distinguished_from_saturated_ones() -> None:
    """As after rounding to whole thousandths: the second resource is used to all but 1e-8."""
    solution = solve(np.array([[0.0, 0.999999990489, 1.0, 0.99984742588]]), np.ones(4), np.ones(1))
    assert solution.tasks == pytest.approx([1], rel=1e-12)
    assert solution.prices.round(5).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_holds_where_needs_are_almost_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        shape = rng.integers(1, 8), rng.integers(1, 6)
        demand = rng.random(shape) * (rng.random(shape) < 0.8)
        almost = 1 - 10.0 ** -rng.integers(3, 13, shape)
        demand = np.where(rng.random(shape) < 0.5, demand, almost)
        demand[~demand.any(axis=1), 0] = 1.0
        weight = rng.random(len(demand)) ** 8 + 1e-9
        assert solve(demand, np.ones(shape[1]), weight).residual <= TOLERANCE


def test_proportional_demands_leave_a_choice_of_prices_and_none_of_tasks() -> None:
    solution = solve(np.array([[1.0, 1.0], [2.0, 2.0]]), np.ones(2), np.ones(2))
    np.testing.assert_allclose(solution.tasks, [0.5, 0.25])
    assert (solution.prices > 0).all()


def test_users_that_need_a_missing_resource_get_nothing_and_others_all() -> None:
    demand = np.array([[1.0, 0.0], [1.0, 1.0]])
    solution = solve(demand, np.array([10.0, 0.0]), np.ones(2))
    np.testing.assert_allclose(solution.tasks, [10.0, 0.0])
    np.testing.assert_allclose(solution.prices, [1.0, 0.0])
    assert not solve(demand[1:], np.array([10.0, 0.0]), np.ones(1)).tasks.any()


def test_no_frameworks_is_no_error() -> None:
    assert len(solve(np.zeros((0, 2)), np.ones(2), np.zeros(0)).tasks) == 0


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="framework 1 needs nothing"):
        solve(np.array([[1.0], [0.0]]), np.ones(1), np.ones(2))
    with pytest.raises(ValueError, match="weights must be positive, the smallest is 0"):
        solve(np.array([[1.0]]), np.ones(1), np.zeros(1))


def test_an_answer_that_misses_the_certificate_is_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proportional_fairness, "_STEPS_MAX", 1)
    monkeypatch.setattr(proportional_fairness, "_POLISH_STEPS_MAX", 0)
    with pytest.raises(NotOptimal, match="proportional fairness: residual"):
        solve(np.array([[0.9, 0.1], [0.3, 1.0]]), np.ones(2), np.ones(2))


def test_a_thousand_demands_and_six_orders_of_magnitude() -> None:
    rng = np.random.default_rng(7)
    demand = rng.uniform(0.1, 10, (1000, 4)) * 10.0 ** rng.integers(-3, 4, (1000, 1))
    solution = solve(demand, np.array([1e3, 1e6, 1e4, 1e2]), rng.uniform(0.1, 10, 1000))
    assert solution.residual < 1e-12
