"""Runs a program that the kernel kills when its parent ends for any reason.

``python -m laboratory.links.end_with_parent PID PROGRAM ...``, where PID is the parent's.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def ending_with_us(command: Sequence[str]) -> list[str]:
    """Wrap a command so that it is killed when this process, or the calling thread, ends."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-m", __name__, str(os.getpid()), *command]


def main() -> None:
    """Ask the kernel, then exec the program."""
    # SIGKILL: a sidecar that is compiling defers a gentler signal for half a minute.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent process is gone")  # it ended before prctl
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - a command line of our own, without a shell


if __name__ == "__main__":
    main()
