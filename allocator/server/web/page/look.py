"""The page's data at one moment, read at most once a second for any number of clients.

On a narrow screen each row of a table is a paragraph, and each cell shows its column's name, which
the style sheet reads from the cell.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from allocator.server.engine.latency_histogram import BOUNDS_S
from allocator.server.reports import agent_rows
from allocator.server.views.views import Views
from allocator.server.web.page import drained
from allocator.v1 import admin_pb2 as pb

FRESH_S = 1.0

FAIR_FRESH_S = 30.0
"""Time for which fair shares are reused; they cost about an allocation of the whole cluster."""

ANSWER_S = 2.0
"""Maximum time to wait for the books; then the previous data is shown again."""

QUESTION_S = 5.0

_T = TypeVar("_T")
_log = structlog.get_logger()


@dataclass(frozen=True)
class Look:
    """The data of the page at one moment.

    `taken_s`: seconds since 1970.
    `shares`: without fair shares.
    `cycle_counts`: cycles by duration, up to each bound; the last: longer.
    """

    taken_s: float
    status: pb.GetStatusResponse
    shares: pb.GetSharesResponse
    agents: agent_rows.AgentRows
    cycle_bounds_s: tuple[float, ...]
    cycle_counts: tuple[int, ...]
    drained: drained.DrainedAgents
    shadow: pb.GetShadowResponse | None


class Latest(Generic[_T]):
    """A slow computation, run once for all callers that wait for it."""

    def __init__(self, find: Callable[[], _T], fresh_s: float) -> None:
        """Prepare.

        `find`: raises a TimeoutError if the books are busy.
        `fresh_s`: how long a result stays valid.
        """
        self._find = find
        self._fresh_s = fresh_s
        self._lock = threading.Lock()
        self._found: tuple[float, _T] | None = None

    def get(self) -> _T | None:
        """Return the latest result, refreshed if it is old, or None.

        While another thread refreshes it, or the books are busy, return the previous result.
        """
        found = self._found
        if found and time.monotonic() - found[0] < self._fresh_s:
            return found[1]
        # The first caller computes it; others wait only if there is no previous result.
        if self._lock.acquire(timeout=0.0 if found else ANSWER_S):
            try:
                if self._found is found:
                    self._found = time.monotonic(), self._find()
            except TimeoutError:
                _log.warning("the status page shows older numbers: the observer is busy")
            finally:
                self._lock.release()
        return self._found[1] if self._found else None


def take(views: Views) -> Look:
    """Read the current data. Raises TimeoutError if the books are busy."""
    books = views.books

    def ask(work: Callable[[], _T]) -> _T:
        return books.read(work, ANSWER_S)

    def read() -> tuple[agent_rows.AgentRows, drained.DrainedAgents, bool]:
        allocator = books.allocator
        watched = allocator.settings.shadow is not None
        return agent_rows.take(allocator), drained.take(allocator), watched

    agents, drains, watched = ask(read)
    return Look(
        taken_s=time.time(),
        status=views.status(ask, pb.GetStatusRequest()),
        shares=views.shares(ask, pb.GetSharesRequest(), scored=False),
        agents=agents,
        cycle_bounds_s=BOUNDS_S,
        cycle_counts=tuple(books.figures.cycle_times.buckets) or (0,) * (len(BOUNDS_S) + 1),
        drained=drains,
        shadow=views.shadow(ask, pb.GetShadowRequest()) if watched else None,
    )


_TABLE = re.compile(r"(<thead><tr>(.*?)</tr></thead>\s*<tbody>)(.*?)(?=</tbody>)", re.DOTALL)
_HEAD = re.compile(r"<th\b([^>]*)>(.*?)</th>", re.DOTALL)
_SPAN = re.compile(r'colspan="(\d+)"')
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t[dh]\b(?![^>]*colspan)")


def labelled(page: str) -> str:
    """Add to each cell of a page's tables the name of its column.

    >>> labelled("<thead><tr><th>role</th></tr></thead><tbody><tr><td>eng</td></tr></tbody>")
    '<thead><tr><th>role</th></tr></thead><tbody><tr><td data-column="role">eng</td></tr></tbody>'
    """
    return _TABLE.sub(_label_table, page)


def _label_table(table: re.Match[str]) -> str:
    names: list[str] = []
    for attributes, text in _HEAD.findall(table[2]):
        span = _SPAN.search(attributes)
        # Of several columns with one name, the first one gets it.
        names += [text.strip().replace('"', "&#34;"), *[""] * (int(span[1]) - 1 if span else 0)]

    def label_row(row: re.Match[str]) -> str:
        left = iter(names)

        def label(cell: re.Match[str]) -> str:
            name = next(left, "")
            return f'{cell[0]} data-column="{name}"' if name and cell[0] == "<td" else cell[0]

        return _CELL.sub(label, row[0])

    return table[1] + _ROW.sub(label_row, table[3])
