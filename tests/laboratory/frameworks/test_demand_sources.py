"""The benefit of known, learned or remembered demands of Spark's executors."""

from functools import cache

import pytest

from laboratory.experiments.demand_sources import SOURCES, SourceRun, average, play_source
from laboratory.workloads.spark_experiment import MODES
from tests.tiers import long


@cache
def played(source: str, mode: str = "coarse") -> SourceRun:
    return play_source(source, mode, jobs=3)


@pytest.mark.parametrize("mode", ["coarse", *long(*(each for each in MODES if each != "coarse"))])
@pytest.mark.parametrize("source", SOURCES)
def test_every_job_ends_with_any_source_of_demands(source: str, mode: str):
    """No learned, remembered or declared demand may prevent a job from getting its executors."""
    run = played(source, mode)
    assert run.jobs == 12
    assert run.figures.executors >= 12
    assert run.figures.rejected == {}


def test_remembered_demands_save_most_of_what_stated_ones_save():
    declines = {source: played(source).figures.declines for source in SOURCES}
    assert declines["told"] < declines["remembered"] < declines["learnt"] < declines["oblivious"]
    saved = declines["oblivious"] - declines["remembered"]
    assert saved > 0.7 * (declines["oblivious"] - declines["told"])


def test_jobs_of_one_size_confirm_what_the_first_of_them_taught():
    run = played("remembered")
    assert run.confirmed >= 6
    assert run.refuted == 0


def test_jobs_without_a_size_refute_it_and_run_as_if_nothing_were_known():
    """An executor takes all cores of its offer, so one says little about the next."""
    run = played("remembered", "greedy")
    assert run.refuted > 0
    assert run.figures.executors <= played("oblivious", "greedy").figures.executors * 1.2


def test_an_average_is_over_all_jobs_of_all_runs():
    runs = [played("told"), played("oblivious")]
    both = average(runs)
    assert both.offers == sum(run.figures.offers for run in runs) / 24
    assert both.wait_max_s == max(run.figures.wait_max_s for run in runs)
