"""Computes unmet demand, and the accuracy of forecasts of next offers, for metrics.

Each time, a few waiting clients in turn get a forecast; every second, its outcome is looked up. A
separate thread does this, and pauses in proportion to the cost.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from allocator import explain
from allocator.core import FrameworkInfo, State
from allocator.explain import Picture, Shape, Unmet
from allocator.server.following.books import FollowedBooks
from allocator.server.system.lasting import LastingThread

LOOK_S = 1.0

EVERY_S = 10.0

PROCESSOR_PART = 0.02

CLIENTS = 4

OPEN_MAX = 256

ANSWER_S = 10.0
"""Maximum time to wait for the books; then they are not asked again until the next time."""


@dataclass(slots=True)
class ForecastResults:
    """Outcomes of forecasts of next offers.

    `early`, `held`, `late`: the offer was decided before the p50, from then to the p95, and after
        it or not yet.
    `withdrawn`: the client left, or no longer wanted offers.
    """

    early: int = 0
    held: int = 0
    late: int = 0
    withdrawn: int = 0


class OpenForecast(NamedTuple):
    """A forecast whose outcome is not known yet; times on the master's clock.

    `row`, `framework_id`, `role`: the client.
    """

    row: int
    framework_id: str
    role: str
    session: int
    made_ms: int
    expected_ms: int
    due_ms: int


class _Books(NamedTuple):
    """A copy of the books at one moment."""

    picture: Picture
    shapes: list[Shape]
    session: int


@dataclass
class DemandWatch:
    """Computes unmet demand, and compares forecasts with what happens.

    `latest`: unmet demand; None before the first computation.
    """

    books: FollowedBooks
    results: ForecastResults = field(default_factory=ForecastResults)
    latest: Unmet | None = None

    def __post_init__(self) -> None:
        self._open: list[OpenForecast] = []
        self._last_row = 0
        self._closing = threading.Event()
        self._thread = LastingThread("demand", self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._closing.set()
        self._thread.end()

    def settle(self) -> None:
        """Look up outcomes of forecasts, on the caller's thread."""
        if self._open:
            self._asked(self._settle)

    def sample(self) -> None:
        books = self._asked(self._copy)
        if books is None:
            return
        picture = books.picture
        self.latest = explain.unmet(picture, books.shapes)
        made = []
        for subject in picture.subjects:
            offer = explain.next_offer(picture, subject)
            if offer.latest_ms < 0:
                continue
            due_ms = picture.now_ms + offer.latest_ms
            expected_ms = picture.now_ms + offer.expected_ms
            who = picture.framework_id(subject.client)
            role = picture.names.path[int(picture.names.role[subject.client])]
            now_ms, session = picture.now_ms, books.session
            made.append(
                OpenForecast(subject.client, who, role, session, now_ms, expected_ms, due_ms)
            )
        self._open = [*self._open, *made][:OPEN_MAX]

    def _asked(self, work: Callable[[], _Books | None]) -> _Books | None:
        future = self.books.ask(work)
        try:
            return future.result(ANSWER_S)
        except TimeoutError:
            future.cancel()  # The books are far behind; wait for the next time.
            return None

    # The thread that owns the books.

    def _copy(self) -> _Books | None:
        allocator = self.books.allocator
        state = allocator.state
        rows = np.flatnonzero(explain.wanting(state))
        known = [each.row for each in self._open]
        few = rows[~np.isin(rows, [*known, *state.clients.gangs])]
        few = np.concatenate([few[few > self._last_row], few[few <= self._last_row]])[:CLIENTS]
        self._last_row = int(few[-1]) if len(few) else 0
        picture = explain.take_clients(allocator, few.tolist())
        return _Books(picture, explain.shapes_of(state), self.books.counts.sessions_opened)

    def _settle(self) -> None:
        state, session = self.books.allocator.state, self.books.counts.sessions_opened
        still, results = [], self.results
        for each in self._open:
            row, there = each.row, each.session == session and _is_there(state, each)
            offered_ms = int(state.clients.offered_ms[row]) if there else 0
            if offered_ms > each.made_ms:
                results.early += offered_ms < each.expected_ms
                results.held += each.expected_ms <= offered_ms <= each.due_ms
                results.late += offered_ms > each.due_ms
            elif not there or not state.live_clients()[row]:
                results.withdrawn += 1
            elif state.now_ms > each.due_ms:
                results.late += 1
            else:
                still.append(each)
        self._open = still

    # Its own thread.

    def _run(self) -> None:
        next_s = 0.0
        while not self._closing.wait(LOOK_S):
            self.settle()
            if time.monotonic() >= next_s and self.books.may_work.is_set():
                begun_s = time.thread_time()
                self.sample()
                took_s = time.thread_time() - begun_s
                next_s = time.monotonic() + max(EVERY_S, took_s / PROCESSOR_PART)


def _is_there(state: State, each: OpenForecast) -> bool:
    if each.row >= len(state.clients.framework):
        return False
    info: FrameworkInfo | None = state.frameworks.info[int(state.clients.framework[each.row])]
    role = state.roles.path[int(state.clients.role[each.row])]
    return info is not None and (info.framework_id, role) == (each.framework_id, each.role)
