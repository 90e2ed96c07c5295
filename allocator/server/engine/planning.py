"""Plans in the deciding process: the observer computes them, the core adopts them.

The observer computes plans in the background (`following/planning.py`) and reports them here. The
core adopts a plan between two commands, as an event that is recorded; until then, cycles use the
previous plan. A plan that takes longer than its budget is *late*: it is counted and logged, but
cycles do not wait for it.

The first cycle of a session or policy with something to grant waits for its plan, because grants by
the policy's own filling could not be undone. The core's thread waits with it: once, for at most
`first_wait_s`, and only if there is an observer that can plan.
"""

import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from allocator.core import (
    AdoptPlan,
    Allocator,
    EventError,
    Ints,
    Plan,
    PlanningPolicy,
    PlanRows,
    PolicySpec,
    has_free,
)
from allocator.server.engine.commands import fulfil
from allocator.server.engine.core_loop import CoreLoop

_log = structlog.get_logger()


@dataclass(slots=True)
class PlanCounts:
    """Results of planning since the process started.

    `failed`: plans that could not be made or adopted.
    `dropped`: plans for another policy or session.
    `late`: plans that took longer than their budget, with any result.
    `total_s`, `last_s`: time that all plans took, and that the last one took.
    """

    adopted: int = 0
    failed: int = 0
    dropped: int = 0
    late: int = 0
    total_s: float = 0.0
    last_s: float = 0.0


class Proposal(NamedTuple):
    """A plan for the core to adopt.

    `position`: number of records in the observer's books when the problem was copied.
    `rows`: the identities of the plan's rows at that time.
    """

    position: int
    plan: Plan
    rows: PlanRows


class PlanReport(NamedTuple):
    """A report on planning.

    `session`, `policy`: those that the plan is for.
    `ago_s`: time since the problem was copied.
    `said`: a plan, or why there is none.
    """

    session: int
    policy: PolicySpec
    ago_s: float
    took_s: float
    said: Proposal | str


class PlanVerdict(NamedTuple):
    """The result of a report; see `ReportResponse` of the protocol."""

    refused: str = ""
    stale: bool = False
    position: int = 0


class Planning:
    """Adopts plans that the observer reports, and keeps track of planning.

    The owner must call `note_late` after each message (`loop.after_message`), and `first` before a
    cycle that has no plan yet (`loop.first_plan`).

    `is_linked`: whether there is an observer that can plan.
    """

    def __init__(self, loop: CoreLoop, *, budget_s: float, first_wait_s: float = 0.0) -> None:
        """Start without an observer.

        `budget_s`: a plan that takes longer is late.
        `first_wait_s`: maximum time for which a cycle waits for the first plan.
        """
        self.counts = PlanCounts()
        self.is_linked = False
        self._loop = loop
        self._budget_s, self._first_wait_s = budget_s, first_wait_s
        # Reports that are not processed yet; None: the observer has left.
        self._inbox: queue.SimpleQueue[Callable[[], AdoptPlan | None] | None] = queue.SimpleQueue()
        self._begun_s: float | None = None
        self._good_s: float | None = None
        self._is_late = False
        self._adopted_position = -1
        # On the core's thread only: the allocator and policy for which a cycle has waited for a
        # first plan, and whether a cycle is waiting now.
        self._waited: tuple[Allocator, PlanningPolicy] | None = None
        self._is_waiting = False
        self._failure = ""

    # On any thread.

    @property
    def age_s(self) -> float | None:
        """Time since the plan in force last matched the cluster; None: there is no plan."""
        good_s = self._good_s
        if good_s is None or self._loop.allocator.state.plan is None:
            return None
        return time.monotonic() - good_s

    @property
    def running_s(self) -> float:
        """Duration so far of the current computation of a plan; 0: there is none."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    def linked(self) -> None:
        self.is_linked = True

    def left(self) -> None:
        """Record that the observer has left, and so abandoned any plan that it was computing."""
        self.is_linked, self._begun_s = False, None
        self._put(None)

    def begun(self) -> None:
        self.is_linked, self._is_late, self._begun_s = True, False, time.monotonic()

    def stands(self, ago_s: float) -> None:
        """Record that the plan in force matches a problem that was copied `ago_s` ago."""
        self.is_linked, self._good_s = True, time.monotonic() - ago_s

    def report(self, report: PlanReport) -> Future[PlanVerdict]:
        self._begun_s = None
        taken, future = time.monotonic() - report.ago_s, Future[PlanVerdict]()

        def take() -> AdoptPlan | None:
            adopted: list[AdoptPlan] = []
            fulfil(future, lambda: self._take(report, taken, adopted))
            return adopted[0] if adopted else None

        self._put(take)
        return future

    def _put(self, item: Callable[[], AdoptPlan | None] | None) -> None:
        self._inbox.put(item)
        self._loop.commands.put(self._take_next)

    # On the core's thread.

    def note_late(self, _allocator: Allocator) -> None:
        if self.running_s > self._budget_s and not self._is_late:
            self._note_late()

    def first(self, planning_policy: PlanningPolicy, agents: Ints | None) -> AdoptPlan | None:
        """Wait for the first plan, once per session and policy; None: it did not arrive in time."""
        allocator = self._loop.allocator
        waited = self._waited
        if waited and waited[0] is allocator and waited[1] is planning_policy:
            return None
        if self._first_wait_s <= 0 or not has_free(allocator.state, agents):
            return None
        self._waited = allocator, planning_policy
        until_s, self._is_waiting = time.monotonic() + self._first_wait_s, True
        try:
            while self.is_linked and self._is_waiting:
                take = self._inbox.get(timeout=max(0.0, until_s - time.monotonic()))
                if take is not None and (planned := take()) is not None:
                    return planned
        except queue.Empty:
            pass  # the plan will arrive like any later one
        finally:
            self._is_waiting = False
        return None

    def _take_next(self) -> None:
        """Process a report, unless a waiting cycle has done so."""
        with suppress(queue.Empty):
            take = self._inbox.get_nowait()
            if take is not None:
                take()

    def _take(self, report: PlanReport, taken_s: float, adopted: list[AdoptPlan]) -> PlanVerdict:
        """Process a report; `adopted` receives the plan with which a waiting cycle will start."""
        counts, allocator, said = self.counts, self._loop.allocator, report.said
        counts.total_s += report.took_s
        counts.last_s = report.took_s
        if report.took_s > self._budget_s and not self._is_late:
            self._note_late()
        here = self._loop.active, allocator.settings.policy
        if (report.session, report.policy) != here:
            counts.dropped += 1
            return PlanVerdict("it is for another session, or another policy", stale=True)
        if isinstance(said, str):
            return self._fail(said)
        if not self._adopted_position <= said.position <= self._loop.feed.position:
            counts.dropped += 1
            return PlanVerdict("it is older than the plan in force, or of the future", stale=True)
        try:
            plan = allocator.fresh(said.rows, said.plan)
            if self._is_waiting:
                # The plan is recorded with the answer of the cycle that waits for it.
                adopted.append(plan)
            else:
                self._loop.step(plan)
        except EventError as error:
            return self._fail(f"{type(error).__name__}: {error}")
        counts.adopted += 1
        self._adopted_position, self._good_s = said.position, taken_s
        return PlanVerdict(position=self._loop.feed.position + self._is_waiting)

    def _fail(self, failure: str) -> PlanVerdict:
        self.counts.failed += 1
        self._is_waiting = False
        if failure != self._failure:  # log each failure once, not for every plan
            self._failure = failure
            _log.warning("no plan could be made; the previous one stays in force", error=failure)
        return PlanVerdict(failure)

    def _note_late(self) -> None:
        self._is_late = True
        self.counts.late += 1
        _log.warning(
            "a plan is late; cycles use the previous one, if any",
            budget_ms=round(1000 * self._budget_s),
            has_plan=self._loop.allocator.state.plan is not None,
        )
