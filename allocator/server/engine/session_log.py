"""What the thread of the core says in the log: errors, policies that fail, what was mended."""

import structlog

from allocator.v1 import session_pb2 as pb
from allocator.wire import Counts, Sidecar
from allocator.wire.session.server_session import SidecarSession

_log = structlog.get_logger()


_ASIDES_MAX = 100
"""So many changes of a session to what is set aside are told one by one."""


class SessionLog:
    """Says each thing once, where it would be said in every cycle."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._mended: dict[int, int] = {}
        self._asides: dict[int, int] = {}
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

    def of_message(self, number: int, sidecar: Sidecar) -> None:
        """Log what a session's latest message has brought to light."""
        self._of_policy(sidecar.counts)
        session = sidecar.sessions.get(number)
        if session is not None:
            self._of_mended(number, session)
            self._of_set_aside(number, session)
            self._of_shadow(number, session)

    def _of_shadow(self, number: int, session: SidecarSession) -> None:
        """Log once in a session that decisions are only compared."""
        figures = session.figures
        if figures is not None and figures.shadow and number not in self._in_shadow:
            self._in_shadow.add(number)
            _log.warning("Mesos's own allocator decides; ours is in its shadow", session=number)

    def _of_policy(self, counts: Counts) -> None:
        """Log that the policy failed; each kind once, not in every cycle."""
        if counts.policy_error != self._policy_error:
            self._policy_error = counts.policy_error
            _log.error("the policy failed; the fallback decided", error=counts.policy_error)

    def _of_mended(self, number: int, session: SidecarSession) -> None:
        """Log each field of which something was put right, once in a session."""
        told = self._mended.get(number, 0)
        if len(session.mended) > told:
            # Fields are only added, in order: the first `told` of them are in the log already.
            for field, text in list(session.mended.items())[told:]:
                _log.warning("a value was mended", session=number, field=field, message=text)
            self._mended[number] = len(session.mended)

    def _of_set_aside(self, number: int, session: SidecarSession) -> None:
        """Log what is set aside of a framework's or an agent's words: each change, up to a bound.

        After that the log says how many more there were, each time that the number doubles.
        """
        if not session.asides:
            return
        told = self._asides.get(number, 0)
        for of, name, rows in session.asides:
            if told < _ASIDES_MAX:
                told += 1
                words = [f"{row.field}: {row.text}" for row in rows]
                _log.warning("words are set aside", session=number, of=of, id=name, words=words)
        session.asides.clear()
        if session.asides_told >= 2 * max(told, _ASIDES_MAX):
            told = session.asides_told
            _log.warning("more words are set aside", session=number, changes=told)
        self._asides[number] = told
        for defect in session.defects:
            _log.error("the words of a framework or an agent could not be taken", exc_info=defect)
        session.defects.clear()

    def forget(self, number: int) -> None:
        """Forget a session that ended."""
        self._in_shadow.discard(number)
        self._mended.pop(number, None)
        self._asides.pop(number, None)
