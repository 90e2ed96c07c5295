"""The protocol without sockets: protobuf to events and back, sessions, the journal's framing.

A module's side is a `ClientSession`; the sidecar as a whole is a `Sidecar`.
"""

from allocator.wire.client_session import (
    BadSidecarError,
    ClientSession,
    ClientState,
    SessionEndedError,
)
from allocator.wire.counts import Counts
from allocator.wire.decode import NUMBER_MAX, Outcomes
from allocator.wire.encode import read_decisions, write_batch, write_decisions, write_event
from allocator.wire.errors import WireError, code_name
from allocator.wire.journal import JournalError, frame, read_records
from allocator.wire.opening import (
    PROTOCOL_VERSION,
    Greeting,
    pack_snapshot,
    read_hello,
    read_snapshot,
    write_hello,
)
from allocator.wire.operators import OperatorEvent
from allocator.wire.replay import Replayed, replay
from allocator.wire.session import ServerSession, State, supersedes
from allocator.wire.sidecar import Answer, Sidecar

__all__ = [
    "NUMBER_MAX",
    "PROTOCOL_VERSION",
    "Answer",
    "BadSidecarError",
    "ClientSession",
    "ClientState",
    "Counts",
    "Greeting",
    "JournalError",
    "OperatorEvent",
    "Outcomes",
    "Replayed",
    "ServerSession",
    "SessionEndedError",
    "Sidecar",
    "State",
    "WireError",
    "code_name",
    "frame",
    "pack_snapshot",
    "read_decisions",
    "read_hello",
    "read_records",
    "read_snapshot",
    "replay",
    "supersedes",
    "write_batch",
    "write_decisions",
    "write_event",
    "write_hello",
]
