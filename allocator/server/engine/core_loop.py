"""The thread that owns the core.

Sessions' messages, operators' settings and plans are commands in one queue, which are executed in
order. Every change of the core is written to the journal and to the record stream. Queries never
reach this thread: an observer, which follows the stream, answers them.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar
from uuid import uuid4

import structlog

from allocator import __version__
from allocator.core import (
    Allocator,
    DemandMemory,
    FirstPlan,
    Policy,
    PolicySpec,
    SetPolicy,
    Settings,
)
from allocator.server.config import Config
from allocator.server.engine import sessions
from allocator.server.engine.commands import Commands
from allocator.server.engine.feed import Feed, Follower
from allocator.server.engine.journal_files import head_of, journal_of
from allocator.server.engine.latency_histogram import Durations
from allocator.server.engine.sessions import (
    HELLO_S,
    SESSIONS_MAX,
    SessionInfo,
    SessionLog,
    SessionStream,
    info_of,
)
from allocator.v1 import journal_pb2, records_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import (
    PROTOCOL_VERSION,
    Answer,
    OperatorEvent,
    SessionCounts,
    SessionState,
    Sidecar,
    WireError,
)
from allocator.wire.codec.proto_types import write_fields
from allocator.wire.journal.recorder import Recorder
from allocator.wire.journal.records import start_record
from allocator.wire.session.sidecar import KeptState

_T = TypeVar("_T")

GRACE_S = 5.0

_log = structlog.get_logger()


class CoreLoop:
    """The core's thread and its queue.

    `started_s`: when the process began, by the monotonic clock.
    `last_batch_s`, `heard_s`: time of the latest batch of a master, since 1970 and by the monotonic
        clock; 0: none yet.
    `after_message`: called with the allocator on the core's thread, after each message is answered.
    `first_plan`: called before a cycle of a policy that plans, if there is no plan yet; may wait
        for one. Both can be set before `start`; by default they do nothing.
    """

    def __init__(
        self,
        config: Config,
        *,
        build_policy: Callable[[PolicySpec], Policy],
        substitute: Policy | None = None,
        before_policy: Callable[[PolicySpec], None] = lambda _spec: None,
        sidecar_id: str | None = None,
        settings: Settings | None = None,
        memory: DemandMemory | None = None,
    ) -> None:
        """Set up the core, without starting the thread.

        `before_policy`: called on the core's thread before an operator's policy is built.
        `settings`: the initial settings; by default those of the configuration.
        `memory`: demands learnt by an earlier process.
        """
        self.sidecar_id = sidecar_id or uuid4().hex
        self.started_s = time.monotonic()
        self.cycle_times = Durations()
        self.last_batch_s = self.heard_s = 0.0
        self.after_message: Callable[[Allocator], None] = lambda _allocator: None
        self.first_plan: FirstPlan = lambda _planning_policy, _agents: None
        self._build_policy = build_policy
        self._substitute = substitute
        self._before_policy = before_policy
        self.session_limits = config.limits.core()
        self._welcome = pb.Welcome(
            protocol_version=PROTOCOL_VERSION,
            sidecar_version=__version__,
            sidecar_id=self.sidecar_id,
            message_bytes_max=config.limits.message_bytes_max,
            kinds_max=self.session_limits.kinds,
        )
        self._sidecar = Sidecar(self._new_allocator, settings or config.settings(), self._welcome)
        if memory is not None:
            self._sidecar.learn(memory)
        self._streams: dict[int, SessionStream] = {}
        self._telling = SessionLog()
        self._draining = False
        self.commands = Commands()
        self.feed = Feed()
        self._recorder = Recorder(self._sidecar, self.feed.write, self._keep)
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)
        self.journal = journal_of(config.journal, self._head)

    # On the core's thread only; other threads read these by `call`.

    @property
    def allocator(self) -> Allocator:
        """The session's allocator; without a session, an empty one with the settings."""
        return self._sidecar.allocator

    @property
    def active(self) -> int:
        return self._sidecar.active

    @property
    def counts(self) -> SessionCounts:
        return self._sidecar.counts

    @property
    def session(self) -> SessionInfo | None:
        session, number = self._sidecar.session, self._sidecar.active
        # The stream is missing if the session ends while another thread reads this.
        stream = self._streams.get(number)
        return None if session is None or stream is None else info_of(session, number, stream.peer)

    @property
    def sessions(self) -> int:
        return len(self._sidecar.sessions)

    # On any thread.

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_s: float | None = None) -> bool:
        """Finish the queued work, then end; return whether the thread ended in time."""
        self.commands.end()
        self._thread.join(within_s)
        if self._thread.is_alive():
            return False  # it may still write to the journal
        if self.journal:
            self.journal.close()
        return True

    def call(self, work: Callable[[], _T]) -> Future[_T]:
        """Do work between two commands; the future gets its result or exception."""
        return self.commands.call(work)

    def open(self, stream: SessionStream) -> None:
        self.commands.put(partial(self._open, stream))

    def receive(self, stream: SessionStream, data: bytes) -> None:
        self.commands.put(partial(self._receive, stream, data))

    def close(self, stream: SessionStream, error: WireError | None = None) -> None:
        self.commands.put(partial(self._close, stream, error))

    def drain(self) -> Future[None]:
        """End all sessions because the sidecar shuts down; refuse new ones."""
        return self.call(self._drain)

    # Commands.

    def _run(self) -> None:
        for do in self.commands.taken():
            try:
                do()
            except BaseException:  # noqa: BLE001 - the error is logged; the thread must continue.
                _log.exception("a command of the core failed")

    def _new_allocator(self, settings: Settings) -> Allocator:
        return Allocator(
            self._build_policy,
            settings,
            self.session_limits,
            substitute=self._substitute,
            around_cycle=self.cycle_times.observing,
            first_plan=lambda *cycle: self.first_plan(*cycle),  # noqa: PLW0108 - it is set later
        )

    def follow(self) -> Follower:
        position = self.feed.position
        head = head_of(*self._head(1, position), lambda record: record.SerializeToString())
        counts = write_fields(self.counts, records_pb2.Counts)
        follower = Follower(head.pieces, counts, position)
        self.feed.add(follower)
        return follower

    def _head(self, file: int, records_before: int) -> tuple[journal_pb2.JournalRecord, KeptState]:
        """Return the records with the settings, and the current state, for a new journal file."""
        start = start_record(
            self._sidecar.allocator.settings,
            self.session_limits,
            self._welcome,
            sessions_before=self._sidecar.sessions_begun,
            file=file,
            records_before=records_before,
        )
        return start, self._sidecar.kept()

    def _keep(self, record: journal_pb2.JournalRecord) -> None:
        if self.journal:
            self.journal.write(record)

    def _open(self, stream: SessionStream) -> None:
        stream.number = self._recorder.open()
        self._streams[stream.number] = stream
        _log.info("session opened", session=stream.number, peer=stream.peer)
        if self._draining:
            self._close(stream, sessions.shutdown())
        else:
            if len(self._sidecar.sessions) > SESSIONS_MAX:
                self._make_room()
            expire = partial(self._expire, stream)
            stream.expire(HELLO_S, lambda: self.commands.put(expire))

    def _make_room(self) -> None:
        """End the oldest stream without the allocator; modules say hello at once."""
        oldest = next(each for each in self._sidecar.sessions if each != self._sidecar.active)
        self._close(self._streams[oldest], sessions.no_room())

    def _expire(self, stream: SessionStream) -> None:
        session = self._sidecar.sessions.get(stream.number)
        if session and session.state is SessionState.AWAITING_HELLO:
            self._close(stream, sessions.no_hello())

    def _receive(self, stream: SessionStream, data: bytes) -> None:
        try:
            if stream.number in self._sidecar.sessions:
                self._refuse_from_the_future(stream, data)
            if stream.number in self._sidecar.sessions:
                batches = self._sidecar.counts.batches
                self._deliver(self._recorder.receive(stream.number, data))
                if self._sidecar.counts.batches > batches:
                    self.last_batch_s, self.heard_s = time.time(), time.monotonic()
                self._telling.of_message(stream.number, self._sidecar)
                self.after_message(self.allocator)
        finally:
            # Even after an error, or the stream would wait forever to send its next message.
            stream.message_done()

    def _refuse_from_the_future(self, stream: SessionStream, data: bytes) -> None:
        """End the session of a master whose start is in the future by this host's clock."""
        session, holder = self._sidecar.sessions[stream.number], self._sidecar.session
        if session.state is SessionState.AWAITING_HELLO and holder and holder.greeting:
            wrong = sessions.unbelieved(holder.greeting, data)
            if wrong:
                newcomer, error = wrong
                self._close(stream if newcomer else self._streams[self._sidecar.active], error)

    def _close(self, stream: SessionStream, error: WireError | None) -> None:
        if stream.number in self._sidecar.sessions:
            self._deliver(self._recorder.close(stream.number, error))
        self._telling.forget(stream.number)
        if self._streams.pop(stream.number, None):
            _log.info("session closed", session=stream.number)
        stream.end(GRACE_S)

    def _deliver(self, answers: list[Answer]) -> None:
        """Queue answers on their streams; an error also ends the stream."""
        for number, response in answers:
            stream = self._streams[number]
            stream.answer(response)
            if response.HasField("error"):
                self._telling.of_error(number, response.error, self._sidecar.sessions.get(number))
                stream.end(GRACE_S)

    def step(self, event: OperatorEvent) -> None:
        """Apply an operator's change or a plan, on the core's thread.

        Raises EventError if it is not possible; then nothing has changed.
        """
        if isinstance(event, SetPolicy):
            self._before_policy(event.spec)
        elif isinstance(event, Settings):
            self._before_policy(event.policy)
        self._recorder.step(event)

    def _drain(self) -> None:
        self._draining = True
        for stream in list(self._streams.values()):
            self._close(stream, sessions.shutdown())
