"""Kesidis et al., Corollary 1: proportional fairness of any criterion."""

import numpy as np
import pytest

from laboratory.papers.kesidis import corollary as paper
from laboratory.papers.kesidis.fluid import FluidCluster, draw, optimum


@pytest.mark.parametrize("name", paper.CRITERIA)
def test_no_framework_gains_on_balance_in_any_allocation(name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        cluster = draw(rng)
        given = paper.problem(cluster, paper.CRITERIA[name](cluster, rng))
        best = paper.solve(given)
        assert (given.need @ best <= 1 + 1e-9).all()
        assert paper.most_gained(given, best) < paper.SLACK


def test_a_criterion_of_the_framework_alone_is_proposition_2() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        cluster = draw(rng)
        given = paper.problem(cluster, paper.of_framework(cluster, rng))
        tasks = np.bincount(given.of, paper.solve(given), len(cluster.demand))
        assert tasks == pytest.approx(optimum(cluster, 1.0).sum(axis=1), rel=1e-4)


def test_where_tasks_lie_matters_where_the_criterion_differs() -> None:
    """Two equal agents and frameworks; each task counts four times as much on its own agent."""
    cluster = FluidCluster(
        np.ones((2, 1)), np.array([[10.0], [10.0]]), np.ones((2, 2), np.bool_), np.ones(2)
    )
    given = paper.problem(cluster, np.array([[4.0, 1.0], [1.0, 4.0]]))
    assert paper.solve(given) == pytest.approx([10, 0, 0, 10], abs=1e-5)
    assert paper.elsewhere(given, paper.solve(given), np.random.default_rng(0)) < paper.ELSEWHERE
    same = paper.problem(cluster, np.ones((2, 2)))
    assert paper.elsewhere(same, paper.solve(same), np.random.default_rng(0)) > 0.5


def test_a_result_that_is_not_optimal_is_detected() -> None:
    """From half of the optimum all can double."""
    rng = np.random.default_rng(4)
    cluster = draw(rng)
    given = paper.problem(cluster, paper.drawn(cluster, rng))
    assert paper.most_gained(given, paper.solve(given) / 2) == pytest.approx(1, abs=1e-5)


def test_the_report_holds() -> None:
    assert paper.corollary_1(trials=3).holds
