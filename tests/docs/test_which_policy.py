"""The page "which policy for which cluster": its statements follow from the figures it shows."""

import json
from pathlib import Path

import pytest

from tests.docs import docs_scripts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def guide():
    return docs_scripts.load("which_policy")


def row(policy, mode, *, ended=10, end_s=100.0, wait_s=5.0):
    times = {"end_s": end_s, "wait_s": wait_s, "even": 0.9}
    cells = {key: {"mean": value, "half": None} for key, value in times.items()}
    used = {"cpus": {"mean": 50.0, "half": 1.5}}
    return {"policy": policy, "mode": mode, "ended": ended, "jobs": 10, "used": used, **cells}


def test_policies_as_good_as_the_best_are_named_with_it(guide):
    rows = [
        row("drf", "oblivious", end_s=130.0),
        row("ps-dsf", "oblivious", end_s=101.0),
        row("drf", "characterised", end_s=110.0),
        row("ps-dsf", "characterised", end_s=100.0),
    ]
    all_ended, first, *more = guide.findings(rows)
    assert all_ended == "All jobs ended under every policy."
    assert first == (
        "The last job ended first under `ps-dsf` (oblivious) and `ps-dsf` (characterised) (100 s,"
        " or at most 2% more); it was 130 s under `drf` oblivious."
    )
    assert not more  # all waited for the same time


def test_only_who_ended_most_jobs_is_compared(guide):
    rows = [
        row("drf", "oblivious", ended=4, end_s=1.0),
        row("tsf", "oblivious", ended=7, end_s=90.0, wait_s=1.0),
        row("drf", "characterised", ended=7, end_s=50.0),
    ]
    most, first, waited = guide.findings(rows)
    assert most == "Most jobs (7 of 10) ended under `tsf` (oblivious) and `drf` (characterised)."
    assert first.startswith("The last job ended first under `drf` (characterised) (50 s")
    assert waited.startswith("Jobs waited least under `tsf` (oblivious) (1 s")


def test_stored_results_are_of_the_current_scenarios_and_seeds(guide):
    for kind in guide.KINDS:
        kept = json.loads((guide.KEPT / f"{kind.scenario}.json").read_text())
        assert kept["seeds"] == kind.seeds
        played = [(each["policy"], each["mode"]) for each in kept["rows"]]
        assert played == [(p, m) for p in guide.POLICIES for m in guide.MODES]
        assert (guide.SCENARIOS / f"{kind.scenario}.toml").is_file()


def test_a_mean_of_one_seed_has_no_interval(guide):
    assert guide._number({"mean": 12.345, "half": None}) == "12.35"
    assert guide._number({"mean": 12.345, "half": 0.21}) == "12.35 ± 0.21"
    assert guide._number({"mean": None, "half": None}) == "-"
