"""Some of the random instances of `agree.py`, which plays thousands of them."""

import functools

import numpy as np
import pytest

from tests.solvers import agree
from tests.solvers.oracles import exact_gap


@pytest.mark.parametrize("name", list(agree.TRIALS))
def test_solvers_agree_with_their_oracles(name: str) -> None:
    instances = 5 if name == "min_cost_flow, networkx" else 15
    found = agree.run(name, instances, seed=1)
    assert found[agree.WRONG] == 0
    assert found[agree.AGREES] >= 0.8 * instances


def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(agree, "simplex_cost", lambda _network: 10**12)
    found = agree.run("min_cost_flow, networkx", instances=5, seed=1)
    assert found[agree.WRONG] == 5
    assert "instance 4" in capsys.readouterr().err


def test_an_answer_that_does_not_fit_is_not_taken_for_a_better_one() -> None:
    """With capacities four orders of magnitude apart, the conic solver overfilled small agents."""
    rng = np.random.default_rng([0, 734])
    assert agree.TRIALS["alpha 8, cones (Clarabel)"](rng) == agree.AGREES


def test_the_gap_in_fractions_is_zero_at_the_optimum_alone() -> None:
    demand, capacity = np.array([[1.0], [2.0]]), np.array([[12.0]])
    able, weight = np.ones((2, 1), np.bool_), np.ones(2)
    # Alpha 1: each earns half of the agent, at a price of 1/6.
    tasks, prices = np.array([[6.0], [3.0]]), np.array([[1 / 6]])
    gap = functools.partial(exact_gap, demand=demand, capacity=capacity, eligible=able)
    assert gap(tasks, prices, weight=weight, alpha=1) == pytest.approx(0, abs=1e-15)
    assert gap(np.array([[8.0], [2.0]]), prices, weight=weight, alpha=1) > 0.1
    assert gap(1.01 * tasks, prices, weight=weight, alpha=1) == pytest.approx(0.01)
