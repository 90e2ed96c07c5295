"""Who may do what: three rights, by the client's certificate or by a token.

Whoever comes by a Unix socket is let in by its mode and its directory, and may do everything.
"""

import hmac
import threading
import time
from collections import Counter

import grpc
import structlog

from allocator.server.config.access import AccessSection
from allocator.server.config.checks import FILE_BYTES_MAX
from allocator.server.system.callers import certificate_names
from allocator.server.system.disk import read_regular

ADMIN = "/allocator.v1.AdminService/"
SESSION = "/allocator.v1.SessionService/"
_REFLECTION = "/grpc.reflection."
_WRITES = ("Set", "Reset")
_BEARER = "Bearer "

_log = structlog.get_logger()


AGAIN_S = 10.0
"""For so long the next caller without a right is only counted."""


class Access:
    """Refuses calls for which the caller has no right."""

    def __init__(self, section: AccessSection) -> None:
        """Let in whom the configuration names."""
        self._lock = threading.Lock()
        self._untold: Counter[str] = Counter()
        self._told_s: dict[str, float] = {}
        self._unread: dict[str, tuple[str, int]] = {}
        self._names = {
            "session": section.session,
            "admin_read": (*section.admin_read, *section.admin_write),
            "admin_write": section.admin_write,
        }
        write = section.admin_write_token
        self._tokens = {
            "session": (section.session_token,),
            "admin_read": (section.admin_read_token, write),
            "admin_write": (write,),
        }
        # A right is free where nobody is named for it. Who may only ask must be named, too, before
        # a name for changes keeps anybody from asking.
        self._bounded = {
            "session": bool(section.session or section.session_token),
            "admin_read": bool(section.admin_read or section.admin_read_token),
            "admin_write": bool(section.admin_write or write),
        }

    def check(self, context: grpc.ServicerContext, method: str, token: str) -> None:
        """End a call for which the caller has no right.

        `token`: what it says of itself, as ``Bearer TOKEN``; empty where nothing.
        """
        right = right_of(method)
        if not self._bounded.get(right) or context.peer().startswith("unix:"):
            return
        names = certificate_names(context)
        if set(names) & set(self._names[right]) or self._has_token(right, token):
            return
        self._tell(right, names, context.peer())
        who = f"the certificate {names[0]!r} has" if names else "callers without a certificate have"
        text = f"{who} no right {right}; name it in access.{right}, or give a token that has"
        context.abort(grpc.StatusCode.PERMISSION_DENIED, text)

    def problem(self) -> str:
        """Why no master can have the right that sessions need; empty where one can."""
        paths = [path for path in self._tokens["session"] if path]
        if self._names["session"] or not paths or any(map(self._read, paths)):
            return ""
        return f"no master can be let in: the token in {paths[0]} cannot be read, or is empty"

    def _tell(self, right: str, names: list[str], peer: str) -> None:
        """Log who was refused, once in a while: a stranger may call as often as it likes."""
        with self._lock:
            self._untold[right] += 1
            if time.monotonic() - self._told_s.get(right, -AGAIN_S) < AGAIN_S:
                return
            self._told_s[right], times = time.monotonic(), self._untold.pop(right)
        _log.warning("refused a caller", right=right, certificate=names, peer=peer, times=times)

    def _has_token(self, right: str, given: str) -> bool:
        """Compare in constant time; files are read anew, so that a token can be changed."""
        if not given.startswith(_BEARER):
            return False
        for path in filter(None, self._tokens[right]):
            known = self._read(path)
            if known and hmac.compare_digest(given.removeprefix(_BEARER).encode(), known.encode()):
                return True
        return False

    def _read(self, path: str) -> str:
        """Read a token; empty where that is not possible, which is logged where it changes."""
        known, why = "", ""
        try:
            known = read_regular(path, FILE_BYTES_MAX).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = str(error)
        with self._lock:
            before, calls = self._unread.pop(path, ("", 0))
            if why:
                self._unread[path] = why, calls + 1
        if why and why != before:
            _log.error("a token cannot be read", path=path, error=why)
        elif before and not why:
            _log.info("a token can be read again", path=path, calls=calls)
        return known


def right_of(method: str) -> str:
    """Which right a method needs; empty: none.

    Examples
    --------
    >>> right_of("/allocator.v1.AdminService/SetPolicy")
    'admin_write'
    >>> right_of("/allocator.v1.AdminService/Dump")
    'admin_read'
    >>> right_of("/grpc.health.v1.Health/Check")
    ''
    """
    if method.startswith(SESSION):
        return "session"
    if method.startswith(ADMIN):
        return "admin_write" if method.removeprefix(ADMIN).startswith(_WRITES) else "admin_read"
    return "admin_read" if method.startswith(_REFLECTION) else ""
