"""Commands of the product as forks of a process that has imported everything.

Importing takes more processor time than the rest of a small sidecar's work, and most tests do not
depend on the start of Python. Loops are not compiled.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from typing import Any

from allocator.cli import main

_PRELOADED = [
    "allocator.cli",
    "allocator.server.process.main",
    "allocator.server.process.observing",
]


@cache
def _context() -> ForkServerContext:
    """The process to fork from; started by the first command."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _run(words: Sequence[str], environment: Mapping[str, str], stderr: Any) -> None:
    os.dup2(stderr.detach(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["allocator", *words]
    main()


class Forked:
    """The part of a `subprocess.Popen` that tests use, for a command of ``python -m allocator``."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        read, write = os.pipe()
        self.stderr = os.fdopen(read)
        plain = {**environment, "NUMBA_DISABLE_JIT": "1"}
        self._process = _context().Process(target=_run, args=(words, plain, DupFd(write)))
        self._process.start()
        os.close(write)
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired("allocator", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
