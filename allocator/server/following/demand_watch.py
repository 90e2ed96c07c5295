"""Computes unmet demand for metrics, and calibrates forecasts of next offers.

Each time, a few waiting clients in turn get a forecast, if possible of different principals; every
second, its outcome is looked up. Outcomes correct later forecasts. A separate thread does this, and
pauses in proportion to the cost.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from allocator import explain
from allocator.core import FrameworkInfo, State
from allocator.explain import Calibration, Corrections, Picture, Shape, Unmet
from allocator.server.following.books import FollowedBooks
from allocator.server.system.lasting import LastingThread

LOOK_S = 1.0

EVERY_S = 10.0

PROCESSOR_PART = 0.02

CLIENTS = 4

ANSWER_S = 10.0
"""Maximum time to wait for the books; then they are not asked again until the next time."""


class _Client(NamedTuple):
    """A client of one session."""

    row: int
    framework_id: str
    role: str
    session: int


@dataclass
class DemandWatch:
    """Computes unmet demand, and compares forecasts with what happens.

    `corrections`: of forecasts, as of the last computation.
    `latest`: unmet demand; None before the first computation.
    """

    books: FollowedBooks
    calibration: Calibration[_Client] = field(default_factory=Calibration)
    corrections: Corrections = field(default_factory=Corrections)
    latest: Unmet | None = None

    def __post_init__(self) -> None:
        self._looks = 0
        self._looked_at = dict[int, int]()  # by client: the latest look with a forecast of it
        self._thread = LastingThread("demand", self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.end()

    def settle(self) -> None:
        """Look up outcomes of forecasts. Raises TimeoutError if the books are busy."""
        if self.calibration.everyone():
            self.books.read(self._settle, ANSWER_S)

    def sample(self) -> None:
        """Compute unmet demand, and some forecasts. Raises as `settle` does."""
        picture, shapes, session = self.books.read(self._copy, ANSWER_S)
        self.latest = explain.unmet(picture, shapes)
        self.corrections = self.calibration.corrections(picture.now_ms)
        for subject in picture.subjects:
            role = picture.names.path[int(picture.names.role[subject.client])]
            framework_id = picture.framework_id(subject.client)
            who = _Client(subject.client, framework_id, role, session)
            offer = explain.next_offer(picture, subject)
            principal = picture.principal(subject.client)
            self.calibration.expect(who, picture.now_ms, offer, self.corrections, principal)

    # The thread that owns the books.

    def _copy(self) -> tuple[Picture, list[Shape], int]:
        allocator = self.books.allocator
        state = allocator.state
        picture = Picture(allocator, self._chosen(state))
        return picture, explain.shapes_of(state), self.books.counts.sessions_opened

    def _chosen(self, state: State) -> list[int]:
        """Choose a few waiting clients: those without a forecast for the longest time."""
        rows = np.flatnonzero(explain.wanting(state)).tolist()
        known = {each.row for each in self.calibration.awaited(state.now_ms)}
        few = [row for row in rows if row not in known]
        few.sort(key=lambda row: self._looked_at.get(row, 0))
        chosen = _of_different_principals(state, few)
        before = {row: self._looked_at[row] for row in rows if row in self._looked_at}
        self._looks += 1
        self._looked_at = before | dict.fromkeys(chosen, self._looks)
        return chosen

    def _settle(self) -> None:
        state, session = self.books.allocator.state, self.books.counts.sessions_opened
        live = state.live_clients()
        for each in self.calibration.everyone():
            there = each.session == session and _is_there(state, each)
            if there and state.clients.offered_ms[each.row]:
                self.calibration.came(each, int(state.clients.offered_ms[each.row]))
            if not there or not live[each.row]:
                self.calibration.left(each, state.now_ms)
        self.calibration.tick(state.now_ms)

    # Its own thread.

    def _run(self) -> None:
        next_s = 0.0
        while not self._thread.pause(LOOK_S):
            with suppress(TimeoutError):  # try again the next time
                self.settle()
                if time.monotonic() >= next_s and self.books.may_work.is_set():
                    begun_s = time.thread_time()
                    self.sample()
                    took_s = time.thread_time() - begun_s
                    next_s = time.monotonic() + max(EVERY_S, took_s / PROCESSOR_PART)


def _of_different_principals(state: State, clients: Sequence[int]) -> list[int]:
    """Choose a few of some clients: the first of each principal, then the first others."""
    first = dict[str, int]()
    for each in clients:
        info = _info(state, each)
        first.setdefault(info.principal if info else "", each)
        if len(first) == CLIENTS:
            break
    others = (each for each in clients if each not in first.values())
    return [*first.values(), *islice(others, CLIENTS - len(first))]


def _is_there(state: State, each: _Client) -> bool:
    if each.row >= len(state.clients.framework):
        return False
    info = _info(state, each.row)
    role = state.roles.path[int(state.clients.role[each.row])]
    return info is not None and (info.framework_id, role) == (each.framework_id, each.role)


def _info(state: State, row: int) -> FrameworkInfo | None:
    return state.frameworks.info[int(state.clients.framework[row])]
