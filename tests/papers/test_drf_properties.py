"""Ghodsi et al., NSDI 2011, Table 2: each cell by experiment."""

import numpy as np
import pytest

from laboratory.papers import drf as paper


@pytest.mark.parametrize("policy", paper.POLICIES)
@pytest.mark.parametrize("name", paper.PROPERTIES)
def test_each_cell_of_the_table(name, policy):
    """Properties granted by the table hold on all random clusters; those denied fail on some."""
    test, refused = paper.PROPERTIES[name]
    rng = np.random.default_rng(0)
    failed = [test(paper.POLICIES[policy], paper.draw(rng)) > 1e-6 for _ in range(60)]
    assert any(failed) is (policy in refused)


def test_the_tests_see_what_is_wrong():
    """A policy that gives everything to the first user has hardly any of the properties."""

    def first_takes_all(demand, capacity):
        tasks = np.full(len(demand), 1e-9)
        tasks[0] = (capacity / demand[0]).min()
        return tasks

    case = paper.draw(np.random.default_rng(1))
    for test in (
        paper.sharing_incentive,
        paper.envy_freeness,
        paper.single_resource_fairness,
        paper.bottleneck_fairness,
    ):
        assert test(first_takes_all, case) > 0.1


def test_the_report_has_the_whole_table():
    report = paper.properties(trials=30)
    assert len(report.rows) == 8
    assert [len(row.cells) for row in report.rows] == [3] * 8
