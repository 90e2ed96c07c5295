"""PS-DSF: the definition by linear programs, special cases by other solvers, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers import GivenUp, NotOptimal
from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid.per_server_fairness import residual, solve
from allocator.solvers.max_min import max_min
from laboratory.solvers import water_filling
from tests.plans.clusters import of_two_resources
from tests.solvers.oracles import gain_by_definition

SIZES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 100.0])


@st.composite
def clusters(draw: st.DrawFn, wild: bool = True):
    frameworks, agents, resources = (draw(st.integers(1, n)) for n in (5, 4, 3))
    sizes = SIZES if wild else st.integers(0, 3).map(float)
    demand = draw(arrays(np.float64, (frameworks, resources), elements=sizes))
    demand[:, 0] = np.where(demand.any(axis=1), demand[:, 0], 1.0)
    sizes = st.sampled_from([0.0, 1.0, 7.0, 100.0]) | st.floats(0.5, 1e4)
    sizes = sizes if wild else st.integers(0, 9).map(float)
    capacity = draw(arrays(np.float64, (agents, resources), elements=sizes))
    eligible = draw(arrays(np.bool_, (frameworks, agents)))
    heavy = st.floats(0.01, 100) | st.sampled_from([1e-4, 1.0, 1e5])
    return demand, capacity, eligible, draw(arrays(np.float64, frameworks, elements=heavy))


@given(clusters())
def test_the_certificate_holds(cluster) -> None:
    demand, capacity, eligible, _ = cluster
    solution = solve(*cluster)
    assert solution.residual <= per_server_fairness.TOLERANCE
    assert not solution.tasks[~eligible].any()
    assert (solution.tasks.T @ demand <= capacity * (1 + 1e-9)).all()


@given(clusters(wild=False))
def test_a_solution_meets_the_definition(cluster) -> None:
    assert gain_by_definition(solve(*cluster).tasks, *cluster) <= 1e-5


@given(clusters(wild=False))
def test_the_certificate_refuses_what_the_definition_refuses(cluster) -> None:
    """Any feasible allocation: the check passes if linear programs find no gain."""
    tasks = solve(*cluster).tasks
    for wrong in (0.9 * tasks, tasks * np.linspace(1, 0.5, len(tasks))[:, None]):
        gain = gain_by_definition(wrong, *cluster)
        refused = residual(wrong, *cluster)
        assert (refused > 1e-3) == (gain > 1e-3) or min(refused, gain) > 1e-6


@given(clusters())
def test_one_agent_is_dominant_resource_fairness(cluster) -> None:
    demand, capacity, _, weight = cluster
    rate = water_filling.rate(demand, capacity[0], weight)
    pooled = water_filling.solve(demand, capacity[0], rate).tasks
    np.testing.assert_allclose(solve(demand, capacity[:1], None, weight).tasks[:, 0], pooled,
                               rtol=1e-7, atol=1e-9)  # fmt: skip


@given(clusters())
def test_one_resource_is_max_min_fairness_over_the_constraint_graph(cluster) -> None:
    """With one resource every agent orders frameworks alike, as shared machines do."""
    _, capacity, eligible, weight = cluster
    count = np.ceil(capacity[:, 0]).astype(np.int64)
    ours = solve(np.ones((len(eligible), 1)), count[:, None].astype(float), eligible, weight)
    best = max_min.solve(eligible, count, weight).machines
    np.testing.assert_allclose(ours.tasks.sum(axis=1), best, rtol=1e-6, atol=1e-6 * count.sum())


def test_a_light_framework_between_heavy_ones_needs_few_sweeps() -> None:
    """Each sweep alone moves the light framework by a 50,000th of the remaining distance."""
    eligible = np.array([[True, False], [True, True], [False, True]])
    weight = np.array([1e5, 1, 1e5])
    solution = solve(np.ones((3, 1)), np.ones((2, 1)), eligible, weight)
    light = solution.tasks[1]
    np.testing.assert_allclose(light[0], light[1], rtol=1e-4)
    np.testing.assert_allclose(light.sum(), 1e-5, rtol=1e-4)
    assert solution.sweeps <= 300


def test_equal_agents_are_one_large_agent() -> None:
    demand, agent = np.array([[5.0, 1], [1, 5], [2, 2]]), np.array([[100.0, 30]])
    large = solve(demand, 7 * agent).tasks[:, 0]
    many = solve(demand, np.repeat(agent, 7, axis=0))
    np.testing.assert_allclose(many.tasks, np.repeat(large[:, None] / 7, 7, axis=1), rtol=1e-9)


def test_a_heavier_framework_stands_at_the_same_level() -> None:
    solution = solve(np.ones((2, 1)), np.array([[8.0]]), weight=np.array([1.0, 3.0]))
    np.testing.assert_allclose(solution.tasks[:, 0], [2, 6])


def test_there_may_be_several_allocations() -> None:
    """The order of the agents determines which solution is found; both satisfy the definition."""
    rng = np.random.default_rng(0)
    apart = 0.0
    for _ in range(60):
        demand = rng.integers(0, 6, (4, 2)).astype(np.float64)
        demand += np.eye(2)[rng.integers(0, 2, 4)]
        capacity = 100 * rng.integers(1, 11, (5, 2)).astype(np.float64)
        eligible = rng.random((4, 5)) < 0.7
        one = solve(demand, capacity, eligible)
        other = solve(demand, capacity[::-1], eligible[:, ::-1])
        problem = demand, capacity, eligible, np.ones(4)
        assert residual(one.tasks, *problem) <= 1e-9
        assert residual(other.tasks[:, ::-1], *problem) <= 1e-9
        tasks = one.tasks.sum(axis=1), other.tasks.sum(axis=1)
        apart = max(apart, float(np.abs(tasks[0] - tasks[1]).max() / tasks[0].max()))
    assert apart > 0.01


def test_users_that_can_run_nowhere_get_nothing() -> None:
    demand, capacity = np.array([[1.0, 0], [1, 1], [1, 0]]), np.array([[10.0, 0.0]])
    solution = solve(demand, capacity, np.array([[True], [True], [False]]))
    assert solution.tasks[:, 0].tolist() == [10, 0, 0]
    assert not solve(demand[1:2], capacity).tasks.any()
    assert solve(np.ones((0, 2)), capacity).tasks.shape == (0, 1)


def test_the_certificate_refuses_what_is_no_allocation() -> None:
    cluster = np.eye(2), np.array([[4.0, 4.0]]), np.ones((2, 1), bool), np.ones(2)
    best = solve(*cluster).tasks
    assert residual(best, *cluster) <= 1e-9
    assert residual(1.1 * best, *cluster) > 0.09
    assert residual(0.9 * best, *cluster) > 0.09
    assert residual(np.nan * best, *cluster) == np.inf
    nowhere = np.zeros((2, 1), bool)
    assert residual(best, *cluster[:2], nowhere, np.ones(2)) == np.inf


def test_an_unproved_solution_is_not_returned() -> None:
    with pytest.raises(NotOptimal, match="per-server dominant-share fairness"):
        solve(np.ones((1, 1)), np.ones((1, 1)), tolerance=-1.0)


def test_bad_input_is_named() -> None:
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match="framework 0 needs nothing at all"):
        solve(0 * one, one)
    with pytest.raises(ValueError, match="weights must be positive"):
        solve(one, one, weight=np.zeros(1))
    with pytest.raises(ValueError, match="finite, and 0 or more"):
        solve(-one, one)
    with pytest.raises(ValueError, match="finite, and 0 or more"):
        solve(one, np.nan * one)
    with pytest.raises(ValueError, match="do not fit"):
        solve(one, np.ones((1, 2)))


def test_extrapolation_ends_a_cycle_and_a_near_answer_is_available_before() -> None:
    cluster = of_two_resources(16)
    arrays = cluster.demand.astype(float), cluster.capacity.astype(float)
    exact = solve(*arrays, cluster.eligible, cluster.weight)
    assert exact.residual <= 1e-9
    near = solve(*arrays, cluster.eligible, cluster.weight, tolerance=1e-3)
    assert near.sweeps < exact.sweeps
    assert 1e-9 < near.residual < 1e-3


def test_a_solver_gives_up_where_it_would_have_to_do_too_much() -> None:
    """The bound counts work, not time; a sufficient one gives the same answer as none."""
    cluster = of_two_resources(3)
    arrays = cluster.demand.astype(float), cluster.capacity.astype(float)
    problem = *arrays, cluster.eligible, cluster.weight
    with pytest.raises(GivenUp, match=r"per-server dominant-share fairness: given up"):
        solve(*problem, work_max=1)
    bounded, unbounded = solve(*problem, work_max=1e9), solve(*problem)
    assert (bounded.tasks == unbounded.tasks).all()
