"""What the machine tells of a process, and lends it."""

import socket
from pathlib import Path
from typing import NamedTuple


class ProcessFigures(NamedTuple):
    """What a process takes.

    memory_mib, peak_mib: resident memory now, and the most that it was.
    """

    memory_mib: float
    peak_mib: float
    threads: int
    descriptors: int


def figures_of(pid: int) -> ProcessFigures:
    """Read what a process takes.

    Raises OSError, KeyError where there is no such process, or it has just ended.
    """
    process = Path(f"/proc/{pid}")
    text = (process / "status").read_text(encoding="ascii")
    rows = dict(line.split(":", 1) for line in text.splitlines())
    now, most = (float(rows[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    descriptors = sum(1 for _ in (process / "fd").iterdir())
    return ProcessFigures(now, most, int(rows["Threads"]), descriptors)


def lowest_free_descriptor(pid: int) -> int:
    """Return the lowest number that no descriptor of a process has; a limit of that leaves none."""
    taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
