"""Plans, computed from the observer's books in the background.

After a cycle the problem is copied between two records. If the last plan is not valid for it, the
policy computes another one in a separate thread, and the deciding process is asked to adopt it
(`engine/planning.py`). The books receive adopted plans by the record stream.

If a cycle of the deciding process may wait for its first plan, the events of its message are
applied before the answer arrives, so that the plan is for the state that the cycle sees.

A thread cannot be ended from outside. One that does not finish is abandoned after some time, and
continues beside the next one; no plan is started while `GIVEN_UP_MAX` of them remain.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from allocator.core import Allocator, Plan, PlanningPolicy, PlanProblem, PolicySpec, has_free
from allocator.server.engine.feed import PLAN_BYTES_MAX
from allocator.v1 import records_pb2 as pb
from allocator.wire.journal.follower import Follower
from allocator.wire.journal.records import write_plan
from allocator.wire.settings.operator_settings import write_policy

GIVE_UP_S = 60.0
"""Minimum time after which a plan is abandoned; it may take a hundred times its budget."""

GIVEN_UP_MAX = 2

_log = structlog.get_logger()

SendReport = Callable[[pb.ReportRequest], pb.ReportResponse]
"""Sends a report to the deciding process. Raises ConnectionError if that fails."""


@dataclass(slots=True, eq=False)
class _Run:
    """The computation of a plan.

    `before`: the previous run, whose plan may be valid for this problem.
    `stands`: whether that plan is valid, so that no other one was computed.
    `failed`: whether no plan was found for this problem; the next run needs another problem.
    """

    allocator: Allocator
    policy: PlanningPolicy
    spec: PolicySpec
    session: int
    position: int
    problem: PlanProblem
    before: "_Run | None"
    taken_s: float
    thread: threading.Thread | None = None
    stands: bool = False
    failed: bool = False

    def is_for(self, allocator: Allocator) -> bool:
        return self.allocator is allocator and self.policy is allocator.planning_policy


class Planner:
    """Makes plans, one at a time."""

    def __init__(
        self,
        report: SendReport,
        ask: Callable[[Callable[[], None]], object],
        *,
        interval_s: float,
        is_awaited: bool = True,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        """Start without a plan.

        `ask`: runs work on the books' thread.
        `interval_s`: minimum time between two copies of the problem.
        `is_awaited`: whether cycles wait for the first plan.
        `give_up_s`: maximum time for a plan.
        """
        self._report, self._ask = report, ask
        self._interval_s, self._give_up_s, self._is_awaited = interval_s, give_up_s, is_awaited
        # On the books' thread only.
        self._run: _Run | None = None
        self._last: _Run | None = None
        self._given_up: list[threading.Thread] = []
        self._greeted = False
        self._cycle = 0
        self._next_s = 0.0
        self._after = 0
        # The allocator and policy for which a first plan was begun.
        self._first: tuple[Allocator, PlanningPolicy] | None = None

    def renew(self) -> None:
        """Reset, because the books come from a new stream."""
        self._greeted, self._last, self._after = False, None, 0

    def look(self, follower: Follower, position: int) -> None:
        """Check, after some records, whether a plan is needed; `position`: number of records."""
        try:
            self._look(follower, position)
        except Exception:  # noqa: BLE001 - the books must continue.
            _log.exception("no plan could be begun")

    def _look(self, follower: Follower, position: int) -> None:
        if not self._greeted:
            self._greeted = True
            self._begin_thread(self._greet)
        sidecar, now_s = follower.sidecar, time.monotonic()
        if sidecar is None:
            return
        allocator = sidecar.allocator
        if self._last is not None and not self._last.is_for(allocator):
            self._last = None
        if self._run is not None and now_s - self._run.taken_s > self._give_up_s:
            self._give_up(self._run)
        policy, run = allocator.planning_policy, self._run
        if policy is None or position < self._after or (run and run.is_for(allocator)):
            return
        is_first = self._is_first(follower, allocator, policy)
        rests = allocator.cycle in (0, self._cycle) or now_s < self._next_s
        if not is_first and (run is not None or rests):
            return
        problem = allocator.problem()
        if problem is None:
            return
        if is_first:
            self._first = allocator, policy
        else:
            # Copying and comparing the whole cluster takes too long to do it after each cycle.
            self._cycle, self._next_s = allocator.cycle, now_s + self._interval_s
        spec, session = allocator.settings.policy, sidecar.active
        run = _Run(allocator, policy, spec, session, position, problem, self._last, now_s)
        self._begin(run)

    def _is_first(self, follower: Follower, allocator: Allocator, policy: PlanningPolicy) -> bool:
        state, first = allocator.state, self._first
        if not self._is_awaited or state.plan is not None or state.paused:
            return False
        if first is not None and first[0] is allocator and first[1] is policy:
            return False
        return follower.begin_waiting() and has_free(state, None)

    def _begin(self, run: _Run) -> None:
        before, self._run = self._run, None
        if before is not None and before.thread is not None:
            self._given_up.append(before.thread)
        self._given_up = [each for each in self._given_up if each.is_alive()]
        if len(self._given_up) >= GIVEN_UP_MAX:
            return
        self._run = run
        run.thread = self._begin_thread(partial(self._work, run))

    def _begin_thread(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name="planning", daemon=True)
        thread.start()
        return thread

    def _give_up(self, run: _Run) -> None:
        self._run = None
        if run.thread is not None:
            self._given_up.append(run.thread)
        self._last, run.failed, run.before = run, True, None
        took_s = time.monotonic() - run.taken_s
        failure = f"it was not ready after {took_s:.0f} s and is given up"
        self._begin_thread(partial(self._tell_given_up, run, failure, took_s))

    def _take(self, run: _Run, verdict: pb.ReportResponse | None) -> None:
        """Process the result of a run, unless it was abandoned.

        `verdict`: None if the report to the deciding process failed.
        """
        if self._run is not run:
            return
        self._run, run.before = None, None  # or each run would keep all earlier problems
        if verdict is not None and not run.stands:
            run.failed = run.failed or bool(verdict.refused)
            self._last = None if verdict.stale else run
            self._after = verdict.position

    # On the thread of a plan.

    def _greet(self) -> None:
        try:
            self._report(pb.ReportRequest())
        except ConnectionError:
            self._ask(self.renew)

    def _work(self, run: _Run) -> None:
        verdict = None
        try:
            verdict = self._plan(run)
        except ConnectionError as error:
            _log.warning("a plan could not be reported", error=str(error))
        finally:
            self._ask(partial(self._take, run, verdict))

    def _plan(self, run: _Run) -> pb.ReportResponse | None:
        before = run.before
        begun_s = time.monotonic()
        try:
            if before is not None and run.policy.stands(before.problem, run.problem):
                run.stands = True
                return None if before.failed else self._tell(run, stands=pb.PlanStands())
            self._tell(run, begun=pb.PlanBegun())
            begun_s = time.monotonic()
            plan = run.policy.plan(run.problem)
            took_s = time.monotonic() - begun_s
            if plan is run.problem.plan:  # the plan in force is still valid
                return self._tell(run, took_s=took_s, stands=pb.PlanStands())
            proposal = _proposal(run, plan)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - cycles continue with the previous plan.
            run.failed = True
            failure = f"{type(error).__name__}: {error}"
            return self._tell(run, failure=failure, took_s=time.monotonic() - begun_s)
        return self._tell(run, took_s=took_s, proposal=proposal)

    def _tell_given_up(self, run: _Run, failure: str, took_s: float) -> None:
        with suppress(ConnectionError):
            self._tell(run, failure=failure, took_s=took_s)

    def _tell(self, run: _Run, **said: object) -> pb.ReportResponse:
        policy, ago_s = write_policy(run.spec), time.monotonic() - run.taken_s
        what: Any = {"session": run.session, "policy": policy, "ago_s": ago_s, **said}
        return self._report(pb.ReportRequest(**what))


def _proposal(run: _Run, plan: Plan) -> pb.PlanProposal:
    """Convert a plan and its rows' identities to a message. Raises ValueError if too large."""
    rows = run.problem.rows()
    proposal = pb.PlanProposal(
        position=run.position,
        plan=write_plan(plan),
        agents=rows.agents,
        frameworks=[framework for framework, _ in rows.clients],
        roles=[role for _, role in rows.clients],
    )
    if (size := proposal.ByteSize()) >= PLAN_BYTES_MAX:
        raise ValueError(f"the plan has {size} bytes; {PLAN_BYTES_MAX} are the most")
    return proposal
