"""Recorded workloads through the whole protocol; skipped where the files are not there."""

import os
from pathlib import Path

import pytest

from allocator.core import PolicySpec
from allocator.sim import catalogue
from allocator.sim.runs import Run, play_on
from allocator.sim.sidecar_process import SidecarProcess

ROOT = Path(__file__).resolve().parent.parent.parent
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


def test_the_facebook_hour_starves_nobody(traces, sidecar):
    """Hour 21 on so few agents that jobs have to wait for each other."""
    scenario, source = catalogue.swim(seed=0, agents=30, hour=21, scale=0.25)
    assert source.endswith("hour 21")
    run = Run("swim", PolicySpec("drf", mode="characterised"), 0, scenario)
    record = (played := play_on(run, sidecar.target)).record
    assert len(played.progress.ended_ms) == scenario.jobs == 75
    assert len(record.waits_ms) == 75
    assert not record.rejected
    assert all(
        u <= t
        for use, total in zip(record.used, record.total, strict=True)
        for u, t in zip(use, total, strict=True)
    )


def test_openb_pods_run_where_their_gpus_are(traces, sidecar):
    scenario, _ = catalogue.openb(seed=0, agents=150, scale=0.02)
    wanted = [arrival for arrival in scenario.arrivals if arrival.allowed]
    assert wanted
    run = Run("openb", PolicySpec("ps-dsf", mode="characterised"), 0, scenario)
    played = play_on(run, sidecar.target)
    assert len(played.progress.ended_ms) == scenario.jobs
    assert not played.record.rejected
    assert played.record.used[-1] == (0, 0, 0)
