"""Choosy, section 4.3: a market reaches constrained max-min fairness; and Figure 7."""

import numpy as np
import pytest

from laboratory.papers.choosy import market as paper
from laboratory.papers.choosy import ramp_up
from laboratory.papers.report import NONE_FOUND, REFUSED, counter_examples


def proportional_response(graph: paper.Graph, rounds: int = 3000) -> np.ndarray:
    """Naive implementation: users bid for types in proportion to their last gains, (U,)."""
    bids = graph.eligible * graph.budget[:, None] / graph.eligible.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        given = bids / bids.sum(axis=0) * graph.count
        bids = graph.budget[:, None] * given / given.sum(axis=1, keepdims=True)
    return given.sum(axis=1)


@pytest.mark.parametrize("equal", [True, False])
def test_section_4_3_a_market_comes_to_cmmf(equal: bool) -> None:
    """On graphs in which at least two users can use each machine."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        graph = paper.draw(rng, equal=equal)
        assert graph.contended.all()
        far, *conditions = paper.differences(graph)
        assert far < paper.NEAR
        assert max(conditions) < paper.SLACK


def test_bids_come_to_the_same_market() -> None:
    rng = np.random.default_rng(2)
    for _ in range(3):
        graph = paper.draw(rng, equal=False)
        assert proportional_response(graph) == pytest.approx(paper.market(graph).machines, rel=1e-2)


def test_machines_given_away_first_change_the_shares() -> None:
    """Figure 1: the machines that each user gains by bargaining, beyond those it has alone."""
    graph = paper.example("Fig. 1")
    assert paper.bargained(graph) == pytest.approx([2, 1, 2, 5], rel=paper.NEAR)
    assert paper.cmmf(graph) == pytest.approx([1.5, 1.5, 3, 4])
    assert paper.market(graph).machines == pytest.approx([1.5, 1.5, 3, 4], rel=paper.NEAR)


def test_a_result_that_is_no_equilibrium_is_detected() -> None:
    """User 2 takes half of machine 1, which is expensive: machine 2 would be cheaper."""
    graph = paper.Graph(
        np.array([[True, False], [True, True]]), np.array([1, 1]), np.array([1.0, 1.0])
    )
    wrong = paper.Market(np.array([[0.5, 0.0], [0.5, 0.5]]), np.array([2.0, 0.5]))
    assert paper.overpaid(graph, wrong) == pytest.approx(0.6)  # 0.5 instead of 1.25
    assert paper.unspent(graph, wrong) == pytest.approx(0.25)
    assert paper.unsold(graph, wrong) == pytest.approx(0.5)
    assert paper.apart(wrong.machines, paper.cmmf(graph)) == pytest.approx(0.5)


def test_the_report_holds_and_finds_graphs_that_differ() -> None:
    report = paper.market_equilibrium(trials=4)
    assert report.holds
    assert all(row.agrees for row in report.rows)
    assert report.rows[-1].cells[0].outcome == REFUSED


def test_a_counter_example_that_is_not_found_shows_nothing() -> None:
    assert counter_examples(0.0).outcome == NONE_FOUND
    assert counter_examples(0.0).verdict == "not shown"
    assert counter_examples(0.5).agrees


def test_figure_7_an_alpha_of_1_9_ramps_up_in_time() -> None:
    """Up to a pickiness of 0.85, and not at 0.9; the clusters' alpha is not published."""
    assert ramp_up.least_alpha(0.85) < 1.9 < ramp_up.least_alpha(0.9)
    assert ramp_up.ramp_up(0.85, ramp_up.least_alpha(0.85)) == pytest.approx(ramp_up.RAMP_UP_MAX)
    report = ramp_up.figure_7()
    assert report.rows[0].agrees
    assert not report.rows[1].cells
    assert "not published" in report.rows[1].departure
