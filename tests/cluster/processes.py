"""Child processes that end with this process, whatever happens."""

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

    log: appended to.
    environment: in addition to ours.
    """

    def __init__(
        self, command: Sequence[object], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        # If this process is killed, the kernel kills the child.
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
        """Kill the whole group."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, within_s: float = STOP_S) -> None:
        """Terminate the process, then kill it if necessary."""
        if self.alive:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(within_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def said(self) -> str:
        """The log so far."""
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
    """A timeout that runs slower on an overloaded machine.

    If ten times as many tasks want to run as there are processors, everything takes ten times as
    long, and so does this. pytest bounds the total time of a test.
    """

    def __init__(self, seconds: float) -> None:
        self._left_s, self._seen_s = seconds, time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        now_s = time.monotonic()
        self._left_s -= (now_s - self._seen_s) * share_of_processors()
        self._seen_s = now_s
        return self._left_s <= 0


def share_of_processors() -> float:
    """The fraction of a processor available to each runnable task now; at most 1."""
    running = Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[0]
    return min(1.0, (os.cpu_count() or 1) / max(1, int(running)))


def rest(seconds: float) -> None:
    """Give other processes this much time."""
    patience = Patience(seconds)
    while not patience.over:
        time.sleep(min(0.1, seconds / 10))


def until(condition: Callable[[], T], within_s: float, what: str, every_s: float = 0.1) -> T:
    """Wait until a condition holds; returns its value."""
    patience = Patience(within_s)
    while not (result := condition()):
        assert not patience.over, f"not within {within_s:g} s: {what}"
        time.sleep(every_s)
    return result
