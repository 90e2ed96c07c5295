"""Minimum-cost flows: against networkx and linear programs, with certificates; and repairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from allocator.solvers.flow.min_cost_flow import FlowSolution, Infeasible, Network, solve, violation
from laboratory.solvers.flow_repair import UNKNOWN, repair, solve_again
from tests.solvers.oracles import simplex_cost

COSTS = st.integers(-3, 9) | st.integers(-(10**9), 10**9)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to seven nodes, including disconnected ones, loops and parallel arcs."""
    nodes, arcs = draw(st.integers(1, 7)), draw(st.integers(0, 16))
    ends = st.integers(0, nodes - 1)
    tail, head = (draw(arrays(np.int64, arcs, elements=ends)) for _ in range(2))
    capacity = draw(arrays(np.int64, arcs, elements=st.integers(0, 4)))
    cost = draw(arrays(np.int64, arcs, elements=COSTS))
    # Mostly supplies for which a flow exists.
    flow = draw(arrays(np.int64, arcs, elements=st.integers(0, 4)))
    supply = np.zeros(nodes, np.int64)
    np.add.at(supply, tail, np.minimum(flow, capacity))
    np.subtract.at(supply, head, np.minimum(flow, capacity))
    if draw(st.integers(0, 3)) == 0:
        supply[0] += 1
        supply[-1] -= 1
    return Network(tail, head, capacity, cost, supply)


def cheapest(network: Network) -> float | None:
    """The minimum cost by a linear program; None if there is no flow."""
    arcs, nodes = len(network.tail), len(network.supply)
    if not arcs:
        return None if network.supply.any() else 0.0
    balance = np.zeros((nodes, arcs))
    np.add.at(balance, (network.tail, np.arange(arcs)), 1)
    np.subtract.at(balance, (network.head, np.arange(arcs)), 1)
    bounds = [(0, c) for c in network.capacity.tolist()]
    scale = max(1, int(np.abs(network.cost).max()))
    result = linprog(network.cost / scale, A_eq=balance, b_eq=network.supply, bounds=bounds)
    return scale * float(result.fun or 0.0) if result.status == 0 else None


def assert_optimal(network: Network, solution: FlowSolution) -> None:
    assert violation(network, solution.flow, solution.potential) == 0
    assert solution.cost == sum(
        int(f) * int(c) for f, c in zip(solution.flow, network.cost, strict=True)
    )


def assert_infeasible(network: Network, error: Infeasible) -> None:
    inside = error.nodes
    leaving = inside[network.tail] & ~inside[network.head]
    assert network.supply[inside].sum() > network.capacity[leaving].sum()


@given(networks())
def test_the_cost_is_that_of_the_linear_program(network: Network) -> None:
    expected = cheapest(network)
    try:
        solution = solve(network)
    except Infeasible as error:
        assert expected is None
        assert_infeasible(network, error)
        return
    assert_optimal(network, solution)
    assert expected == pytest.approx(solution.cost, rel=1e-6, abs=1e-6 * 1e9)


@given(networks())
def test_the_cost_is_that_of_networkx(network: Network) -> None:
    expected = simplex_cost(network)
    if expected is None:
        with pytest.raises(Infeasible):
            solve(network)
    else:
        assert solve(network).cost == expected


@given(networks(), networks(), st.data())
def test_a_repair_ends_at_the_same_cost(network: Network, other: Network, data) -> None:
    """Any previous solution is a valid start."""
    try:
        expected = solve(network).cost
    except Infeasible:
        expected = None
    flow = np.resize(other.capacity, len(network.tail)) if len(other.tail) else 0 * network.tail
    known = st.just(UNKNOWN) | COSTS
    potential = data.draw(arrays(np.int64, len(network.supply), elements=known))
    try:
        solution = solve_again(network, flow, potential)
    except Infeasible as error:
        assert expected is None
        assert_infeasible(network, error)
        return
    assert_optimal(network, solution)
    assert solution.cost == expected


def test_a_solution_begun_with_itself_is_itself() -> None:
    rng = np.random.default_rng(0)
    tail, head = rng.integers(0, 40, (2, 400))
    network = Network(
        tail, head, rng.integers(0, 9, 400), rng.integers(-9, 99, 400), np.zeros(40, np.int64)
    )
    first = solve(network)
    again = repair(network, first.flow, first.potential)
    assert again is not None
    assert (again.flow == first.flow).all()
    assert (again.potential == first.potential).all()


def test_the_certificate_refuses_what_is_not_optimal() -> None:
    zero, one = np.zeros(2, np.int64), np.ones(2, np.int64)
    network = Network(zero, one, one, np.array([1, 3]), np.array([1, -1]))
    potential = np.array([0, 1])
    assert violation(network, np.array([1, 0]), potential) == 0
    assert violation(network, np.array([0, 1]), potential) == 2  # the more expensive arc
    assert violation(network, np.array([0, 0]), potential) == 1  # the supply is not met
    assert violation(network, np.array([2, -1]), potential) == 1  # more than the capacity
    assert violation(network, np.array([1, 0]), np.array([0, 5])) == 2  # the wrong potentials


def test_bad_input_is_named() -> None:
    def network(**changes: list[int]) -> Network:
        usual = {"tail": [0], "head": [1], "capacity": [1], "cost": [1], "supply": [1, -1]}
        return Network(**{k: np.array(v) for k, v in {**usual, **changes}.items()})

    with pytest.raises(ValueError, match="an arc ends at node 2 of 2"):
        solve(network(head=[2]))
    with pytest.raises(ValueError, match="arc 0 has the negative capacity -1"):
        solve(network(capacity=[-1]))
    with pytest.raises(ValueError, match="supplies add up to 1, not to 0"):
        solve(network(supply=[1, 0]))
    with pytest.raises(ValueError, match="must have the same length"):
        solve(network(cost=[1, 2]))
    with pytest.raises(ValueError, match="are too large"):
        solve(network(cost=[2**60]))
    with pytest.raises(Infeasible, match="nodes 0 supply 1, but only 0 can leave them"):
        solve(network(capacity=[0]))


def test_nothing_is_no_error() -> None:
    nothing = np.zeros(0, np.int64)
    assert solve(Network(nothing, nothing, nothing, nothing, nothing)).cost == 0
    assert solve(Network(nothing, nothing, nothing, nothing, np.zeros(3, np.int64))).cost == 0


def test_large_flows_and_costs_are_added_up_exactly() -> None:
    """A float64 would round the sums at a node, and the cost."""
    huge, one = 2**60 + 1, np.ones(2, np.int64)
    supply = np.array([huge + 1, -huge - 1])
    network = Network(0 * one, one, np.array([huge, 1]), one, supply)
    solution = solve(network)
    assert solution.cost == huge + 1
    potential = np.array([-1, 0])
    assert violation(network, solution.flow, potential) == 0
    assert violation(network, solution.flow - np.array([1, 0]), potential) == 1
