"""Bonald and Roberts: Propositions 1 to 7 and three types of resource."""

import numpy as np
import pytest

from laboratory.papers.bonald import properties as paper
from laboratory.papers.bonald import three_resources as three
from laboratory.papers.drf import draw


@pytest.mark.parametrize("policy", ["PF", "DRF"])
@pytest.mark.parametrize("name", paper.PROPERTIES)
def test_proved_properties_hold(name: str, policy: str) -> None:
    test, refused = paper.PROPERTIES[name]
    rng = np.random.default_rng(0)
    failed = [test(paper.POLICIES[policy], draw(rng)) > paper.SLACK for _ in range(15)]
    assert any(failed) is (policy in refused)


@pytest.mark.parametrize("policy", ["max-min", "alpha 1/2", "alpha 2"])
def test_other_allocations_are_neither_scale_invariant_nor_locally_fair(policy: str) -> None:
    rng = np.random.default_rng(1)
    cases = [draw(rng) for _ in range(10)]
    assert max(paper.scale_invariance(paper.POLICIES[policy], case) for case in cases) > 0.01
    assert max(paper.local_fairness(paper.POLICIES[policy], case) for case in cases) > 0.01


@pytest.mark.parametrize("size", paper.SIZES)
def test_proposition_7_logarithms_give_equal_parts(size: float) -> None:
    for name in paper.LOGARITHMS:
        assert paper.share(paper.UTILITIES[name], size) == pytest.approx(0.5, abs=1e-9)


def test_proposition_7_no_other_listed_utility_does() -> None:
    for name, marginal in paper.UTILITIES.items():
        off = max(abs(paper.share(marginal, size) - 0.5) for size in paper.SIZES)
        assert (off > paper.SEEN) is (name not in paper.LOGARITHMS), name


def test_a_share_is_that_of_the_solver() -> None:
    """Alpha 2, x = 4: shares are proportional to the square roots of task needs, 2 to 1."""
    demand = np.array([[1 / 2], [1 / 8]])
    tasks = paper.POLICIES["alpha 2"](demand, np.ones(1))
    assert paper.share(paper.UTILITIES["alpha 2"], 4.0) == pytest.approx(2 / 3)
    assert tasks * demand[:, 0] == pytest.approx([2 / 3, 1 / 3], rel=1e-5)


def test_the_reports_hold() -> None:
    assert paper.properties(trials=3).holds
    assert paper.proposition_7().holds
    assert all(row.agrees for row in paper.proposition_7().rows)


def test_three_resources_few_simulations_show_the_gain_at_half_load() -> None:
    drf, pf = three.rates((1, 1, 1), 0.5, range(2), 2500)
    assert (drf.mean(axis=1) < pf.mean(axis=1)).all()


def test_three_resources_the_contrary_would_differ() -> None:
    """Rates in reverse order do not agree."""
    fast = np.array([[0.5, 0.8, 0.9], [0.51, 0.81, 0.91]])
    slow = np.array([[0.5, 0.6, 0.6], [0.51, 0.62, 0.62]])
    good = [cell.verdict for cell in three.unbalanced_cells(slow, fast, 0.5)]
    assert good == ["agrees", "not shown", "not shown", "agrees", "agrees"]
    bad = three.unbalanced_cells(fast, slow, 0.5)
    assert [bad[place].verdict for place in (0, 4)] == ["differs", "differs"]
    assert three.balanced_cells(fast, slow, 0.5)[0].verdict == "differs"


@pytest.mark.long
def test_three_resources_the_report_holds() -> None:
    assert three.three_resources(trials=4, events=20_000).holds
