"""Notifications to systemd (sd_notify): ready, stopping, and alive."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from allocator.server.system.lasting import LastingThread

READY = b"READY=1"
STOPPING = b"STOPPING=1"
ALIVE = b"WATCHDOG=1"


def notify(state: bytes) -> None:
    """Send a state to systemd, if it listens (NOTIFY_SOCKET)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.connect(address)
        told.send(state)


def watchdog_s() -> float:
    """Watchdog interval of systemd; 0: no watchdog."""
    usec, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or pid not in ("", str(os.getpid())):
        return 0.0
    return int(usec) / 1e6


@contextmanager
def watched(healthy: Callable[[], bool]) -> Iterator[None]:
    """Notify systemd's watchdog, if enabled, while the process is healthy.

    `healthy`: called three times per interval.
    """
    within_s = watchdog_s()
    if not within_s:
        yield
        return

    def watch() -> None:
        while not thread.pause(within_s / 3):
            if healthy():
                notify(ALIVE)

    thread = LastingThread("watchdog", watch)
    thread.start()
    try:
        yield
    finally:
        thread.end()
        thread.join()
