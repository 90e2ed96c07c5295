"""What the thread of the core says in the log: errors, policies that fail, what was mended."""

import structlog

from allocator.v1 import session_pb2 as pb
from allocator.wire import Counts
from allocator.wire.server_session import SidecarSession

_log = structlog.get_logger()


class Telling:
    """Says each thing once, where it would be said in every cycle."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._mended: dict[int, int] = {}
        self._policy_error = ""
        self._in_shadow: set[int] = set()

    def of_error(self, number: int, error: pb.Error, session: SidecarSession | None) -> None:
        """Log why a session ended."""
        _log.warning(
            "session ended with an error",
            session=number,
            code=pb.ErrorCode.Name(error.code),
            field=error.field,
            message=error.message,
            exc_info=session.failure if session else None,
        )

    def of_shadow(self, number: int, session: SidecarSession | None) -> None:
        """Log once in a session that decisions are only compared."""
        figures = session.figures if session else None
        if figures is not None and figures.shadow and number not in self._in_shadow:
            self._in_shadow.add(number)
            _log.warning("Mesos's own allocator decides; ours is in its shadow", session=number)

    def of_policy(self, counts: Counts) -> None:
        """Log that the policy failed; each kind once, not in every cycle."""
        if counts.policy_error != self._policy_error:
            self._policy_error = counts.policy_error
            _log.error("the policy failed; the fallback decided", error=counts.policy_error)

    def of_mended(self, number: int, session: SidecarSession | None) -> None:
        """Log each field of which something was put right, once in a session."""
        told = self._mended.get(number, 0)
        if session and len(session.mended) > told:
            # Fields are only added, in order: the first `told` of them are in the log already.
            for field, text in list(session.mended.items())[told:]:
                _log.warning("a value was mended", session=number, field=field, message=text)
            self._mended[number] = len(session.mended)

    def forget(self, number: int) -> None:
        """Forget a session that ended."""
        self._in_shadow.discard(number)
        self._mended.pop(number, None)
