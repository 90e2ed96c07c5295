"""Child processes that end with us, whatever happens."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

STOP_S = 10.0


class Child:
    """A process in a group of its own, which logs to a file.

    Parameters
    ----------
    command : sequence of str
    log : Path
        Appended to.
    environment : mapping of str to str
        Added to ours.
    """

    def __init__(
        self, command: Sequence[object], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        # Should this process be killed, the kernel ends the child.
        setpriv = shutil.which("setpriv")
        guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*guard, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Signal the process alone."""
        self._process.send_signal(number)

    def wait(self, within_s: float) -> int:
        """Wait for the end; returns the exit code."""
        until(lambda: not self.alive, within_s, f"the end of {self._process.args!r}")
        return self._process.wait()

    def kill(self) -> None:
        """End the whole group at once."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, within_s: float = STOP_S) -> None:
        """Ask the process to end, then make it."""
        if self.alive:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(within_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def said(self) -> str:
        """All it has written."""
        return self.log.read_text("utf-8", "replace")


def end_all_below(directory: Path) -> int:
    """Kill the processes that work below a directory; returns their number.

    Executors outlive their agent. They are recognised by their working directory, which no other
    process uses.
    """
    count = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if (entry / "cwd").readlink().is_relative_to(directory):
                os.kill(int(entry.name), signal.SIGKILL)
                count += 1
        except OSError:
            continue
    return count


class Patience:
    """A time to wait, which passes as fast as this machine has processors for all who want one.

    Where ten times as many want to run, everything takes ten times as long, and so does this; how
    long a test may take in all is bounded by pytest.
    """

    def __init__(self, seconds: float) -> None:
        self._left_s, self._seen_s = seconds, time.monotonic()

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        now_s = time.monotonic()
        self._left_s -= (now_s - self._seen_s) * share_of_processors()
        self._seen_s = now_s
        return self._left_s <= 0


def share_of_processors() -> float:
    """How much of a processor each has, now, who wants to run; at most 1."""
    running = Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[0]
    return min(1.0, (os.cpu_count() or 1) / max(1, int(running)))


def rest(seconds: float) -> None:
    """Give other processes this much time."""
    patience = Patience(seconds)
    while not patience.over:
        time.sleep(min(0.1, seconds / 10))


def until(condition: Callable[[], T], within_s: float, what: str, every_s: float = 0.1) -> T:
    """Wait until a condition holds; returns what it gave."""
    patience = Patience(within_s)
    while not (result := condition()):
        assert not patience.over, f"not within {within_s:g} s: {what}"
        time.sleep(every_s)
    return result
