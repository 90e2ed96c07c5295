"""A network of two that can be cut: this machine, and a namespace at the other end of a cable.

A relay can hold bytes back or end a connection; what it cannot do is what a switch without power
does. Packets are lost then, both ends send them again for a while, and nobody is told.
"""

import ctypes
import ipaddress
import os
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from allocator.lab.links.end_with_parent import ending_with_us
from allocator.lab.torture.proxy import CONNECT_S

NETWORK = ipaddress.ip_network("198.18.0.0/15")
"""Set aside for tests of networks (RFC 2544), so nobody has an address in it."""

COMMAND_S = 10.0
_CLONE_NEWNET = 0x40000000


class Cable:
    """Two virtual interfaces: one here, one in a namespace that ends with this process.

    To lay it takes root, and the programs ip, nsenter and unshare; else there is an OSError.

    address: of the end that is here.
    """

    def __init__(self) -> None:
        number = os.getpid() % (NETWORK.num_addresses // 4)  # so several may run on a machine
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
        # Where we are killed, the namespace goes, and both interfaces with it.
        with suppress(OSError):
            _run("link", "delete", self._near)
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def pull(self) -> None:
        """Cut it: from now on packets are lost, in both directions."""
        self._there("link", "set", self._far, "down")

    def plug(self) -> None:
        """Let packets through again, if it is still there."""
        with suppress(OSError):
            self._there("link", "set", self._far, "up")

    def dial(self, port: int) -> socket.socket:
        """Connect from the other end to a port of this one.

        Raises OSError where nobody answers.
        """
        # A socket is of the namespace that its thread was in, so a thread is sent there.
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
        self._holder = subprocess.Popen(  # noqa: S603 - two programs of the system
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
        subprocess.run(  # noqa: S603 - programs of the system
            [*prefix, "ip", *words], check=True, capture_output=True, timeout=COMMAND_S
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
