"""The module's side of the protocol: sessions, and events as protobuf.

Start with `client_session`. It is the counterpart of `allocator.wire.session`.
"""

from laboratory.module_protocol.client_session import (
    BadSidecarError,
    ModuleSession,
    ModuleState,
    SessionEndedError,
    pack_snapshot,
    write_hello,
)
from laboratory.module_protocol.encode import read_decisions, write_event

__all__ = [
    "BadSidecarError",
    "ModuleSession",
    "ModuleState",
    "SessionEndedError",
    "pack_snapshot",
    "read_decisions",
    "write_event",
    "write_hello",
]
