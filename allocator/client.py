"""For all clients of a sidecar: sends a token with calls, and explains why a call has no answer."""

import getpass
import os
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

_NOT_BELIEVED = re.compile(r"CERTIFICATE_VERIFY_FAILED: ([^:)]+)")
_NO_HTTP2 = "Expected SETTINGS frame"

_Call: TypeAlias = Any
"""gRPC's types of calls and requests differ from method to method."""


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Sends a token with each call."""

    def __init__(self, token: str) -> None:
        self._token = token

    def intercept_unary_unary(
        self, continuation: Callable[..., _Call], details: _Call, request: _Call
    ) -> _Call:
        return continuation(self._with_token(details), request)

    def intercept_unary_stream(
        self, continuation: Callable[..., _Call], details: _Call, request: _Call
    ) -> _Call:
        return continuation(self._with_token(details), request)

    def _with_token(self, details: _Call) -> _Call:
        more = ("authorization", f"Bearer {self._token}")
        return details._replace(metadata=[*(details.metadata or ()), more])


def why_unavailable(
    target: str, details: str, *, start: str = "", trust: str = "", tls: str
) -> str:
    """Explain an UNAVAILABLE error from its gRPC details.

    `start`, `trust`, `tls`: remedies if no sidecar is there, if its certificate is not trusted, and
        if it requires TLS.

    >>> why_unavailable("[::1]:5056", "last error: Socket closed", tls="it may want TLS")
    'the sidecar at [::1]:5056 closed the connection; it may want TLS'
    """
    # gRPC lists the whole chain of errors; the cause comes last.
    why = details.rpartition(": ")[2].rstrip(")")
    if refused := _NOT_BELIEVED.search(details):
        parts = f"the certificate of the sidecar at {target}: {refused[1]}", trust
    elif "Socket closed" in details:
        parts = f"the sidecar at {target} closed the connection", tls
    elif _NO_HTTP2 in details:
        mend = "it may be the HTTP port of a sidecar; name an address of its listen.targets"
        parts = f"{target} answers, but does not speak gRPC", mend
    elif target.startswith("unix:") and why == "Permission denied":
        mend = (
            "run this as root or as the owner of the socket, or change listen.unix_owner or"
            " listen.unix_mode of the sidecar"
        )
        parts = f"permission to use {target} is denied to the user {_user()!r}", mend
    else:
        parts = f"no sidecar answers at {target}", f"{start} ({why})" if start else ""
    return "; ".join(filter(None, parts))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # such as a user id without a name
        return f"{os.getuid()}"
