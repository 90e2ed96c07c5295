"""Commands of the product as forks of a process that has imported everything.

Importing takes more processor time than the rest of a small sidecar's work, and most tests do not
depend on the start of Python. Loops are not compiled.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from typing import Any

from allocator.cli import main


@cache
def _context() -> ForkServerContext:
    """The process to fork from; started by the first command."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.server.preloaded"])
    return context


def _run(words: Sequence[str], environment: Mapping[str, str], streams: Mapping[int, Any]) -> None:
    if 0 in streams:  # it may be a terminal, which belongs to the session that began the tests
        os.setsid()
    for number, stream in streams.items():
        os.dup2(stream.detach(), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # multiprocessing has replaced it
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["allocator", *words]
    main()


class Forked:
    """The part of a `subprocess.Popen` that tests use, for a command of ``python -m allocator``.

    `stdin`, `stdout`, `stderr`: descriptors. Without `stderr`, the attribute of that name reads it.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        read, write = os.pipe()
        self.stderr = os.fdopen(read)
        given = {0: stdin, 1: stdout, 2: write if stderr is None else stderr}
        streams = {number: DupFd(fd) for number, fd in given.items() if fd is not None}
        plain = {**environment, "NUMBA_DISABLE_JIT": "1"}
        self._process = _context().Process(target=_run, args=(words, plain, streams))
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


def completed(*words: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `text`: its standard input."""
    with (
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
    ):
        stdin.write(text)
        stdin.seek(0)
        files = {"stdin": stdin.fileno(), "stdout": stdout.fileno(), "stderr": stderr.fileno()}
        process = Forked(words, {**os.environ, **environment}, **files)
        process.stderr.close()
        code = process.wait(120)
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, code, stdout.read(), stderr.read())
