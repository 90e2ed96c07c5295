"""The sidecar's side of one session: messages in, messages out.

`SidecarSession.receive` answers every input and never raises. An invalid message ends the session
with an `Error` that says what was wrong; so does a defect of the sidecar. The module then starts
again with a new stream and a new snapshot.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from google.protobuf.message import DecodeError

from allocator.core import (
    Allocator,
    Decisions,
    Event,
    EventError,
    Moves,
    Outcomes,
    Reason,
    SetPaused,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec import validation
from allocator.wire.codec.decode import LIST_READERS, NUMBER_MAX, READERS
from allocator.wire.codec.encode import write_decisions
from allocator.wire.codec.figures import ModuleFigures, read_figures
from allocator.wire.codec.proto_types import part
from allocator.wire.codec.runs import MoveRun, Run, runs
from allocator.wire.codec.sanitizing import (
    Mark,
    Told,
    bare,
    mend_event,
    mend_hello,
    mend_snapshot,
    set_aside_of,
)
from allocator.wire.codec.validation import WireError, code_name
from allocator.wire.session.session_start import (
    Greeting,
    SnapshotPart,
    grouped,
    parts_of,
    read_caller,
    read_options,
)


@dataclass(slots=True)
class SessionCounts:
    """Totals over all sessions.

    `reclaims`: requests to leave agents by the last cycle over all agents, per framework and agent.
    `policy_errors`: cycles that the substitute decided because the policy failed.
    `events`: by field name in `Event`, such as ``release``.
    `outcomes`: by reason, such as ``offered`` or ``filtered``.
    `errors`: errors sent, by code, such as ``value``.
    `mended`: values repaired instead of rejected, by field (`sanitizing.FIELDS`).
    `sessions_closed`: by the code of the error that ended them, or ``left``.
    """

    messages: int = 0
    batches: int = 0
    cycles: int = 0
    decisions: int = 0
    reclaims: int = 0
    policy_errors: int = 0
    policy_error: str = ""
    sessions_opened: int = 0
    events: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    sessions_closed: Counter[str] = field(default_factory=Counter)


_T = TypeVar("_T")

Steps: TypeAlias = Generator[None, None, _T]


def finished(steps: Steps[_T]) -> _T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: _T = end.value
            return found


class SessionState(Enum):
    """The message that the session expects next."""

    AWAITING_HELLO = "hello"
    SNAPSHOT = "snapshot"
    STREAMING = "events"
    CLOSED = "nothing"


LAST_SNAPSHOT = "last snapshot"
"""The chunk that completes a snapshot, as opposed to those before it."""

TRANSITIONS: Mapping[tuple[SessionState, str], SessionState] = MappingProxyType(
    {
        (SessionState.AWAITING_HELLO, "hello"): SessionState.SNAPSHOT,
        (SessionState.SNAPSHOT, "snapshot"): SessionState.SNAPSHOT,
        (SessionState.SNAPSHOT, LAST_SNAPSHOT): SessionState.STREAMING,
        (SessionState.STREAMING, "events"): SessionState.STREAMING,
    }
)
"""The messages allowed in each state, each with the next state. All others are errors."""

_CODES = {
    "handle": pb.ERROR_CODE_HANDLE,
    "value": pb.ERROR_CODE_VALUE,
    "books": pb.ERROR_CODE_BOOKS,
    "limit": pb.ERROR_CODE_LIMIT,
}

_ASIDES_MAX = 64
_DEFECTS_MAX = 8
"""Maximum number of asides and defects that are kept until the host collects them."""

KeptSession: TypeAlias = tuple[str, int, int, tuple[Any, ...] | None]
"""State, sequence, clock and greeting, as plain values."""


def supersedes(newcomer: Greeting, holder: Greeting) -> bool:
    """Whether a caller takes over the sidecar from the session that has it.

    The instance that began to lead later takes it over, as does the same instance calling again.
    Equal start times (in microseconds) are ordered by instance id, so that two instances cannot
    replace each other forever.
    """
    mine = (newcomer.instance_started_us, newcomer.instance_id)
    return mine >= (holder.instance_started_us, holder.instance_id)


class SidecarSession:
    """One module's session.

    `greeting`: the caller, after its hello.
    `clock_ms`: the module's clock, as last reported.
    `failure`: the defect of the sidecar that ended the session.
    `mended`: fields whose values were repaired, with the first fault.
    `asides`: the latest changes to set-aside input; the server removes those that it has reported.
    `asides_told`: number of all such changes.
    `defects`: defects in handling frameworks' or agents' input; removed like `asides`.
    """

    def __init__(
        self,
        admit: Callable[[Greeting], Allocator],
        welcome: pb.Welcome,
        counts: SessionCounts | None = None,
        check: Callable[[Greeting], None] = lambda _caller: None,
    ) -> None:
        """Wait for a module's hello.

        `admit`: returns the session's allocator, or raises a `WireError` if another session has
            precedence.
        `check`: raises the error that `admit` would raise, and changes nothing.
        """
        self.state = SessionState.AWAITING_HELLO
        self.greeting: Greeting | None = None
        self.sequence = 0
        self.clock_ms = 0
        self.failure: Exception | None = None
        self.mended: dict[str, str] = {}
        self.asides: deque[Told] = deque(maxlen=_ASIDES_MAX)
        self.asides_told = 0
        self.defects: deque[Exception] = deque(maxlen=_DEFECTS_MAX)
        self.figures: ModuleFigures | None = None
        self._admit = admit
        self._check = check
        self._welcome = welcome
        self._counts = counts or SessionCounts()
        self._allocator: Allocator | None = None

    def receive(self, data: bytes | pb.SessionRequest) -> list[pb.SessionResponse]:
        """Answer one message; a closed session does not answer."""
        return finished(self.receiving(data))

    def receiving(self, data: bytes | pb.SessionRequest) -> Steps[list[pb.SessionResponse]]:
        """Answer one message; pause after its events, before a cycle is decided."""
        if self.state is SessionState.CLOSED:
            return []
        self._counts.messages += 1
        try:
            # Any failure below ends this session, and only this one.
            request = _parse(data) if isinstance(data, bytes) else data
            return (yield from self._take(request))
        except WireError as error:
            return self.close(error)
        except EventError as error:
            return self.close(WireError(_CODES[error.kind], error.field, error.message))
        except Exception as error:  # noqa: BLE001 - a defect must not end other sessions.
            self.failure = error
            message = f"the sidecar failed ({type(error).__name__}); send a new snapshot"
            return self.close(WireError(pb.ERROR_CODE_INTERNAL, "", message))

    def close(self, error: WireError | None = None) -> list[pb.SessionResponse]:
        if self.state is SessionState.CLOSED:
            return []
        self.state = SessionState.CLOSED
        self._allocator = None
        if error is None:
            self._counts.sessions_closed["left"] += 1
            return []
        name = code_name(error.code)
        self._counts.errors[name] += 1
        self._counts.sessions_closed[name] += 1
        return [pb.SessionResponse(error=error.to_message(self.sequence))]

    def kept(self) -> KeptSession:
        greeting = self.greeting
        who = tuple(getattr(greeting, each.name) for each in fields(Greeting)) if greeting else None
        return self.state.value, self.sequence, self.clock_ms, who

    def resume(self, kept: KeptSession, allocator: Allocator | None) -> None:
        """Continue from a checkpoint; `allocator`: only for the session that has it.

        Raises TypeError or ValueError if the checkpoint is invalid.
        """
        state, self.sequence, self.clock_ms, who = kept
        self.state = SessionState(state)
        self.greeting = None if who is None else Greeting(*who)
        self._allocator = allocator

    def _take(self, request: pb.SessionRequest) -> Steps[list[pb.SessionResponse]]:
        said: str = request.WhichOneof("message") or "nothing that this sidecar knows"
        # The last chunk leads to another state, so it counts as a separate kind of message.
        if said == "snapshot" and request.snapshot.last:
            said = LAST_SNAPSHOT
        after = TRANSITIONS.get((self.state, said))
        if after is None:
            message = f"the module said {said}; it must say {self.state.value} now"
            raise WireError(pb.ERROR_CODE_PROTOCOL, "", message)
        if said == "hello":
            answer = self._take_hello(request.hello)
        elif said == "events":
            answer = yield from self._take_events(request.events)
        else:
            answer = self._take_snapshot(request.snapshot)
        # Change the state only if everything succeeded.
        self.state = after
        return answer

    def _take_hello(self, hello: pb.Hello) -> list[pb.SessionResponse]:
        # The rest may take long to read, so check first whether the caller may have the sidecar.
        self._note(mend_hello(hello))
        caller = read_caller(hello)
        self._check(caller)
        self.greeting = read_options(hello, caller)
        self._allocator = self._admit(self.greeting)
        self._allocator.step(self.greeting.options)
        return [pb.SessionResponse(welcome=self._welcome)]

    def _take_snapshot(self, chunk: pb.SnapshotChunk) -> list[pb.SessionResponse]:
        assert self._allocator is not None
        self._note(mend_snapshot(chunk, self._allocator.state.session_limits.role_depth))
        for together in grouped(parts_of(chunk)):
            if len(together) > 1:
                agents = [each.message for each in together]
                if self._apply_together(self._allocator, together[0].name, agents):
                    continue
            for each in together:
                self._take_part(self._allocator, each)
        # The state is complete: batches count from this number, and time from this clock.
        if chunk.last:
            self.sequence = validation.integer(chunk.sequence, 0, NUMBER_MAX, "sequence")
            self._tell_time(chunk.clock_ms)
            self._allocator.step(SetPaused(chunk.paused))
        return []

    def _take_part(self, allocator: Allocator, said: SnapshotPart) -> None:
        if said.name:
            self._take_at(allocator, said.field, said.name, said.message)
        else:
            event = (
                part(said.message, said.read, said.field) if said.field else said.read(said.message)
            )
            _step(allocator, event, said.field)

    def _take_events(self, batch: pb.EventBatch) -> Steps[list[pb.SessionResponse]]:
        allocator, counts = self._allocator, self._counts
        assert allocator is not None
        # A lost or repeated batch would leave the books wrong.
        if batch.sequence != self.sequence + 1:
            message = f"is {batch.sequence}; it must be {self.sequence + 1}, send a new snapshot"
            raise WireError(pb.ERROR_CODE_SEQUENCE, "sequence", message)
        if batch.agents and not batch.cycle:
            message = "is given though no cycle is asked for; ask for one, or leave it out"
            raise WireError(pb.ERROR_CODE_VALUE, "agents", message)
        agents = validation.handles(batch.agents, "agents")
        # Advance the clock first, since the events are of that time; then apply them in order.
        self._tell_time(batch.clock_ms)
        for run in runs(batch.events):
            if isinstance(run, MoveRun):
                self._move(allocator, run, batch)
            else:
                self._apply(allocator, run, batch)
        counts.batches += 1
        if batch.HasField("figures"):
            self.figures = read_figures(batch.figures)
        if batch.cycle:
            yield
            decisions = allocator.allocate(self.clock_ms, agents if len(agents) else None)
            counts.cycles += 1
            counts.decisions += len(decisions)
            if not len(agents):
                counts.reclaims = len(decisions.reclaims.framework)
            if allocator.last_cycle.policy_error:
                counts.policy_errors += 1
                counts.policy_error = allocator.last_cycle.policy_error
        else:
            # Answer every batch, so that the module knows what was applied.
            decisions = Decisions(0, allocator.state.open_decisions.next)
        self.sequence = batch.sequence
        assert self.greeting is not None
        parts = write_decisions(batch.sequence, decisions, self.greeting.message_bytes_max)
        return [pb.SessionResponse(decisions=part) for part in parts]

    def _tell_time(self, clock_ms: int) -> None:
        assert self._allocator is not None
        self.clock_ms = validation.time_ms(clock_ms, "clock_ms")
        self._allocator.advance(clock_ms)

    def _move(self, allocator: Allocator, run: MoveRun, batch: pb.EventBatch) -> None:
        """Apply moves together; events that must be separate, or are invalid, one by one."""
        moves = _read_moves(allocator, run)
        if moves is None:
            # One of them is invalid: apply them one by one to find out which.
            for index in range(run.start, run.start + len(run)):
                if len(run) == 1:
                    self._apply_alone(allocator, index, batch)
                else:
                    self._move(allocator, MoveRun.of(index, batch.events[index]), batch)
            return
        applied = 0
        while True:
            # Apply all up to the next event that must be applied separately.
            done = allocator.move(moves)
            until = int(moves.event[done]) if done < len(moves) else len(run)
            self._counts.events.update(run.names[applied:until])
            if until == len(run):
                return
            self._apply_alone(allocator, run.start + until, batch)
            applied = until + 1
            moves = moves.cut(slice(int(np.searchsorted(moves.event, applied)), None))

    def _apply_alone(self, allocator: Allocator, index: int, batch: pb.EventBatch) -> None:
        event = batch.events[index]
        name: str = event.WhichOneof("event") or ""
        self._apply_at(allocator, index, name, getattr(event, name))
        self._counts.events[name] += 1

    def _apply(self, allocator: Allocator, run: Run, batch: pb.EventBatch) -> None:
        """Apply a run as one event; if that fails, apply its events one by one.

        The error then names the invalid event, and the events before it have been applied.
        """
        if run.length == 1:
            self._apply_at(allocator, run.start, run.name, run.message)
        elif not self._apply_together(allocator, run.name, run.message):
            for index in range(run.start, run.start + run.length):
                message = getattr(batch.events[index], run.name)
                self._apply_at(allocator, index, run.name, message)
        self._counts.events[run.name] += run.length

    def _apply_together(self, allocator: Allocator, name: str, message: object) -> bool:
        """Apply events as one; return False, with nothing changed, if that is not possible."""
        try:
            self._apply_one(allocator, name, message)
        except Exception:  # noqa: BLE001 - applied one by one, they show which one is invalid.
            return False
        return True

    def _apply_at(self, allocator: Allocator, index: int, name: str, message: object) -> None:
        if name not in READERS:
            text = "holds no event that this sidecar knows; install matching versions"
            raise WireError(pb.ERROR_CODE_PROTOCOL, f"events[{index}]", text)
        self._take_at(allocator, f"events[{index}].{name}", name, message)

    def _take_at(self, allocator: Allocator, field: str, name: str, message: object) -> None:
        try:
            self._apply_one(allocator, name, message)
        except WireError as error:
            raise error.below(field) from None

    def _apply_one(self, allocator: Allocator, name: str, message: object) -> None:
        """Apply an event, or a list of one type, and record the input that it sets aside."""
        told = set_aside_of(allocator, name, message)
        event = self._take_words(allocator, name, message)
        if told != (now := set_aside_of(allocator, name, message)) and now:
            self.asides.append(now)
            self.asides_told += 1
        if isinstance(event, Outcomes):
            for reason, count in enumerate(np.bincount(event.reason).tolist()):
                if count:
                    self._counts.outcomes[Reason(reason).name.lower()] += count

    def _take_words(self, allocator: Allocator, name: str, message: object) -> Event:
        """Apply an event; if rejected, repair it; if rejected again, apply only its bare facts.

        A rejected event has changed nothing, so it can be tried again.
        """
        try:
            return _read_and_step(allocator, name, message)
        except Exception as error:  # noqa: BLE001 - untrusted input must not end the session.
            wrong = error
        # Usually there is nothing to repair, so look for repairs only now.
        if self._mend(allocator, name, message):
            try:
                return _read_and_step(allocator, name, message)
            except Exception as error:  # noqa: BLE001 - as before.
                wrong = error
        if isinstance(message, list) or not bare(name, message, wrong):
            raise wrong
        event = _read_and_step(allocator, name, message)
        if not isinstance(wrong, WireError):
            self.defects.append(wrong)
        return event

    def _mend(self, allocator: Allocator, name: str, message: object) -> bool:
        """Repair messages, in place; return whether anything was repaired."""
        depth = allocator.state.session_limits.role_depth
        each = message if isinstance(message, list) else [message]
        marks = [mark for one in each for mark in mend_event(name, one, depth)]
        self._note(marks)
        return bool(marks)

    def _note(self, marks: list[Mark]) -> None:
        for mark in marks:
            self._counts.mended[mark.field] += 1
            self.mended.setdefault(mark.field, mark.text)


def _parse(data: bytes) -> pb.SessionRequest:
    try:
        return pb.SessionRequest.FromString(data)
    except DecodeError:
        message = f"{len(data)} bytes are not a SessionRequest; send one in each message"
        raise WireError(pb.ERROR_CODE_PROTOCOL, "", message) from None


def _read_moves(allocator: Allocator, run: MoveRun) -> Moves | None:
    """Read moves; None if the values or kinds of one of them are invalid."""
    try:
        moves = run.read()
    except WireError:
        return None
    return moves if allocator.state.space.has(moves.holdings.kind.tolist()) else None


def _read_and_step(allocator: Allocator, name: str, message: object) -> Event:
    readers = LIST_READERS if isinstance(message, list) else READERS
    event: Event = readers[name](message)
    _step(allocator, event)
    return event


def _step(allocator: Allocator, event: Event, field: str = "") -> None:
    """Apply an event; errors use the protocol's field names."""
    try:
        allocator.step(event)
    except EventError as error:
        # In the core's events, these columns are one level deeper than in the protocol.
        name = error.field.removeprefix("holdings.").removeprefix("used.")
        wrong = WireError(_CODES[error.kind], name, error.message)
        raise (wrong.below(field) if field else wrong) from None
