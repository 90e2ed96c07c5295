"""Monitors whether the core's thread responds, and whether the process accepts sessions."""

from collections.abc import Callable

from allocator.server.engine.commands import Probe
from allocator.server.engine.core_loop import CoreLoop

BUSY_S = 2.0
"""Time without an answer after which the core counts as busy."""

SILENCE_S = 10.0
"""Time without an answer after which the core counts as hung."""


class Monitor:
    """Liveness of the process, and its readiness for sessions.

    `changes`: grows whenever readiness may have changed.
    """

    def __init__(self, loop: CoreLoop, problem: Callable[[], str]) -> None:
        """Start as not ready; `problem`: returns why no session is possible, or nothing."""
        self.changes = 0
        self._loop = loop
        self._problem = problem
        self._probe = Probe(loop.call)
        self._not_ready = "starting"

    def serving(self) -> None:
        self._not_ready = ""
        self.changed()

    def draining(self) -> None:
        self._not_ready = "shutting down"
        self.changed()

    def changed(self) -> None:
        """Notify the observer of a change at once."""
        self.changes += 1
        self._loop.feed.wake()

    def health(self) -> str:
        """Return the problem of the process; empty: it is healthy."""
        waits_s = self._probe.waits_s()
        if waits_s > SILENCE_S:
            return f"the core has not answered for {waits_s:.0f} s"
        return ""

    def readiness(self) -> str:
        """Return why no session can be accepted now; empty: one can."""
        busy = "the core is busy" if self._probe.waits_s() > BUSY_S else ""
        return self._not_ready or self._problem() or busy
