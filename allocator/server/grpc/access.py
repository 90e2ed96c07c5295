"""Access control: three rights, granted by client certificate or by token.

Callers on a Unix socket have all rights without authentication: only the socket's mode and
directory protect it.
"""

import hmac
import threading
import time
from collections import Counter
from pathlib import Path

import grpc
import structlog

from allocator.server.config.sections import AccessSection, ListenSection
from allocator.server.system.callers import certificate_names
from allocator.server.system.disk import read_regular
from allocator.server.system.tls_files import FILE_BYTES_MAX, find_problem

_log = structlog.get_logger()


class Certificates:
    """The configuration of TLS, which gRPC requests at each handshake."""

    def __init__(self, section: ListenSection) -> None:
        """Read the files. Raises OSError if one of them cannot be read."""
        self._paths = (section.tls_cert, section.tls_key, section.tls_client_ca)
        self._seen = self._marks()
        self._first = self._read()
        self._problem = ""

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.dynamic_ssl_server_credentials(
            self._first,
            self._newer,  # type: ignore[arg-type]  # None is what gRPC asks for
            require_client_authentication=bool(self._paths[2]),
        )

    def _newer(self) -> "grpc.ServerCertificateConfiguration | None":
        """Read the files if they have changed; None: keep the previous content."""
        try:
            marks = self._marks()
            if marks == self._seen:
                return None
            # While files are being replaced, certificate and key may not match: try again later.
            problem = find_problem(*self._paths)
            if problem is None:
                found = self._read()
                self._seen, self._problem = marks, ""
                _log.info("certificates reloaded", certificate=self._paths[0])
                return found
            text = f"tls_{problem.part} {problem.message}"
        except OSError as error:
            text = str(error)
        if text != self._problem:  # log it once, not at each handshake
            self._problem = text
            _log.warning(
                "changed certificates cannot be used; the previous ones stay in use", error=text
            )
        return None

    def _read(self) -> "grpc.ServerCertificateConfiguration":
        cert, key, ca = self._paths
        authority = read_regular(ca, FILE_BYTES_MAX) if ca else None
        pair = (read_regular(key, FILE_BYTES_MAX), read_regular(cert, FILE_BYTES_MAX))
        return grpc.ssl_server_certificate_configuration([pair], authority)

    def _marks(self) -> list[tuple[int, int, int]]:
        """Properties of the files that change when a file is replaced."""
        status = [Path(path).stat() for path in self._paths if path]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in status]


ADMIN = "/allocator.v1.AdminService/"
SESSION = "/allocator.v1.SessionService/"
_HEALTH = "/grpc.health."
_REFLECTION = "/grpc.reflection."
_BEARER = "Bearer "

RECORDS = "/allocator.v1.RecordService/"

READS = frozenset(
    {
        *("Dump", "Explain", "GetPolicy", "GetShadow", "GetShares", "GetStatus", "GetUsage"),
        *("ListAgents", "ListFrameworks", "ListHistory", "ListNames", "ListRoles"),
        *("ListRules", "ListSchedules", "ListSettings", "Snapshot"),
    }
)
"""Operators' calls that change nothing. All others need the right to write, so a call that is
missing here is closed to read-only callers."""

AGAIN_S = 10.0
"""Time after logging a rejected call during which further ones are only counted."""


class Access:
    """Rejects calls for which the caller lacks the right."""

    def __init__(self, section: AccessSection, *, changes: bool = True) -> None:
        """Admit the configured clients.

        `changes`: whether calls change anything. If not, the right to read is enough for all.
        """
        self._changes = changes
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
        # A right without names is open to all callers; only names in admin_read restrict reading.
        self._restricted = {
            "session": bool(section.session or section.session_token),
            "admin_read": bool(section.admin_read or section.admin_read_token),
            "admin_write": bool(section.admin_write or write),
        }

    def check(self, context: grpc.ServicerContext, method: str, token: str) -> None:
        """End a call for which the caller lacks the right; `token`: its header ``Bearer TOKEN``."""
        right = right_of(method)
        if right == "admin_write" and not self._changes:
            right = "admin_read"
        if not self._restricted.get(right) or context.peer().startswith("unix:"):
            return
        names = certificate_names(context)
        if set(names) & set(self._names[right]) or self._has_token(right, token):
            return
        self._tell(right, names, context.peer())
        context.abort(grpc.StatusCode.PERMISSION_DENIED, self._refusal(right, names, token))

    def _refusal(self, right: str, names: list[str], given: str) -> str:
        mend = f"name it in access.{right}, or give a token that has"
        if names:
            return f"the certificate {names[0]!r} has no right {right}; {mend}"
        if not given:
            return f"callers without a certificate have no right {right}; {mend}"
        if given.strip() == _BEARER.strip():
            return f"the token is empty; give one that has the right {right}"
        if not given.startswith(_BEARER):
            return f"the header authorization is not 'Bearer TOKEN'; write one with {right} so"
        others = (each for each in self._tokens if each != right)
        known = next((each for each in others if self._has_token(each, given)), "")
        if known:
            return f"the token has the right {known}, and not {right}; give one that has"
        return f"the token is wrong: it has no right {right}; access.{right}_token names its file"

    def problem(self) -> str:
        """Return why no master can have the right for sessions; empty: one can."""
        paths = [path for path in self._tokens["session"] if path]
        if self._names["session"] or not paths or any(map(_is_readable, paths)):
            return ""
        return f"no session can begin: the token in {paths[0]} cannot be read, or is empty"

    def _tell(self, right: str, names: list[str], peer: str) -> None:
        """Log a rejected caller, at a limited rate, because clients may call at any rate."""
        with self._lock:
            self._untold[right] += 1
            if time.monotonic() - self._told_s.get(right, -AGAIN_S) < AGAIN_S:
                return
            self._told_s[right], times = time.monotonic(), self._untold.pop(right)
        _log.warning("refused a caller", right=right, certificate=names, peer=peer, times=times)

    def _has_token(self, right: str, given: str) -> bool:
        """Compare in constant time; files are read on every call, so that tokens can change."""
        if not given.startswith(_BEARER):
            return False
        for path in filter(None, self._tokens[right]):
            known = self._read(path)
            if known and hmac.compare_digest(given.removeprefix(_BEARER).encode(), known.encode()):
                return True
        return False

    def _read(self, path: str) -> str:
        """Read a token; return an empty one if it cannot be read, and log a new reason once."""
        known, why = "", ""
        try:
            known = _token_in(path)
        except (OSError, UnicodeDecodeError) as error:
            why = str(error)
        with self._lock:
            before, calls = self._unread.pop(path, ("", 0))
            if why:
                self._unread[path] = why, calls + 1
        if why and why != before:
            _log.error("a token cannot be read", path=path, error=why)
        elif before and not why:
            _log.info("a token is readable again", path=path, calls=calls)
        return known


def _token_in(path: str) -> str:
    """Raises OSError, UnicodeDecodeError."""
    return read_regular(path, FILE_BYTES_MAX).decode().strip()


def _is_readable(path: str) -> bool:
    """Whether a token can be read and is not empty; nothing is logged or counted."""
    try:
        return bool(_token_in(path))
    except (OSError, UnicodeDecodeError):
        return False


def right_of(method: str) -> str:
    """Return the right that a method needs; empty: none.

    >>> right_of("/allocator.v1.AdminService/SetPolicy")
    'admin_write'
    >>> right_of("/allocator.v1.AdminService/Dump")
    'admin_read'
    >>> right_of("/allocator.v1.AdminService/NobodyKnows")
    'admin_write'
    >>> right_of("/grpc.health.v1.Health/Check")
    ''
    """
    if method.startswith(SESSION):
        return "session"
    if method.startswith(_HEALTH):
        return ""
    reads = method.startswith((_REFLECTION, RECORDS)) or (
        method.startswith(ADMIN) and method.removeprefix(ADMIN) in READS
    )
    return "admin_read" if reads else "admin_write"
