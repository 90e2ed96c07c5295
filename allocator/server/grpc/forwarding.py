"""Forwards operators' queries to the observer, and returns its answers."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import grpc

from allocator.server.engine.commands import left_s
from allocator.server.grpc.access import ADMIN

AFTER = "after-record"
"""Metadata key: number of the record that the observer's books must have reached."""

TRIAL = "trial"
"""Metadata key: marks a dry run with which the deciding process tries a change."""

STREAM_S = 600.0

OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
"""Options of channels between the two processes, to reconnect soon after a failure."""

_UNAVAILABLE = "the observer, which answers questions, is starting; ask again"


class ObserverCalls:
    """Calls to the observer."""

    def __init__(self, target: str, position: Callable[[], int]) -> None:
        """Open a channel; the observer need not be running yet.

        `target`: the observer's address.
        `position`: returns the number of the latest record, which answers must include.
        """
        self._channel = grpc.insecure_channel(target, OPTIONS)
        self._position = position

    def ask(self, method: str, request: bytes, within_s: float, *, trial: bool = False) -> bytes:
        """Make a call with a single answer. Raises grpc.RpcError."""
        call: Any = self._channel.unary_unary(f"{ADMIN}{method}")
        metadata = (*self._metadata(), *(((TRIAL, "1"),) if trial else ()))
        answer: bytes = call(request, within_s, metadata, wait_for_ready=True)
        return answer

    def forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        """Answer a call with the observer's answer; if that is an error, end the call with it."""
        asked: Any = self._channel.unary_unary(f"{ADMIN}{method}")
        call = asked.future(request, left_s(context), self._metadata(), wait_for_ready=True)
        context.add_callback(call.cancel)
        try:
            answer: bytes = call.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            _end(context, error)
        return answer

    def forward_stream(
        self, method: str, request: bytes, context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        limit_s = min(context.time_remaining() or STREAM_S, STREAM_S)
        asked: Any = self._channel.unary_stream(f"{ADMIN}{method}")
        call = asked(request, limit_s, self._metadata(), wait_for_ready=True)
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as error:
            _end(context, error)

    def close(self) -> None:
        self._channel.close()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return ((AFTER, str(self._position())),)


def status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    if not isinstance(error, grpc.Call):
        return grpc.StatusCode.CANCELLED, ""
    return error.code(), error.details() or ""


def _end(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    code, text = status_of(error)
    context.abort(code, _UNAVAILABLE if code is grpc.StatusCode.UNAVAILABLE else text)
