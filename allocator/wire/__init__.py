"""The protocol without sockets: converts messages to events and back, sessions, the journal.

`Sidecar` is the whole sidecar; the module's side is in `laboratory.module_protocol`.

Start with `session/sidecar_session`: one module's stream, message by message.
"""

from allocator.wire.codec.decode import NUMBER_MAX
from allocator.wire.codec.encode import write_decisions
from allocator.wire.codec.figures import ENDS as MODULE_ENDS
from allocator.wire.codec.figures import ModuleFigures, write_figures
from allocator.wire.codec.validation import WireError, code_name
from allocator.wire.journal.follower import Difference, Follower
from allocator.wire.journal.framing import JournalError, frame, read_records
from allocator.wire.journal.recorder import Recorder
from allocator.wire.journal.replay import Replayed, replay
from allocator.wire.session.session_start import (
    PROTOCOL_VERSION,
    Greeting,
    read_hello,
    read_snapshot,
)
from allocator.wire.session.sidecar import Answer, Sidecar
from allocator.wire.session.sidecar_session import (
    SessionCounts,
    SessionState,
    SidecarSession,
    supersedes,
)
from allocator.wire.settings.operator_settings import OperatorEvent

__all__ = [
    "MODULE_ENDS",
    "NUMBER_MAX",
    "PROTOCOL_VERSION",
    "Answer",
    "Difference",
    "Follower",
    "Greeting",
    "JournalError",
    "ModuleFigures",
    "OperatorEvent",
    "Recorder",
    "Replayed",
    "SessionCounts",
    "SessionState",
    "Sidecar",
    "SidecarSession",
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
