"""Connections that can be disturbed: a TCP relay, a network cable, certificates."""

import ctypes
import ipaddress
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

import grpc

from laboratory.links.end_with_parent import ending_with_us
from tests.server.grpc.certificates import Authority

# A TCP relay that injects network faults.

CHUNK = 65_536
CONNECT_S = 5.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Dial = Callable[[], socket.socket]
"""Connects to the sidecar; OSError if it does not listen."""


class Proxy:
    """Listens on a loopback port, and relays to the connections that `dial` opens.

    seed: determines which bytes are changed.
    """

    def __init__(self, dial: Dial, seed: int = 0) -> None:
        self._dial = dial
        self._chance = random.Random(seed)
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
        """Reset every connection; returns their number."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _cut(pair)
        return len(pairs)

    def stall(self) -> None:
        """Hold back all data, and keep the connections."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def tear(self) -> None:
        """Forward part of the next data, then reset the connection."""
        self._tear = True

    def garble(self) -> None:
        """Change a byte of the next data."""
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
    """Close both ends with a reset, which also wakes their readers."""
    for each in pair:
        with suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RD)  # no shutdown: it would close the connection in order
        with suppress(OSError):
            each.close()


def dial_unix(path: str) -> Dial:
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
    def dial() -> socket.socket:
        found = socket.create_connection(("127.0.0.1", port), CONNECT_S)
        found.settimeout(None)
        return found

    return dial


# A cable: this machine, and a network namespace at the other end.
#
# A relay can only delay data or end a connection. Pulling the cable loses packets, like a switch
# that fails: both ends retransmit for a while without an error.

NETWORK = ipaddress.ip_network("198.18.0.0/15")
"""Reserved for network tests (RFC 2544), so no host uses these addresses."""

COMMAND_S = 10.0
_CLONE_NEWNET = 0x40000000


class Cable:
    """Two virtual interfaces: one here, one in a namespace that ends with this process.

    Needs root, and the programs ip, nsenter and unshare; raises OSError otherwise.

    address: of the local end.
    """

    def __init__(self) -> None:
        number = os.getpid() % (NETWORK.num_addresses // 4)  # rigs run in parallel
        near, far = NETWORK[4 * number + 1], NETWORK[4 * number + 2]
        self.address = str(near)
        self._far_address = str(far)
        self._near, self._far = f"torture{number}a", f"torture{number}b"
        self._holder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._lay()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        # If this process is killed, the namespace and both interfaces are removed.
        with suppress(OSError):
            _run("link", "delete", self._near)
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def pull(self) -> None:
        """Drop packets from now on, in both directions."""
        self._there("link", "set", self._far, "down")

    def plug(self) -> None:
        """Let packets through again, if the cable still exists."""
        with suppress(OSError):
            self._there("link", "set", self._far, "up")

    def dial(self, port: int) -> socket.socket:
        """Connect from the other end to a port of this one.

        Raises OSError if no process listens.
        """
        # A socket belongs to the namespace of the thread that creates it, so a thread of its own
        # enters the other namespace.
        with ThreadPoolExecutor(1, "cable") as there:
            return there.submit(self._dial_there, port).result()

    def _dial_there(self, port: int) -> socket.socket:
        with self._namespace().open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        found = socket.create_connection((self.address, port), CONNECT_S)
        found.settimeout(None)
        return found

    def _namespace(self) -> Path:
        assert self._holder is not None, "the cable was not laid"
        return Path(f"/proc/{self._holder.pid}/ns/net")

    def _lay(self) -> None:
        unshare = shutil.which("unshare")
        if unshare is None:
            raise FileNotFoundError("there is no unshare")
        self._holder = subprocess.Popen(
            ending_with_us([unshare, "--net", "sleep", "infinity"]),
            stdin=subprocess.DEVNULL,
        )
        ours, deadline_s = Path("/proc/self/ns/net").readlink(), time.monotonic() + COMMAND_S
        while self._namespace().readlink() == ours:
            if self._holder.poll() is not None or time.monotonic() > deadline_s:
                raise OSError("no namespace of the network came about")
            time.sleep(0.01)
        pid = str(self._holder.pid)
        _run("link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns", pid)
        _run("address", "add", f"{self.address}/30", "dev", self._near)
        _run("link", "set", self._near, "up")
        self._there("address", "add", f"{self._far_address}/30", "dev", self._far)
        self._there("link", "set", self._far, "up")

    def _there(self, *words: str) -> None:
        _run(*words, prefix=("nsenter", f"--net={self._namespace()}"))


def _run(*words: str, prefix: tuple[str, ...] = ()) -> None:
    try:
        subprocess.run([*prefix, "ip", *words], check=True, capture_output=True, timeout=COMMAND_S)
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None


# Certificates of a sidecar and its masters.


class Certificates:
    """The certificates of the sidecar and its masters.

    The sidecar reads `served.pem` and `served.key` of a directory, and trusts `ca.pem` there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority = Authority("openssl", directory)
        self._authority.sign("masters")
        self._authority.sign("expired", days=-1)
        self.rotate()

    def rotate(self) -> None:
        """Install another valid certificate with its key."""
        self._authority.sign("next")
        self._serve("next", "next")

    def expire(self) -> None:
        """Install an expired certificate."""
        self._serve("expired", "expired")

    def half(self) -> None:
        """Replace the certificate but not its key: half a rotation."""
        self._authority.sign("next")
        self._serve("next", "expired")

    def credentials(self) -> grpc.ChannelCredentials:
        """The credentials of a master."""
        files = (self._directory / name for name in ("ca.pem", "masters.key", "masters.pem"))
        return grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))

    def _serve(self, certificate: str, key: str) -> None:
        for source, served in ((f"{certificate}.pem", "served.pem"), (f"{key}.key", "served.key")):
            new = self._directory / f"{served}.new"
            shutil.copy(self._directory / source, new)
            new.replace(self._directory / served)
