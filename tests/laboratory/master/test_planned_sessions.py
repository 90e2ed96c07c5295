"""Planning policies on an emulated master and a small mixed cluster: no framework starves."""

import pytest

from allocator.core import Options, PlanningPolicy, PolicySpec, Settings
from allocator.policies import POLICIES, build
from laboratory.experiments import demo_runs as catalogue
from laboratory.links.base import DirectLink
from laboratory.workloads.play import play
from tests.laboratory.master.starvation import Watched

PLANNING = tuple(name for name in POLICIES if isinstance(build(PolicySpec(name)), PlanningPolicy))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["characterised", "oblivious"])
@pytest.mark.parametrize("policy", PLANNING)
def test_all_are_served_and_nothing_is_rejected(monkeypatch, policy, mode):
    monkeypatch.setenv("MESOS_ALLOCATOR_TRACES", "/nonexistent")
    scenario, source = catalogue.openb(seed=1, agents=10, scale=0.005)
    assert source.startswith("synthetic")
    scene = Watched(scenario)
    link = DirectLink(build, Settings(policy=PolicySpec(policy, mode=mode)))
    told = mode == "characterised"
    played = play(scene, link, tell_demand=told, options=Options())
    assert len(played.progress.ended_ms) == scenario.jobs
    assert len(played.record.waits_ms) == scenario.jobs
    assert not played.record.rejected
    assert link.allocator.state.plan is not None, "it went by plans"
    if told:
        assert scene.starved == []
