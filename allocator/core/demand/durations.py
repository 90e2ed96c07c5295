"""Remembers how long tasks of frameworks run, by the same topics as their demands.

The core does not see single tasks, only that a client uses something on an agent, and that some of
it is released. Each release counts with the time for which the client had used something on that
agent without a break: at least the duration of the task that ended, and more if the client's tasks
overlap on the agent.

Counts are in logarithmic buckets, so their number is fixed and all arithmetic is in integers.
Durations are rounded to an edge of their bucket: up where a late end is the safe assumption, else
down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allocator.core.demand.topics import Topic
from allocator.core.settings import Settings
from allocator.core.snapshot import Ints

EDGES_MS: tuple[int, ...] = tuple(
    edge for power in range(21) for edge in (1000 << power, 1500 << power)
)
"""Upper edges of all buckets but the last, which has all durations above 18 days."""

BUCKETS = len(EDGES_MS) + 1

SAMPLES_MIN = 20
"""Minimum number of ended tasks: fewer do not show a quantile of one in twenty."""

SAMPLES_MAX = 1024
"""Maximum number of ended tasks; beyond it all counts are halved, so durations can be unlearned."""

_EDGES = np.array(EDGES_MS, np.int64)


@dataclass(frozen=True, slots=True)
class Lasted:
    """How long the tasks of a topic ran.

    `counts` (BUCKETS,): ended tasks in each bucket.
    `taught_ms`: time of the latest end, by the memory's own clock.
    """

    counts: tuple[int, ...]
    total: int
    taught_ms: int


class StartRecord:
    """Statistics of forecasts of when gangs begin.

    `held`, `late`: gangs that began no later than the forecast latest time, or later.
    `missed`: gangs whose collection ended after that time without a start.
    `early_ms`, `late_ms`: total time by which gangs began before and after the expected time.
    `lent`: number of offers of a collecting gang's agents to its guests.
    """

    def __init__(self) -> None:
        self.held = 0
        self.late = 0
        self.missed = 0
        self.early_ms = 0
        self.late_ms = 0
        self.lent = 0


class Durations:
    """Durations by topic. It outlives sessions.

    `entries`: the latest lesson is last.
    `rests_until_ms`: no forecast is made until then, by the memory's own clock.
    """

    def __init__(self) -> None:
        self.entries: dict[Topic, Lasted] = {}
        self.starts = StartRecord()
        self.rests_until_ms = 0

    def counts(self, settings: Settings, topic: Topic, elapsed_ms: int) -> Ints | None:
        """Return ended tasks by bucket, (BUCKETS,), halved over time; None: too few."""
        entry = self.entries.get(topic)
        if entry is None:
            return None
        counts = _aged(settings, entry, elapsed_ms)
        return np.array(counts, np.int64) if sum(counts) >= SAMPLES_MIN else None

    def teach(
        self, settings: Settings, topic: Topic, ends: Mapping[int, int], elapsed_ms: int
    ) -> None:
        """Add ended tasks, counted by bucket; the order of calls before `trim` does not matter."""
        entry = self.entries.pop(topic, None)
        counts = [0] * BUCKETS if entry is None else list(_aged(settings, entry, elapsed_ms))
        for bucket, count in ends.items():
            counts[bucket] += count
        self.entries[topic] = Lasted(tuple(counts), sum(counts), elapsed_ms)

    def trim(self, settings: Settings) -> None:
        """Drop topics beyond `priors_max`, and halve counts of topics beyond `SAMPLES_MAX`."""
        while len(self.entries) > settings.priors_max:
            del self.entries[next(iter(self.entries))]
        for topic, entry in self.entries.items():
            if entry.total > SAMPLES_MAX:
                counts = entry.counts
                while sum(counts) > SAMPLES_MAX:
                    counts = _halved(counts, 1)
                self.entries[topic] = Lasted(counts, sum(counts), entry.taught_ms)


def bucket_of(lasted_ms: Ints) -> Ints:
    found: Ints = np.searchsorted(_EDGES, lasted_ms).astype(np.int64)
    return found


def ends_within_ms(counts: Ints, running: Ints) -> int | None:
    """Return the p95 of durations, rounded up; None: it is in the last bucket.

    `counts` (BUCKETS,): ended tasks.
    `running` (BUCKETS,): running tasks, by how long they have run. They count as exceeding all
        shorter durations.
    """
    ended, older = counts.sum(), _beyond(running)
    exceed = _beyond(counts) + older
    found = np.flatnonzero(20 * exceed <= ended + older)
    return EDGES_MS[found[0]] if len(found) and found[0] < len(EDGES_MS) else None


def ends_after_ms(counts: Ints, percent: int, *, up: bool = False) -> Ints:
    """Return when tasks end, in ms of run time, given that they have run for each bucket's time.

    Returns (BUCKETS,): the percentile `percent` of the durations that were at least as long. 0:
    none was as long, so such tasks are expected to end now.

    `up`: round up, to the bucket's upper edge (the last bucket has none); otherwise down.
    """
    total = np.append(0, np.cumsum(counts))
    before, left = total[:-1], total[-1] - total[:-1]
    # The first bucket at which the cumulative count reaches the percentile.
    wanted = before + np.maximum(-(-left * percent // 100), 1)
    bucket = np.minimum(np.searchsorted(total[1:], wanted), BUCKETS - 1)
    edge = np.append(_EDGES, _EDGES[-1]) if up else np.append(0, _EDGES)
    return np.where(left > 0, edge[bucket], 0)


def _beyond(counts: Ints) -> Ints:
    """Return for each bucket the sum of later buckets, (BUCKETS,)."""
    total = np.cumsum(counts)
    beyond: Ints = total[-1] - total
    return beyond


def _aged(settings: Settings, entry: Lasted, elapsed_ms: int) -> tuple[int, ...]:
    halvings = (elapsed_ms - entry.taught_ms) // settings.prior_half_life_ms
    return _halved(entry.counts, min(halvings, 63)) if halvings > 0 else entry.counts


def _halved(counts: Sequence[int], times: int) -> tuple[int, ...]:
    """Halve counts this many times, rounding up, to keep rare long durations."""
    return tuple(-(-each >> times) for each in counts)
