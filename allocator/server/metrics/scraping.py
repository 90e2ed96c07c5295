"""Metrics, liveness and readiness over HTTP."""

import copy
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.routing import BaseRoute

from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.metrics import operation_families, state_families
from allocator.server.metrics.family import SCRAPE_ERRORS, Family, Parts, PartsNow
from allocator.server.metrics.operation_families import COMPILATION, compilation_parts
from allocator.server.metrics.state_families import Scrape, state_parts
from allocator.server.reports import report
from allocator.server.system.compilation import Compilation
from allocator.server.web.http import HttpServer, nothing_wrong, probe_routes

FAMILIES: Sequence[Family[Any]] = (
    *COMPILATION,
    *state_families.FAMILIES,
    *operation_families.FAMILIES,
    SCRAPE_ERRORS,
)
"""All that a scrape may hold, in its order."""

ANSWER_S = 2.0
"""How long the core may take to answer before we say that it is busy."""

GLANCE_S = 0.5
"""How long a probe of our health waits for it; most probes give up after a second."""

SILENCE_S = 10.0
"""How long it may be busy before we say that it is not alive."""

_T = TypeVar("_T")
_log = structlog.get_logger()


class Question(Generic[_T]):
    """A question to the core's thread: those who ask while it waits share one answer."""

    def __init__(
        self, ask: Callable[[Callable[[], _T]], Future[_T]], work: Callable[[], _T]
    ) -> None:
        """Prepare to ask.

        `ask`: has the core's thread do some work.
        `work`: what the core's thread does to answer.
        """
        self._ask = ask
        self._work = work
        self._lock = threading.Lock()
        self._pending: Future[_T] | None = None
        self._asked_s = 0.0

    def ask(self, timeout_s: float) -> _T:
        """Ask the core's thread, or wait for the answer that it owes already.

        Raises TimeoutError where the core is busy.
        """
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = self._ask(self._work)
                self._asked_s = time.monotonic()
            pending = self._pending
        return pending.result(timeout_s)

    def waiting_s(self) -> float:
        """How long the core owes an answer; 0 where it owes none."""
        with self._lock:
            owed = self._pending is not None and not self._pending.done()
            return time.monotonic() - self._asked_s if owed else 0.0


class Scrapes:
    """The state for scrapes: as it is now, or as it was when the core last had time."""

    def __init__(self, loop: CoreLoop) -> None:
        self._question = Question(loop.ask, lambda: (_take(loop), time.monotonic()))
        self._last: tuple[Scrape, float] | None = None

    def latest(self) -> Scrape | None:
        """Give the state; None where the core never answered so far."""
        try:
            self._last = self._question.ask(ANSWER_S)
        except TimeoutError:
            _log.warning("a scrape shows older numbers: the core is busy")
        except Exception:  # noqa: BLE001 - old numbers are better than none.
            _log.exception("the state could not be read")
        if self._last is None:
            return None
        scrape, taken_s = self._last
        return replace(scrape, age_s=time.monotonic() - taken_s)


def _take(loop: CoreLoop) -> Scrape:
    """Copy what a scrape needs; on the core's thread."""
    return Scrape(
        report=report.read(loop.allocator),
        counts=copy.deepcopy(loop.counts),
        cycle_buckets=loop.cycle_times.cumulative(),
        cycle_total_s=loop.cycle_times.total_s,
        journal_errors=loop.journal_errors,
        sessions=loop.sessions,
        filters_forgotten=loop.allocator.state.filters.forgotten,
        in_session=loop.session is not None,
    )


class Monitor:
    """Says whether the process is alive, and whether it takes sessions."""

    def __init__(self, loop: CoreLoop, problem: Callable[[], str] = nothing_wrong) -> None:
        """Begin as not ready; `problem` says why no session has room, where none has."""
        self._problem = problem
        self._question = Question(partial(loop.call, kind="other"), lambda: None)
        self._not_ready = "starting"

    def serving(self) -> None:
        """Sessions are welcome."""
        self._not_ready = ""

    def draining(self) -> None:
        """From now on they are not."""
        self._not_ready = "shutting down"

    def health(self) -> str:
        """What is wrong with the process; empty where nothing is."""
        if not self._answers(GLANCE_S) and self._question.waiting_s() > SILENCE_S:
            return f"the core has not answered for {self._question.waiting_s():.0f} s"
        return ""

    def readiness(self) -> str:
        """Why no session can be taken now; empty where one can."""
        busy = "" if self._answers(ANSWER_S) else "the core is busy"
        return self._not_ready or self._problem() or busy

    def _answers(self, timeout_s: float) -> bool:
        try:
            self._question.ask(timeout_s)
        except TimeoutError:
            return False
        return True


class MetricsServer(HttpServer):
    """The listener for /metrics, /healthz and /readyz, and for whatever else is given."""

    def __init__(
        self,
        config: Config,
        loop: CoreLoop,
        compilation: Compilation | None = None,
        more: Iterable[PartsNow] = (),
        pages: Iterable[BaseRoute] = (),
        problem: Callable[[], str] = nothing_wrong,
    ) -> None:
        """Listen; not ready before `serving` is called."""
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        state = partial(
            state_parts,
            Scrapes(loop).latest,
            frameworks_max=config.metrics.frameworks_max,
            roles_max=config.metrics.roles_max,
        )
        loops = [partial(compilation_parts, compilation)] if compilation else []
        registry.register(Parts([*loops, state, *more]))
        monitor = Monitor(loop, problem)
        self.serving = monitor.serving
        self.draining = monitor.draining
        self.health = monitor.health
        probes = probe_routes(registry, monitor.health, monitor.readiness)
        address = config.http.host, config.http.port
        super().__init__(*address, [*probes, *pages], config.http.names)


def start_http(
    config: Config,
    loop: CoreLoop,
    compilation: Compilation | None = None,
    more: Iterable[PartsNow] = (),
    pages: Iterable[BaseRoute] = (),
    problem: Callable[[], str] = nothing_wrong,
) -> MetricsServer:
    """Serve metrics, liveness and readiness; `more` gives metrics beside the state's.

    `problem` says why no session has room, where none has.

    Raises OSError where the address cannot be listened on.
    """
    return MetricsServer(config, loop, compilation, more, pages, problem)
