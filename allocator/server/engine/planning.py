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
from typing import NamedTuple, assert_never

import structlog

from allocator.core import (
    AdoptPlan,
    Allocator,
    EventError,
    Ints,
    Plan,
    PlanningPolicy,
    PlanRows,
    has_free,
)
from allocator.server.engine.commands import fulfil
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import records_pb2 as pb
from allocator.wire.journal.framing import JournalError
from allocator.wire.journal.records import read_plan
from allocator.wire.settings.operator_settings import read_policy

_log = structlog.get_logger()


class _Made(NamedTuple):
    """A plan, and the identities of its rows when the problem was copied."""

    plan: Plan
    rows: PlanRows


def _read(report: pb.ReportRequest) -> _Made | str:
    """Parse a proposal; return why there is none, or why it cannot be parsed."""
    if not report.HasField("proposal"):
        return report.failure
    proposal = report.proposal
    try:
        clients = list(zip(proposal.frameworks, proposal.roles, strict=True))
        plan = read_plan(proposal.plan).plan
    except (JournalError, ValueError) as error:
        return f"it cannot be read: {error}"
    return _Made(plan, PlanRows(list(proposal.agents), clients))


class Planning:
    """Adopts plans that the observer reports, and keeps track of planning.

    The owner must call `note_late` after each message (`loop.after_message`), and `first` before a
    cycle that has no plan yet (`loop.first_plan`).

    `is_linked`: whether there is an observer that can plan.
    `counts`: results since the process started.
    """

    def __init__(self, loop: CoreLoop, *, budget_s: float, first_wait_s: float = 0.0) -> None:
        """Start without an observer.

        `budget_s`: a plan that takes longer is late.
        `first_wait_s`: maximum time for which a cycle waits for the first plan.
        """
        self.counts = pb.PlanFigures()
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

    def figures(self) -> pb.PlanFigures:
        """Return the counts, with the plan in force and the one that is being computed."""
        age_s = self.age_s
        figures = pb.PlanFigures(running_s=self.running_s, age_s=-1.0 if age_s is None else age_s)
        figures.MergeFrom(self.counts)
        return figures

    def left(self) -> None:
        """Record that the observer has left, and so abandoned any plan that it was computing."""
        self.is_linked, self._begun_s = False, None
        self._put(None)

    def take(self, report: pb.ReportRequest) -> Future[pb.ReportResponse] | None:
        """Take a report of the observer; None: it needs no verdict."""
        match said := report.WhichOneof("said"):
            case None:  # a greeting
                self.is_linked = True
            case "begun":
                self.is_linked, self._is_late, self._begun_s = True, False, time.monotonic()
            case "stands":  # the plan in force matches the problem
                self.is_linked, self._good_s = True, time.monotonic() - report.ago_s
            case "failure" | "proposal":
                return self._judge(report)
            case _:
                assert_never(said)
        return None

    def _judge(self, report: pb.ReportRequest) -> Future[pb.ReportResponse]:
        self._begun_s = None
        made, future = _read(report), Future[pb.ReportResponse]()
        taken_s = time.monotonic() - report.ago_s

        def judge() -> AdoptPlan | None:
            adopted: list[AdoptPlan] = []
            fulfil(future, lambda: self._verdict(report, made, taken_s, adopted))
            return adopted[0] if adopted else None

        self._put(judge)
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

    def _verdict(
        self,
        report: pb.ReportRequest,
        made: _Made | str,
        taken_s: float,
        adopted: list[AdoptPlan],
    ) -> pb.ReportResponse:
        """Judge a report; `adopted` receives the plan with which a waiting cycle will start."""
        counts, allocator = self.counts, self._loop.allocator
        counts.total_s += report.took_s
        counts.last_s = report.took_s
        if report.took_s > self._budget_s and not self._is_late:
            self._note_late()
        here = self._loop.active, allocator.settings.policy
        if (report.session, read_policy(report.policy)) != here:
            return self._drop("it is for another session, or another policy")
        if isinstance(made, str):
            return self._fail(made)
        position = report.proposal.position
        if not self._adopted_position <= position <= self._loop.feed.position:
            return self._drop("it is older than the plan in force, or of the future")
        try:
            plan = allocator.fresh(made.rows, made.plan)
            if self._is_waiting:
                # The plan is recorded with the answer of the cycle that waits for it.
                adopted.append(plan)
            else:
                self._loop.step(plan)
        except EventError as error:
            return self._fail(f"{type(error).__name__}: {error}")
        counts.adopted += 1
        self._adopted_position, self._good_s = position, taken_s
        return pb.ReportResponse(position=self._loop.feed.position + self._is_waiting)

    def _drop(self, why: str) -> pb.ReportResponse:
        self.counts.dropped += 1
        return pb.ReportResponse(refused=why, stale=True)

    def _fail(self, failure: str) -> pb.ReportResponse:
        self.counts.failed += 1
        self._is_waiting = False
        if failure != self._failure:  # log each failure once, not for every plan
            self._failure = failure
            _log.warning("no plan could be made; the previous one stays in force", error=failure)
        return pb.ReportResponse(refused=failure)

    def _note_late(self) -> None:
        self._is_late = True
        self.counts.late += 1
        _log.warning(
            "a plan is late; cycles use the previous one, if any",
            budget_ms=round(1000 * self._budget_s),
            has_plan=self._loop.allocator.state.plan is not None,
        )
