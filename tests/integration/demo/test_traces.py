"""Recorded workloads through the whole protocol; skipped if the files do not exist."""

import os
from pathlib import Path

import pytest

from allocator.core import PlanningPolicy, PolicySpec
from allocator.policies import POLICIES, build
from laboratory.experiments import demo_runs as catalogue
from laboratory.experiments.runs import ExperimentRun, play_on
from laboratory.links.sidecar_process import SidecarProcess
from tests.laboratory.master.starvation import Watched

ROOT = Path(__file__).resolve().parents[3]
TRACES = Path(os.environ.get("MESOS_ALLOCATOR_TRACES", ROOT.parent / "shared" / "traces"))


@pytest.fixture
def traces(monkeypatch):
    for name in (catalogue.SWIM_FILE, catalogue.NODES_FILE, catalogue.PODS_FILE):
        if not (TRACES / name).is_file():
            pytest.skip(f"{TRACES / name} is not there; MESOS_ALLOCATOR_TRACES names the directory")
    monkeypatch.setenv("MESOS_ALLOCATOR_TRACES", str(TRACES))


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    with SidecarProcess(tmp_path_factory.mktemp("s"), {"log.level": "warning"}) as process:
        yield process


def watched(scenario, policy, sidecar):
    """Play a scenario, and check that no framework waits while resources are free."""
    scene = Watched(scenario)
    run = ExperimentRun("trace", PolicySpec(policy, mode="characterised"), 0, scene)
    played = play_on(run, sidecar.target)
    assert len(played.progress.ended_ms) == scenario.jobs
    assert len(played.record.waits_ms) == scenario.jobs
    assert not played.record.rejected
    assert scene.starved == []
    return scene, played


@pytest.mark.long
def test_no_job_starves_in_the_facebook_hour(traces, sidecar):
    """Hour 21 on so few agents that jobs have to wait for each other."""
    scenario, source = catalogue.swim(seed=0, agents=3, hour=21, scale=0.1)
    assert source.endswith("hour 21")
    scene, played = watched(scenario, "drf", sidecar)
    assert scenario.jobs == 30
    assert scene.waiting_max > 0
    assert max(used[0] for used in played.record.used) <= played.record.total[-1][0]


@pytest.mark.long
def test_openb_pods_run_where_their_gpus_are_and_none_starves(traces, sidecar):
    scenario, _ = catalogue.openb(seed=0, agents=30, scale=0.02)
    assert [arrival for arrival in scenario.arrivals if arrival.allowed]
    scene, played = watched(scenario, "ps-dsf", sidecar)
    assert scene.waiting_max > 0
    assert played.record.used[-1] == (0, 0, 0)


PLANNING = tuple(name for name in POLICIES if isinstance(build(PolicySpec(name)), PlanningPolicy))


@pytest.mark.long
@pytest.mark.parametrize("policy", PLANNING)
def test_policies_that_plan_serve_all_jobs_on_openb(traces, sidecar, policy):
    """In a real session: plans come from a thread of the sidecar; late ones delay no cycle."""
    scenario, _ = catalogue.openb(seed=0, agents=30, scale=0.02)
    scene, played = watched(scenario, policy, sidecar)
    assert scene.waiting_max > 0
    assert played.record.used[-1] == (0, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize("policy", PLANNING)
def test_policies_that_plan_serve_all_jobs_on_a_small_cluster(monkeypatch, sidecar, policy):
    """The same on the synthetic stand-in for the trace, which is always available."""
    monkeypatch.setenv("MESOS_ALLOCATOR_TRACES", "/nonexistent")
    scenario, source = catalogue.openb(seed=1, agents=12, scale=0.002)
    assert source.startswith("synthetic")
    watched(scenario, policy, sidecar)
