"""A small HTTP listener; uvicorn serves, Starlette routes.

It is read-only. The number and the duration of requests are bounded: connections that send slowly,
or too much, are closed; idle connections do not block others. A request that is not answered in
time gets a 503.

Only known Host headers are accepted, against DNS rebinding: a web page could resolve its own name
to this machine and then send requests, with its name in `Host`. Addresses, and names that cannot be
registered on the internet, are always accepted, so scrapers that use these work.
"""

import asyncio
import errno
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, ClassVar

import anyio
import anyio.to_thread
import structlog
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from allocator.server.config.checks import ANY_NAME
from allocator.server.system.addresses import is_loopback

SHOWN = 100


class KnownHosts:
    """Answers only requests for known host names."""

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        """`names`: known names, beside addresses, names without a dot, and this machine's name."""
        self._app = app
        self._names = {_plain(each) for each in (*names, socket.gethostname())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = host_of(Headers(scope=scope))
        if self.knows(host):
            await self._app(scope, receive, send)
            return
        name = host if len(host) <= SHOWN else f"{host[:SHOWN]}..."
        text = f"Host = {name!a}: unknown host name; add it to http.names if it is this sidecar's\n"
        await PlainTextResponse(text, 403)(scope, receive, send)

    def knows(self, host: str) -> bool:
        """Whether a request for this host is accepted; browsers always name a host."""
        name = _plain(host)
        known = ANY_NAME in self._names or name in self._names
        return known or "." not in name.strip("[]") or is_loopback(host) or _is_address(host)


def host_of(headers: Headers) -> str:
    given = headers.get("host", "")
    host, _, port = given.rpartition(":")
    return host if host and port.isdecimal() else given


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


Check = Callable[[], str]

_log = structlog.get_logger()


def nothing_wrong() -> str:
    return ""


def probe_routes(registry: CollectorRegistry, healthy: Check, ready: Check) -> list[Route]:
    """Return the routes for probes and metrics; `healthy`, `ready`: return the problem."""
    turn = threading.Lock()  # one at a time, so that many scrapes block nothing else

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        try:
            with turn:
                body = encode(registry)
        except Exception:  # noqa: BLE001 - the scraper gets the error.
            _log.exception("metrics could not be written")
            return plain_text(500, "metrics could not be written; see the log\n")
        return Response(body, headers={"Content-Type": content_type})

    return [
        Route(SCRAPED, metrics),
        Route("/healthz", lambda _request: _checked(healthy)),
        Route("/readyz", lambda _request: _checked(ready)),
    ]


def _checked(check: Check) -> Response:
    problem = check()
    return plain_text(503, f"{problem}\n") if problem else plain_text(200, "ok\n")


PROBES = ("/healthz", "/readyz")
"""Paths with their own places: the process is ended if probes get no answer."""

SCRAPED = "/metrics"
"""A path with its own places, because alerts depend on it."""

PROBES_MAX = 16
SCRAPES_MAX = 4
OTHERS_MAX = 16
"""Maximum number of concurrent requests for probes, for metrics, and for all other paths; further
ones get a 503. A scrape, however, replaces the oldest one whose answer is not being read, so that
slow readers do not block alerts."""

SILENT_MAX = 32
"""Maximum number of connections without a complete request; a further one replaces the oldest."""

REQUEST_TIMEOUT_S = 10.0
"""Maximum lifetime of a connection, which serves one request."""

ANSWER_TIMEOUT_S = 8.0
"""Time after which a request gets a 503; the rest of the lifetime is for sending."""

HEAD_BYTES_MAX = 16 * 1024

AGAIN_S = 60.0
"""Time after which a shortage is logged again."""

_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_GZIP_BYTES_MIN = 1024

_HEADERS = (
    # One request per connection, so that the connection's lifetime bounds the request's.
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class HttpServer:
    """The running listener."""

    def __init__(
        self,
        listener: socket.socket,
        routes: Iterable[BaseRoute],
        names: Iterable[str] = (),
    ) -> None:
        """Serve a socket that listens already; `names`: as for `KnownHosts`."""
        app = Starlette(
            routes=list(routes),
            middleware=[
                Middleware(KnownHosts, names=tuple(names)),
                Middleware(GZipMiddleware, minimum_size=_GZIP_BYTES_MIN, compresslevel=1),
            ],
        )
        _load_ahead()
        self._socket = listener
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(_settings(app))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _load_ahead() -> None:
    """Import now what anyio would import with the first request, when no descriptor may be left."""
    for name in dir(anyio):
        getattr(anyio, name)
    import_module("anyio._backends._asyncio")


def _settings(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=type("_BriefHere", (_Brief,), {"_crowd": _Crowd()}),
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        # Use our log format, and do not log peers' errors.
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=list(_HEADERS),
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
    )


class _Server(uvicorn.Server):
    """Logs a shortage of file descriptors in one line, and continues to listen."""

    _told_s = -AGAIN_S

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._failed)
        await super().startup(sockets)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _SHORT:
            loop.default_exception_handler(context)
            return
        # The loop tries again each second, and fails for each connection that waits.
        if time.monotonic() - self._told_s >= AGAIN_S:
            self._told_s = time.monotonic()
            mend = "raise the limit (LimitNOFILE= of the unit), or see who connects"
            why = os.strerror(error.errno)
            _log.error("http accepts no connections for a while", error=why, mend=mend)


class _Crowd:
    """The connections of one listener.

    `silent`: those without a complete request, the oldest first.
    `probes`, `scrapes`, `others`: those with a request, until their peer has received the last
        byte, the oldest first; with whether their answer has begun.
    """

    def __init__(self) -> None:
        self.silent: dict[asyncio.Transport, None] = {}
        self.probes: dict[asyncio.Transport, bool] = {}
        self.scrapes: dict[asyncio.Transport, bool] = {}
        self.others: dict[asyncio.Transport, bool] = {}

    def place_for(self, path: str) -> dict[asyncio.Transport, bool] | None:
        """Return the group of requests with room for one more for this path; None if it is full."""
        if path in PROBES:
            return self.probes if len(self.probes) < PROBES_MAX else None
        if path != SCRAPED:
            return self.others if len(self.others) < OTHERS_MAX else None
        if len(self.scrapes) < SCRAPES_MAX:
            return self.scrapes
        slow = next((each for each, begun in self.scrapes.items() if begun), None)
        if slow is None:
            return None
        del self.scrapes[slow]
        slow.abort()
        return self.scrapes


class _Brief(H11Protocol):
    """A connection with a limited lifetime."""

    _crowd: ClassVar[_Crowd]
    _deadline: asyncio.TimerHandle
    _place: dict[asyncio.Transport, bool] | None = None
    _users = 2
    """Users of the place: the connection, and the work for its answer, which may outlast it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, with a deadline; if too many connections are silent, end the oldest of them."""
        super().connection_made(transport)
        self.app = self._answer
        clock = asyncio.get_running_loop()
        self._deadline = clock.call_later(REQUEST_TIMEOUT_S, transport.abort)
        silent = self._crowd.silent
        silent[transport] = None
        if len(silent) > SILENT_MAX:
            oldest = next(iter(silent))
            del silent[oldest]
            oldest.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self._crowd.silent.pop(self.transport, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self._crowd.silent.pop(self.transport, None)
        self._leave_place()
        super().connection_lost(exc)

    def _leave_place(self, _: object = None) -> None:
        """Release the place once both the connection and the work have ended."""
        self._users -= 1
        if self._place is not None and not self._users:
            self._place.pop(self.transport, None)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = None if self.transport.is_closing() else self._crowd.place_for(scope["path"])
        if place is None:
            await busy("too many requests at a time")(scope, receive, send)
            return
        self._place = place
        place[self.transport] = False
        late = False

        async def send_in_time(message: Message) -> None:
            if late:
                return
            if self.transport in place:
                place[self.transport] = True
            await send(message)

        work = asyncio.ensure_future(self.config.loaded_app(scope, receive, send_in_time))
        work.add_done_callback(self._leave_place)
        why = f"no answer within {ANSWER_TIMEOUT_S:g} s"
        try:
            await asyncio.wait({work}, timeout=ANSWER_TIMEOUT_S)
        except asyncio.CancelledError:
            if place.get(self.transport) is not False:
                raise
            why = "the process is stopping"  # without an answer, uvicorn would log a traceback
        if not work.done() and place.get(self.transport) is False:
            late = True
            # The peer gets no answer from it any more, so log a failure.
            work.add_done_callback(_log_failure)
            await busy(why)(scope, receive, send)
            return
        await work


def _log_failure(work: asyncio.Future[None]) -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("an answer that came too late failed", exc_info=error)


def busy(why: str) -> Response:
    """Return a 503: the request is not answered now, and may be retried."""
    response = plain_text(503, f"{why}; ask again in a moment\n")
    response.headers["Retry-After"] = "1"
    return response


def is_from_here(request: Request) -> bool:
    """Whether the client is on this machine and uses one of its names."""
    if request.client is None:
        return False
    return is_loopback(request.client.host) and is_loopback(host_of(request.headers))


def plain_text(status: int, text: str) -> Response:
    return PlainTextResponse(text, status)
