"""The thread on which policies plan, beside the core's.

After a cycle the problem is copied, in a large cluster by a forked process (`apart`). Where the
last plan is not good for this problem, the policy computes another one. The core adopts it between
two commands, as an event that stands in the journal. Until then cycles go by the last plan. A plan
that takes longer than its budget is *late*: it is counted and logged, and cycles do not wait.

Only the first plan of a session or a policy is waited for. Without one, a cycle would give
everything away by the policy's own filling, and nothing takes that back. So the first cycle that
would give something waits for the plan, and with it the core's thread: once, and `first_wait_s` at
most.
"""

import queue
import threading
import time
from dataclasses import dataclass, field
from functools import partial

import structlog

from allocator.core import AdoptPlan, Allocator, Ints, PlanningPolicy, Problem
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.system.frozen import Moment, may_fork, solving
from allocator.server.system.lasting import LastingThread

_log = structlog.get_logger()


@dataclass(slots=True)
class PlanCounts:
    """What came of planning, since the process began.

    `adopted`, `failed`, `dropped`, `late`: plans that were taken over; that the policy could not
        make; that came when another policy or session was there; and that took longer than their
        budget, with any outcome.
    `total_s`, `last_s`: time that all of them took, and the last.
    """

    adopted: int = 0
    failed: int = 0
    dropped: int = 0
    late: int = 0
    total_s: float = 0.0
    last_s: float = 0.0


@dataclass(slots=True)
class _Run:
    """A plan that is being computed.

    `moment`: gives the problem, where a forked process makes it and not the core's thread.
    `before`: the last run, whose plan may still be good for this problem; None if that is known
        already, or there was none.
    `taken_s`: when the problem was copied.
    `begun_s`: when work on it began.
    `stands`: the plan of `before` is good for this problem, so no other one is computed.
    """

    allocator: Allocator
    planning_policy: PlanningPolicy
    problem: Problem | None
    taken_s: float
    begun_s: float
    moment: Moment[Problem | None] | None = None
    before: "_Run | None" = None
    stands: bool = False
    late: bool = False
    failed: bool = False
    # The result; not read before it is done.
    done: threading.Event = field(default_factory=threading.Event)
    planned: AdoptPlan | None = None
    took_s: float = 0.0


class PlanningThread:
    """Works plans out, one at a time.

    The owner of both calls `look` after each message (`loop.after_message`) and
    `first` before a cycle that has no plan yet (`loop.first_plan`).
    """

    def __init__(
        self,
        loop: CoreLoop,
        *,
        budget_s: float,
        interval_s: float,
        first_wait_s: float = 0.0,
    ) -> None:
        """Prepare; nothing runs yet.

        `budget_s`: a plan that takes longer is late.
        `interval_s`: from one look at what a plan would be about to the next, at least.
        `first_wait_s`: how long a cycle waits for the first plan, at most.
        """
        self.counts = PlanCounts()
        self._loop = loop
        self._budget_s, self._interval_s = budget_s, interval_s
        self._first_wait_s = first_wait_s
        self._queue: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self._thread = LastingThread("planning", self._work)
        # The core's thread only.
        self._run: _Run | None = None
        self._last: _Run | None = None
        self._cycle = 0
        self._next_s = 0.0
        self._good_s: float | None = None
        self._failure = ""
        # The allocator and policy for which a cycle has waited for a first plan.
        self._waited: tuple[Allocator, PlanningPolicy] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End; a plan that is being computed is left alone."""
        self._queue.put(None)
        self._thread.end()

    @property
    def age_s(self) -> float | None:
        """How long ago the plan in force was good for the cluster; None if there is none."""
        good_s = self._good_s
        return None if good_s is None else time.monotonic() - good_s

    @property
    def running_s(self) -> float:
        """How long the plan takes so far that is being computed; 0 if none is."""
        run = self._run
        return 0.0 if run is None else time.monotonic() - run.begun_s

    # The core's thread.

    def look(self, allocator: Allocator) -> None:
        """See whether a plan is wanted, after a message has been answered."""
        planning_policy, now_s, last = allocator.planning_policy, time.monotonic(), self._last
        if last is not None and not _is_for(last, allocator):
            # Another session, or another policy: its plan is gone.
            self._last = last = self._good_s = None
        if not self._has_waited(allocator):
            self._waited = None
        if self._run is not None:
            self._note_late(self._run, now_s)
            return
        # Once a cycle, for what happens in between may take several messages.
        if planning_policy is None or allocator.cycle == self._cycle or now_s < self._next_s:
            return
        # While a solver is at work no process can be forked for the problem: it is copied later.
        if may_fork():
            self._look_at_problem(allocator, planning_policy, now_s)

    def _look_at_problem(
        self, allocator: Allocator, planning_policy: PlanningPolicy, now_s: float
    ) -> None:
        last, problem = self._last, None
        moment = self._loop.apart.begin(allocator.problem)
        if moment is None:
            problem = allocator.problem()
            if problem is None:
                return
        # To copy and compare the whole cluster takes long: not after each cycle.
        self._cycle, self._next_s = allocator.cycle, now_s + self._interval_s
        if problem is None:
            self._begin(allocator, planning_policy, None, moment)
        elif last is None or not _stands(last, problem):
            self._begin(allocator, planning_policy, problem)
        elif not last.failed:
            self._good_s = now_s

    def first(self, planning_policy: PlanningPolicy, agents: Ints | None) -> AdoptPlan | None:
        """Wait for the first plan, in a cycle over some agents, or over all; None: it goes without.

        Each session, and each policy in it, is waited for once.
        """
        allocator = self._loop.allocator
        if self._first_wait_s <= 0 or self._has_waited(allocator):
            return None
        problem = allocator.problem()
        if problem is None or not _gives(problem, agents):
            return None
        self._waited = allocator, planning_policy
        until_s = time.monotonic() + self._first_wait_s
        run = self._run
        if run is not None and not _is_for(run, allocator):
            # The thread is busy with an obsolete plan.
            if not run.done.wait(self._first_wait_s):
                return None
            self.counts.dropped += 1
            run = None
        if run is None:
            run = self._begin(allocator, planning_policy, problem)
        if not run.done.wait(max(0.0, until_s - time.monotonic())):
            return None  # it comes as any other plan does
        self._run = None
        self._count(run)
        if run.planned is None or run.problem is None:
            return None
        self.counts.adopted += 1
        self._last, self._good_s = run, run.taken_s
        return allocator.fresh(run.problem, run.planned)

    def _has_waited(self, allocator: Allocator) -> bool:
        """Whether a cycle of this session has waited already, for the policy in force."""
        waited = self._waited
        return (
            waited is not None and waited[0] is allocator and waited[1] is allocator.planning_policy
        )

    def _begin(
        self,
        allocator: Allocator,
        planning_policy: PlanningPolicy,
        problem: Problem | None,
        moment: Moment[Problem | None] | None = None,
    ) -> _Run:
        now_s, before = time.monotonic(), self._last if moment else None
        self._run = run = _Run(allocator, planning_policy, problem, now_s, now_s, moment, before)
        self._queue.put(run)
        return run

    def _take(self, run: _Run) -> None:
        """Take over what came of a run, unless a cycle has waited for it, or gave it up."""
        if self._run is not run:
            return
        self._run = None
        self._count(run)
        counts, planned, problem = self.counts, run.planned, run.problem
        if problem is None or planned is None:
            return
        if not _is_for(run, self._loop.allocator):
            counts.dropped += 1
        elif planned.plan is problem.plan:
            # It says what is in force.
            self._last, self._good_s = run, run.taken_s
        else:
            try:
                self._loop.step(run.allocator.fresh(problem, planned))
            except Exception as error:  # noqa: BLE001 - it has no caller that could.
                counts.failed += 1
                self._last, run.failed = run, True
                self._tell_failure(f"{type(error).__name__}: {error}")
                return
            counts.adopted += 1
            self._last, self._good_s = run, run.taken_s

    def _count(self, run: _Run) -> None:
        if run.problem is None:
            return  # there is none, or the core's thread makes the next one itself
        if run.stands:
            if run.before is self._last is not None and not self._last.failed:
                self._good_s = run.taken_s
            return
        run.before = None  # or each run would keep all problems before its own
        self._note_late(run, run.begun_s + run.took_s)
        self.counts.total_s += run.took_s
        self.counts.last_s = run.took_s
        if run.planned is None:
            # The same problem would fail again: the next plan is for another one.
            self.counts.failed += 1
            self._last, run.failed = run, True

    def _note_late(self, run: _Run, now_s: float) -> None:
        if not run.late and now_s - run.begun_s > self._budget_s:
            run.late = True
            self.counts.late += 1
            _log.warning(
                "a plan is late; cycles go by the one before, or by none",
                budget_ms=round(1000 * self._budget_s),
                has_plan=run.allocator.state.plan is not None,
            )

    # The thread that plans.

    def _work(self) -> None:
        while (run := self._queue.get()) is not None:
            try:
                self._plan(run)
            except BaseException as error:  # noqa: BLE001 - cycles continue without a plan.
                self._tell_failure(f"{type(error).__name__}: {error}")
            run.took_s = time.monotonic() - run.begun_s
            run.done.set()
            self._loop.call(partial(self._take, run))

    def _plan(self, run: _Run) -> None:
        if run.moment is not None:
            moment, run.moment = run.moment, None
            try:
                run.problem = moment.take()
            except OSError as error:
                self._loop.apart.fail(error)
            if run.problem is None:
                return
            run.stands = run.before is not None and _stands(run.before, run.problem)
            run.begun_s = time.monotonic()
        if not run.stands:
            assert run.problem is not None
            with solving():
                run.planned = AdoptPlan(run.planning_policy.plan(run.problem))

    def _tell_failure(self, failure: str) -> None:
        if failure != self._failure:  # each once, not with every plan
            self._failure = failure
            _log.warning("no plan could be made; the previous one stays in force", error=failure)


def _is_for(run: _Run, allocator: Allocator) -> bool:
    """Whether the session is the same, and the policy."""
    return run.allocator is allocator and run.planning_policy is allocator.planning_policy


def _stands(last: _Run, problem: Problem) -> bool:
    """Whether the last plan is good for a problem, too."""
    return last.problem is not None and last.planning_policy.stands(last.problem, problem)


def _gives(problem: Problem, agents: Ints | None) -> bool:
    """Whether something is free on one of these agents, or on any."""
    if agents is None:
        return bool(problem.free.any())
    return bool(problem.free[agents[(agents >= 0) & (agents < len(problem.free))]].any())
