"""Who may do what: three rights, by the client's certificate or by a token.

Whoever comes by a Unix socket is let in by its mode and its directory, and may do everything.
"""

import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import structlog

from allocator.server.callers import certificate_names
from allocator.server.config.access import AccessSection

_ADMIN = "/allocator.v1.AdminService/"
_SESSION = "/allocator.v1.SessionService/"
_WRITES = ("Set", "Reset")
_BEARER = "Bearer "

_log = structlog.get_logger()


class Access(grpc.ServerInterceptor):
    """Refuses calls for which the caller has no right."""

    def __init__(self, section: AccessSection) -> None:
        """Let in whom the configuration names."""
        self._names = {
            "session": section.session,
            "admin_read": (*section.admin_read, *section.admin_write),
            "admin_write": section.admin_write,
        }
        write = section.admin_write_token
        self._tokens = {
            "session": (),
            "admin_read": (section.admin_read_token, write),
            "admin_write": (write,),
        }
        # A right is free where nobody is named for it. Who may only ask must be named, too, before
        # a name for changes keeps anybody from asking.
        self._bounded = {
            "session": bool(section.session),
            "admin_read": bool(section.admin_read or section.admin_read_token),
            "admin_write": bool(section.admin_write or write),
        }

    def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401
        """Find the handler of a call, behind a check where the right is not free."""
        handler, right = continuation(details), right_of(details.method)
        if handler is None or not self._bounded.get(right):
            return handler
        token = dict(details.invocation_metadata).get("authorization", "")

        def guarded(work: Callable[..., Any]) -> Callable[..., Any]:
            def call(request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401
                self._check(context, right, str(token))
                return work(request, context)

            return call

        return _wrapped(handler, guarded)

    def _check(self, context: grpc.ServicerContext, right: str, token: str) -> None:
        if context.peer().startswith("unix:"):
            return
        names = certificate_names(context)
        if set(names) & set(self._names[right]) or self._has_token(right, token):
            return
        _log.warning("refused a caller", right=right, certificate=names, peer=context.peer())
        who = f"the certificate {names[0]!r} has" if names else "callers without a certificate have"
        text = f"{who} no right {right}; name it in access.{right}, or give a token that has"
        context.abort(grpc.StatusCode.PERMISSION_DENIED, text)

    def _has_token(self, right: str, given: str) -> bool:
        """Compare in constant time; files are read anew, so that a token can be changed."""
        if not given.startswith(_BEARER):
            return False
        for path in filter(None, self._tokens[right]):
            try:
                known = Path(path).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                _log.error("a token cannot be read", path=path, error=str(error))
                continue
            if known and hmac.compare_digest(given.removeprefix(_BEARER).encode(), known.encode()):
                return True
        return False


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
    if method.startswith(_SESSION):
        return "session"
    if method.startswith(_ADMIN):
        return "admin_write" if method.removeprefix(_ADMIN).startswith(_WRITES) else "admin_read"
    return ""


def _wrapped(handler: Any, guarded: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Put a check before what a handler does, of whichever form it is."""
    if handler.unary_unary:
        make, work = grpc.unary_unary_rpc_method_handler, handler.unary_unary
    elif handler.unary_stream:
        make, work = grpc.unary_stream_rpc_method_handler, handler.unary_stream
    elif handler.stream_stream:
        make, work = grpc.stream_stream_rpc_method_handler, handler.stream_stream
    else:
        make, work = grpc.stream_unary_rpc_method_handler, handler.stream_unary
    return make(guarded(work), handler.request_deserializer, handler.response_serializer)
