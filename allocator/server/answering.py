"""How the operators' service waits for the core, and refuses; how the core answers."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn, TypeVar, cast

import grpc

ANSWER_S = 30.0
"""How long the core may take for whoever set no deadline."""

_T = TypeVar("_T")


def left_s(context: grpc.ServicerContext) -> float:
    """How long an answer may take."""
    left = cast("float | None", context.time_remaining())  # None without a deadline
    return ANSWER_S if left is None else min(left, ANSWER_S)


def wait(context: grpc.ServicerContext, future: "Future[_T]") -> _T:
    """Wait for the core; when the time is up, work that it has not begun is cancelled."""
    try:
        return future.result(left_s(context))
    except TimeoutError:
        future.cancel()
        context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the core is busy; ask again")


def refuse(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Say that a request is wrong."""
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def fulfil(future: "Future[_T]", work: Callable[[], _T]) -> None:
    """Do some work for whoever waits for it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001 - whoever asked is told.
        future.set_exception(error)
