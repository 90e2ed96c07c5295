"""Sessions from the point of view of the core's thread: streams, errors, logs.

Each stream has two threads: one reads the module's messages, one writes the answers. The core's
thread never waits for them. The queues between them are bounded, because the reading thread waits
for the core, and for a peer that does not read its answers.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog
from google.protobuf.message import DecodeError

from allocator.server.engine.commands import clear_frames
from allocator.v1 import session_pb2 as pb
from allocator.wire import (
    Greeting,
    ModuleFigures,
    SessionCounts,
    Sidecar,
    SidecarSession,
    WireError,
)


class SessionStream:
    """The answers that wait for the peer, and the number of messages that wait for the core.

    `number`: number of the session; 0 until the core assigns one.
    `peer`: the other end, as named by gRPC.
    """

    def __init__(
        self, peer: str, *, queue_max: int, stalled_s: float, cut: Callable[[], object]
    ) -> None:
        """Start with empty queues.

        `queue_max`: maximum number of messages that wait for the core, and of answers for the peer.
        `stalled_s`: a peer with `queue_max` unread answers must read one within this time.
        `cut`: ends the stream at once.
        """
        self.number = 0
        self.peer = peer
        self._queue_max = queue_max
        self._stalled_s = stalled_s
        self._cut = cut
        self._changed = threading.Condition()
        self._answers: deque[pb.SessionResponse] = deque()
        self._waiting = 0
        self._taken_s = 0.0
        self._ended = False
        self._timer: threading.Timer | None = None

    # On the thread that reads.

    def await_room(self) -> bool:
        """Wait until another message may be read; False: the peer does not read its answers."""
        begun_s = time.monotonic()
        with self._changed:
            while not self._ended:
                # Messages of a peer that does not read its answers wait, and after some time the
                # stream is abandoned. Waiting for a busy core has no limit.
                full = len(self._answers) >= self._queue_max
                if not full and self._waiting < self._queue_max:
                    break
                # The time counts from this call, or from the last answer that was read.
                left_s = max(begun_s, self._taken_s) + self._stalled_s - time.monotonic()
                if full and left_s <= 0:
                    return False
                self._changed.wait(left_s if full else None)
            self._waiting += 1
            return True

    # On the core's thread.

    def message_done(self) -> None:
        with self._changed:
            self._waiting -= 1
            self._changed.notify_all()

    def answer(self, response: pb.SessionResponse) -> None:
        with self._changed:
            if not self._ended:
                self._answers.append(response)
                self._changed.notify_all()

    def end(self, grace_s: float) -> None:
        """Let the peer read queued answers, then end the stream; cut it after `grace_s`."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
            self._set_timer(grace_s, self._cut)
            self._changed.notify_all()

    def expire(self, within_s: float, expired: Callable[[], None]) -> None:
        """Call `expired` after some time, unless the stream ends before."""
        with self._changed:
            if not self._ended:
                self._set_timer(within_s, expired)

    def _set_timer(self, within_s: float, call: Callable[[], object]) -> None:
        """Start the stream's timer; a previous one is cancelled."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(within_s, call)
        self._timer.daemon = True
        self._timer.start()

    # On the thread that writes.

    def answers(self) -> Iterator[pb.SessionResponse]:
        try:
            while (response := self._next()) is not None:
                yield response
        finally:
            self.hang_up()

    def _next(self) -> pb.SessionResponse | None:
        with self._changed:
            while not self._answers:
                if self._ended:
                    return None
                self._changed.wait()
            self._taken_s = time.monotonic()
            self._changed.notify_all()
            return self._answers.popleft()

    # On any thread.

    def hang_up(self) -> None:
        """End the stream, because its peer reads no more."""
        with self._changed:
            self._ended = True
            self._answers.clear()
            if self._timer is not None:
                self._timer.cancel()
            # Both refer to the call, whose stream is free once nothing does.
            self._timer, self._cut = None, lambda: None
            self._changed.notify_all()


SESSIONS_MAX = 16

HELLO_S = 10.0

AHEAD_US = 600_000_000
"""Maximum time by which a master's start may be ahead of this host's clock, because clocks
differ."""


def shutdown() -> WireError:
    return WireError(pb.ERROR_CODE_SHUTDOWN, "", "the sidecar shuts down; call again later")


def no_hello() -> WireError:
    return WireError(pb.ERROR_CODE_PROTOCOL, "", f"no hello came within {HELLO_S:g} s")


def no_room() -> WireError:
    """The error for the stream that has waited longest, when there are too many."""
    text = f"{SESSIONS_MAX} streams are open, and this one has waited longest; send hello"
    return WireError(pb.ERROR_CODE_LIMIT, "", text)


def unbelieved(holder: Greeting, first: bytes) -> tuple[bool, WireError] | None:
    """Find which of two masters claims to have started in the future, so its clock must be wrong.

    Otherwise it would count as the newer master, and exclude all others as long as it calls. If
    both or neither claim this, the core decides as usual.

    `holder`: greeting of the session that has the allocator.
    `first`: the first message of the other master.

    Returns whether it is the other master, and the error to send; None: neither, or both.
    """
    try:
        claim = pb.SessionRequest.FromString(first).hello
    except DecodeError:
        return None
    latest_us = time.time_ns() // 1000 + AHEAD_US
    ours, theirs = (each.instance_started_us > latest_us for each in (holder, claim))
    if ours == theirs or not claim.instance_id or claim.instance_id == holder.instance_id:
        return None
    name = claim.instance_id if theirs else holder.instance_id
    text = f"instance {name[:100]!r} began in the future, by this sidecar's clock, and another"
    message = f"{text} master calls; correct the clocks"
    return theirs, WireError(pb.ERROR_CODE_SUPERSEDED, "instance_started_us", message)


@dataclass(frozen=True)
class SessionInfo:
    """The peer that has the allocator, its progress, and its module's report."""

    number: int
    peer: str
    master_id: str
    instance_id: str
    instance_started_us: int
    mesos_version: str
    module_version: str
    sequence: int
    clock_ms: int
    figures: ModuleFigures | None = None


def info_of(session: SidecarSession, number: int, peer: str) -> SessionInfo | None:
    greeting = session.greeting
    if greeting is None:
        return None
    return SessionInfo(
        number=number,
        peer=peer,
        master_id=greeting.master_id,
        instance_id=greeting.instance_id,
        instance_started_us=greeting.instance_started_us,
        mesos_version=greeting.mesos_version,
        module_version=greeting.module_version,
        sequence=session.sequence,
        clock_ms=session.clock_ms,
        figures=session.figures,
    )


_log = structlog.get_logger()


_ASIDES_MAX = 100
"""Maximum number of changes to set-aside input that are logged individually per session."""


class SessionLog:
    """Logs findings about sessions, each only once instead of in every cycle."""

    def __init__(self) -> None:
        self._mended: dict[int, int] = {}
        self._asides: dict[int, int] = {}
        self._policy_error = ""
        self._in_shadow: set[int] = set()

    def of_error(self, number: int, error: pb.Error, session: SidecarSession | None) -> None:
        _log.warning(
            "session ended with an error",
            session=number,
            code=pb.ErrorCode.Name(error.code),
            field=error.field,
            message=error.message,
            exc_info=session.failure if session else None,
        )
        clear_frames(session.failure if session else None)

    def of_message(self, number: int, sidecar: Sidecar) -> None:
        self._of_policy(sidecar.counts)
        session = sidecar.sessions.get(number)
        if session is not None:
            self._of_mended(number, session)
            self._of_set_aside(number, session)
            self._of_shadow(number, session)

    def _of_shadow(self, number: int, session: SidecarSession) -> None:
        figures = session.figures
        if figures is not None and figures.shadow and number not in self._in_shadow:
            self._in_shadow.add(number)
            _log.warning(
                "Mesos's own allocator decides; the module is in shadow mode", session=number
            )

    def _of_policy(self, counts: SessionCounts) -> None:
        """Log that the policy failed; each error once."""
        if counts.policy_error != self._policy_error:
            self._policy_error = counts.policy_error
            _log.error("the policy failed; the substitute decided", error=counts.policy_error)

    def _of_mended(self, number: int, session: SidecarSession) -> None:
        told = self._mended.get(number, 0)
        if len(session.mended) > told:
            # Fields are only added, in order, so the first `told` ones are logged already.
            for field, text in list(session.mended.items())[told:]:
                _log.warning("a value was mended", session=number, field=field, message=text)
            self._mended[number] = len(session.mended)

    def _of_set_aside(self, number: int, session: SidecarSession) -> None:
        """Log each change to set-aside input; beyond a maximum, log their number as it doubles."""
        if not session.asides:
            return
        told = self._asides.get(number, 0)
        for of, name, rows in session.asides:
            if told < _ASIDES_MAX:
                told += 1
                words = [f"{row.field}: {row.text}" for row in rows]
                _log.warning("input is set aside", session=number, of=of, id=name, words=words)
        session.asides.clear()
        if session.asides_told >= 2 * max(told, _ASIDES_MAX):
            told = session.asides_told
            _log.warning("more input is set aside", session=number, changes=told)
        self._asides[number] = told
        for defect in session.defects:
            _log.error("input of a framework or agent could not be processed", exc_info=defect)
        session.defects.clear()

    def forget(self, number: int) -> None:
        self._in_shadow.discard(number)
        self._mended.pop(number, None)
        self._asides.pop(number, None)
