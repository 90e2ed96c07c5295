"""A token beside each call."""

from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

_Call: TypeAlias = Any
"""gRPC's types of calls and requests differ from method to method."""


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Sends a token with each call."""

    def __init__(self, token: str) -> None:
        """Send this one."""
        self._token = token

    def intercept_unary_unary(
        self, continuation: Callable[..., _Call], details: _Call, request: _Call
    ) -> _Call:
        """Add the token."""
        return continuation(self._with_token(details), request)

    def intercept_unary_stream(
        self, continuation: Callable[..., _Call], details: _Call, request: _Call
    ) -> _Call:
        """Add the token."""
        return continuation(self._with_token(details), request)

    def _with_token(self, details: _Call) -> _Call:
        more = ("authorization", f"Bearer {self._token}")
        return details._replace(metadata=[*(details.metadata or ()), more])
