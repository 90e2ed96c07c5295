"""Plans are made from the observer's books: no cycle waits for one, and the journal replays."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AgentInfo,
    PlanProblem,
    Policy,
    PolicySpec,
    RemoveAgent,
    SetPolicy,
)
from allocator.core.checkpoint import to_columns
from allocator.policies import build
from allocator.policies.plan_guided import PlanGuided
from allocator.server.config import Config
from allocator.server.config.sections import JournalSection, PolicySection
from allocator.v1 import records_pb2 as pb
from allocator.wire import replay
from allocator.wire.journal.checkpoint import Mark, mark
from allocator.wire.journal.records import write_plan
from allocator.wire.journal.replay import Replay
from allocator.wire.settings.operator_settings import write_policy
from tests.server.engine.test_loop_journal import Heard, decisions, records
from tests.server.following.planned import WAIT_S, Planned, planned
from tests.server.sidecar_process import await_true
from tests.wire.dialogue import declined


class Slow:
    """A policy whose plans wait until a test releases them, and fail on request."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.fails = False
        self.hangs = 0
        self.end = threading.Event()

    def build(self, spec: PolicySpec) -> Policy:
        policy = build(spec)
        if not isinstance(policy, PlanGuided):
            return policy
        plan = policy.plan_function

        def slowly(problem: PlanProblem):
            self.begun.release()
            if self.hangs:
                self.hangs -= 1
                self.end.wait(WAIT_S)
                raise ArithmeticError("it went on for ever")
            assert self.go.wait(WAIT_S)
            if self.fails:
                raise ArithmeticError("no plan today")
            return plan(problem)

        return replace(policy, plan_function=slowly)


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    found.end.set()
    found.go.set()


@contextmanager
def cmmf(slow: Slow, path: Path | None = None, **options: Any) -> Iterator[Planned]:
    """A core that plans by cmmf, with its journal."""
    Heard.kept = []
    journal = JournalSection(path="" if path is None else str(path))
    config = Config(policy=PolicySection(name="cmmf"), journal=journal)
    with planned(config, slow.build, **options) as made:
        yield made
        slow.go.set()
        slow.end.set()


def marks(made: Planned) -> tuple[Mark, Mark]:
    """Checkpoints of the core's state, and of the books once they have all records."""
    of_core = made.loop.call(lambda: mark(to_columns(made.loop._sidecar.kept()))).result(WAIT_S)

    def follow() -> Mark:
        found = made.books._sidecar
        assert found is not None
        return mark(to_columns(found.kept()))

    return of_core, made.books.ask(follow, after=made.loop.feed.position).result(WAIT_S)


def test_cycles_do_not_wait_for_a_plan_and_go_by_it_when_it_has_come(slow, tmp_path):
    with cmmf(slow, tmp_path / "journal", budget_s=0.0) as made:
        planning = made.planning
        module = Heard(made.loop).begin()
        assert len(module.batch(10)), "the filling decides meanwhile"
        assert slow.begun.acquire(timeout=WAIT_S)
        await_true(lambda: planning.running_s > 0)
        for clock_ms in (1000, 2000):
            module.batch(clock_ms)
        made.loop.call(lambda: None).result(WAIT_S)
        assert planning.age_s is None
        assert planning.counts.late == 1, "it is counted once"
        slow.go.set()
        made.settle()
        assert (planning.counts.adopted, planning.counts.late) == (1, 1)
        assert planning.age_s is not None
        assert made.has_plan()
        module.batch(3000)
        made.settle()
        assert planning.counts.adopted == 1, "the plan stands"
        one, other = marks(made)
        assert one == other
    kept = records(tmp_path / "journal")
    assert [record for record in kept if record.HasField("plan")]
    assert decisions(replay(kept, build)) == Heard.kept


def test_a_failure_leaves_the_filling_and_is_not_repeated(slow):
    slow.fails = True
    slow.go.set()
    with cmmf(slow) as made:
        module = Heard(made.loop).begin()
        for clock_ms in (10, 1000, 2000):
            module.batch(clock_ms)
            made.settle()
        assert made.planning.counts.failed == 1
        assert made.planning.age_s is None
        assert not made.has_plan()


def test_a_plan_for_a_session_that_is_over_is_dropped(slow):
    with cmmf(slow) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        assert slow.begun.acquire(timeout=WAIT_S)
        made.loop.close(module.port)
        slow.go.set()
        await_true(lambda: made.planning.counts.dropped == 1)
        assert made.planning.counts.adopted == 0
        assert not made.has_plan()


def test_the_cluster_is_examined_once_per_interval(slow, monkeypatch):
    """Even while the plan is current: checking that requires a copy of the state."""
    slow.go.set()
    with cmmf(slow, interval_s=3600.0) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        made.settle()
        module.batch(500)  # a first plan is not counted as a check
        made.settle()
        looks = []
        allocator = made.books.ask(lambda: made.books.allocator).result(WAIT_S)
        problem = allocator.problem

        def counted():
            looks.append(1)
            return problem()

        monkeypatch.setattr(allocator, "problem", counted)
        module.batch(1000)
        made.settle()
        assert looks == [], "the interval since the plan began is not over"
        planner = made.books.planner
        assert planner is not None
        planner._next_s = 0.0  # now it is
        for clock_ms in (2000, 3000):
            module.batch(clock_ms)
        made.settle()
        assert (made.planning.counts.adopted, looks) == (1, [1])


def plan_after(kept):
    """The plan in force after these records."""
    player = Replay(build)
    for record in kept:
        player.take(record)
    player.finish()
    assert player._sidecar is not None
    return player._sidecar.allocator.state.plan


def test_the_first_cycle_goes_by_the_first_plan_and_a_replay_does(slow, tmp_path):
    slow.go.set()
    with cmmf(slow, tmp_path / "journal", interval_s=WAIT_S, first_wait_s=WAIT_S) as made:
        module = Heard(made.loop).begin()
        assert len(module.batch(10))
        assert made.has_plan()
        made.settle()
        module.batch(1000)
        made.settle()
        one, other = marks(made)
        assert one == other
        adopted = made.planning.counts.adopted
    kept = records(tmp_path / "journal")
    (first,) = [n for n, record in enumerate(kept) if record.answered.HasField("first_plan")]
    # A plan is recorded with the answer that waited for it; later ones are records of their own.
    plans = [record for record in kept if record.HasField("plan")]
    assert len(plans) == adopted - 1
    assert decisions(replay(kept, build)) == Heard.kept
    assert plan_after(kept[: first + 1]) is not None
    # So the recorded wait makes the difference.
    kept[first].answered.ClearField("first_plan")
    assert plan_after(kept[: first + 1]) is None


def test_a_new_policy_and_a_new_session_wait_for_a_first_plan(slow):
    slow.go.set()
    with cmmf(slow, interval_s=WAIT_S, first_wait_s=WAIT_S) as made:
        loop, planning = made.loop, made.planning
        module = Heard(loop)
        module.begin()
        offered = module.batch(10)
        # After the first answer another plan is made beside the cycles; then none for a long time.
        made.settle()
        before = planning.counts.adopted
        loop.call(partial(loop.step, SetPolicy(PolicySpec("ps-dsf-exact")))).result(WAIT_S)
        module.batch(1000, module.all_offered(offered), declined(offered, refuse_ms=-1))
        assert planning.counts.adopted == before + 1
        Heard(loop, "other", 2).begin().batch(10)
        assert planning.counts.adopted == before + 2


def test_a_first_plan_that_takes_too_long_is_waited_for_no_longer(slow):
    with cmmf(slow, first_wait_s=0.001) as made:
        module = Heard(made.loop).begin()
        assert len(module.batch(10)), "the filling decides"
        assert slow.begun.acquire(timeout=WAIT_S)
        slow.go.set()
        made.settle()
        assert made.planning.counts.adopted == 1
        assert made.has_plan()


def test_a_first_plan_that_cannot_be_made_delays_no_cycle(slow):
    slow.fails = True
    slow.go.set()
    with cmmf(slow, first_wait_s=WAIT_S) as made:
        module = Heard(made.loop).begin()
        assert len(module.batch(10))
        assert made.planning.counts.failed >= 1
        assert made.planning.age_s is None


def test_without_an_observer_cycles_go_by_the_last_plan_and_wait_for_none(slow):
    slow.go.set()
    with cmmf(slow, first_wait_s=WAIT_S) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        made.settle()
        adopted = made.planning.counts.adopted
        made.leave()
        await_true(lambda: not made.planning.is_linked)
        module.batch(1000, AddAgent(8, AgentInfo("agent-8"), {0: 64_000}))
        assert made.has_plan()
        assert len(Heard(made.loop, "other", 2).begin().batch(10)), "the filling decides at once"
        assert not made.has_plan()
        assert made.planning.counts.adopted == adopted


def test_an_observer_that_dies_over_the_first_plan_ends_the_wait(slow):
    with cmmf(slow, first_wait_s=3600.0) as made:
        module = Heard(made.loop).begin()
        module.say(module.client.batch(10, (), cycle=True))
        assert slow.begun.acquire(timeout=WAIT_S)
        with pytest.raises(LookupError, match="waits for its first plan"):
            made.books.ask(made.books.whole).result(WAIT_S)
        made.leave()
        assert next(module.answers).HasField("decisions")
        assert not made.has_plan()
        assert made.planning.running_s == 0


def test_a_plan_that_hangs_costs_one_plan(slow):
    slow.hangs = 1
    slow.go.set()
    with cmmf(slow, give_up_s=0.0) as made:
        planner = made.books.planner
        assert planner is not None
        module = Heard(made.loop).begin()
        module.batch(10)
        await_true(lambda: made.planning.counts.failed == 1)
        planner._give_up_s = WAIT_S
        module.batch(1000, AddAgent(8, AgentInfo("agent-8"), {0: 64_000}))
        await_true(lambda: made.planning.counts.adopted == 1)


def test_a_plan_does_not_keep_the_previous_one(slow):
    """Each problem is as large as the cluster."""
    slow.go.set()
    with cmmf(slow) as made:
        module = Heard(made.loop).begin()
        for agent in (8, 9):
            module.batch(1000 * agent, AddAgent(agent, AgentInfo(f"agent-{agent}"), {0: 64_000}))
            made.settle()
        assert made.planning.counts.adopted == 2, "more agents, another plan"
        planner = made.books.planner
        assert planner is not None
        assert planner._last is not None
        assert planner._last.before is None


def test_an_agent_that_goes_while_the_plan_is_made_is_left_out_of_it(slow):
    """Another agent may have its row by then."""
    with cmmf(slow) as made:
        module = Heard(made.loop).begin()
        module.batch(1000, AddAgent(8, AgentInfo("agent-8"), {0: 64_000}))
        assert slow.begun.acquire(timeout=WAIT_S)
        module.batch(2000, RemoveAgent(8), AddAgent(8, AgentInfo("another"), {0: 64_000}))
        slow.go.set()
        await_true(made.has_plan)
        plan = made.loop.call(lambda: made.loop.allocator.state.plan).result(WAIT_S)
        assert plan is not None
        assert plan.group[8] == -1
        assert plan.group[1] >= 0


def reported(made: Planned, change=lambda _report: None) -> pb.ReportResponse:
    """Report a plan for the current state, with a change."""

    def written() -> pb.ReportRequest:
        allocator = made.loop.allocator
        problem = allocator.problem()
        assert problem is not None
        rows = problem.rows()
        return pb.ReportRequest(
            session=made.loop.active,
            policy=write_policy(allocator.settings.policy),
            proposal=pb.PlanProposal(
                position=made.loop.feed.position,
                plan=write_plan(allocator.plan_for(problem).plan),
                agents=rows.agents,
                frameworks=[framework for framework, _ in rows.clients],
                roles=[role for _, role in rows.clients],
            ),
        )

    report = made.loop.call(written).result(WAIT_S)
    change(report)
    return made.report(report)


def wrong_session(report: pb.ReportRequest) -> None:
    report.session += 1


def wrong_policy(report: pb.ReportRequest) -> None:
    report.policy.name = "tsf"


def of_the_future(report: pb.ReportRequest) -> None:
    report.proposal.position += 1000


def torn(report: pb.ReportRequest) -> None:
    report.proposal.plan.target = report.proposal.plan.target[:-3]


def not_finite(report: pb.ReportRequest) -> None:
    target = np.frombuffer(report.proposal.plan.target, "<f8").copy()
    target[:] = np.nan
    report.proposal.plan.target = target.tobytes()


def unknown_agents(report: pb.ReportRequest) -> None:
    del report.proposal.agents[1:]


def unknown_clients(report: pb.ReportRequest) -> None:
    del report.proposal.frameworks[1:]
    del report.proposal.roles[1:]


def uneven_clients(report: pb.ReportRequest) -> None:
    del report.proposal.roles[1:]


def leaves_beyond(report: pb.ReportRequest) -> None:
    report.proposal.plan.leave = np.array([10**6 << 32], "<i8").tobytes()


def no_such_group(report: pb.ReportRequest) -> None:
    group = np.frombuffer(report.proposal.plan.group, "<i8").copy()
    group[:] = 10**6
    report.proposal.plan.group = group.tobytes()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (wrong_session, "another session"),
        (wrong_policy, "another policy"),
        (of_the_future, "of the future"),
        (torn, "cannot be read"),
        (not_finite, "finite"),
        (unknown_agents, "agents that the problem did not have"),
        (unknown_clients, "clients that the problem did not have"),
        (uneven_clients, "cannot be read"),
        (leaves_beyond, "rows that the problem did not have"),
        (no_such_group, "a group that does not exist"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_and_nothing_changes(slow, change, why):
    slow.go.set()
    with cmmf(slow, interval_s=3600.0) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        made.settle()
        before = marks(made)
        records_then = made.loop.feed.position
        verdict = reported(made, change)
        assert why in verdict.refused
        assert verdict.stale == (change in {wrong_session, wrong_policy, of_the_future})
        assert marks(made) == before
        assert made.loop.feed.position == records_then, "nothing is recorded"
        assert not reported(made).refused, "as it is it fits"
        assert made.loop.feed.position == records_then + 1


def test_a_plan_that_is_older_than_the_one_in_force_is_refused(slow):
    slow.go.set()
    with cmmf(slow, interval_s=3600.0) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        made.settle()

        def old(report: pb.ReportRequest) -> None:
            report.proposal.position = 0

        verdict = reported(made, old)
        assert "older than the plan in force" in verdict.refused
        assert verdict.stale


def test_a_plan_that_is_too_large_is_not_sent(slow, monkeypatch):
    monkeypatch.setattr("allocator.server.following.planning.PLAN_BYTES_MAX", 10)
    slow.go.set()
    with cmmf(slow) as made:
        module = Heard(made.loop).begin()
        module.batch(10)
        made.settle()
        assert (made.planning.counts.failed, made.planning.counts.adopted) == (1, 0)
