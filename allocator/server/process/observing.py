"""The observer as a process: follows the one that decides, and answers all questions."""

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
from allocator.server.config import Loaded
from allocator.server.config.exchange import read_loaded
from allocator.server.following.books import FollowedBooks
from allocator.server.following.fair_shares import FairnessWatch
from allocator.server.following.settings import FollowedSettings
from allocator.server.grpc.forwarding import OPTIONS, status_of
from allocator.server.grpc.questions import QuestionServicer
from allocator.server.metrics.family import PartsNow
from allocator.server.metrics.operation_families import Operation, fairness_parts, module_parts
from allocator.server.metrics.scraping import MetricsServer
from allocator.server.operators.trials import Trials
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.server.plugins.loading import load_entry_points
from allocator.server.process import logs
from allocator.server.process.link import Link, call_process, end_with_parent
from allocator.server.process.names_watch import NamesWatch
from allocator.server.system.compilation import Compilation
from allocator.server.system.lasting import log_what_threads_raise
from allocator.server.views.views import Views
from allocator.server.web.page import page_routes
from allocator.v1 import admin_pb2_grpc, records_pb2, records_pb2_grpc

QUESTIONS_MAX = 16
"""Questions at a time; further ones wait."""

LOOK_S = 1.0

LOAD_AGAIN_S = 1.0
"""Loops that could not be loaded, as without descriptors, are tried again after this time."""

_log = structlog.get_logger()


def follow(target: str) -> Iterator[records_pb2.FollowResponse]:
    """Call the process that decides. Raises ConnectionError if the stream ends."""
    with grpc.insecure_channel(target, OPTIONS) as channel:
        stub = records_pb2_grpc.RecordServiceStub(channel)
        try:
            yield from stub.Follow(records_pb2.FollowRequest(), wait_for_ready=True)
        except grpc.RpcError as error:
            raise ConnectionError(status_of(error)[1]) from None


class Observer:
    """Everything that runs in the process."""

    def __init__(self, loaded: Loaded, link: Link) -> None:
        config = loaded.config
        policies.load_ahead()
        registry = GuardedRegistry(config.policy.plugin_deadline_ms / 1000)
        self.books = FollowedBooks(
            partial(follow, link.decider),
            build_policy=registry.build_apart,
            build_apart=registry.build_apart,
            substitute=policies.substitute(),
            limits=config.limits.core(),
            settings=config.settings(),
            verify_every=config.observer.verify_every,
        )
        self.settings = FollowedSettings(self.books, loaded)
        self.views = Views(self.books, self.settings)
        self.fairness = FairnessWatch(self.books, every_s=config.metrics.fair_share_every_s)
        self.names = NamesWatch(self.books)
        more: list[PartsNow] = [
            Operation(self.books, self.settings).parts,
            partial(module_parts, lambda: self.books.session),
            partial(fairness_parts, self.fairness, config.metrics.roles_max),
        ]
        self._http = MetricsServer(
            config,
            socket.socket(fileno=link.http),
            self.books,
            more,
            page_routes(self.views, config.http.page),
            health=self._health,
            readiness=self._readiness,
        )
        trials = Trials(lambda: self.books.allocator, config.limits.core(), registry.try_out)
        self._grpc = grpc.server(ThreadPoolExecutor(QUESTIONS_MAX, "grpc"), options=OPTIONS)
        servicer = QuestionServicer(self.views, trials)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(servicer, self._grpc)
        self._grpc.add_insecure_port(link.observer)

    def start(self) -> None:
        self.books.start()
        self.fairness.start()
        self._grpc.start()

    def stop(self) -> None:
        self._grpc.stop(0)
        self.fairness.stop()
        self.books.stop()
        self._http.close()

    def _health(self) -> str:
        if not self.books.is_current:
            silent_s = time.monotonic() - self.books.lag.heard_s
            return f"the process that decides has said nothing for {silent_s:.0f} s"
        return self.books.figures.health

    def _readiness(self) -> str:
        if not self.books.figures.sidecar_id:
            return "starting"
        return self._health() or self.books.figures.not_ready


def observe(loaded: Loaded, link: Link) -> int:
    """Observe until SIGTERM; returns the exit code."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    # Ctrl-C reaches all processes of a terminal; the one that decides ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    call_process("observer")
    structlog.contextvars.bind_contextvars(process="observer")
    compilation = Compilation(LOAD_AGAIN_S, "the observer follows no session until they are")
    observer = Observer(loaded, link)
    observer.start()
    while not ended.wait(LOOK_S if compilation.ready else 0.05):
        compilation.follow()
        if compilation.ready and not observer.books.may_work.is_set():
            observer.books.may_work.set()
            _log.info("observing", pid=os.getpid())
        with suppress(Exception):  # no more than a line of the log is lost
            observer.names.look()
    observer.stop()
    return 0


def main() -> None:
    """Observe as a program of its own; its arguments say where the link is."""
    end_with_parent()
    link = Link(Path(sys.argv[1]), int(sys.argv[2]))
    text = link.configuration.read_text("utf-8")
    load_entry_points()
    loaded = read_loaded(text)
    logs.configure(loaded.config.log.level, loaded.config.log.format)
    log_what_threads_raise()
    sys.exit(observe(loaded, link))


if __name__ == "__main__":
    main()
