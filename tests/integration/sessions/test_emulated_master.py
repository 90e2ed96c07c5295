"""The emulated master and a real sidecar process, over a real stream."""

from pathlib import Path

import pytest

from allocator.core import PolicySpec, Reason
from laboratory.experiments.demo_runs import MODES
from laboratory.experiments.runs import ExperimentRun, play_all, play_on
from laboratory.experiments.soak import Soak
from laboratory.links.base import LinkDownError
from laboratory.links.borrowed import set_policy
from laboratory.links.sidecar_process import SidecarFailedError, SidecarProcess
from laboratory.links.stream import StreamLink
from laboratory.master.emulated import EmulatedMaster
from laboratory.module_protocol import SessionEndedError
from laboratory.random_cluster import RandomScenario
from laboratory.random_cluster.checks import differences, of_ledger, of_sidecar
from laboratory.workloads.play import play
from laboratory.workloads.spark_experiment import experiment
from tests.laboratory.master.masters import wire_link
from tests.plain_loops import plain_sidecar


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    directory = tmp_path_factory.mktemp("s")
    with plain_sidecar(directory) as process:
        yield process


@pytest.mark.parametrize("mode", MODES)
def test_an_experiment_is_played_to_its_end(sidecar, mode):
    run = ExperimentRun("one", PolicySpec("ps-dsf", mode=mode), 1, experiment(1, jobs=2))
    played = play_on(run, sidecar.target)
    assert len(played.progress.ended_ms) == 20
    assert set(played.record.outcomes) == {Reason.OFFERED}
    assert played.record.used[-1] == (0, 0)
    assert len(played.record.latency_s) > played.makespan_ms // 1000
    played.master.ledger.check()


def test_the_real_sidecar_decides_as_the_one_in_process(sidecar):
    """Decisions do not depend on the transport: same events, same decisions."""
    spec = PolicySpec("drf", mode="characterised")
    scenario = experiment(2, jobs=2)
    one = play_on(ExperimentRun("one", spec, 2, scenario), sidecar.target).record
    other = play(scenario, wire_link(spec.name, spec.mode), tell_demand=True).record
    assert one.time_ms == other.time_ms
    assert one.used == other.used


def test_books_of_a_real_sidecar_agree_under_a_soak(sidecar):
    soak = Soak(sidecar.target, RandomScenario(seed=11, size=8, duration_ms=40_000))
    soak.play(PolicySpec("drf", mode="characterised"))
    assert (soak.compared, soak.wrong) == (7, [])
    assert soak.record is not None
    assert not soak.record.rejected


@pytest.mark.long
def test_a_sidecar_that_is_killed_and_restarted_receives_everything(tmp_path):
    """The master opens a new session with a snapshot; the books agree again."""
    process = SidecarProcess(tmp_path, {"log.level": "warning"})
    process.start()

    class Killed:
        """An experiment during which the sidecar dies twice."""

        scenario = experiment(3, jobs=3)
        kinds, agents, jobs = scenario.kinds, scenario.agents, scenario.jobs

        def begin(self, stage):
            self.master = stage.master
            self.scenario.begin(stage)
            for when_ms in (20_000, 45_000):
                stage.at(when_ms, self.kill)
                stage.at(when_ms + 5_500, self.compare)

        def kill(self):
            process.kill()
            process.start()

        def compare(self):
            self.master.settle()
            ours = of_ledger(self.master.ledger, self.master.event_heap.now_ms)
            wrong = differences(ours, of_sidecar(process.target), offered=False)
            assert not wrong
            assert len(ours) > 10

    try:
        played = play(Killed(), StreamLink(process.target), tell_demand=False)
    finally:
        process.stop()
    assert played.record.resyncs == 2
    assert not played.record.rejected
    assert len(played.progress.ended_ms) == 30


@pytest.mark.long
def test_a_sidecar_that_shuts_down_is_called_again(tmp_path):
    process = SidecarProcess(tmp_path, {"log.level": "warning"})
    process.start()

    class Restarted:
        scenario = experiment(4, jobs=1)
        kinds, agents, jobs = scenario.kinds, scenario.agents, scenario.jobs

        def begin(self, stage):
            self.scenario.begin(stage)
            stage.at(15_000, self.restart)

        def restart(self):
            process.stop()
            process.start()

    try:
        played = play(Restarted(), StreamLink(process.target), tell_demand=False)
    finally:
        process.stop()
    assert played.record.resyncs == 1
    assert not played.record.rejected


def test_a_newer_master_takes_over_and_the_older_is_notified(sidecar):
    older, newer = (StreamLink(sidecar.target, started_us=us) for us in (10, 20))
    first = EmulatedMaster(older)
    first.open()
    run_until(first, 2_000)
    second = EmulatedMaster(newer)
    second.open()
    with pytest.raises(SessionEndedError, match="superseded: instance"):
        run_until(first, 5_000)
    run_until(second, 5_000)
    assert second.record.resyncs == 0
    assert len(second.record.latency_s) == 6
    second.close()
    first.close()


def run_until(master, until_ms):
    while master.step(until_ms):
        pass


@pytest.mark.long
def test_two_workers_play_on_two_sidecars():
    spec = PolicySpec("drf", mode="characterised")
    runs = [ExperimentRun(f"run {seed}", spec, seed, experiment(seed, jobs=1)) for seed in range(3)]
    told = set()
    results = list(play_all(runs, workers=2, watch=lambda name, ended: told.add((name, ended))))
    assert sorted(result.name for result in results) == ["run 0", "run 1", "run 2"]
    assert all(result.memory_mib > 20 for result in results)
    assert {(run.name, 0) for run in runs} <= told


def test_the_policy_is_switched_on_a_running_sidecar(sidecar):
    """A policy set between two sessions applies to the next, and offers continue."""
    makespans = {}
    for name in ("drf", "rps-dsf"):
        set_policy(sidecar.target, PolicySpec(name, mode="characterised"))
        link = StreamLink(sidecar.target)
        makespans[name] = play(experiment(5, jobs=4), link, tell_demand=True).makespan_ms
    assert makespans["drf"] != makespans["rps-dsf"]


@pytest.mark.long
def test_memory_stays_bounded_from_run_to_run(sidecar):
    """From the second run on: during the first, compiled loops may still be loading."""
    sizes = []
    for seed in range(5):
        set_policy(sidecar.target, PolicySpec("drf"))
        play(experiment(seed, jobs=2), StreamLink(sidecar.target), tell_demand=False)
        sizes.append(sidecar.memory_mib()[0])
    assert sizes[-1] < sizes[1] + 16


def test_a_link_reports_that_no_sidecar_listens(tmp_path):
    link = StreamLink(f"unix:{tmp_path / 'nothing.sock'}")
    with pytest.raises(LinkDownError, match="no sidecar answers"):
        play_without_patience(link)


def play_without_patience(link):
    master = EmulatedMaster(link)
    master.session.patience_s = 0.0
    master.open()


def test_a_sidecar_that_cannot_start_is_reported_with_its_log(tmp_path):
    process = SidecarProcess(Path(tmp_path), {"policy.name": "no-such-policy"})
    with pytest.raises(SidecarFailedError, match="no-such-policy"):
        process.start()
