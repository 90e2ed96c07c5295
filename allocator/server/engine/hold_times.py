"""What held the core's thread, and for how long: decisions wait so long."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from allocator.server.engine.latency_histogram import Durations

KINDS = ("cycle", "message", "question", "change", "plan", "copy", "other")
"""What kinds of work there are.

A message in which a cycle was run is a cycle; a stream that begins or ends is a message. A plan is
one that is taken over, or what one is to be about. A copy is one of the books: for a checkpoint,
for fair shares.
"""

LONG_S = 0.05
"""What holds the core for longer is said in the log; a cycle may, and is timed by itself."""

QUIET_S = 60.0
"""How long nothing more is said of a kind, once it was."""

_log = structlog.get_logger()


class HoldTimes:
    """How long each kind of work held the core's thread, which alone may touch this.

    `by_kind`: where work of one kind is done within another one, its time counts for it alone.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin with nothing; `clock` gives seconds."""
        self.by_kind = {kind: Durations() for kind in KINDS}
        self._clock = clock
        self._kind = KINDS[-1]
        self._within_s = 0.0
        self._said_s: dict[str, float] = {}
        self._unsaid: Counter[str] = Counter()

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Count how long what is done inside takes."""
        outer, outer_within_s = self._kind, self._within_s
        self._kind, self._within_s = kind, 0.0
        begun_s = self._clock()
        try:
            yield
        finally:
            now_s = self._clock()
            took_s = now_s - begun_s
            self._observe(self._kind, took_s - self._within_s, now_s)
            self._kind, self._within_s = outer, outer_within_s + took_s

    def turns_out(self, kind: str) -> None:
        """Count what is being done as of another kind."""
        self._kind = kind

    def _observe(self, kind: str, took_s: float, now_s: float) -> None:
        self.by_kind[kind].observe(took_s)
        if took_s <= LONG_S or kind == "cycle":
            return
        self._unsaid[kind] += 1
        said_s = self._said_s.get(kind)
        if said_s is None or now_s - said_s >= QUIET_S:
            # Of those that were not said the last is as good as any.
            self._said_s[kind] = now_s
            times, self._unsaid[kind] = self._unsaid[kind], 0
            _log.info("the core was held", by=kind, ms=round(1000 * took_s), times=times)
