"""Ghodsi et al., NSDI 2011, section 5: whole tasks on several agents, and the maximal task."""

import numpy as np
import pytest

from laboratory.papers import drf_discrete as paper


@pytest.mark.parametrize("selection", ["joint", "best_fit"])
def test_two_users_differ_by_a_maximal_task_at_most(selection: str) -> None:
    """While every user's next task fits somewhere, and the user is served first."""
    for agents in (1, 2, 5):
        apart = [each.while_all_can for each in paper.found(selection, agents, 3, 8)]
        assert max(apart) <= 1 + 1e-9


def test_taking_the_agent_first_exceeds_it() -> None:
    assert max(each.while_all_can for each in paper.found("random", 5, 0, 20)) > 1


def test_shares_are_followed_grant_by_grant() -> None:
    """A needs (1, 1), B (2, 1): on agents of (3, 9) one task of each fills the CPUs."""
    cluster = paper.DiscreteCluster(np.array([[1, 1], [2, 1]]), np.array([[3, 9], [3, 9]]))
    order = [(0, 0), (1, 0), (0, 1), (1, 1)]
    found = paper.follow(cluster, order)
    # Of 6 CPUs in total A ends with 2, and B with 4; the maximal task has 2. Both fit until the
    # end.
    assert found.while_all_can == pytest.approx(1)
    assert found.at_the_end == pytest.approx(1)


def test_too_much_would_be_seen() -> None:
    """An allocation of everything to one user is far from the bound."""
    cluster = paper.DiscreteCluster(np.array([[1, 1], [1, 1]]), np.array([[6, 6]]))
    assert paper.follow(cluster, [(0, 0)] * 6).while_all_can == pytest.approx(6)


def test_the_report_says_where_the_bound_holds() -> None:
    report = paper.whole_tasks(trials=6)
    assert report.holds
    assert [row.agrees for row in report.rows[:2]] == [True, True]
    assert all(row.departure for row in report.rows[2:])
