"""Quincy asks frameworks above their share to leave agents, if an operator permits it."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from allocator.core import Allocator, InverseOffer, PlanProblem, PolicySpec, Reclaims, Settings
from allocator.policies import build
from laboratory.experiments.runs import ExperimentRun, play_on
from laboratory.frameworks.base import Identity
from laboratory.frameworks.batch import TaskQueue
from laboratory.links.sidecar_process import SidecarProcess
from laboratory.resources import AgentSpec
from laboratory.workloads.play import Played, play
from laboratory.workloads.scenario import JobStage
from laboratory.workloads.traces import Arrival, Replay
from tests.laboratory.master.masters import Listener, master_for, run
from tests.torture.wire_link import WireLink

FAR_MS = 10**12
NEED = {"cpus": 4000, "mem": 4_096_000}


@dataclass
class Crowded:
    """Red has four agents for a long time; ten seconds later blue comes, with short tasks."""

    lasts_ms: int
    scheduled: bool

    def __post_init__(self) -> None:
        agents = tuple((0, AgentSpec(f"host{number}", NEED)) for number in range(4))
        red = Arrival(0, "red", "red", NEED, (self.lasts_ms,) * 4)
        blue = Arrival(10_000, "blue", "blue", NEED, (5_000,) * 2)
        self.replay = Replay(("cpus", "mem"), agents, (red, blue))
        self.kinds, self.agents, self.jobs = self.replay.kinds, self.replay.agents, 2

    def begin(self, stage: JobStage) -> None:
        self.replay.begin(stage)
        if self.scheduled:
            stage.at(5_000, partial(self._schedule, stage))

    def _schedule(self, stage: JobStage) -> None:
        for agent in tuple(stage.master.ledger.agents):
            stage.master.maintain(agent, (FAR_MS, 0))


def spec(preempt: str) -> PolicySpec:
    parameters = {"preempt": preempt}
    return PolicySpec("quincy", mode="characterised", parameters=parameters)


def played(preempt: str, *, scheduled: bool) -> Played:
    settings = Settings(policy=spec(preempt))
    link = WireLink(lambda kept: Allocator(build, kept, plans=True), settings)
    return play(Crowded(100_000, scheduled), link, tell_demand=True)


def test_red_gives_two_agents_up_and_runs_its_tasks_again_later() -> None:
    done = played("on", scheduled=True)
    # Half of the agents are blue's part, and no more are requested.
    assert done.record.inverse_offers == 2
    assert max(done.record.waits_ms) < 3_000
    # The two tasks that were killed started again once blue had left.
    assert 115_000 < done.makespan_ms < 125_000
    assert not done.record.rejected


@pytest.mark.parametrize(("preempt", "scheduled"), [("off", True), ("on", False)])
def test_otherwise_blue_waits_until_tasks_end(preempt: str, *, scheduled: bool) -> None:
    done = played(preempt, scheduled=scheduled)
    assert done.record.inverse_offers == 0
    assert max(done.record.waits_ms) > 85_000
    assert not done.record.rejected


@pytest.mark.long
def test_a_sidecar_that_plans_beside_its_cycles_asks_too(tmp_path) -> None:
    """Simulated time continues while it plans, so the tasks are long.

    It makes no plan while its loops are being compiled, as after a change of them: then repeat.
    """
    once = ExperimentRun("one", spec("on"), 1, Crowded(4_000_000, scheduled=True))
    with SidecarProcess(tmp_path, {"policy.plan_interval_ms": "10"}) as sidecar:
        for master in range(1, 40):
            done = play_on(once, sidecar.target, started_us=master)
            if done.record.inverse_offers:
                break
    assert done.record.inverse_offers == 2
    assert max(done.record.waits_ms) < 3_000_000
    assert not done.record.rejected


class Asked(TaskQueue):
    """A framework that is asked to leave agents: it complies, ignores it, or leaves late."""

    LATE_MS = 15_000

    def __init__(self, *what, answer: str) -> None:
        super().__init__(*what)
        self.answer = answer
        self.asked: list[int] = []
        self.ended = 0

    def asked_to_leave(self, agent: int) -> None:
        self.asked.append(agent)
        if self.answer == "refuses":
            self._master.answer_inverse_offer(self, agent, accept=False, refuse_ms=5_000)
        if self.answer in {"gives way", "leaves late"}:
            late_ms = self.LATE_MS if self.answer == "leaves late" else 0
            self._master.event_heap.after(late_ms, partial(self._leave_agent, agent))

    def _leave_agent(self, agent: int) -> None:
        self.ended += sum(task.agent == agent for task in self.running)
        super().asked_to_leave(agent)


class Fussy(TaskQueue):
    """A framework that refuses the remainders of some agents for longer than those of others."""

    def offered(self, offers) -> None:
        for offer in offers:
            self.refuse_ms = 1_500 * offer.agent
            super().offered([offer])


class PlanningBeside(WireLink):
    """A link whose plans are made after cycles, while offers are still unanswered."""

    def __init__(self, *what) -> None:
        super().__init__(*what)
        self.problem: PlanProblem | None = None
        self.asked: dict = {}

    def exchange(self, batch):
        made, allocator = super().exchange(batch), self.allocator
        problem, planning_policy = allocator.problem(), allocator.planning_policy
        assert planning_policy is not None
        if problem is None or (self.problem and planning_policy.stands(self.problem, problem)):
            return made
        self.sidecar.step(allocator.fresh(problem.rows(), allocator.plan_for(problem).plan))
        self.problem = problem
        return made

    def close(self) -> None:
        self.asked = self.allocator.state.asked  # the frameworks asked at the end
        super().close()


class Rests:
    """Red uses most of four agents; the remainder of each is less than a task of blue's."""

    kinds, jobs = ("cpus", "mem"), 2
    agents = tuple((0, AgentSpec(f"host{number}", NEED)) for number in range(4))

    def __init__(self, manner: str) -> None:
        need = {"cpus": 900, "mem": 900_000}
        self.red = Asked(Identity("red", ("red",)), need, [600_000] * 16, answer=manner)
        self.blue = Fussy(Identity("blue", ("blue",)), need, [500_000] * 8)

    def begin(self, stage: JobStage) -> None:
        stage.at(0, lambda: stage.submit(self.red))
        stage.at(5_000, partial(self._schedule, stage))
        stage.at(10_000, lambda: stage.submit(self.blue))

    def _schedule(self, stage: JobStage) -> None:
        for agent in tuple(stage.master.ledger.agents):
            stage.master.maintain(agent, (FAR_MS, 0))


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
@pytest.mark.parametrize("manner", ["gives way", "ignores", "leaves late"])
def test_only_the_chosen_framework_is_asked(manner: str, mode: str) -> None:
    """Blue's part is two of four agents: red is asked to leave two, whatever it answers."""
    scene = Rests(manner)
    policy = replace(spec("on"), mode=mode)
    link = PlanningBeside(lambda kept: Allocator(build, kept), Settings(policy=policy))
    done = play(scene, link, tell_demand=False, until_ms=60_000, to_end=False)
    assert len(scene.red.asked) == len(set(scene.red.asked)) == 2
    leaves = manner != "ignores"
    assert scene.red.ended == (8 if leaves else 0)
    assert len(scene.blue.running) == (8 if leaves else 0)
    assert not done.record.rejected
    assert [agent for _, agent in sorted(link.asked)] == ([] if leaves else sorted(scene.red.asked))


def test_a_framework_that_refuses_is_not_asked_for_the_same_agent_again() -> None:
    scene = Rests("refuses")
    link = PlanningBeside(lambda kept: Allocator(build, kept), Settings(policy=spec("on")))
    play(scene, link, tell_demand=False, until_ms=20_000, to_end=False)
    assert sorted(scene.red.asked) == [1, 2, 3, 4]


@pytest.mark.parametrize(("lasts_ms", "asked"), [(995, 1), (1500, 1), (985, 0)])
def test_a_framework_that_left_gets_no_inverse_offer(lasts_ms, asked) -> None:
    """It is asked at 1000 ms and would receive that 10 ms later, after its only task started."""

    class Asking(Listener):
        def exchange(self, batch):
            decisions = super().exchange(batch)
            both = np.array([1]), np.array([1])
            return replace(decisions, reclaims=Reclaims(*both)) if batch.clock_ms else decisions

    link = Asking(script=[[(1, 1, 1, (4000, 4_096_000))]])
    master = master_for(link)
    master.subscribe(TaskQueue(Identity("one", ("red",)), NEED, [lasts_ms]))
    master.maintain(1, (FAR_MS, 0))
    run(master, 1200)
    assert master.record.inverse_offers == asked
    answers = [each for each in link.messages if isinstance(each, InverseOffer)]
    assert len(answers) == (lasts_ms == 1500)
