"""A command on a terminal of its own."""

import fcntl
import os
import pty
import select
import struct
import termios
import time

from tests.server.forked import Forked

WITHIN_S = 90.0


class Terminal:
    """`mesos-allocator WORDS` on a terminal, and what it has shown there so far, as `text`."""

    def __init__(self, *words: str, lines: int, columns: int) -> None:
        self._master, self._side = pty.openpty()
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(self._side)
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "", "LINES": ""}
        self.process = Forked(words, environment, stdin=self._side, stdout=self._side)
        self.text = ""

    def _read(self, timeout_s: float) -> bool:
        """Read what it has written; whether that is anything."""
        if not select.select([self._master], [], [], timeout_s)[0]:
            return False
        self.text += os.read(self._master, 65_536).decode(errors="replace")
        return True

    def read_until(self, wanted: str) -> None:
        until_s = time.monotonic() + WITHIN_S
        while wanted not in self.text:
            assert time.monotonic() < until_s, self.text
            self._read(1.0)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def ends(self) -> int:
        """Read the remaining output until the process ends; returns its exit code."""
        until_s = time.monotonic() + WITHIN_S
        while self.process.poll() is None and time.monotonic() < until_s:
            self._read(0.05)
        while self._read(0.0):
            pass
        with self.process.stderr as errors:
            assert errors.read() == ""
        assert termios.tcgetattr(self._side) == self.before, "the terminal is not as it was"
        os.close(self._master)
        os.close(self._side)
        return self.process.wait(WITHIN_S)
