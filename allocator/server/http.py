"""One small HTTP listener: /metrics, /healthz and /readyz.

It holds few requests at a time, and none for long: whoever drips bytes is cut off.
"""

import gzip
import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

REQUESTS_MAX = 16
REQUEST_TIMEOUT_S = 10.0

Check = Callable[[], str]
"""Says what is wrong; empty where nothing is."""


def nothing_to_add() -> str:
    """Say nothing beside that all is well."""
    return ""


_INDEX = "/metrics  for Prometheus\n/healthz  alive\n/readyz   ready to take sessions\n"

_log = structlog.get_logger()


class HttpServer:
    """The running listener.

    Attributes
    ----------
    port : int
    """

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        healthy: Check,
        ready: Check,
        remark: Callable[[], str] = nothing_to_add,
    ) -> None:
        """Listen, and serve on threads of its own.

        Parameters
        ----------
        host, port
            Port 0: any that is free.
        registry : CollectorRegistry
        healthy, ready : callable
            Say what is wrong.
        remark : callable
            What /readyz adds where nothing is.

        Raises
        ------
        OSError
            Where the address cannot be listened on.
        """
        self._listener = _Listener(host, port)
        self._listener.pages = {"/healthz": (healthy, nothing_to_add), "/readyz": (ready, remark)}
        self._listener.registry = registry
        self.port: int = self._listener.socket.getsockname()[1]
        self._thread = threading.Thread(
            target=self._listener.serve_forever, name="http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests under way are not waited for."""
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class _Listener(socketserver.TCPServer):
    """Serves at most `REQUESTS_MAX` requests at a time."""

    allow_reuse_address = True
    request_queue_size = 64
    registry: CollectorRegistry
    pages: dict[str, tuple[Check, Callable[[], str]]]

    def __init__(self, host: str, port: int) -> None:
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            self._places = threading.BoundedSemaphore(REQUESTS_MAX)
            super().__init__(address[:2], _Handler)  # type: ignore[arg-type]
        except OSError as error:
            raise OSError(
                error.errno, f"http cannot listen on {host}:{port}: {error.strerror}"
            ) from None

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Serve on a thread of its own, or say that there are too many."""
        if not self._places.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\n\r\ntoo many requests\n")
            self.shutdown_request(request)
            return
        threading.Thread(
            target=self._serve, args=(request, client_address), name="http-request", daemon=True
        ).start()

    def _serve(self, request: socket.socket, client_address: object) -> None:
        deadline = threading.Timer(REQUEST_TIMEOUT_S, _cut, [request])
        deadline.daemon = True
        deadline.start()
        try:
            with suppress(OSError):  # The peer left, and nobody is there to be told.
                self.finish_request(request, client_address)
        finally:
            deadline.cancel()
            self.shutdown_request(request)
            self._places.release()


def _cut(request: socket.socket) -> None:
    with suppress(OSError):  # It may be over by now.
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Listener
    server_version = "mesos-allocator"
    sys_version = ""
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        """Serve a page."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path in self.server.pages:
            check, remark = self.server.pages[path]
            problem = check()
            added = "" if problem else remark()
            self._answer(503 if problem else 200, f"{problem or 'ok'}{added and ', ' + added}\n")
        else:
            self._answer(200 if path == "/" else 404, _INDEX)

    def do_HEAD(self) -> None:
        """Serve a page without its body."""
        self.do_GET()

    def _metrics(self) -> None:
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        try:
            body = encode(self.server.registry)
        except Exception:  # noqa: BLE001 - whatever it is, the scraper is told.
            _log.exception("metrics could not be written")
            self._answer(500, "metrics could not be written; see the log\n")
            return
        headers = {"Content-Type": content_type}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        self._send(200, headers, body)

    def _answer(self, status: int, text: str) -> None:
        self._send(status, {"Content-Type": "text/plain; charset=utf-8"}, text.encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: scrapes and probes come all the time."""
