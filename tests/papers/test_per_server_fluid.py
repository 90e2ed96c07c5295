"""PS-DSF (Khamse-Ashari et al., Definition 1): the distance of fillings from it."""

import numpy as np
import pytest

from laboratory.papers.kesidis.per_server_fluid import (
    DRAWN,
    POLICIES,
    definition_of_filling,
    gap,
)


def test_with_one_agent_a_filling_meets_the_definition() -> None:
    """Then it equals DRF, whose filling is exact up to a task."""
    cluster = np.array([[1, 4], [3, 1]]), np.array([[900, 1800]]), np.ones((2, 1), np.bool_)
    for selection in ("random", "joint"):
        found = gap(*cluster, "ps-dsf", selection, seed=0)
        assert found.short <= 0.05
        assert max(found.moved, found.lacks) <= 0.01


def test_the_largest_gap_is_in_parts_of_the_frameworks_own_tasks() -> None:
    """Under DRF the first framework has too little, and the second too much."""
    cluster = (
        np.array([[5, 1], [1, 5]]),
        np.array([[1000, 300], [300, 1000]]),
        np.ones((2, 2), np.bool_),
    )
    exact, drf = (gap(*cluster, policy, "random", seed=0) for policy in ("ps-dsf-exact", "drf"))
    assert exact.lacks < 0.03
    assert drf.short > 0.05
    assert drf.lacks > 0.2
    assert drf.lacks >= drf.moved


def test_the_page_has_the_distribution_of_the_gap() -> None:
    report = definition_of_filling(trials=12)
    assert [row.name for row in report.rows] == [" ".join(each) for each in POLICIES]
    for row in report.rows:
        meets, mean, half, most, nearly_all, largest, lacks, lacks_most = (
            cell.computed for cell in row.cells
        )
        assert 0 <= meets <= 100
        assert half <= most <= nearly_all <= largest
        assert 0 <= mean <= largest
        assert 0 <= lacks <= lacks_most <= 100
    assert report.row("ps-dsf-exact random").cells[0].computed == 100
    assert report.row("ps-dsf random").cells[4].computed > 1
    for panel in report.panels:
        assert [line.name for line in panel.lines] == [" ".join(each) for each in DRAWN]
        for line in panel.lines:
            assert list(line.x) == sorted(line.x)
            assert line.y[0] == pytest.approx(100)
            assert line.y[-1] == pytest.approx(0)
