"""Tokens that masters and operators of this machine send, where a sidecar wants them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import grpc

SESSION_TOKEN_FILE = "MESOS_ALLOCATOR_SESSION_TOKEN_FILE"  # noqa: S105 - a name
TOKEN_FILE = "MESOS_ALLOCATOR_TOKEN_FILE"  # noqa: S105
"""Environment variables that name the file with a master's token, and with an operator's."""


def read_token(variable: str) -> str:
    """Read the token in the file that a variable names; empty where it names none.

    Raises OSError where the file cannot be read.
    """
    path = os.environ.get(variable, "")
    return Path(path).read_text(encoding="utf-8").strip() if path else ""


def with_operators_token(channel: grpc.Channel) -> grpc.Channel:
    """Have an operator's token sent with each call, where there is one."""
    token = read_token(TOKEN_FILE)
    return grpc.intercept_channel(channel, Bearer(token)) if token else channel


# A token beside each call.

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
