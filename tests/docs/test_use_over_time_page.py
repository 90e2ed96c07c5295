"""The page about use over time: what was played agrees with what is computed."""

import json
from itertools import pairwise
from math import log2

import pytest

from tests.docs import docs_scripts

page = docs_scripts.load("use_over_time")
KEPT = json.loads(page.KEPT.read_text("utf-8"))


def test_with_weight_1_the_newcomer_has_all_until_it_has_caught_up():
    shares = page.computed_shares(1.0)
    caught_up = log2(2 - 2**-page.ALONE)
    assert sum(2 * share - 1 for share in shares) / page.BINS == pytest.approx(caught_up, abs=0.01)
    assert shares[:9] == pytest.approx([1.0] * 9)


def test_with_weight_half_the_advantage_halves_twice_in_a_half_life():
    """It never was the whole cluster: D is below (1 - k) / k."""
    ahead = [2 * share - 1 for share in page.computed_shares(0.5)]
    assert ahead[page.BINS] / ahead[0] == pytest.approx(1 / 4, rel=0.01)


@pytest.mark.parametrize("row", KEPT["small"], ids=lambda row: f"{row['usage_weight']:g}")
def test_played_shares_are_near_the_computed_ones(row):
    computed = page.computed_shares(row["usage_weight"])
    errors = [abs(one - other) for one, other in zip(row["shares"], computed, strict=True)]
    assert max(errors) <= 0.25
    assert sum(errors) / len(errors) <= 0.05


def test_the_tree_is_played_in_the_order_of_fair_tree():
    assert KEPT["tree"] == page.fair_tree()
    assert {*KEPT["tree"][page.PLOTTED :]} == {*page.USERS}


@pytest.mark.parametrize("row", KEPT["large"], ids=lambda row: str(row["jobs_alone"]))
def test_whole_jobs_are_played_as_computed(row):
    assert row["in_a_row"] == page.catching_up(row["jobs_alone"])
    assert all(one != other for one, other in pairwise(row["then"]))
