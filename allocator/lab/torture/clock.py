"""Time that passes only while this process runs."""

import threading
import time

TICK_S = 0.1
JUMP_S = 1.0
"""Longer than this a tick takes only where the process, and so all its machine's, was held up."""


class RunningClock:
    """Counts ticks, so that a machine that stands still makes nobody late.

    A laptop that sleeps, a container that is frozen, or a neighbour with every processor to itself
    would else look like a sidecar that does not answer.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        threading.Thread(target=self._run, name="clock", daemon=True).start()

    @property
    def now_s(self) -> float:
        """Seconds since it began."""
        return self._now_s

    def _run(self) -> None:
        last_s = time.monotonic()
        while True:
            time.sleep(TICK_S)
            now_s = time.monotonic()
            self._now_s += min(now_s - last_s, JUMP_S)
            last_s = now_s
