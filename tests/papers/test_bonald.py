"""Bonald and Roberts, Performance Evaluation 2014: Figures 3 to 6 and the capacity region."""

from itertools import pairwise

import numpy as np
import pytest

from allocator.solvers.fluid import proportional_fairness
from laboratory.papers.bonald import tasks, traffic
from laboratory.papers.bonald.examples import zero_load_rate
from tests.tiers import long

EACH = ["drf", *long(*(each for each in traffic.POLICIES if each != "drf"))]


@pytest.mark.parametrize("policy", EACH)
def test_the_simulated_process_has_the_rates_of_the_stationary_distribution(policy):
    demand = traffic.demand_at(0.5, traffic.FIG_2, (1.0, 1.0))
    drawn = np.mean(
        [traffic.simulate(policy, traffic.FIG_2, demand, seed, 20_000).rate for seed in range(4)],
        axis=0,
    )
    np.testing.assert_allclose(
        drawn, traffic.service_rates(policy, traffic.FIG_2, demand), rtol=0.06
    )


def test_four_classes_are_served_by_pf_at_least_as_fast():
    """'The trends shown in previous cases are maintained.'"""
    demand = traffic.demand_at(0.7, traffic.FIG_3, (3.0, 3.0, 1.0, 1.0))
    drf, pf = (traffic.simulate(p, traffic.FIG_3, demand, 0, 6_000).rate for p in traffic.POLICIES)
    assert (pf[2:] > drf[2:]).all()


@pytest.mark.parametrize("policy", EACH)
def test_traffic_beyond_the_capacity_region_grows_without_bound(policy):
    """At a load of 1.2 a sixth of the arriving work stays behind."""
    over = traffic.demand_at(1.2, traffic.FIG_2, (1.0, 1.0))
    under = traffic.demand_at(0.8, traffic.FIG_2, (1.0, 1.0))
    assert traffic.simulate(policy, traffic.FIG_2, over, 1, 10_000).last_jobs > 200
    assert traffic.simulate(policy, traffic.FIG_2, under, 1, 10_000).last_jobs < 60


@pytest.mark.parametrize("claim", [0.1, 0.26, 0.53, 0.9])
@pytest.mark.parametrize("others", [1, 2, 5, 9])
def test_the_rate_of_a_job_that_lies_is_the_solvers(others, claim):
    demand = np.array([[1.0, claim], [traffic.ALPHA, 1.0]])
    found = proportional_fairness.solve(demand, np.ones(2), np.array([1.0, others])).tasks
    assert traffic.job_rate(others, claim) == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("others", traffic.BEST_FOR)
def test_the_best_claim_beside_a_number_of_others(others):
    best = traffic.job_rate(others, traffic.best_claim(others))
    assert best > traffic.job_rate(others, traffic.ALPHA)
    for claim in np.linspace(traffic.ALPHA, 1, 50):
        assert traffic.job_rate(others, float(claim)) <= best + 1e-12


def test_figure_4_no_static_claim_gains_in_dynamic_traffic():
    assert traffic.figure_4().holds


def test_figure_4_is_processor_sharing_without_others():
    assert traffic.mean_rate(1e-9, traffic.ALPHA) == pytest.approx(1)


@pytest.mark.parametrize("policy", ["drf", "pf"])
def test_figure_5_a_class_that_lies_loses(monkeypatch, policy):
    monkeypatch.setattr(traffic, "_CLAIM_JOBS_MAX", 20)
    rates = [
        traffic._class_rate(policy, claim, 0.4)
        for claim in (traffic.ALPHA, *sorted(map(traffic.best_claim, traffic.BEST_FOR)))
    ]
    # A job with small demands gains a thousandth at this load; larger ones lose far more.
    assert all(later < before + 0.002 for before, later in pairwise(rates))
    assert rates[-1] < rates[0] - 0.05


def test_figure_6_the_rate_at_load_zero():
    """500 tasks, room for 100: 0.54 with exponential tasks; nearer to 1 with Erlang-20 ones."""
    exponential = [tasks.sojourns("pf", 1e-4, 1, seed, 30)[0] for seed in range(3)]
    assert 1 / np.mean(exponential) == pytest.approx(zero_load_rate(), abs=0.02)
    erlang = tasks.sojourns("drf", 1e-4, 20, 0, 20)[0]
    assert 1 / erlang > 0.75


def test_figure_6_the_class_of_the_idle_resource_gains_under_pf():
    drf, pf = (tasks.sojourns(policy, 0.85, 20, 0, 80) for policy in ("drf", "pf"))
    assert pf[1] < 0.8 * drf[1]


def test_tasks_never_use_more_than_there_is_and_all_jobs_end():
    free = [tasks.CAPACITY, tasks.CAPACITY]
    jobs = [tasks._Job(0, 0.0), tasks._Job(1, 0.0)]
    began = tasks._begin("drf", jobs, free)
    assert min(free) >= 0
    assert min(free) < max(tasks.NEED[0])
    assert len(began) == sum(job.running for job in jobs)
    assert abs(jobs[0].running - jobs[1].running) <= 1
