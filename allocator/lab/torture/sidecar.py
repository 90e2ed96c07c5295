"""The process that is tortured: started, stopped, killed, kept short of everything; and its log."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from allocator.lab.links import wall_clock
from allocator.lab.links.end_with_parent import ending_with_us
from allocator.lab.links.sidecar_process import ProcessFigures, figures_of
from allocator.lab.torture.link import RunningClock

# What a process writes to its log: how much a minute, and what in it should not be there.

MINUTE_S = 60.0
KEPT_BYTES = 16 * 2**20
"""So much of the log is kept in the file; what comes later is only measured."""

LATEST = 200

_TRACES = ("Traceback (most recent call last)", '"exception":', "Fatal Python error")
"""What a defect leaves in a log."""


class LogMeter:
    """Reads one process's log after the other.

    minute_bytes_max: the most within any minute so far.
    said: lines by what they say.
    """

    def __init__(self, path: Path, clock: RunningClock | None = None) -> None:
        self._clock = clock or RunningClock()
        self.lines = 0
        self.bytes = 0
        self.minute_bytes_max = 0
        self.said: Counter[str] = Counter()
        self._path = path
        self._changed = threading.Condition()
        self._minute: deque[tuple[float, int]] = deque()
        self._minute_bytes = 0
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._traces: list[str] = []

    def read(self, pipe: IO[bytes]) -> threading.Thread:
        """Read a process's log to its end, on a thread of its own."""
        thread = threading.Thread(target=self._read, args=(pipe,), name="log", daemon=True)
        thread.start()
        return thread

    def await_said(self, event: str, after: int, within_s: float) -> bool:
        """Wait until something has been said more often than `after` times."""
        deadline_s = self._clock.now_s + within_s
        with self._changed:
            while self.said[event] <= after:
                if self._clock.now_s >= deadline_s:
                    return False
                self._changed.wait(0.1)
            return True

    def traces(self) -> list[str]:
        """Give the traces of defects since the last time."""
        with self._changed:
            found, self._traces = self._traces, []
        return found

    def tail(self, lines: int = 20) -> str:
        with self._changed:
            return "\n".join(list(self._latest)[-lines:])

    def latest(self, event: str) -> dict[str, Any]:
        """Give the latest of the last lines with this event; empty where there is none."""
        with self._changed:
            for line in reversed(self._latest):
                entry = _entry(line)
                if entry.get("event") == event:
                    return entry
        return {}

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, self._path.open("ab") as file:
            for data in pipe:
                if self.bytes < KEPT_BYTES:
                    file.write(data)
                    file.flush()
                self._note(data)

    def _note(self, data: bytes) -> None:
        line = data.decode("utf-8", "replace").rstrip("\n")
        now_s = time.monotonic()
        with self._changed:
            self.lines += 1
            self.bytes += len(data)
            self._minute.append((now_s, len(data)))
            self._minute_bytes += len(data)
            while self._minute[0][0] < now_s - MINUTE_S:
                self._minute_bytes -= self._minute.popleft()[1]
            self.minute_bytes_max = max(self.minute_bytes_max, self._minute_bytes)
            self.said[str(_entry(line).get("event", "(no JSON)"))[:80]] += 1
            self._latest.append(line)
            if any(trace in line for trace in _TRACES):
                self._traces.append(line)
            self._changed.notify_all()


def _entry(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# The process that is tortured: started, stopped, killed, frozen, and kept short of everything.

READY_S = 300.0
"""A first start compiles nothing before it is ready, but the machine may be busy."""

STOP_S = 30.0


class SidecarGoneError(RuntimeError):
    """The process did not come up, or ended when nobody had asked it to."""


class TorturedSidecar:
    """`mesos-allocator serve` with one configuration file, life after life.

    log: where its log is kept.
    ahead: how far ahead its wall clock is, see `allocator.lab.links.wall_clock`.
    wanted: whether it should be there now.
    """

    def __init__(self, config: Path, log: Path, ahead: Path) -> None:
        self.clock = RunningClock()
        self.meter = LogMeter(log, self.clock)
        self.lives = 0
        self.wanted = False
        self.born_s = 0.0
        self._words = [str(ahead), "serve", "--config", str(config)]
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel ends a process with the thread that made it, so one thread makes them all.
        self._maker = ThreadPoolExecutor(1, "maker")

    def start(self) -> None:
        """Start it, and wait until it says that it is ready.

        Raises SidecarGoneError with the end of its log.
        """
        with self._lock:
            ready = self.meter.said["ready"]
            process, _ = self._spawn(self.meter)
            self._process = process
            deadline_s = self.clock.now_s + READY_S
            while not self.meter.await_said("ready", ready, 0.1):
                if process.poll() is not None or self.clock.now_s > deadline_s:
                    message = f"the sidecar did not get ready; its log ends\n{self.meter.tail()}"
                    raise SidecarGoneError(message)
            self.lives += 1
            self.born_s = self.clock.now_s
            self.wanted = True

    def second(self, log: Path, within_s: float) -> tuple[int | None, str]:
        """Start another one with the same configuration.

        Returns its exit code, None where it did not end by itself; and what it said.
        """
        # The first one stays until the second one has ended, else that would take its place.
        with self._lock:
            meter = LogMeter(log, self.clock)
            process, reader = self._spawn(meter)
            code = self._ending(process, within_s)
            if code is None:
                process.kill()
                process.wait()
        reader.join()
        return code, meter.tail()

    def kill(self) -> None:
        """End it as a crash would."""
        with self._lock:
            self.wanted = False
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def terminate(self, within_s: float = STOP_S) -> int | None:
        """Ask it to end; gives the exit code, None where it did not end in time and was killed."""
        with self._lock:
            self.wanted = False
            if self._process is None:
                return 0
            with suppress(ProcessLookupError):
                self._process.terminate()
            code = self._ending(self._process, within_s)
            if code is None:
                self.kill()
            return code

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def died(self) -> int | None:
        """Give its exit code where it ended though nobody had asked it to; else None."""
        with self._lock:
            if not self.wanted or self._process is None:
                return None
            return self._process.poll()

    def limit(self, which: int, soft: int | None) -> bool:
        """Set a soft limit of the running process, None: as high as may be; False: it is gone."""
        try:
            _, hard = resource.prlimit(self.pid, which)
            resource.prlimit(self.pid, which, (hard if soft is None else soft, hard))
        except (ProcessLookupError, ValueError):
            return False
        return True

    @property
    def pid(self) -> int:
        assert self._process is not None, "the sidecar was not started"
        return self._process.pid

    @property
    def age_s(self) -> float:
        """How long ago it got ready."""
        return self.clock.now_s - self.born_s

    def figures(self) -> ProcessFigures:
        """Give what it takes; zeros where it is gone."""
        try:
            return figures_of(self.pid)
        except (OSError, KeyError):
            return ProcessFigures(0.0, 0.0, 0, 0)

    def _ending(self, process: subprocess.Popen[bytes], within_s: float) -> int | None:
        """Wait for the exit code; None where it does not come in time."""
        deadline_s = self.clock.now_s + within_s
        while self.clock.now_s < deadline_s:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.1)
        return None

    def _spawn(self, meter: LogMeter) -> tuple[subprocess.Popen[bytes], threading.Thread]:
        command = [sys.executable, "-m", wall_clock.__name__, *self._words]
        # In a session of its own: Ctrl-C on the terminal is for us, who then end it in order.
        process = self._maker.submit(
            subprocess.Popen,
            ending_with_us(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ).result()
        assert process.stderr is not None
        return process, meter.read(process.stderr)
