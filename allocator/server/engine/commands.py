"""A queue of work for the thread that owns books, and functions that wait for results."""

import queue
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import NoReturn, Protocol, TypeVar, cast

import grpc

ANSWER_S = 30.0
"""Maximum time of the core's answer to a caller without a deadline."""

ON_THE_WAY_S = 0.25
"""Time reserved for sending the answer, before the caller's deadline."""

TOLD_MAX = 600
"""Maximum number of characters of an error: gRPC allows 8 KiB, up to 12 bytes per character."""

_T = TypeVar("_T")


class Ask(Protocol):
    """Runs work on the core's thread, and returns the result; raises if it takes too long."""

    def __call__(self, work: Callable[[], _T], /) -> _T:
        """Wait for the result of the work."""


def left_s(context: grpc.ServicerContext) -> float:
    """Time until an answer must be ready, so that it arrives before the caller's deadline."""
    left = cast("float | None", context.time_remaining())  # None without a deadline
    if left is None:
        return ANSWER_S
    return max(min(left - min(ON_THE_WAY_S, left / 4), ANSWER_S), 0.0)


def wait(context: grpc.ServicerContext, future: "Future[_T]") -> _T:
    """Wait for the core; on a timeout, cancel work that has not begun."""
    try:
        return future.result(left_s(context))
    except TimeoutError:
        future.cancel()
        context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the core is busy; try again")


def settled(future: "Future[_T]", within_s: float) -> _T:
    """Wait for a change; after `within_s` cancel it or, if it has begun, wait until it ends.

    Raises TimeoutError if the change was cancelled, so nothing has changed.
    """
    try:
        return future.result(within_s)
    except TimeoutError:
        if future.cancel():
            raise
        return future.result()


def reject(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Reject an invalid request; a very long message is shortened in the middle."""
    if len(message) > TOLD_MAX:
        message = f"{message[: TOLD_MAX * 2 // 3]}...{message[-TOLD_MAX // 3 :]}"
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def clear_frames(error: BaseException | None) -> None:
    """Drop the local variables of all frames that an exception has left.

    The traceback can still be printed. Such a frame may refer to something that refers to the
    exception, such as its future; this cycle would keep all of it until a garbage collection.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def fulfil(future: "Future[_T]", work: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = work()
    except BaseException as error:  # noqa: BLE001 - the caller gets it; the thread continues.
        clear_frames(error)
        future.set_exception(error)
    else:
        future.set_result(found)


class Probe:
    """Measures how long a thread has not responded: it always has a probe to answer."""

    def __init__(self, call: Callable[[Callable[[], None]], "Future[None]"]) -> None:
        """Start without a probe; `call`: queues work for the thread."""
        self._call = call
        self._pending: Future[None] | None = None
        self._asked_s = 0.0

    def waits_s(self) -> float:
        """Time for which a probe has had no answer; an answer triggers a new probe."""
        pending = self._pending
        if pending is None or pending.done():
            self._asked_s = time.monotonic()
            self._pending = pending = self._call(lambda: None)
        return 0.0 if pending.done() else time.monotonic() - self._asked_s


class Commands:
    """The queue: any thread may add work, one thread takes it."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    @property
    def depth(self) -> int:
        return self._queue.qsize()

    def put(self, work: Callable[[], None]) -> None:
        self._queue.put(work)

    def end(self) -> None:
        self._queue.put(None)

    def call(self, work: Callable[[], _T]) -> Future[_T]:
        """Queue work; the future gets its result or exception."""
        future: Future[_T] = Future()
        self.put(partial(fulfil, future, work))
        return future

    def taken(self) -> Iterator[Callable[[], None]]:
        while (work := self._queue.get()) is not None:
            yield work
