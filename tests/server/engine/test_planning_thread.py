"""The planning thread: nothing waits for a plan, and its journal replays."""

import os
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from allocator.core import AddAgent, AgentInfo, Allocator, Policy, PolicySpec, Problem, SetPolicy
from allocator.policies import build
from allocator.policies.plan_guided import PlanGuided
from allocator.server.config import Config
from allocator.server.config.sections import JournalSection, PolicySection
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.planning import PlanningThread
from allocator.server.system.frozen import is_child
from allocator.wire import replay
from allocator.wire.journal.replay import Replay
from tests.server.engine.test_loop_journal import Heard, decisions, records
from tests.wire.dialogue import declined

WAIT_S = 60.0


def planning_for(loop: CoreLoop, **options: Any) -> PlanningThread:
    planning = PlanningThread(loop, **options)
    loop.after_message, loop.first_plan = planning.look, planning.first
    return planning


class Slow:
    """A policy whose plans wait until they are released, and fail on request."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.fails = False

    def build(self, spec: PolicySpec) -> Policy:
        policy = build(spec)
        if not isinstance(policy, PlanGuided):
            return policy
        plan = policy.plan_function

        def slowly(problem: Problem):
            self.begun.release()
            assert self.go.wait(WAIT_S)
            if self.fails:
                raise ArithmeticError("no plan today")
            return plan(problem)

        return replace(policy, plan_function=slowly)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture(params=[False, True], ids=["here", "apart"])
def started(request, monkeypatch, tmp_path: Path, slow: Slow):
    """A loop, its thread that plans, and its journal. Problems are made here, or apart."""
    if request.param:
        monkeypatch.setattr("allocator.server.engine.apart.LARGE", 0)
    config = Config(
        policy=PolicySection(name="cmmf"),
        journal=JournalSection(path=str(tmp_path / "journal")),
    )
    loop = CoreLoop(config, build_policy=slow.build)
    planning = planning_for(loop, budget_s=0.0, interval_s=0.0)
    loop.start()
    planning.start()
    yield loop, planning
    slow.go.set()
    planning.stop()
    loop.stop()


def looked(loop: CoreLoop) -> None:
    """Wait until the thread that plans has seen the last message, which is answered before."""
    loop.call(lambda: None).result(WAIT_S)


def settle(loop: CoreLoop, planning: PlanningThread) -> None:
    """Wait until the plan that is being computed is taken over."""
    done = threading.Event()

    def look() -> None:
        done.set() if planning.running_s == 0 else loop.call(look)

    loop.call(look)
    assert done.wait(WAIT_S)


def test_cycles_do_not_wait_for_a_plan_and_go_by_it_when_it_has_come(started, slow, tmp_path):
    loop, planning = started
    Heard.kept = []
    module = Heard(loop).begin()
    assert len(module.batch(10)), "the filling decides meanwhile"
    assert slow.begun.acquire(timeout=WAIT_S)
    module.batch(1000)
    looked(loop)
    assert planning.age_s is None
    assert planning.running_s > 0
    assert planning.counts.late == 1, "it is counted once"
    module.batch(2000)
    looked(loop)
    assert planning.counts.late == 1
    slow.go.set()
    settle(loop, planning)
    assert (planning.counts.adopted, planning.counts.late) == (1, 1)
    assert planning.age_s is not None
    assert loop.call(lambda: loop.allocator.state.plan is not None).result(WAIT_S)
    module.batch(3000)
    settle(loop, planning)
    assert planning.counts.adopted == 1, "the plan stands"
    loop.stop()
    kept = records(tmp_path / "journal")
    assert [record for record in kept if record.HasField("plan")]
    assert decisions(replay(kept, build)) == Heard.kept


def test_a_failure_leaves_the_filling_and_is_not_repeated(started, slow):
    loop, planning = started
    slow.fails = True
    slow.go.set()
    module = Heard(loop).begin()
    Heard.kept = []
    for clock_ms in (10, 1000, 2000):
        module.batch(clock_ms)
        settle(loop, planning)
    assert planning.counts.failed == 1
    assert planning.age_s is None
    assert loop.call(lambda: loop.allocator.state.plan).result(WAIT_S) is None


def test_a_plan_for_a_session_that_is_over_is_dropped(started, slow):
    loop, planning = started
    Heard.kept = []
    module = Heard(loop).begin()
    module.batch(10)
    assert slow.begun.acquire(timeout=WAIT_S)
    loop.close(module.port)
    slow.go.set()
    settle(loop, planning)
    assert (planning.counts.adopted, planning.counts.dropped) == (0, 1)
    assert loop.call(lambda: loop.allocator.state.plan).result(WAIT_S) is None


def test_the_cluster_is_looked_at_once_an_interval(slow, monkeypatch):
    """Although the plan stands: to see that takes a copy of everything."""
    loop = CoreLoop(Config(policy=PolicySection(name="cmmf")), build_policy=slow.build)
    planning = planning_for(loop, budget_s=1.0, interval_s=3600.0)
    loop.start()
    planning.start()
    slow.go.set()
    Heard.kept = []
    module = Heard(loop).begin()
    module.batch(10)
    settle(loop, planning)
    looks = []
    problem = loop.allocator.problem

    def counted():
        looks.append(1)
        return problem()

    monkeypatch.setattr(loop.allocator, "problem", counted)
    module.batch(1000)
    looked(loop)
    assert looks == [], "the interval since the plan began is not over"
    planning._next_s = 0.0  # now it is
    for clock_ms in (2000, 3000):
        module.batch(clock_ms)
    looked(loop)
    assert (planning.counts.adopted, looks) == (1, [1])
    planning.stop()
    loop.stop()


@pytest.fixture
def waiting(tmp_path: Path, slow: Slow):
    """A sidecar's loop whose first cycle waits for its plan; with its journal."""
    config = Config(
        policy=PolicySection(name="cmmf"),
        journal=JournalSection(path=str(tmp_path / "journal")),
    )
    loop = CoreLoop(config, build_policy=slow.build)
    # Only first plans: others would come at any time after an answer.
    planning = planning_for(loop, budget_s=WAIT_S, interval_s=WAIT_S, first_wait_s=WAIT_S)
    loop.start()
    planning.start()
    yield loop, planning
    slow.go.set()
    planning.stop()
    loop.stop()


def plan_after(kept):
    """The plan in force after these records."""
    player = Replay(build)
    for record in kept:
        player.take(record)
    player.finish()
    assert player._sidecar is not None
    return player._sidecar.allocator.state.plan


def test_the_first_cycle_goes_by_the_first_plan_and_a_replay_does(waiting, slow, tmp_path):
    loop, planning = waiting
    slow.go.set()
    Heard.kept = []
    module = Heard(loop).begin()
    assert len(module.batch(10))
    assert loop.call(lambda: loop.allocator.state.plan is not None).result(WAIT_S)
    module.batch(1000)
    loop.stop()
    kept = records(tmp_path / "journal")
    (first,) = [n for n, record in enumerate(kept) if record.answered.HasField("first_plan")]
    # It stands with the answer that waited for it; those that came later, by themselves.
    plans = [record for record in kept if record.HasField("plan")]
    assert len(plans) == planning.counts.adopted - 1
    assert decisions(replay(kept, build)) == Heard.kept
    assert plan_after(kept[: first + 1]) is not None
    # So what is written of the wait makes the difference.
    kept[first].answered.ClearField("first_plan")
    assert plan_after(kept[: first + 1]) is None


def test_another_policy_and_another_session_wait_once_more(waiting, slow):
    loop, planning = waiting
    slow.go.set()
    Heard.kept = []
    module = Heard(loop)
    module.begin()
    made = module.batch(10)
    # After the first answer another plan is made beside the cycles; after that none for long.
    settle(loop, planning)
    before = planning.counts.adopted
    loop.call(partial(loop.step, SetPolicy(PolicySpec("ps-dsf-exact")))).result(WAIT_S)
    module.batch(1000, module.all_offered(made), declined(made, refuse_ms=-1))
    assert planning.counts.adopted == before + 1
    Heard(loop, "other", 2).begin().batch(10)
    assert planning.counts.adopted == before + 2


def test_a_first_plan_that_takes_too_long_is_waited_for_no_longer(slow):
    loop = CoreLoop(Config(policy=PolicySection(name="cmmf")), build_policy=slow.build)
    planning = planning_for(loop, budget_s=WAIT_S, interval_s=0.0, first_wait_s=0.001)
    loop.start()
    planning.start()
    Heard.kept = []
    module = Heard(loop).begin()
    assert len(module.batch(10)), "the filling decides"
    assert planning.running_s > 0
    slow.go.set()
    settle(loop, planning)
    assert planning.counts.adopted == 1
    assert loop.call(lambda: loop.allocator.state.plan is not None).result(WAIT_S)
    planning.stop()
    loop.stop()


def test_a_first_plan_that_cannot_be_made_holds_nobody_up(waiting, slow):
    loop, planning = waiting
    slow.fails = True
    slow.go.set()
    Heard.kept = []
    module = Heard(loop).begin()
    assert len(module.batch(10))
    assert planning.counts.failed >= 1
    assert planning.age_s is None


def test_what_a_plan_followed_is_not_kept_with_it(started, slow):
    """Each problem is as large as the cluster."""
    loop, planning = started
    slow.go.set()
    Heard.kept = []
    module = Heard(loop)
    module.begin()
    for agent in (8, 9):
        module.batch(1000 * agent, AddAgent(agent, AgentInfo(f"agent-{agent}"), {0: 64_000}))
        settle(loop, planning)
    assert planning.counts.adopted == 2, "more agents, another plan"
    last = loop.call(lambda: planning._last).result(WAIT_S)
    assert last is not None
    assert last.before is None


def test_where_a_process_fails_the_next_problem_is_made_here(monkeypatch, started, slow):
    loop, planning = started
    monkeypatch.setattr("allocator.server.engine.apart.LARGE", 0)
    problem = Allocator.problem

    def made(allocator: Allocator) -> Problem | None:
        if is_child():
            os._exit(3)
        return problem(allocator)

    monkeypatch.setattr(Allocator, "problem", made)
    slow.go.set()
    module = Heard(loop).begin()
    for clock_ms in (10, 1000):
        module.batch(clock_ms)
        settle(loop, planning)
    assert (loop.apart.begun, loop.apart.failed) == (1, 1)
    assert (planning.counts.adopted, planning.counts.failed) == (1, 0)
