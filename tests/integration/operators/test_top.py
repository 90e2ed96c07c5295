"""`mesos-allocator top`, and lists with `--watch`: live views on a terminal."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import STATE

WITHIN_S = 90.0


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """A sidecar in session, after a cycle that offered everything."""
    with SidecarProcess() as process, process.channel() as channel:
        module = GrpcModule(channel).begin(STATE)
        module.batch(cycle=True)
        yield process.targets[0]
        module.leave()


class Terminal:
    """A command on a terminal of its own, of 20 lines and 100 columns."""

    def __init__(self, target: str, *words: str) -> None:
        self._master, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(side)
        self._side = side
        command = [sys.executable, "-m", "allocator", *words, "--target", target]
        self.process = subprocess.Popen(
            [*command, "--interval", "0.2"],
            stdin=side,
            stdout=side,
            stderr=subprocess.PIPE,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        self.text = ""

    def read_until(self, wanted: str) -> None:
        until_s = time.monotonic() + WITHIN_S
        while wanted not in self.text:
            assert time.monotonic() < until_s, self.text
            if select.select([self._master], [], [], 1.0)[0]:
                self.text += os.read(self._master, 65_536).decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def ends(self) -> int:
        """Read the remaining output until the process ends; returns its exit code."""
        until_s = time.monotonic() + WITHIN_S
        while self.process.poll() is None and time.monotonic() < until_s:
            if select.select([self._master], [], [], 0.2)[0]:
                self.text += os.read(self._master, 65_536).decode(errors="replace")
        assert self.process.stderr is not None
        errors = self.process.stderr.read().decode()
        self.process.stderr.close()
        assert errors == ""
        assert termios.tcgetattr(self._side) == self.before, "the terminal is not as it was"
        os.close(self._master)
        os.close(self._side)
        return self.process.wait(WITHIN_S)


@pytest.mark.parametrize("end", ["q", "Ctrl-C"])
@pytest.mark.parametrize(
    ("words", "shown"),
    [("top", ("waited", "cycle")), ("agents --watch", ("state", "active"))],
)
def test_a_live_view_ends_cleanly(target, words, shown, end):
    terminal = Terminal(target, *words.split())
    for each in shown:
        terminal.read_until(each)
    if end == "q":
        terminal.type("xq")
    else:
        terminal.process.send_signal(signal.SIGINT)
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    # The previous screen is restored.
    assert terminal.text.rstrip().endswith(("\x1b[?25h", "\x1b[?1049l"))


def test_piped_output_is_one_plain_table(target):
    command = [sys.executable, "-m", "allocator", "top", "--target", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    head, *rows = done.stdout.splitlines()
    assert head.split() == [
        *["framework", "role", "waited", "share", "on", "offer", "offered", "for"],
        *["filters", "needs", "state"],
    ]
    assert rows
    assert "\x1b" not in done.stdout
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["clients"]) == len(rows)


def test_a_watched_list_follows_the_sidecar(target):
    terminal = Terminal(target, "agents", "-w")
    terminal.read_until("active")
    assert "drained" not in terminal.text
    drain = [sys.executable, "-m", "allocator", "drain", "set", "agent-1", "--target", target]
    subprocess.run(drain, check=True)
    terminal.read_until("drained")
    terminal.type("q")
    assert terminal.ends() == 0
