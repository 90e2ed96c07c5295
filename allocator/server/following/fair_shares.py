"""Fair shares: what a policy would give each client if it allocated the whole cluster from scratch.

The books are copied between two records. In the copy everything is released, and the policy in
force decides once, under all of Mesos's rules. A fair share is therefore what a framework could
have if it wanted as much as possible; a framework that wants less holds less.

Another policy can be evaluated on the same copy. A cycle over the resources that are free now shows
its next offers, often few. An allocation from scratch shows the shares that it would approach.

A separate thread computes deviations from fair shares for metrics and alerts. A computation costs
about as much as a full cycle, so the thread pauses in proportion to the cost.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import structlog

from allocator.core import Allocator, Bools, Detached, Floats, Ints, Newcomer, PolicySpec
from allocator.server.following.books import FollowedBooks
from allocator.server.reports import report
from allocator.server.system.lasting import LastingThread
from allocator.v1 import settings_pb2 as pb


def deal(books: FollowedBooks, policy: PolicySpec, copied: Detached) -> report.Report:
    """Allocate a copy of the cluster from scratch; on any thread.

    `copied`: the result of `Allocator.copied` on the books' thread.

    Returns a report whose clients are those of the books, row by row.
    """
    return report.read(reallocated(books, policy, copied))


def reallocated(books: FollowedBooks, policy: PolicySpec, copied: Detached) -> Allocator:
    """Do what `deal` does, but return the allocator; its `last_cycle` has the policy's error."""
    twin = books.new_twin(policy)
    twin.reallocate_from_scratch(copied, policy=policy)
    return twin


def newcomers_share(
    books: FollowedBooks, policy: PolicySpec, copied: Detached, newcomer: Newcomer
) -> float:
    """Compute the dominant share that a hypothetical framework would get.

    Raises EventError if there is no room for it.
    """
    twin = books.new_twin(policy)
    handle = twin.reallocate_from_scratch(copied, newcomer, policy)
    dealt = report.read(twin)
    return float(dealt.share[dealt.clients.framework == handle].max(initial=0.0))


def root_mean_square(error: Floats) -> float:
    """Return the distance of shares from fair ones as one number; 0 without clients.

    >>> root_mean_square(np.array([0.3, -0.4, 0.0, 0.0]))
    0.25
    """
    return float(np.sqrt(np.mean(error**2))) if len(error) else 0.0


_SAME = 1e-9


class _Outlook(NamedTuple):
    """The effect of one policy, by client of the report.

    `offered` (n,): dominant share that the next cycle would offer.
    `agents` (n,): agents of which it would offer something.
    `fair` (n,): dominant share in an allocation from scratch.
    """

    offered: Floats
    agents: Ints
    fair: Floats


def compare_policies(
    books: FollowedBooks, copied: Detached, before: PolicySpec, after: PolicySpec
) -> tuple[list[pb.Forecast], int]:
    """Compare two policies, on any thread.

    Returns the clients that they treat differently, the largest difference of fair shares first;
        and the number of frameworks without a difference.
    """
    now = _twin(books, copied, before)
    state = report.read(now)
    one, other = (_outlook(books, copied, spec) for spec in (before, after))
    gain = np.abs(other.fair - one.fair)
    differs = (
        (gain > _SAME)
        | (np.abs(other.offered - one.offered) > _SAME)
        | (one.agents != other.agents)
    )
    found = []
    for row in np.argsort(-gain, kind="stable").tolist():
        if not differs[row]:
            continue
        info = state.clients.info[row]
        found.append(
            pb.Forecast(
                role=state.roles.path[state.clients.role[row]],
                framework_id=info.framework_id if info else "",
                framework_name=info.name if info else "",
                share=float(state.share[row]),
                offered_now=float(one.offered[row]),
                offered_then=float(other.offered[row]),
                agents_now=int(one.agents[row]),
                agents_then=int(other.agents[row]),
                fair_now=float(one.fair[row]),
                fair_then=float(other.fair[row]),
            )
        )
    framework = state.clients.framework
    unaffected = np.setdiff1d(framework, framework[differs])
    return found, len(unaffected)


def _twin(books: FollowedBooks, copied: Detached, policy: PolicySpec) -> Allocator:
    twin = books.new_twin(policy)
    twin.suppose(copied, policy)
    return twin


def _outlook(books: FollowedBooks, copied: Detached, policy: PolicySpec) -> _Outlook:
    twin = _twin(books, copied, policy)
    rows = np.flatnonzero(twin.state.clients.framework)
    before = report.read(twin)
    decisions = twin.allocate(twin.state.now_ms)
    after = report.read(twin)
    # Each decision is one offer of one agent to one client.
    clients = [
        twin.state.clients.row(framework, role)
        for framework, role in zip(
            decisions.framework.tolist(), decisions.role.tolist(), strict=True
        )
    ]
    agents = np.bincount(np.array(clients, np.int64), minlength=len(twin.state.clients.framework))
    fair = deal(books, policy, copied)
    return _Outlook(after.offered_share - before.offered_share, agents[rows], fair.share)


PROCESSOR_PART = 0.01
"""Maximum fraction of a processor that the thread uses, except for one-time loading."""

FAILED_PAUSE_MAX_S = 3600.0

ANSWER_S = 10.0
"""Maximum time to wait for the books; then this sample is omitted."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class RoleFairness:
    """The m roles with holdings or a fair share.

    `share`, `fair` (m,): actual and fair dominant shares of the role and its descendants.
    `shortfall` (m,), >= 0: how much a role's share is below its fair share. 0 unless a framework in
    the role or below it has less than its fair share, may be offered more, and refuses nothing.
    """

    path: list[str]
    share: Floats
    fair: Floats
    shortfall: Floats

    @property
    def error(self) -> Floats:
        return self.share - self.fair


@dataclass(frozen=True)
class Fairness:
    """The result of one computation.

    `client_error` (n,): excess over the fair share, for clients with holdings or a fair share.
    `taken_s`: when the books were copied, by the monotonic clock.
    """

    client_error: Floats
    roles: RoleFairness
    taken_s: float


@dataclass(slots=True)
class FairnessCounts:
    """The cost of computations since the process started.

    `total_s`, `last_s`: time that all of them took, and the last one.
    `processor_s`: processor time of the cheaper one of the last two, because a single one may
        include one-time costs, such as loading loops.
    """

    done: int = 0
    failed: int = 0
    total_s: float = 0.0
    last_s: float = 0.0
    processor_s: float = 0.0


def compare_with_fair(state: report.Report, fair: report.Report, taken_s: float = 0.0) -> Fairness:
    """Compare each client's share with its fair share; `fair`: `deal` for the same moment."""
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
    found = np.zeros(len(state.roles.path), np.bool_)
    for role in set(state.clients.role[clients].tolist()):
        while role and not found[role]:
            found[role] = True
            role = int(state.roles.parent[role])  # noqa: PLW2901 - up the tree
    return found


@dataclass
class FairnessWatch:
    """Computes periodically how far shares are from fair.

    `every_s`: minimum time between computations; 0: never.
    `latest`: the last result; None before the first computation, and if no client has holdings or a
        fair share.
    """

    books: FollowedBooks
    every_s: float
    counts: FairnessCounts = field(default_factory=FairnessCounts)
    latest: Fairness | None = None

    def __post_init__(self) -> None:
        self._thread = LastingThread("fairness", self._run)
        self._processor_s = 0.0
        self._failed_in_a_row = 0
        self._failure = ""

    def start(self) -> None:
        if self.every_s:
            self._thread.start()

    def stop(self) -> None:
        self._thread.end()

    @property
    def pause_s(self) -> float:
        rest_s = self.counts.processor_s / PROCESSOR_PART
        doubled_s = self.every_s * 2 ** min(self._failed_in_a_row, 30)
        return max(self.every_s, rest_s, min(doubled_s, FAILED_PAUSE_MAX_S))

    def sample(self) -> None:
        """Compute, and count the cost. Raises TimeoutError if the books are busy."""
        taken = self.books.read(self._copy, ANSWER_S)
        if taken is None:
            self.latest = None
            return
        state, copied, taken_s = taken
        begun_s, worked_s = time.monotonic(), time.thread_time()
        failure = ""
        try:
            twin = reallocated(self.books, state.policy, copied)
            failure = twin.last_cycle.policy_error
            if not failure:
                self.latest = compare_with_fair(state, report.read(twin), taken_s)
        except Exception as error:  # noqa: BLE001 - only figures are lost.
            failure = f"{type(error).__name__}: {error}"
        before_s, self._processor_s = self._processor_s, time.thread_time() - worked_s
        self.counts.processor_s = min(before_s, self._processor_s)
        self._count(failure, time.monotonic() - begun_s)

    def _copy(self) -> tuple[report.Report, Detached, float] | None:
        taken_s = time.monotonic()
        allocator = self.books.allocator
        if not allocator.state.clients.framework.any():
            return None
        return report.read(allocator), allocator.copied(), taken_s

    def _count(self, failure: str, took_s: float) -> None:
        counts = self.counts
        counts.total_s += took_s
        counts.last_s = took_s
        if failure:
            counts.failed += 1
            self._failed_in_a_row += 1
            if failure != self._failure:  # log each failure once, not every time
                _log.warning("fair shares cannot be computed", error=failure)
        else:
            counts.done += 1
            self._failed_in_a_row = 0
        self._failure = failure

    def _run(self) -> None:
        while not self._thread.pause(self.pause_s):
            with suppress(TimeoutError):  # try again next time
                self.sample()
