"""What a process writes to its log: how much a minute, and what in it should not be there."""

import json
import threading
import time
from collections import Counter, deque
from pathlib import Path
from typing import IO, Any

from allocator.lab.torture.clock import RunningClock

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
        """Keep the text in a file."""
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
        """Give the latest lines."""
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
