"""The gRPC service of the record stream, which also sends figures and settings."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import grpc

from allocator import __version__
from allocator.server.config.exchange import write_loaded
from allocator.server.engine.commands import left_s, wait
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.feed import BehindError, Follower
from allocator.server.engine.monitor import Monitor
from allocator.server.engine.planning import Planning
from allocator.server.grpc.calls import Calls
from allocator.server.operators.operators import Operators
from allocator.server.system.compilation import CompileProgress
from allocator.server.system.disk import reason
from allocator.server.system.lasting import failures
from allocator.v1 import records_pb2 as pb
from allocator.wire.settings.history import write_history
from allocator.wire.settings.overlay import write_overlay

OBSERVER_PART = 0.5
"""Maximum fraction of the core's time for checkpoints for its observer, which rarely restarts."""

FOLLOWERS_PART = 0.05
"""Maximum fraction of an observer's time for checkpoints for its followers."""

RECORDS = pb.DESCRIPTOR.services_by_name["RecordService"].full_name

EVERY_S = 0.25
"""Interval at which figures are sent; they are also sent after each change of settings."""


class Decider(NamedTuple):
    """The sources of figures; `progress`: returns the progress of the compiled loops."""

    loop: CoreLoop
    operators: Operators
    planning: Planning
    calls: Calls
    progress: Callable[[], CompileProgress]
    monitor: Monitor


def write_figures(decider: Decider) -> pb.Figures:
    """Return figures that are not in the books; on any thread, without waiting for the core's."""
    loop, operators, planning = decider.loop, decider.operators, decider.planning
    progress, session, times = decider.progress(), loop.session, loop.cycle_times
    figures = pb.Figures(
        sidecar_version=__version__,
        sidecar_id=loop.sidecar_id,
        process_id=os.getpid(),
        uptime_s=time.monotonic() - loop.started_s,
        cycle_times=pb.CycleTimes(
            buckets=times.buckets,
            total_s=times.total_s,
            p50_ms=1000 * times.percentile(0.5),
            p99_ms=1000 * times.percentile(0.99),
        ),
        sessions=loop.sessions,
        peer="" if session is None else session.peer,
        last_batch_s=loop.last_batch_s,
        silent_s=time.monotonic() - loop.heard_s,
        queue_depth=loop.commands.depth,
        loops=pb.Loops(
            state=progress.state, parts_compiled=progress.done, problem=progress.problem
        ),
        state=pb.StateFigures(
            directory=operators.directory,
            problem=operators.problem,
            errors=operators.state_errors,
        ),
        reloads=operators.reloads,
        admin_changes=_pairs(operators.audit.counts()),
        calls_refused=_pairs(dict(decider.calls.refused)),
        plans=planning.figures(),
        failures=dict(failures()),
        not_ready=decider.monitor.readiness(),
        health=decider.monitor.health(),
    )
    if (journal := loop.journal) is not None:
        figures.journal.on, figures.journal.file_bytes = journal.on, journal.size
        figures.journal.errors = journal.errors
        figures.journal.failure = reason(journal.failure) if journal.failure else ""
    return figures


def _write_settings(operators: Operators) -> pb.SettingFigures:
    return pb.SettingFigures(
        overlay=write_overlay(operators.overlay),
        configuration=write_loaded(operators.loaded),
        history=write_history(operators.history),
    )


def _pairs(counts: dict[tuple[str, str], int]) -> Iterator[pb.PairCount]:
    return (pb.PairCount(first=one, second=two, count=each) for (one, two), each in counts.items())


class Stream(Protocol):
    """The stream of one follower."""

    def messages(self) -> Iterator[bytes]:
        """Yield messages, serialised, until the end; on the follower's thread.

        Raises BehindError if the follower reads too slowly.
        """

    def end(self) -> None:
        """End the stream, and drop the records that wait for this follower; on any thread."""


class RecordServicer:
    """Sends followers a checkpoint, and then all records."""

    def __init__(
        self,
        begin: Callable[[], Stream],
        call: Callable[[Callable[[], Stream]], "Future[Stream]"],
        part: float,
    ) -> None:
        """Serve streams.

        `begin`: makes the stream of a new follower; raises LookupError if there are no books.
        `call`: runs work on the thread that owns the books; used for `begin`.
        `part`: maximum fraction of that thread's time for checkpoints.
        """
        self._begin, self._call, self._part = begin, call, part
        self._one_at_a_time = threading.Lock()
        self._due_s = 0.0

    def add_to(self, server: grpc.Server) -> None:
        make: Any = grpc.unary_stream_rpc_method_handler
        follow = make(self.follow, pb.FollowRequest.FromString)
        handler = grpc.method_handlers_generic_handler(RECORDS, {"Follow": follow})
        server.add_generic_rpc_handlers((handler,))

    def follow(self, _: pb.FollowRequest, context: grpc.ServicerContext) -> Iterator[bytes]:
        with self._turn(context):
            begun = self._call(self._begun)
            try:
                stream = wait(context, begun)
            except LookupError as error:
                context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            except BaseException:
                begun.add_done_callback(_end_late)
                raise
        try:
            if context.add_callback(stream.end):
                yield from stream.messages()
        except BehindError:
            text = "this follower reads too slowly; call again for a new checkpoint"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        finally:
            stream.end()

    @contextmanager
    def _turn(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Wait until a checkpoint may be made again; if that takes too long, end the call."""
        within_s = left_s(context)
        if self._one_at_a_time.acquire(timeout=within_s):
            try:
                rest_s = self._due_s - time.monotonic()
                if rest_s <= within_s:
                    time.sleep(max(rest_s, 0.0))
                    yield
                    return
            finally:
                self._one_at_a_time.release()
        text = "others began to follow a moment ago; call again later"
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    def _begun(self) -> Stream:
        begun_s = time.monotonic()
        try:
            return self._begin()
        finally:
            now_s = time.monotonic()
            self._due_s = now_s + (now_s - begun_s) / self._part


def _end_late(begun: "Future[Stream]") -> None:
    """End a stream that was made after its caller had gone."""
    if not begun.cancelled() and begun.exception() is None:
        begun.result().end()


class DecidersStream(NamedTuple):
    """The stream of a follower of the deciding process."""

    decider: Decider
    follower: Follower
    left: Callable[[], None]

    def messages(self) -> Iterator[bytes]:
        try:
            for message in self.follower.messages(latest(self.decider)):
                yield message.SerializeToString()
        finally:
            self.left()

    def end(self) -> None:
        self.follower.end()
        self.decider.loop.feed.remove(self.follower)


def deciders_records(
    decider: Decider, part: float = OBSERVER_PART, left: Callable[[], None] = lambda: None
) -> RecordServicer:
    """Serve the deciding process's records to its observer; `left`: called when it leaves."""
    loop = decider.loop
    return RecordServicer(lambda: DecidersStream(decider, loop.follow(), left), loop.call, part)


def latest(decider: Decider) -> Callable[[pb.FollowResponse], None]:
    """Return a function that adds figures to a message if they are due, and settings if changed."""
    operators, monitor = decider.operators, decider.monitor
    sent_s, set_then, was = 0.0, -1, -1

    def add(message: pb.FollowResponse) -> None:
        nonlocal sent_s, set_then, was
        now_s, sets, states = time.monotonic(), operators.changes, monitor.changes
        if (sets, states) == (set_then, was) and now_s - sent_s < EVERY_S:
            return
        if sets != set_then:
            message.settings.CopyFrom(_write_settings(operators))
        sent_s, set_then, was = now_s, sets, states
        message.figures.CopyFrom(write_figures(decider))

    return add
