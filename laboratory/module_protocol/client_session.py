"""The module's side of one session: what it may send when, and which answers it accepts.

The C++ session library follows this state machine. Like the sidecar's side it does no I/O: its
methods return the messages to send, and `receive` takes the sidecar's.

    hello -> Welcome -> snapshot -> batch -> Decisions -> batch -> Decisions -> ...

Batches may be sent before earlier ones are answered. Answers come in order, large ones in several
parts.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from google.protobuf.message import DecodeError

from allocator.core import (
    AddAgent,
    AddFilters,
    AddFramework,
    Decisions,
    Define,
    Event,
    Exclude,
    Hold,
    Holdings,
    Ints,
    Outcomes,
    SetQuota,
    SetWeights,
    SetWhitelist,
)
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import PROTOCOL_VERSION, Greeting
from allocator.wire.codec import proto_types
from allocator.wire.codec.encode import BYTES_MAX
from allocator.wire.codec.validation import WireError, code_name
from laboratory.module_protocol import encode
from laboratory.module_protocol.encode import read_decisions, write_event

# The beginning of a session as a module writes it: its greeting, and the whole state in chunks.
#
# A snapshot is a sequence of events: `pack_snapshot` packs it into chunks, and the sidecar's
# `session_start.parts_of` splits it again.

CHUNK_BYTES_MAX = 2**20
"""Limit on the size of a chunk: a quarter of gRPC's default message limit."""


def write_hello(greeting: Greeting) -> pb.Hello:
    options = greeting.options
    usual = greeting.message_bytes_max == BYTES_MAX
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        mesos_version=greeting.mesos_version,
        master_id=greeting.master_id,
        instance_id=greeting.instance_id,
        instance_started_us=greeting.instance_started_us,
        module_version=greeting.module_version,
        message_bytes_max=0 if usual else greeting.message_bytes_max,
        options=pb.AllocatorOptions(
            allocation_interval_ms=options.allocation_interval_ms,
            fairness_excluded_resource_names=sorted(options.fairness_excluded),
            filter_gpu_resources=options.filter_gpus,
            domain=types.Domain(region=options.region),
            minimum_any_of=map(proto_types.write_quantities, options.minimum),
        ),
    )


def pack_snapshot(
    events: Iterable[Event],
    *,
    sequence: int,
    clock_ms: int,
    paused: bool = False,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> Iterator[pb.SnapshotChunk]:
    """Pack events into chunks, in order; the final one is marked as the last.

    events: `Define`, `SetWeights`, `SetQuota`, `AddFramework`, `AddAgent`, `Hold`, `AddFilters`,
        `Exclude`, `SetWhitelist`; this order makes the fewest chunks.
    sequence: number of the state: the first batch has the next one.
    clock_ms: the module's clock.
    bytes_max: limit on a chunk, unless a single item is larger.
    """
    chunk, size, last_field = pb.SnapshotChunk(), 0, 0
    for piece in _pieces(events, bytes_max):
        # A piece has one field. The sidecar reads the fields of a chunk in the order of their
        # numbers, so a piece with a lower number begins a new chunk; so does a second value of a
        # field that is not repeated.
        (descriptor, _), *more = piece.ListFields()
        field, single = descriptor.number, not descriptor.is_repeated
        assert not more
        bytes_more = piece.ByteSize()
        follows = last_field < field or (last_field == field and not single)
        if size and (not follows or size + bytes_more > bytes_max):
            yield chunk
            chunk, size = pb.SnapshotChunk(), 0
        chunk.MergeFrom(piece)
        size += bytes_more
        last_field = field
    chunk.last = True
    chunk.sequence = sequence
    chunk.clock_ms = clock_ms
    chunk.paused = paused
    yield chunk


def _pieces(events: Iterable[Event], bytes_max: int) -> Iterator[pb.SnapshotChunk]:
    """Split events into chunks of one item, or of as many rows as fit."""
    for event in events:
        match event:
            case Define():
                for handle, kind in event.kinds.items():
                    yield pb.SnapshotChunk(kinds=[encode.write_kind(handle, kind)])
                for role, path in event.roles.items():
                    yield pb.SnapshotChunk(roles=[types.Role(role=role, path=path)])
            case SetWeights():
                for weight in encode.write_weights(event.weights):
                    yield pb.SnapshotChunk(weights=[weight])
            case SetQuota():
                yield pb.SnapshotChunk(quotas=[encode.write_quota(event)])
            case AddFramework():
                yield pb.SnapshotChunk(frameworks=[encode.write_framework(event)])
            case AddAgent():
                yield pb.SnapshotChunk(agents=[encode.write_agent(event)])
            case SetWhitelist():
                yield pb.SnapshotChunk(whitelist=encode.write_whitelist(event))
            case Hold() | AddFilters() | Exclude():
                yield from _row_pieces(event, bytes_max)
            case _:
                raise TypeError(f"a snapshot cannot hold {event}")


def _row_pieces(event: Hold | AddFilters | Exclude, bytes_max: int) -> Iterator[pb.SnapshotChunk]:
    """Split columns into pieces below the limit, whatever their numbers are."""
    match event:
        case Hold():
            table: Holdings | Exclude = event.holdings
            kinds = len(event.holdings.kind)
        case AddFilters():
            table, kinds = event.refused, len(event.refused.kind)
        case Exclude():
            table, kinds = event, 0
    # A handle takes at most 5 bytes, an amount or a time at most 8 (they are below 2**54).
    step = max(1, (bytes_max - 64 - 5 * kinds) // (3 * 5 + 8 * kinds + 8))
    for start in range(0, max(len(table.framework), 1), step):
        yield _write_rows(event, slice(start, start + step))


def _write_rows(event: Hold | AddFilters | Exclude, rows: slice) -> pb.SnapshotChunk:
    match event:
        case Hold():
            some = event.holdings.cut(rows)
            return pb.SnapshotChunk(holdings=proto_types.write_holdings(some))
        case AddFilters():
            refused = AddFilters(event.refused.cut(rows), event.expires_ms[rows])
            return pb.SnapshotChunk(filters=encode.write_filters(refused))
        case Exclude():
            return pb.SnapshotChunk(exclusions=encode.write_exclusions(event.cut(rows)))


class ModuleState(Enum):
    """The module's next step."""

    IDLE = "say hello"
    GREETING = "wait for the welcome"
    WELCOME = "send the snapshot"
    STREAMING = "send batches"
    CLOSED = "begin a new session"


class SessionEndedError(Exception):
    """The sidecar ended the session; the message gives its reason."""

    def __init__(self, error: pb.Error) -> None:
        where = f"{error.field}: " if error.field else ""
        super().__init__(f"{code_name(error.code)}: {where}{error.message}")
        self.error = error


class BadSidecarError(Exception):
    """The sidecar violated the protocol; the module ends the session."""


class ModuleSession:
    """A module's session with a sidecar.

    sequence: number of the last batch sent.
    answered: number of the last batch answered: every event up to it is applied.
    more: whether a further part of the current answer is due.
    unsettled: number of received decisions whose outcomes have not been sent.
    """

    def __init__(self, greeting: Greeting) -> None:
        self.state = ModuleState.IDLE
        self.sequence = 0
        self.answered = 0
        self.welcome: pb.Welcome | None = None
        self.more = False
        self.unsettled = 0
        self._greeting = greeting
        self._next_decision = 1
        self._cycles = 0
        self._cycle_asked: deque[bool] = deque()

    def hello(self) -> pb.SessionRequest:
        self._expect(ModuleState.IDLE)
        self.state = ModuleState.GREETING
        return pb.SessionRequest(hello=write_hello(self._greeting))

    def snapshot(
        self, events: Iterable[Event], *, sequence: int, clock_ms: int, paused: bool = False
    ) -> Iterator[pb.SessionRequest]:
        """Send the whole state; see `pack_snapshot`."""
        for chunk in pack_snapshot(events, sequence=sequence, clock_ms=clock_ms, paused=paused):
            yield self.chunk(chunk)

    def chunk(self, chunk: pb.SnapshotChunk) -> pb.SessionRequest:
        """Send a chunk that is packed already."""
        self._expect(ModuleState.WELCOME)
        if chunk.last:
            self.sequence = self.answered = chunk.sequence
            self.state = ModuleState.STREAMING
        return pb.SessionRequest(snapshot=chunk)

    def batch(
        self,
        clock_ms: int,
        events: Iterable[Event] = (),
        *,
        cycle: bool = False,
        agents: Iterable[int] = (),
    ) -> pb.SessionRequest:
        """Send the next batch of events; without agents, a cycle covers all of them."""
        return self.batch_of(clock_ms, map(write_event, events), cycle=cycle, agents=agents)

    def batch_of(
        self,
        clock_ms: int,
        events: Iterable[pb.Event] = (),
        *,
        cycle: bool = False,
        agents: Iterable[int] = (),
    ) -> pb.SessionRequest:
        self._expect(ModuleState.STREAMING)
        self.sequence += 1
        self._cycle_asked.append(cycle)
        batch = pb.EventBatch(
            sequence=self.sequence, clock_ms=clock_ms, events=events, cycle=cycle, agents=agents
        )
        return pb.SessionRequest(events=batch)

    def outcomes(self, reason: Ints, kind: Ints, amount: Ints) -> Outcomes:
        """Report the outcomes of the oldest decisions without one; for the next batch.

        reason (N,): numbers of `Reason`.
        kind (K,)
        amount (P, K): thousandths offered, one row for each PARTIAL.
        """
        return Outcomes(self.settle(len(reason)), reason, kind, amount)

    def settle(self, count: int) -> int:
        """Mark the oldest decisions as reported; returns the number of the first."""
        if count > self.unsettled:
            raise ValueError(f"{count} outcomes for {self.unsettled} open decisions")
        first = self._next_decision - self.unsettled
        self.unsettled -= count
        return first

    def receive(self, data: bytes | pb.SessionResponse) -> pb.Welcome | Decisions:
        """Take a message of the sidecar; one part, if the answer comes in parts (`more`).

        Raises SessionEndedError if the sidecar ended the session.
        Raises BadSidecarError if the message is invalid. Either way the session is over.
        """
        try:
            response = _parse(data) if isinstance(data, bytes) else data
            return self._take(response)
        except WireError as error:
            self.state = ModuleState.CLOSED
            raise BadSidecarError(str(error)) from None
        except (BadSidecarError, SessionEndedError):
            self.state = ModuleState.CLOSED
            raise

    def _take(self, response: pb.SessionResponse) -> pb.Welcome | Decisions:
        if self.state is ModuleState.CLOSED:
            raise BadSidecarError("the session is over")
        size, most = response.ByteSize(), self._greeting.message_bytes_max
        if size > most:
            raise BadSidecarError(f"a message of {size} bytes; this module reads {most}")
        said = response.WhichOneof("message")
        if said == "error":
            raise SessionEndedError(response.error)
        if said == "welcome" and self.state is ModuleState.GREETING:
            return self._take_welcome(response.welcome)
        if said == "decisions" and self.state is ModuleState.STREAMING:
            return self._take_decisions(response.decisions)
        raise BadSidecarError(f"the sidecar said {said}; this module must {self.state.value}")

    def _take_welcome(self, welcome: pb.Welcome) -> pb.Welcome:
        if welcome.protocol_version != PROTOCOL_VERSION:
            raise BadSidecarError(
                f"the sidecar speaks version {welcome.protocol_version}, not {PROTOCOL_VERSION}"
            )
        self.welcome = welcome
        self.state = ModuleState.WELCOME
        return welcome

    def _take_decisions(self, batch: pb.DecisionBatch) -> Decisions:
        if not self._cycle_asked or batch.sequence != self.answered + 1:
            raise BadSidecarError(
                f"an answer to batch {batch.sequence}; {self.answered + 1} is due"
            )
        # Batches, cycles and decisions must be numbered without a gap; otherwise the two sides are
        # out of step.
        asked = self._cycle_asked[0]
        decisions = read_decisions(batch)
        if batch.cycle != (self._cycles + 1 if asked else 0):
            raise BadSidecarError(
                f"cycle {batch.cycle} in the answer to batch {batch.sequence}; "
                f"{self._cycles} were run, and {'one' if asked else 'none'} was asked for"
            )
        if len(decisions) and not asked:
            raise BadSidecarError(f"decisions without a cycle in batch {batch.sequence}")
        if batch.HasField("reclaims") and (batch.more or not asked):
            raise BadSidecarError("reclaims: belong in the last part of an answer with a cycle")
        if batch.first_decision != self._next_decision:
            raise BadSidecarError(
                f"decision {batch.first_decision} comes where {self._next_decision} is due"
            )
        if batch.more and not len(decisions):
            raise BadSidecarError(f"a part of the answer to batch {batch.sequence} is empty")
        # The last part completes the answer.
        self.more = batch.more
        if not batch.more:
            self._cycle_asked.popleft()
            self.answered = batch.sequence
            self._cycles += asked
        self._next_decision += len(decisions)
        self.unsettled += len(decisions)
        return decisions

    def _expect(self, state: ModuleState) -> None:
        if self.state is not state:
            raise ValueError(f"the module must {self.state.value} now")


def _parse(data: bytes) -> pb.SessionResponse:
    try:
        return pb.SessionResponse.FromString(data)
    except DecodeError:
        raise BadSidecarError(f"{len(data)} bytes are not a SessionResponse") from None
