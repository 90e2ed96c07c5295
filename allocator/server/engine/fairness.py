"""How far shares are from fair, worked out now and then for metrics and alerts.

A thread of its own has the core copy its books between two messages, and deals the whole cluster
out anew in the copy (`fair_shares`). That costs about a cycle over everything, and the copy holds
the core up for a moment; so the thread rests in proportion to both.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import structlog

from allocator.core import Bools, Detached, Floats
from allocator.server.engine import fair_shares
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.reports import report
from allocator.server.system.lasting import LastingThread

PROCESSOR_PART = 0.01
"""Part of a processor that the thread takes at most, what it had to load once left out."""

CORE_PART = 0.0005
"""Part of the core's time that copies take at most."""

FAILED_PAUSE_MAX_S = 3600.0
"""Where the policy fails again and again it is asked no more seldom than this."""

ANSWER_S = 10.0
"""How long the core may take before it is left alone until the next time."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class RoleFairness:
    """The roles that hold something or should, m of them.

    `share`, `fair` (m,): dominant shares: what the role and those below it hold, and what would be
        fair.
    `shortfall` (m,), >= 0: what a role holds less than is fair, where a framework in it or below it
        holds less than is fair, may be offered something and refuses nothing; else 0.
    """

    path: list[str]
    share: Floats
    fair: Floats
    shortfall: Floats

    @property
    def error(self) -> Floats:
        """How much more each role holds than is fair, (m,)."""
        return self.share - self.fair


@dataclass(frozen=True)
class Fairness:
    """What came of one look.

    `client_error` (n,): how much more each client holds than is fair, of those that hold something
        or should.
    `taken_s`: when the books were copied, on the monotonic clock.
    """

    client_error: Floats
    roles: RoleFairness
    taken_s: float


@dataclass(slots=True)
class FairnessCounts:
    """What the looks cost, since the process began.

    `done`, `failed`: times that fair shares were worked out, and that the policy failed at it.
    `total_s`, `last_s`: time that all of them took, and the last.
    `processor_s`: processor time of the cheaper one of the last two: what is loaded the first time,
        and whatever else happens once, says nothing of the next.
    `held_s`: how long the last copy held the core up.
    """

    done: int = 0
    failed: int = 0
    total_s: float = 0.0
    last_s: float = 0.0
    processor_s: float = 0.0
    held_s: float = 0.0


@dataclass(frozen=True)
class _Books:
    """A copy of one moment."""

    state: report.Report
    copied: Detached
    taken_s: float
    held_s: float


def compare(state: report.Report, fair: report.Report, taken_s: float = 0.0) -> Fairness:
    """Compare what everybody holds with what would be fair.

    `state`, `fair`: of the same moment, as they are and as `fair_shares.deal` gives them.
    """
    error = state.share - fair.share
    some = (state.share > 0) | (fair.share > 0)
    wants = state.clients.live & (state.clients.filters == 0) & (error < 0)
    held, due = state.role_share, fair.role_share
    rows = np.flatnonzero(state.roles.bound & (state.roles.depth > 0) & ((held > 0) | (due > 0)))
    shortfall = np.where(_at_or_below(state, wants), np.maximum(due - held, 0.0), 0.0)
    roles = RoleFairness(
        path=[state.roles.path[row] for row in rows.tolist()],
        share=held[rows],
        fair=due[rows],
        shortfall=shortfall[rows],
    )
    return Fairness(error[some], roles, taken_s)


def _at_or_below(state: report.Report, clients: Bools) -> Bools:
    """Say of each role whether one of these clients is in it or below it."""
    found = np.zeros(len(state.roles.path), np.bool_)
    for role in set(state.clients.role[clients].tolist()):
        while role and not found[role]:
            found[role] = True
            role = int(state.roles.parent[role])  # noqa: PLW2901 - up the tree
    return found


@dataclass
class FairnessWatch:
    """Works out now and then how far shares are from fair.

    `every_s`: from one look to the next at least; 0: never.
    `may_begin`: whether there may be looks already: not while loops run interpreted.
    `latest`: None where nobody holds anything or should, and before the first look.
    """

    loop: CoreLoop
    every_s: float
    may_begin: Callable[[], bool] = lambda: True
    counts: FairnessCounts = field(default_factory=FairnessCounts)
    latest: Fairness | None = None

    def __post_init__(self) -> None:
        """Prepare; nothing runs yet."""
        self._closing = threading.Event()
        self._thread = LastingThread("fairness", self._run)
        self._processor_s = 0.0
        self._failed_in_a_row = 0
        self._failure = ""

    def start(self) -> None:
        """Begin to look, where that is wanted."""
        if self.every_s:
            self._thread.start()

    def stop(self) -> None:
        """End; a look that is under way is left alone."""
        self._closing.set()
        self._thread.end()

    @property
    def pause_s(self) -> float:
        """How long to rest: what it cost the processor and the core is bounded."""
        counts = self.counts
        rest_s = max(counts.processor_s / PROCESSOR_PART, counts.held_s / CORE_PART)
        doubled_s = self.every_s * 2 ** min(self._failed_in_a_row, 30)
        return max(self.every_s, rest_s, min(doubled_s, FAILED_PAUSE_MAX_S))

    def look(self) -> None:
        """Work fair shares out, once; on the thread of whoever calls."""
        future = self.loop.call(self._copy)
        try:
            books = future.result(ANSWER_S)
        except TimeoutError:
            future.cancel()
            return  # The core is busy; the next time does.
        if books is None:
            self.latest = None
            return
        begun_s, worked_s = time.monotonic(), time.thread_time()
        failure = ""
        try:
            twin = fair_shares.dealt_anew(self.loop, books.state.policy, books.copied)
            failure = twin.last_cycle.policy_error
            if not failure:
                self.latest = compare(books.state, report.read(twin), books.taken_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, only figures are lost.
            failure = f"{type(error).__name__}: {error}"
        before_s, self._processor_s = self._processor_s, time.thread_time() - worked_s
        self.counts.processor_s = min(before_s, self._processor_s)
        self.counts.held_s = books.held_s
        self._count(failure, time.monotonic() - begun_s)

    def _copy(self) -> _Books | None:
        """Copy the books; on the core's thread."""
        taken_s = time.monotonic()
        allocator = self.loop.allocator
        if not allocator.state.clients.framework.any():
            return None
        state, copied = report.read(allocator), allocator.copied()
        return _Books(state, copied, taken_s, time.monotonic() - taken_s)

    def _count(self, failure: str, took_s: float) -> None:
        counts = self.counts
        counts.total_s += took_s
        counts.last_s = took_s
        if failure:
            counts.failed += 1
            self._failed_in_a_row += 1
            if failure != self._failure:  # each kind once, not every time
                _log.warning("fair shares cannot be worked out", error=failure)
        else:
            counts.done += 1
            self._failed_in_a_row = 0
        self._failure = failure

    def _run(self) -> None:
        while not self._closing.wait(self.pause_s):
            if self.may_begin():
                self.look()
