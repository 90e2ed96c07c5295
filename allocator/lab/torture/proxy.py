"""A relay for TCP connections that does to them what networks do."""

import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

CHUNK = 65_536
CONNECT_S = 5.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Dial = Callable[[], socket.socket]
"""Connects to the sidecar; OSError where it is not there."""


class Proxy:
    """Listens on a port of loopback, and relays to whatever `dial` connects to.

    seed: of which bytes are garbled.
    """

    def __init__(self, dial: Dial, seed: int = 0) -> None:
        self._dial = dial
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._flows = threading.Event()
        self._flows.set()
        self._tear = False
        self._garble = False
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        self.reset()
        self._thread.join()

    def reset(self) -> int:
        """Cut every connection without a word; gives how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _cut(pair)
        return len(pairs)

    def stall(self) -> None:
        """Hold everything back, and keep the connections."""
        self._flows.clear()

    def flow(self) -> None:
        """Let it through again."""
        self._flows.set()

    def tear(self) -> None:
        """Of what comes next pass on a part, and cut the connection there."""
        self._tear = True

    def garble(self) -> None:
        """In what comes next change a byte."""
        self._garble = True

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                far = self._dial()
            except OSError:
                near.close()
                continue
            for each in (near, far):
                if each.family == socket.AF_INET:
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (near, far)
            with self._lock:
                self._pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(
                    target=self._pump, args=(source, sink, pair), name="proxy-pump", daemon=True
                ).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._flows.wait()
                if self._tear:
                    self._tear = False
                    sink.sendall(data[: self._chance.randrange(len(data))])
                    break
                sink.sendall(self._changed(data))
        with self._lock:
            self._pairs.discard(pair)
        _cut(pair)

    def _changed(self, data: bytes) -> bytes:
        if not self._garble:
            return data
        self._garble = False
        at = self._chance.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]


def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
    """Close both ends with a reset, which also wakes whoever reads from them."""
    for each in pair:
        with suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RD)  # to write no more would end it in order
        with suppress(OSError):
            each.close()


def dial_unix(path: str) -> Dial:
    """Connect to a Unix socket."""

    def dial() -> socket.socket:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.connect(path)
        except OSError:
            found.close()
            raise
        return found

    return dial


def dial_tcp(port: int) -> Dial:
    """Connect to a port of loopback."""

    def dial() -> socket.socket:
        found = socket.create_connection(("127.0.0.1", port), CONNECT_S)
        found.settimeout(None)
        return found

    return dial
