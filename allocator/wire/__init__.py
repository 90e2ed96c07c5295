"""The protocol without sockets: converts messages to events and back, sessions, the journal.

`Sidecar` is the whole sidecar; the module's side is in `laboratory.module_protocol`.

Start with `session/sidecar_session`: one module's stream, message by message.
"""

from allocator.wire.codec.decode import NUMBER_MAX as NUMBER_MAX
from allocator.wire.codec.encode import write_decisions as write_decisions
from allocator.wire.codec.figures import MODULE_ENDS as MODULE_ENDS
from allocator.wire.codec.figures import ModuleFigures as ModuleFigures
from allocator.wire.codec.figures import write_figures as write_figures
from allocator.wire.codec.validation import WireError as WireError
from allocator.wire.codec.validation import code_name as code_name
from allocator.wire.journal.follower import Difference as Difference
from allocator.wire.journal.follower import Follower as Follower
from allocator.wire.journal.framing import JournalError as JournalError
from allocator.wire.journal.framing import frame as frame
from allocator.wire.journal.framing import read_records as read_records
from allocator.wire.journal.recorder import Recorder as Recorder
from allocator.wire.journal.replay import Replayed as Replayed
from allocator.wire.journal.replay import replay as replay
from allocator.wire.session.session_start import PROTOCOL_VERSION as PROTOCOL_VERSION
from allocator.wire.session.session_start import Greeting as Greeting
from allocator.wire.session.sidecar import Answer as Answer
from allocator.wire.session.sidecar import Sidecar as Sidecar
from allocator.wire.session.sidecar_session import SessionCounts as SessionCounts
from allocator.wire.session.sidecar_session import SessionState as SessionState
from allocator.wire.session.sidecar_session import SidecarSession as SidecarSession
from allocator.wire.session.sidecar_session import supersedes as supersedes
from allocator.wire.settings.operator_settings import OperatorEvent as OperatorEvent
