"""Kesidis et al., MASCOTS 2018: sections III and IV, Tables I and II."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.core import PolicySpec
from allocator.policies import build
from allocator.solvers.fluid import proportional_fairness
from allocator.testing import placement, static_snapshot
from laboratory.papers.kesidis import tables as kesidis

SEED = 0


@cache
def trials(criterion: str, selection: str) -> np.ndarray:
    """Two hundred trials, (200, 4): x(1,1), x(1,2), x(2,1), x(2,2)."""
    return kesidis.tasks(criterion, selection, kesidis.TRIALS, SEED).reshape(-1, 4)


def certain(criterion: str, selection: str) -> list[int]:
    """The only outcome of a deterministic scheduler."""
    return kesidis.tasks(criterion, selection, 1, SEED)[0].reshape(4).tolist()


# Table I. For randomly drawn agents, the mean of 200 trials with deviation s is within
# 3 * s / sqrt(200) = 0.21 s of the expectation, and so is the paper's: 0.3 s between the two.


@pytest.mark.parametrize("name", ["DRF", "TSF", "RRR-PS-DSF"])
def test_table_1_means_under_random_selection(name: str) -> None:
    found = trials(kesidis.CHANCE[name], "random")
    tolerance = 0.3 * np.array(kesidis.DEVIATION[name]) + 0.05
    assert (np.abs(found.mean(axis=0) - kesidis.MEAN[name][:4]) <= tolerance).all()
    total = found.sum(axis=1)
    assert abs(total.mean() - kesidis.MEAN[name][4]) <= 0.3 * total.std(ddof=1) + 0.05


def test_table_1_joint_ps_dsf() -> None:
    assert certain("ps-dsf", "joint") == [19, 0, 2, 20]


def test_table_1_joint_rps_dsf() -> None:
    assert certain("rps-dsf", "joint") == [19, 2, 2, 19]


def test_table_1_best_fit_drf_is_one_task_better_than_printed() -> None:
    """Printed: (20, 2, 0, 19), 41 tasks. Best fit as defined ends at 42."""
    assert certain("bf-drf", "best_fit") == [19, 2, 2, 19]


def test_table_1_the_two_frameworks_are_treated_alike() -> None:
    """The problem is its own mirror image, and so are the printed means, up to chance."""
    means = trials("drf", "random").mean(axis=0)
    assert abs(means[0] - means[3]) <= 0.3 * 2.31
    assert abs(means[1] - means[2]) <= 0.3 * 0.46


# Table II. The standard error of a deviation s of 200 trials is s * sqrt((kurtosis - 1) / 800):
# 0.05 s to 0.06 s for DRF and TSF. PS-DSF has an outlier in one trial of a few hundred.


@pytest.mark.parametrize("name", ["DRF", "TSF"])
def test_table_2_deviations(name: str) -> None:
    found = trials(kesidis.CHANCE[name], "random").std(axis=0, ddof=1)
    np.testing.assert_allclose(found, kesidis.DEVIATION[name], rtol=0.15, atol=0.005)


def test_table_2_deviations_of_ps_dsf_come_from_rare_trials() -> None:
    found = trials("ps-dsf", "random")
    usual = found[(found.sum(axis=1) >= 40) & (found[:, 0] >= 19) & (found[:, 3] >= 19)]
    assert len(usual) >= 0.98 * len(found)
    # Of the usual end states, x(1,1) and x(2,2) are 19 or 20, x(1,2) and x(2,1) are 0 or 2.
    np.testing.assert_allclose(usual.std(axis=0, ddof=1), [0.5, 1.0, 1.0, 0.5], atol=0.02)
    published = kesidis.DEVIATION["RRR-PS-DSF"]
    np.testing.assert_allclose(found.std(axis=0, ddof=1), published, atol=0.3)


def test_permuted_rounds_are_not_what_the_tables_show() -> None:
    """The wording of Section IV ("randomly permuted in each round"); the deviations are far off."""
    found = trials("drf", "round_robin").std(axis=0, ddof=1)
    assert (found > 1.15 * np.array(kesidis.DEVIATION["DRF"])).all()


# Section IV, the text.


def test_server_specific_criteria_place_many_more_tasks() -> None:
    """'PS-DSF and rPS-DSF scheduling are superior to DRF in terms of task efficiency'."""
    drf = trials("drf", "random").sum(axis=1)
    ps_dsf = trials("ps-dsf", "random").sum(axis=1)
    assert ps_dsf.min() > drf.mean() * 1.5
    assert ps_dsf.mean() > drf.max()


def test_ps_dsf_under_rrr_is_comparable_to_joint_selection() -> None:
    """'PS-DSF's performance under RRR is comparable ... and with low variance'."""
    total = trials("ps-dsf", "random").sum(axis=1)
    assert abs(total.mean() - sum(certain("ps-dsf", "joint"))) <= 1
    assert total.std() <= 1


def test_rps_dsf_under_rrr_performs_just_as_rps_dsf() -> None:
    """'RRR-rPS-DSF performed just as rPS-DSF over 200 trials': here all but a rare trial."""
    found = trials("rps-dsf", "random")
    same = (found == [19, 2, 2, 19]).all(axis=1)
    assert same.mean() >= 0.99
    assert (trials("rps-dsf", "round_robin") == [19, 2, 2, 19]).all()


def test_residual_form_improves_modestly() -> None:
    """'We see the improvement is modest for the case of PS-DSF.'"""
    assert sum(certain("rps-dsf", "joint")) - sum(certain("ps-dsf", "joint")) == 1


def test_best_fit_improves_drf() -> None:
    assert sum(certain("bf-drf", "best_fit")) > trials("drf", "random").sum(axis=1).max()


def test_a_server_ends_with_a_resource_that_no_framework_can_use_more_of() -> None:
    """Proposition 1, for whole tasks: no further task fits on any agent."""
    capacity, demand = np.array(kesidis.CAPACITY), np.array(kesidis.DEMAND)
    for policy, selection in (("drf", "random"), ("ps-dsf", "joint"), ("rps-dsf", "best_fit")):
        snapshot = static_snapshot(capacity=capacity, demand=demand)
        spec = PolicySpec(policy, selection, mode="characterised", flat=True)
        tasks = placement(snapshot, build(spec).allocate(snapshot, SEED))
        left = capacity - tasks.T @ demand
        assert (left >= 0).all()
        assert not (left[:, None, :] >= demand[None]).all(axis=2).any()


@given(st.data())
def test_proposition_2_no_feasible_point_gains_more_than_it_loses(data: st.DataObject) -> None:
    """Equation 9 with a = 1 on one server: sum of phi * (x - x*) / x* <= 0 for every feasible x."""
    size = data.draw(st.integers(1, 5))
    demand = data.draw(arrays(np.float64, (size, 2), elements=st.floats(0.1, 5)))
    weight = data.draw(arrays(np.float64, size, elements=st.floats(0.2, 5)))
    capacity = np.array([100.0, 30.0])
    best = proportional_fairness.solve(demand, capacity, weight).tasks
    other = data.draw(arrays(np.float64, size, elements=st.floats(0, 1)))
    used = (other @ demand / capacity).max()
    other = other / used if used > 0 else other
    assert (weight * (other - best) / best).sum() <= 1e-9
