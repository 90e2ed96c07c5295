"""Processes and ports of this machine, as the operating system shows them."""

import contextlib
import socket
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Child processes of a process's first thread, running or not yet reaped.

    Raises OSError if there is no such process.
    """
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(each) for each in text.split()]


def name_of(pid: int) -> str:
    """Return the command name that `ps` shows. Raises OSError if there is no such process."""
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


def observer_of(pid: int) -> int | None:
    """Return the observer process of a sidecar; None if there is none now."""
    with contextlib.suppress(OSError):
        return next((each for each in children_of(pid) if name_of(each) == "observer"), None)
    return None


def lowest_free_descriptor(pid: int) -> int:
    """Return a process's lowest free descriptor number.

    With this number as RLIMIT_NOFILE the process cannot open another descriptor.
    """
    taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
