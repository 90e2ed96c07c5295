"""The protocol without sockets: protobuf to events and back, sessions, the journal's framing.

The sidecar as a whole is a `Sidecar`; the module's side is in `allocator.sim.module_protocol`.
"""

from allocator.wire.counters import Counts
from allocator.wire.decode import NUMBER_MAX
from allocator.wire.encode import write_decisions
from allocator.wire.errors import WireError, code_name
from allocator.wire.figures import ENDS as MODULE_ENDS
from allocator.wire.figures import ModuleFigures, write_figures
from allocator.wire.framing import JournalError, frame, read_records
from allocator.wire.operator_settings import OperatorEvent
from allocator.wire.replay import Replayed, replay
from allocator.wire.server_session import SidecarSession, State, supersedes
from allocator.wire.session_start import (
    PROTOCOL_VERSION,
    Greeting,
    read_hello,
    read_snapshot,
)
from allocator.wire.sidecar import Answer, Sidecar

__all__ = [
    "MODULE_ENDS",
    "NUMBER_MAX",
    "PROTOCOL_VERSION",
    "Answer",
    "Counts",
    "Greeting",
    "JournalError",
    "ModuleFigures",
    "OperatorEvent",
    "Replayed",
    "Sidecar",
    "SidecarSession",
    "State",
    "WireError",
    "code_name",
    "frame",
    "read_hello",
    "read_records",
    "read_snapshot",
    "replay",
    "supersedes",
    "write_decisions",
    "write_figures",
]
