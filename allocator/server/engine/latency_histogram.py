"""Measures durations: a histogram for metrics, and recent values for percentiles."""

import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

RECENT_MAX = 1024


class Durations:
    """Durations by bucket.

    `buckets`: counts per bucket of `BOUNDS_S`; the last one is for durations above all bounds.
    """

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0
        self._recent_s: deque[float] = deque(maxlen=RECENT_MAX)

    def observe(self, duration_s: float) -> None:
        self.buckets[bisect_left(BOUNDS_S, duration_s)] += 1
        self.total_s += duration_s
        self._recent_s.append(duration_s)

    @contextmanager
    def observing(self) -> Iterator[None]:
        begun_s = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - begun_s)

    def percentile(self, quantile: float) -> float:
        """Quantile of the latest durations in seconds, by nearest rank; nan without any.

        >>> durations = Durations()
        >>> for duration_s in (0.4, 0.1, 0.2, 0.3):
        ...     durations.observe(duration_s)
        >>> durations.percentile(0.5), durations.percentile(0.99)
        (0.2, 0.4)
        """
        if not self._recent_s:
            return math.nan
        ordered = sorted(self._recent_s)
        return ordered[max(math.ceil(quantile * len(ordered)) - 1, 0)]
