"""Alpha-fairness over agents: its certificate, an independent solver, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers import GivenUp, NotOptimal
from allocator.solvers.fluid import proportional_fairness, proportional_fairness_agents
from allocator.solvers.fluid.proportional_fairness_agents import TOLERANCE, residual, solve
from tests.solvers.oracles import clarabel_tasks

SIZES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 100.0])
ALPHAS = st.sampled_from([0.5, 1.0, 2.0, 4.0])


@st.composite
def clusters(draw: st.DrawFn):
    frameworks, agents, resources = (draw(st.integers(1, n)) for n in (5, 5, 3))
    demand = draw(arrays(np.float64, (frameworks, resources), elements=SIZES))
    demand[:, 0] = np.where(demand.any(axis=1), demand[:, 0], 1.0)
    sizes = st.sampled_from([0.0, 1.0, 7.0, 100.0]) | st.floats(0.5, 1e4)
    capacity = draw(arrays(np.float64, (agents, resources), elements=sizes))
    eligible = draw(arrays(np.bool_, (frameworks, agents)))
    weight = draw(arrays(np.float64, frameworks, elements=st.floats(0.01, 100)))
    return demand, capacity, eligible, weight


@given(clusters(), ALPHAS)
def test_the_certificate_holds(cluster, alpha: float) -> None:
    demand, capacity, eligible, weight = cluster
    try:
        solution = solve(demand, capacity, eligible, weight, alpha)
    except NotOptimal:
        assert alpha > 1  # marginal utilities too far apart
        return
    found = solution.tasks, solution.prices
    assert residual(*found, demand, capacity, eligible, weight, alpha) <= 1e-7
    assert not solution.tasks[~eligible].any()
    assert (solution.tasks.T @ demand <= capacity * (1 + 1e-7)).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_tasks_are_those_of_another_solver(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 4, (5, 2)) + np.eye(2)[rng.integers(0, 2, 5)]
    capacity, weight = rng.uniform(5, 30, (4, 2)), rng.uniform(0.5, 2, 5)
    eligible = (rng.random((5, 4)) < 0.6) | np.eye(5, 4, dtype=bool)
    eligible[4, 0] = True
    ours = solve(demand, capacity, eligible, weight, alpha).tasks.sum(axis=1)
    theirs = clarabel_tasks(demand, capacity, eligible, weight, alpha)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    # The gap is smaller: neither has more utility than the other's certificate permits.
    gain = (weight * (theirs - ours) / ours**alpha).sum() / (weight * ours ** (1 - alpha)).sum()
    assert gain <= 1e-6  # Proposition 2: ours is better than every other feasible point


@given(clusters())
def test_on_one_agent_it_is_the_pooled_model(cluster) -> None:
    demand, capacity, _, weight = cluster
    pooled = proportional_fairness.solve(demand, capacity[0], weight)
    alone = solve(demand, capacity[:1], None, weight)
    np.testing.assert_allclose(alone.tasks[:, 0], pooled.tasks, rtol=1e-5, atol=1e-9)


def test_many_equal_agents_are_one_large_agent() -> None:
    demand, agent = np.array([[0.5, 1], [1, 0.5]]), np.ones((1, 2))
    solution = solve(demand, np.repeat(agent, 9, axis=0))
    np.testing.assert_allclose(solution.tasks, np.full((2, 9), 2 / 3), rtol=1e-6)
    np.testing.assert_allclose(solution.prices * 9, np.full((9, 2), 1.5) * 2 / 3, rtol=1e-5)


def test_the_certificate_refuses_what_is_not_optimal() -> None:
    cluster = (np.eye(2), np.array([[4.0, 4.0]]), np.ones((2, 1), bool), np.ones(2))
    best = solve(*cluster)
    assert residual(best.tasks, best.prices, *cluster) < 1e-7
    assert residual(best.tasks * 0.9, best.prices, *cluster) > 0.05
    assert residual(best.tasks * 1.1, best.prices, *cluster) > 0.05
    assert residual(best.tasks, best.prices * 0.9, *cluster) > 0.05
    assert residual(best.tasks * np.nan, best.prices, *cluster) == np.inf


def test_users_that_can_run_nowhere_get_nothing() -> None:
    demand, capacity = np.array([[1.0, 0], [1, 1], [1, 0]]), np.array([[10.0, 0.0]])
    solution = solve(demand, capacity, np.array([[True], [True], [False]]))
    np.testing.assert_allclose(solution.tasks[:, 0], [10, 0, 0], atol=1e-6)
    assert not solve(demand[1:2], capacity).tasks.any()


def test_bad_input_is_named() -> None:
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match="framework 0 needs nothing at all"):
        solve(0 * one, one)
    with pytest.raises(ValueError, match="weights and alpha must be positive"):
        solve(one, one, weight=np.zeros(1))
    with pytest.raises(ValueError, match="weights and alpha must be positive"):
        solve(one, one, alpha=0)
    with pytest.raises(ValueError, match="do not fit"):
        solve(one, np.ones((1, 2)))


def test_utilities_that_are_ten_orders_apart_are_solved() -> None:
    """Moderate sizes, but at alpha 4 incomes differ by (100 / 0.03) ** 3: rounding spoils steps.

    The first framework has an agent almost alone where 100 of its tasks fit.
    """
    demand = np.array([[0, 100, 0], [0, 0.5, 100], [0.5, 100, 100], [0, 0, 100.0]])
    capacity = np.array([[1e4, 1, 1], [0, 7, 0], [1e4, 1, 100], [1, 1e4, 1]])
    eligible = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1]], np.bool_)
    solution = solve(demand, capacity, eligible, alpha=4.0)
    proof = residual(
        solution.tasks, solution.prices, demand, capacity, eligible, np.ones(4), alpha=4.0
    )
    assert proof == solution.residual <= TOLERANCE
    assert 100 < solution.tasks[0].sum() < 100.08


def test_a_solver_gives_up_where_it_would_have_to_do_too_much() -> None:
    """The bound counts work, not time; a sufficient one gives the same answer as none."""
    problem = np.array([[5.0, 1], [1, 5]]), np.array([[100.0, 30], [30, 100]])
    with pytest.raises(GivenUp, match="alpha-fairness over agents: given up"):
        solve(*problem, work_max=1000)
    assert (solve(*problem, work_max=1e5).tasks == solve(*problem).tasks).all()


def test_too_large_a_problem_is_refused_before_anything_is_allocated(monkeypatch) -> None:
    """Its matrix alone would take gigabytes."""
    monkeypatch.setattr(proportional_fairness_agents, "_constraints", None)
    capacity = 1 + np.random.default_rng(0).random((400, 2))
    with pytest.raises(GivenUp):
        solve(np.ones((50, 2)), capacity, work_max=1e9)
