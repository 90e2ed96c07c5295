"""A process whose wall clock can be set independently of the machine's.

``python -m tests.torture.wall_clock FILE WORD ...`` runs ``mesos-allocator WORD ...``.
Python's wall clock is shifted by the nanoseconds in FILE (int64), which `WallClock` writes. The
monotonic clock is not affected, as when a machine's time is set. Nor are the clocks of gRPC and
other native code, such as the clock that the dates of certificates are compared with.
"""

import importlib
import mmap
import runpy
import struct
import sys
import time
from pathlib import Path
from types import ModuleType

_OFFSET = struct.Struct("<q")


class WallClock:
    """Sets the wall clock of the processes that follow a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(_OFFSET.pack(0))

    def set(self, ahead_s: float) -> None:
        """Set the clock this far ahead of the machine's; behind if negative."""
        with self.path.open("r+b") as file:
            file.write(_OFFSET.pack(round(ahead_s * 1e9)))


def follow(path: Path) -> None:
    """Make this process use the clock of a file from now on."""
    _leave_grpc_alone()
    with path.open("rb") as file:
        offset = mmap.mmap(file.fileno(), _OFFSET.size, access=mmap.ACCESS_READ)
    machine_ns = time.time_ns

    def time_ns() -> int:
        return machine_ns() + int(_OFFSET.unpack(offset[:])[0])

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def _leave_grpc_alone() -> None:
    """Let gRPC's Python modules keep the machine's clock.

    They pass deadlines to gRPC's native core, which uses the machine's clock: with another clock
    here, a deadline would be wrong by the difference. Setting a real clock shifts both.
    """
    machine = ModuleType(time.__name__)
    vars(machine).update(vars(time))
    for name in ("_channel", "_common", "_server", "_cython.cygrpc"):
        importlib.import_module(f"grpc.{name}").time = machine  # type: ignore[attr-defined]


def main() -> None:
    """Follow the file, and become the program."""
    follow(Path(sys.argv[1]))
    sys.argv = ["mesos-allocator", *sys.argv[2:]]
    runpy.run_module("allocator", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
