"""The observer process: follows the deciding process, and answers all queries."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

import grpc
import structlog

from allocator import policies
from allocator.server.config import Config, Loaded
from allocator.server.config.exchange import read_loaded
from allocator.server.engine.commands import Probe
from allocator.server.following.books import AGAIN_S, Connect, FollowedBooks
from allocator.server.following.demand_watch import DemandWatch
from allocator.server.following.fair_shares import FairnessWatch
from allocator.server.following.planning import GIVE_UP_S, Planner
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.usage import UsageKeeper
from allocator.server.grpc.forwarding import OPTIONS, status_of
from allocator.server.grpc.listeners import ListenError
from allocator.server.grpc.questions import QuestionServicer
from allocator.server.grpc.sources import Sources
from allocator.server.metrics.demand_families import demand_parts
from allocator.server.metrics.family import PartsNow
from allocator.server.metrics.operation_families import Operation, fairness_parts, module_parts
from allocator.server.metrics.scraping import MetricsServer
from allocator.server.metrics.usage_families import UsageSeries
from allocator.server.operators.trials import Trials
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.server.plugins.loading import load_entry_points
from allocator.server.process.lifetime import LOOK_S, begin
from allocator.server.process.link import Link, call_process, end_with_parent
from allocator.server.process.names_watch import NamesWatch
from allocator.server.process.readers import ReadersListener
from allocator.server.system.compilation import Compilation
from allocator.server.system.priority import give_way
from allocator.server.views.views import Views
from allocator.server.web.page import page_routes
from allocator.v1 import admin_pb2_grpc, records_pb2, records_pb2_grpc

QUESTIONS_MAX = 16

REPORT_S = 60.0

HUNG_S = 60.0
"""Time without an answer after which the thread that owns the books counts as hung."""

AGAIN_MAX_S = 15.0

STOP_S = 2.0

NICENESS = 10
"""Added to that of the deciding process, which comes first if few processors are free."""

LOAD_AGAIN_S = 1.0
"""Pause before a failed loading of loops is retried, for example after a lack of descriptors."""

_log = structlog.get_logger()


def follow(target: str) -> Iterator[records_pb2.FollowResponse]:
    """Yield the stream of the deciding process. Raises ConnectionError if it ends."""
    with grpc.insecure_channel(target, OPTIONS) as channel:
        stub = records_pb2_grpc.RecordServiceStub(channel)
        try:
            yield from stub.Follow(records_pb2.FollowRequest(), wait_for_ready=True)
        except grpc.RpcError as error:
            raise ConnectionError(status_of(error)[1]) from None


class PlanReports:
    """Sends reports on planning to the deciding process."""

    def __init__(self, target: str) -> None:
        """Open a channel; `target`: address of the deciding process."""
        self._channel = grpc.insecure_channel(target, OPTIONS)
        self._stub = records_pb2_grpc.PlanServiceStub(self._channel)

    def __call__(self, report: records_pb2.ReportRequest) -> records_pb2.ReportResponse:
        try:
            return self._stub.Report(report, timeout=REPORT_S, wait_for_ready=True)
        except grpc.RpcError as error:
            raise ConnectionError(status_of(error)[1]) from None


class Observer:
    """All parts of the observer process."""

    def __init__(self, loaded: Loaded, http: socket.socket, link: Link | None = None) -> None:
        """Build all parts; calls are served from `start` on, HTTP requests at once.

        `http`: the listening socket.
        `link`: the link to the deciding process on this machine; None: the configured sources on
            other machines are followed.
        """
        config = loaded.config
        policies.load_ahead()
        registry = GuardedRegistry(config.policy.plugin_deadline_ms / 1000)
        self._sources: Sources | None = None
        if link is None:
            self._sources = Sources(config.observer, lambda: self._in_session)
            connect: Connect = self._sources.messages
        else:
            connect = partial(follow, link.decider)
        self.books = FollowedBooks(
            connect,
            build_policy=registry.build_apart,
            build_apart=registry.build_apart,
            substitute=policies.substitute(),
            limits=config.limits.core(),
            settings=config.settings(),
            verify_every=config.observer.verify_every,
            source=self._source,
            again_max_s=AGAIN_S if link else AGAIN_MAX_S,
        )
        if link is not None:
            self.books.planner = _new_planner(config, link, self.books)
        self.settings = FollowedSettings(self.books, loaded)
        self.usage = UsageKeeper(self.books, self._state_directory)
        self.demand = DemandWatch(self.books)
        self.views = Views(self.books, self.settings, self.usage, self.demand)
        self.fairness = FairnessWatch(self.books, every_s=config.metrics.fair_share_every_s)
        self.names = NamesWatch(self.books)
        trials = Trials(lambda: self.books.allocator, config.limits.core(), registry.try_out)
        questions = QuestionServicer(self.views, trials)
        self._probe = Probe(self.books.ask)
        targets = config.observer.listen if link else config.listen.targets
        self.readers = ReadersListener(config, targets, questions, self.books)
        more: list[PartsNow] = [
            Operation(self.books, self.settings, self.readers.refused).parts,
            partial(module_parts, lambda: self.books.session),
            partial(fairness_parts, self.fairness, config.metrics.roles_max),
            UsageSeries(self.usage, config.metrics.roles_max).parts,
            partial(demand_parts, self.demand, config.metrics.roles_max),
        ]
        self._http = MetricsServer(
            config,
            http,
            self.books,
            more,
            page_routes(self.views, config.http.page),
            health=self._health,
            readiness=self._readiness,
        )
        # A separate server, so that queries forwarded by the deciding process always have room.
        self._grpc = grpc.server(ThreadPoolExecutor(QUESTIONS_MAX, "grpc"), options=OPTIONS)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(questions, self._grpc)
        if link:
            self._grpc.add_insecure_port(link.observer)

    def start(self) -> None:
        self.books.start()
        self.fairness.start()
        self.demand.start()
        self.usage.start()
        self._grpc.start()

    def is_alive(self) -> bool:
        return self._probe.waits_s() < HUNG_S

    def look(self, compilation: Compilation) -> None:
        if compilation.ready and not self.books.may_work.is_set():
            self.books.may_work.set()
            _log.info("observing", pid=os.getpid())
        with suppress(Exception):  # only a log message is lost
            self.names.look()

    def stop(self) -> None:
        self.readers.stop()
        self._grpc.stop(0)
        self.fairness.stop()
        self.demand.stop()
        self.usage.stop(STOP_S)
        self.books.stop()
        self._http.close()

    def _source(self) -> str:
        return self._sources.current if self._sources else ""

    @property
    def _in_session(self) -> bool:
        return self.books.session is not None

    def _state_directory(self) -> str | None:
        """Return where usage is saved: the state directory of the deciding process, our parent.

        Empty: nowhere. None: the deciding process has not reported it yet.
        """
        said = self.books.figures
        if not self._sources and not said.sidecar_id:
            return None
        ours = not self._sources and said.process_id == os.getppid()
        return said.state.directory if ours else ""

    def _health(self) -> str:
        if self._sources:  # errors on another machine are no reason to end this process
            return ""
        if not self.books.is_current:
            silent_s = time.monotonic() - self.books.lag.heard_s
            return f"the deciding process has sent nothing for {silent_s:.0f} s"
        return self.books.figures.health

    def _readiness(self) -> str:
        if not self.books.figures.sidecar_id:
            return self.books.problem() if self._sources else "starting"
        if self._sources:
            return self.books.problem()
        return self._health() or self.books.figures.not_ready


def _new_planner(config: Config, link: Link, books: FollowedBooks) -> Planner:
    return Planner(
        PlanReports(link.decider),
        books.ask,
        interval_s=config.policy.plan_interval_ms / 1000,
        is_awaited=config.policy.plan_first_wait_ms > 0,
        give_up_s=max(GIVE_UP_S, config.policy.plan_budget_ms / 10),
    )


def observe(loaded: Loaded, link: Link) -> int:
    """Observe until SIGTERM; return the exit code."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    # Ctrl-C reaches all processes of a terminal; the deciding process then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    call_process("observer")
    give_way(NICENESS)
    structlog.contextvars.bind_contextvars(process="observer")
    compilation = Compilation(LOAD_AGAIN_S, "the observer follows no session until they are")
    observer = Observer(loaded, socket.socket(fileno=link.http), link)
    observer.start()
    told = ""
    while not ended.wait(LOOK_S if compilation.ready else 0.05):
        compilation.follow()
        observer.look(compilation)
        if loaded.config.observer.listen and not observer.readers.targets:
            told = _listen_for_readers(observer.readers, told)
    observer.stop()
    return 0


def _listen_for_readers(readers: ReadersListener, told: str) -> str:
    """Listen, or log once why that is impossible; return the logged message."""
    try:
        readers.start()
        _log.info("serving followers", targets=readers.targets)
    except ListenError as error:
        if str(error) != told:
            told = str(error)
            _log.error("followers cannot be served; retrying", error=told)
    return told


def main() -> None:
    """Run an observer as a separate program; its arguments describe the link."""
    end_with_parent(int(sys.argv[3]))
    link = Link(Path(sys.argv[1]), int(sys.argv[2]))
    text = link.configuration.read_text("utf-8")
    load_entry_points()
    loaded = read_loaded(text)
    begin(loaded.config, "")
    sys.exit(observe(loaded, link))


if __name__ == "__main__":
    main()
