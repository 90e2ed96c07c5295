"""Kesidis et al., Propositions 1 and 2 with priorities and server preferences."""

import numpy as np
import pytest

from laboratory.papers.kesidis import fluid as paper


@pytest.mark.parametrize("exponent", paper.EXPONENTS)
def test_every_agent_is_booked_and_no_framework_gains_on_balance(exponent):
    rng = np.random.default_rng(3)
    for _ in range(8):
        cluster = paper.draw(rng)
        best = paper.optimum(cluster, exponent)
        assert not best[~cluster.eligible].any()
        assert paper.unbooked(cluster, best) < 1e-5
        others = [paper.feasible(cluster, rng) for _ in range(40)]
        assert max(paper.gain(cluster, best, each, exponent) for each in others) < 1e-5


def test_a_result_that_is_not_optimal_is_detected():
    """Half of everything can be doubled; from an optimum for other weights there is a net gain."""
    rng = np.random.default_rng(4)
    cluster = paper.draw(rng)
    best = paper.optimum(cluster, 1.0)
    assert paper.unbooked(cluster, best / 2) == pytest.approx(0.5, abs=1e-5)
    assert paper.gain(cluster, best / 2, best, 1.0) == pytest.approx(1.0)


def test_drawn_allocations_are_feasible():
    rng = np.random.default_rng(5)
    for _ in range(20):
        cluster = paper.draw(rng)
        tasks = paper.feasible(cluster, rng)
        used = np.einsum("fa,fr->ar", tasks, cluster.demand)
        assert (used <= cluster.capacity * (1 + 1e-9)).all()
        assert not tasks[~cluster.eligible].any()


def test_priorities_matter():
    """Proportional fairness on one agent: shares of the only resource equal the weights."""
    cluster = paper.FluidCluster(
        np.array([[1.0, 0.1], [1.0, 0.1]]),
        np.array([[30.0, 30.0]]),
        np.ones((2, 1), np.bool_),
        np.array([1.0, 2.0]),
    )
    assert paper.optimum(cluster, 1.0)[:, 0] == pytest.approx([10, 20], rel=1e-5)


def test_the_report_holds():
    assert paper.propositions(trials=4).holds
