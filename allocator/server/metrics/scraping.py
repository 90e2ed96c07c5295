"""Metrics, liveness and readiness over HTTP."""

import copy
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.routing import BaseRoute

from allocator.rule_kinds import RULES
from allocator.server.config import Config
from allocator.server.following.books import FollowedBooks
from allocator.server.metrics import (
    demand_families,
    operation_families,
    state_families,
    usage_families,
)
from allocator.server.metrics.family import SCRAPE_ERRORS, Families, Family, Parts, PartsNow
from allocator.server.metrics.state_families import Scrape, state_parts
from allocator.server.reports import report
from allocator.server.web.http import Check, HttpServer, nothing_wrong, probe_routes

GROUPS: Mapping[str, Families[Any]] = {
    **state_families.GROUPS,
    **operation_families.GROUPS,
    **usage_families.GROUPS,
    **demand_families.GROUPS,
    "Scrapes": (SCRAPE_ERRORS,),
}
"""All metrics of a scrape by subject, in order."""

FAMILIES: Sequence[Family[Any]] = tuple(chain.from_iterable(GROUPS.values()))

ANSWER_S = 2.0
"""Time to wait for the books; then older numbers are shown."""

_log = structlog.get_logger()


class Scrapes:
    """The state for scrapes: the current one, or the latest that the busy books provided."""

    def __init__(self, books: FollowedBooks) -> None:
        self._books = books
        self._lock = threading.Lock()
        self._pending: Future[Scrape] | None = None
        self._last: tuple[Scrape, float] | None = None

    def latest(self) -> Scrape | None:
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = self._books.ask(lambda: _take(self._books))
            pending = self._pending
        try:
            self._last = pending.result(ANSWER_S), time.monotonic()
        except TimeoutError:
            _log.warning("a scrape shows older numbers: the observer is busy")
        except Exception:  # noqa: BLE001 - old numbers are better than none.
            _log.exception("the state could not be read")
        if self._last is None:
            return None
        scrape, taken_s = self._last
        behind_s = time.monotonic() - self._books.lag.heard_s
        return replace(scrape, age_s=max(time.monotonic() - taken_s, behind_s))


def _take(books: FollowedBooks) -> Scrape:
    settings = books.allocator.settings
    return Scrape(
        report=report.read(books.allocator),
        counts=copy.deepcopy(books.counts),
        figures=books.figures,
        rules={kind.name: len(getattr(settings, kind.plural)) for kind in RULES},
        filters_forgotten=books.allocator.state.filters.forgotten,
        in_session=books.session is not None,
    )


def _process_id(books: FollowedBooks) -> int:
    """Id of the deciding process; if it is on another machine, our own."""
    return (0 if books.source() else books.figures.process_id) or os.getpid()


class MetricsServer(HttpServer):
    """The listener for /metrics, /healthz, /readyz and further routes."""

    def __init__(
        self,
        config: Config,
        listener: socket.socket,
        books: FollowedBooks,
        more: Iterable[PartsNow] = (),
        pages: Iterable[BaseRoute] = (),
        *,
        health: Check = nothing_wrong,
        readiness: Check = nothing_wrong,
    ) -> None:
        """Serve.

        `listener`: a listening socket.
        `more`: metrics in addition to those of the state.
        `health`, `readiness`: return why the deciding process is unhealthy, or accepts no
            session; empty if there is no problem.
        """
        registry = CollectorRegistry()
        ProcessCollector(pid=partial(_process_id, books), registry=registry)
        state = partial(
            state_parts,
            Scrapes(books).latest,
            frameworks_max=config.metrics.frameworks_max,
            roles_max=config.metrics.roles_max,
        )
        registry.register(Parts([state, *more]))
        probes = probe_routes(registry, health, readiness)
        names = config.http.host, *config.http.names
        super().__init__(listener, [*probes, *pages], names)
