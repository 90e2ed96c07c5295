"""Limits calls: the number of concurrent calls of each kind, and the duration of each.

Any peer that reaches a port may call before it is authenticated. Each kind of call therefore has
its own limit, so that calls of one kind cannot block other kinds. A call occupies a thread, so
calls that stall or last too long are ended (those of sessions by the core).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from allocator.server.engine.commands import clear_frames
from allocator.server.engine.sessions import SESSIONS_MAX
from allocator.server.grpc.access import ADMIN, RECORDS, SESSION, Access

REQUEST_S = 10.0
"""Time in which a request of a single message must arrive."""


class Bounds(NamedTuple):
    """The limits of one kind of call.

    `whole_s`: maximum duration of a call; 0: unlimited.
    `piece_s`: time in which the caller must take each piece of an answer; 0: unlimited.
    `newest`: if no place is left, end the oldest call to make room for the new one.
    """

    places: int
    whole_s: float
    piece_s: float = 0.0
    newest: bool = False


BOUNDS = {
    # The core ends surplus or silent sessions, and streams that are read too slowly. Closing takes
    # a moment, so there are twice as many places.
    "session": Bounds(2 * SESSIONS_MAX, 0.0),
    # Trying a policy takes long, and so does sending the state of a large cluster over a slow line.
    "operator": Bounds(12, 600.0, 30.0),
    # Followers on other machines; the local observer has a separate server.
    "follower": Bounds(8, 0.0, 30.0),
    "probe": Bounds(8, 30.0),
    "watch": Bounds(4, 3600.0, 30.0, newest=True),
    "reflection": Bounds(4, 30.0, 10.0, newest=True),
}

_SPARE = 16
"""Additional threads, for calls that are about to be rejected or to end."""

REASONS = ("room", "right")

CALLS_MAX = sum(each.places for each in BOUNDS.values()) + _SPARE
"""Maximum number of concurrent calls, and number of threads that serve them."""

CONNECTIONS_MAX = 256
"""Maximum number of connections to each address, so that file descriptors are left."""


def kind_of(method: str) -> str:
    """Return the kind of a call, which determines its limits.

    >>> kind_of("/allocator.v1.AdminService/Dump"), kind_of("/grpc.health.v1.Health/Watch")
    ('operator', 'watch')
    """
    if method.startswith(SESSION):
        return "session"
    if method.startswith(RECORDS):
        return "follower"
    if method.startswith(ADMIN):
        return "operator"
    if method.endswith("/Check"):
        return "probe"
    return "watch" if method.endswith("/Watch") else "reflection"


class _Call:
    """A call that is ended when its time is up."""

    def __init__(self, context: grpc.ServicerContext, bounds: Bounds) -> None:
        self._context = context
        self._bounds = bounds
        self._ends_s = time.monotonic() + bounds.whole_s if bounds.whole_s else 0.0
        self._timer: threading.Timer | None = None

    def within(self, seconds: float) -> None:
        """Set the time for the caller's next step; 0: until the end of the whole call."""
        self.over()
        left_s = self._ends_s - time.monotonic() if self._ends_s else seconds
        least_s = min(seconds or left_s, left_s)
        if least_s or self._ends_s:
            self._timer = threading.Timer(max(least_s, 0.0), self.cut)
            self._timer.daemon = True
            self._timer.start()

    def over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # it refers to this object

    def cut(self) -> None:
        self._context.cancel()

    def pieces(self, answers: Iterator[Any]) -> Iterator[Any]:
        """Yield the pieces of an answer; the caller must take each in time."""
        for each in answers:
            self.within(self._bounds.piece_s)
            yield each
            self.within(0.0)


class Calls(grpc.ServerInterceptor):
    """Admits calls that have the right, if there is a free place for their kind.

    `refused`: number of rejected calls, by kind and reason.
    """

    def __init__(
        self,
        access: Access,
        not_ready: Callable[[], str] = lambda: "",
    ) -> None:
        """Admit calls; `not_ready`: returns why no session can begin yet, or nothing."""
        self._not_ready = not_ready
        self.refused: Counter[tuple[str, str]] = Counter()
        self._access = access
        self._lock = threading.Lock()
        self._open: dict[str, dict[int, _Call]] = {kind: {} for kind in BOUNDS}

    def problem(self) -> str:
        if why := self._not_ready():
            return why
        streams, most = len(self._open["session"]), BOUNDS["session"].places
        if streams >= most:
            return f"{streams} streams of masters are open, and no more can be"
        return self._access.problem()

    def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401
        """Find the handler of a call, and add the checks.

        All handlers become handlers of streams, which read and parse requests themselves. gRPC
        would wait for a request without a time limit, and occupy a thread meanwhile. If it could
        not parse a stream's request, it would never free the call.
        """
        handler = continuation(details)
        if handler is None:
            return None
        method, metadata = details.method, dict(details.invocation_metadata)
        token = str(metadata.get("authorization", ""))

        def answer(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:  # noqa: ANN401
            with self._let_in(method, token, context) as call:
                asked = _asked(handler, requests, call, context)
                return _work(handler)(asked, context)

        def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            with self._let_in(method, token, context) as call:
                asked = _asked(handler, requests, call, context)
                made = _work(handler)(asked, context)
                yield from call.pieces(made)

        make: Callable[..., Any] = grpc.stream_unary_rpc_method_handler
        work: Callable[..., Any] = answer
        if handler.response_streaming:
            make, work = grpc.stream_stream_rpc_method_handler, answers
        return make(work, None, handler.response_serializer)

    @contextmanager
    def _let_in(self, method: str, token: str, context: grpc.ServicerContext) -> Iterator[_Call]:
        kind = kind_of(method)
        with self._counting(kind, "right"):
            self._access.check(context, method, token)
        if kind == "session" and (why := self._not_ready()):
            # A module treats this as an absent sidecar, and tries again within a second.
            context.abort(grpc.StatusCode.UNAVAILABLE, f"{why}; ask again")
        call = _Call(context, BOUNDS[kind])
        if not self._take(kind, call):
            text = f"{BOUNDS[kind].places} calls of this kind ({kind}) are open; call again later"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        try:
            call.within(0.0)
            yield call
        except Exception as error:
            # These frames may keep the call, and with it one of the connection's few streams.
            clear_frames(error)
            raise
        finally:
            call.over()
            with self._lock:
                self._open[kind].pop(id(call))

    @contextmanager
    def _counting(self, kind: str, reason: str) -> Iterator[None]:
        try:
            yield
        except Exception:  # gRPC ends a call by a plain Exception
            with self._lock:
                self.refused[kind, reason] += 1
            raise

    def _take(self, kind: str, call: _Call) -> bool:
        """Admit a call; if its kind is full, end the oldest call or reject this one."""
        bounds, oldest = BOUNDS[kind], None
        with self._lock:
            taken = self._open[kind]
            # Calls that were ended take a moment to close.
            if len(taken) >= bounds.places + (_SPARE // 4 if bounds.newest else 0):
                self.refused[kind, "room"] += 1
                return False
            if len(taken) >= bounds.places:
                oldest = next(iter(taken.values()))
            taken[id(call)] = call
        if oldest is not None:
            oldest.cut()
        return True


def _work(handler: Any) -> Callable[..., Any]:  # noqa: ANN401
    return (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )


def _asked(
    handler: Any,  # noqa: ANN401
    requests: Iterator[bytes],
    call: _Call,
    context: grpc.ServicerContext,
) -> Any:  # noqa: ANN401
    """Return the argument of a handler: its single request, or an iterator of requests."""
    parsed = map(partial(_parsed, handler.request_deserializer, context), requests)
    if handler.request_streaming:
        return parsed
    call.within(REQUEST_S)
    try:
        request = next(parsed)
    except StopIteration:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no request arrived; send one")
    except grpc.RpcError:
        # gRPC keeps this error with the call, so another one must leave the handler's frames.
        context.abort(grpc.StatusCode.CANCELLED, "the caller ended the call")
    call.within(0.0)
    return request


def _parsed(
    parse: Callable[[bytes], Any] | None, context: grpc.ServicerContext, data: bytes
) -> Any:  # noqa: ANN401
    if parse is None:
        return data
    try:
        return parse(data)
    except DecodeError:
        text = f"the request, {len(data)} bytes, is not a message of this call's type"
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
