"""Choosy's Theorems 1 to 3 on random clusters to which users contributed machines."""

import numpy as np
import pytest

from laboratory.papers.choosy import examples as paper


def test_theorem_1_the_papers_own_counter_example():
    """Two machines, the second of which both can use: its owner keeps half of it."""
    pool = paper.Pool(np.eye(2, dtype=np.int64), np.array([[True, True], [False, True]]))
    assert paper.shortfall_independent(pool) == 0.5
    assert paper.shortfall_cmmf(pool) <= 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_theorems_2_and_3(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        pool = paper.draw(rng)
        assert paper.shortfall_cmmf(pool) <= 1e-6
        assert paper.gain_by_lying(pool, rng, cmmf=True) <= 1e-6
        assert paper.gain_by_lying(pool, rng, cmmf=False) <= 1e-6


def test_a_gain_would_be_seen(monkeypatch):
    """A user that gets machines in proportion to its claims gains by claiming more."""
    can = np.array([[True, False], [True, True]])
    pool = paper.Pool(np.array([[4, 0], [0, 4]]), can)

    def by_size_of_claim(eligible, count, *, cmmf):
        claim = eligible * eligible.sum(axis=1, keepdims=True)
        return claim / np.maximum(claim.sum(axis=0), 1) * count

    monkeypatch.setattr(paper, "_given", by_size_of_claim)
    gains = [paper.gain_by_lying(pool, np.random.default_rng(s), cmmf=True) for s in range(5)]
    assert max(gains) == pytest.approx(2 - 4 / 3)


def test_the_report_finds_counter_examples_for_the_first_alone():
    report = paper.theorems(trials=60)
    assert report.holds
    assert report.rows[0].cells[0].computed > 0
