"""A link that speaks the real protocol over gRPC."""

import queue
from collections.abc import Iterator, Sequence
from uuid import uuid4

import grpc

from allocator import __version__
from allocator.core import Decisions, Holdings
from allocator.v1 import session_pb2 as pb
from allocator.v1.session_pb2_grpc import SessionServiceStub
from allocator.wire import Greeting, write_figures
from laboratory.links.base import Batch, LinkDownError, Opening
from laboratory.module_protocol import ModuleSession, SessionEndedError

CONNECT_S = 1.0

MESSAGE_BYTES_MAX = 8 * 2**20
"""Maximum size of messages that the emulated master reads, as in the real module."""

STREAM_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),
]

UNANSWERED_MAX = 8
"""Read answers once this many are due: a sidecar does not wait for slow readers."""

_GOING_AWAY = (pb.ERROR_CODE_SHUTDOWN,)
"""Errors that end a session and permit to reconnect; any other one is a defect, and raised."""


class Caller:
    """The module's identity, which is the same in all of its sessions."""

    def __init__(self, started_us: int = 1) -> None:
        self._instance_id = uuid4().hex
        self._started_us = started_us

    def session(self, opening: Opening) -> ModuleSession:
        """Make the client's state machine for a new session."""
        return ModuleSession(
            Greeting(
                master_id="emulated-master",
                instance_id=self._instance_id,
                instance_started_us=self._started_us,
                options=opening.options,
                mesos_version="1.11.0",
                module_version=__version__,
                message_bytes_max=MESSAGE_BYTES_MAX,
            )
        )


def whole(parts: Sequence[pb.Welcome | Decisions]) -> Decisions:
    """Join the parts of an answer."""
    groups: tuple[Holdings, ...] = ()
    gangs: tuple[tuple[int, int], ...] = ()
    rows = 0
    for part in parts:
        assert isinstance(part, Decisions), "a welcome in the middle of a session"
        groups += part.groups
        gangs += tuple((rows + first, count) for first, count in part.gangs)
        rows += len(part)
    first, last = parts[0], parts[-1]
    assert isinstance(first, Decisions)
    assert isinstance(last, Decisions)
    return Decisions(
        first.cycle, first.first_decision, groups, last.reclaims, last.holds_back, gangs
    )


class StreamLink:
    """A session over gRPC with a sidecar process.

    target: ``host:port`` or ``unix:/path``.
    started_us: when this master began to lead; the newer of two masters gets the sidecar.
    token: authorizes sessions; none is sent if empty.
    """

    connect_s = CONNECT_S
    """Time limit for the connection."""

    def __init__(self, target: str, started_us: int = 1, token: str = "") -> None:
        self._target = target
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._caller = Caller(started_us)
        self._channel: grpc.Channel | None = None
        self._requests: queue.SimpleQueue[pb.SessionRequest | None] = queue.SimpleQueue()
        self._answers: Iterator[pb.SessionResponse] = iter(())

    def open(self, opening: Opening) -> None:
        """Connect, then send hello and the snapshot."""
        self.close()
        self._channel = self._dial()
        try:
            grpc.channel_ready_future(self._channel).result(self.connect_s)
        except grpc.FutureTimeoutError:
            raise LinkDownError(f"no sidecar answers at {self._target}") from None
        # gRPC takes requests from this queue in a separate thread, until it gets None.
        self._requests = queue.SimpleQueue()
        self._answers = self._listen(
            SessionServiceStub(self._channel).Session(
                iter(self._requests.get, None), metadata=self._metadata
            )
        )
        self._session = self._caller.session(opening)
        self._requests.put(self._session.hello())
        self._receive()
        for each in snapshot(self._session, opening):
            self._requests.put(each)

    def send(self, batch: Batch) -> None:
        """Send the batch; its answer is read later."""
        self._requests.put(request(self._session, batch, cycle=False))
        if self._session.sequence - self._session.answered >= UNANSWERED_MAX:
            self._receive()

    def settle(self) -> None:
        """Read all answers that are due."""
        while self._session.answered < self._session.sequence:
            self._receive()

    def exchange(self, batch: Batch) -> Decisions:
        """Send the batch, and wait for the answer to it."""
        self._requests.put(request(self._session, batch, cycle=True))
        # Answers to earlier batches come first.
        while self._session.answered < batch.sequence - 1:
            self._receive()
        parts = [self._receive()]
        while self._session.more:
            parts.append(self._receive())
        return whole(parts)

    def close(self) -> None:
        self._requests.put(None)
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _dial(self) -> grpc.Channel:
        """Make a channel, without connecting yet."""
        return grpc.insecure_channel(self._target, STREAM_OPTIONS)

    def _listen(self, call: Iterator[pb.SessionResponse]) -> Iterator[pb.SessionResponse]:
        """Give the answers of a call as they arrive; subclasses intercept them here."""
        return call

    def _receive(self) -> pb.Welcome | Decisions:
        try:
            response = next(self._answers)
        except (grpc.RpcError, StopIteration, ValueError) as error:
            why = error.details() if isinstance(error, grpc.Call) else str(error)
            raise LinkDownError(f"the stream to {self._target} broke: {why}") from None
        try:
            return self._session.receive(response)
        except SessionEndedError as error:
            if error.error.code in _GOING_AWAY:
                raise LinkDownError(str(error)) from None
            raise


def snapshot(session: ModuleSession, opening: Opening) -> Iterator[pb.SessionRequest]:
    assert session.welcome is not None
    return session.snapshot(
        opening.state(session.welcome.kinds_max),
        sequence=opening.sequence,
        clock_ms=opening.clock_ms,
        paused=opening.paused,
    )


def request(session: ModuleSession, batch: Batch, *, cycle: bool) -> pb.SessionRequest:
    message = session.batch(batch.clock_ms, batch.messages, cycle=cycle, agents=batch.agents)
    if batch.figures is not None:
        message.events.figures.CopyFrom(write_figures(batch.figures))
    assert message.events.sequence == batch.sequence, "the master and its session count differently"
    return message
