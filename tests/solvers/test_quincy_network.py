"""Quincy's network: placements within bounds at minimum cost, step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from allocator.solvers.flow.min_cost_flow import solve
from laboratory.papers.quincy.solver_times import SIZES, Size, SolverWorld, solver_times
from laboratory.solvers.flow_repair import UNKNOWN, solve_again
from laboratory.solvers.quincy_network import QuincyCluster, QuincyNetwork, Tasks, build


def cost_of(network: QuincyNetwork, place: np.ndarray) -> int:
    """The cost of a placement, each task by its cheapest path."""
    tasks, total = network.tasks, 0
    for row, computer in enumerate(place.tolist()):
        if computer < 0:
            total += int(tasks.unscheduled[row])
            continue
        ways = [int(tasks.anywhere[row])]
        here = (tasks.task == row) & (tasks.computer == computer)
        ways += tasks.at_computer[here].tolist()
        rack = network.cluster.rack_of[computer]
        ways += tasks.in_rack[(tasks.rack_task == row) & (tasks.rack == rack)].tolist()
        total += min(ways)
    return total


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 3), st.floats(0.3, 2.5))
def test_placements_are_the_cheapest_within_bounds_step_after_step(seed, computers, jobs, load):
    world = SolverWorld(computers, jobs, load, seed)
    network = build(world.tasks(), world.cluster())
    solution = solve(network.network)
    for _ in range(4):
        place = network.place(solution.flow)
        placed = np.bincount(place[place >= 0], minlength=computers)
        assert (placed <= network.cluster.slots).all()
        count = np.bincount(network.tasks.job, minlength=jobs)
        running = np.bincount(network.tasks.job[place >= 0], minlength=jobs)
        assert (running <= network.cluster.most).all()
        assert (running >= np.minimum(network.cluster.least, count)).all()
        assert cost_of(network, place) <= solution.cost
        world.step(place)
        before, network = network, build(world.tasks(), world.cluster())
        again = solve_again(network.network, *network.begin_with(before, solution))
        solution = solve(network.network)
        assert again.cost == solution.cost


@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0.3, 2.5))
def test_without_bounds_it_is_an_assignment(seed, computers, load) -> None:
    world = SolverWorld(computers, 1, load, seed)
    tasks, cluster = world.tasks(), world.cluster()
    free = np.zeros(1, np.int64), np.full(1, 10**6)
    network = build(tasks, QuincyCluster(cluster.rack_of, cluster.slots, *free))
    cost = np.repeat(tasks.anywhere[:, None], computers, axis=1)
    for row, rack, price in zip(tasks.rack_task, tasks.rack, tasks.in_rack, strict=True):
        there = cluster.rack_of == rack
        cost[row, there] = np.minimum(cost[row, there], price)
    np.minimum.at(cost, (tasks.task, tasks.computer), tasks.at_computer)
    idle = np.full((len(cost), len(cost)), 10**9)
    np.fill_diagonal(idle, tasks.unscheduled)
    square = np.hstack([cost, idle])
    assert solve(network.network).cost == square[linear_sum_assignment(square)].sum()


def test_a_new_cluster_begins_without_a_flow() -> None:
    world, other = SolverWorld(5, 2, 1.0, 0), SolverWorld(6, 2, 1.0, 0)
    network, wider = (build(each.tasks(), each.cluster()) for each in (world, other))
    flow, potential = wider.begin_with(network, solve(network.network))
    assert not flow.any()
    assert (potential == UNKNOWN).all()
    assert solve_again(wider.network, flow, potential).cost == solve(wider.network).cost


def test_bounds_that_contradict_each_other_are_named() -> None:
    none = np.zeros(0, np.int64)
    one = np.zeros(2, np.int64)
    tasks = Tasks(np.arange(2), one, one, one, none, none, none, none, none, none)
    cluster = QuincyCluster(one, one + 1, np.array([2]), np.array([1]))
    with pytest.raises(ValueError, match="job 0 must run at least 2 tasks, but at most 1"):
        build(tasks, cluster)


def test_the_times_are_those_of_real_solutions() -> None:
    report = solver_times(trials=2, sizes=(Size(60, 5, 1e6, 1e6), Size(120, 5)))
    assert [row.name for row in report.rows] == ["60 computers, 5 jobs", "120 computers, 5 jobs"]
    for row in report.rows:
        mean, largest, cold, coldest = (cell.computed for cell in row.cells)
        assert 0 < mean <= largest
        assert 0 < cold == coldest  # the same problem as two networks and as one
    assert report.holds
    # Only the features of the paper are compared.
    assert [cell.published for cell in report.rows[1].cells] == [None] * 4


def test_the_sizes_are_the_paper_s_and_a_larger_one() -> None:
    assert [(each.computers, each.jobs, each.mean_ms) for each in SIZES] == [
        (243, 10, 7.64),
        (2500, 100, 1000.0),
        (12_500, 100, None),
    ]
