"""Durations observed in frameworks, remembered by the same topics as their demands.

The core sees no single tasks: only that a client uses something on an agent, and that some of it
comes back. So what is counted is, of each amount that comes back from use, for how long the client
had used something on that agent without a break. That is never less than the duration of the task
that ended, and more if its tasks overlap there.

Counts are in logarithmic buckets, so their number is fixed and all is integer arithmetic. A bucket
stands for its edge that is less favourable: quantiles by which something has ended are rounded up,
and those before which it has not are rounded down.
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
"""Upper edges of all buckets but the last, which is for what lasted longer: over 18 days."""

BUCKETS = len(EDGES_MS) + 1

SAMPLES_MIN = 20
"""Ends before durations are known: fewer say nothing about one in twenty."""

SAMPLES_MAX = 1024
"""Ends that count; beyond them all counts are halved, so that durations can be unlearned."""

_EDGES = np.array(EDGES_MS, np.int64)


@dataclass(frozen=True, slots=True)
class Lasted:
    """How long tasks lasted.

    `counts` (BUCKETS,): ends in each bucket.
    `total`: their sum.
    `taught_ms`: time of the latest end, on the memory's own clock.
    """

    counts: tuple[int, ...]
    total: int
    taught_ms: int


class StartRecord:
    """How forecasts of when gangs begin compared with when they began.

    `held`, `late`: gangs that began before what was forecast as the latest time, or after it;
        `missed`: those whose collection ended after that time without a start.
    `early_ms`, `late_ms`: by how much they began before and after the expected time, added up.
    `lent`: offers to others of agents on which a gang collects, for they would end before.
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

    `entries` (dict of topic to Lasted): the latest lesson comes last.
    `starts`: what came of forecasts that they allowed.
    `rests_until_ms`: until when no forecast is made, on the memory's own clock.
    """

    def __init__(self) -> None:
        self.entries: dict[Topic, Lasted] = {}
        self.starts = StartRecord()
        self.rests_until_ms = 0

    def counts(self, settings: Settings, topic: Topic, elapsed_ms: int) -> Ints | None:
        """Ends by bucket, (BUCKETS,), halved over time; None if there are too few.

        `elapsed_ms`: now, on the memory's own clock.
        """
        entry = self.entries.get(topic)
        if entry is None:
            return None
        counts = _aged(settings, entry, elapsed_ms)
        return np.array(counts, np.int64) if sum(counts) >= SAMPLES_MIN else None

    def teach(
        self, settings: Settings, topic: Topic, ends: Mapping[int, int], elapsed_ms: int
    ) -> None:
        """Add ends, by bucket how many; in any order with the same result until `trim`."""
        entry = self.entries.pop(topic, None)
        counts = [0] * BUCKETS if entry is None else list(_aged(settings, entry, elapsed_ms))
        for bucket, count in ends.items():
            counts[bucket] += count
        self.entries[topic] = Lasted(tuple(counts), sum(counts), elapsed_ms)

    def trim(self, settings: Settings) -> None:
        """Bound memory and counts: `priors_max` topics, and `SAMPLES_MAX` ended tasks of each."""
        while len(self.entries) > settings.priors_max:
            del self.entries[next(iter(self.entries))]
        for topic, entry in self.entries.items():
            if entry.total > SAMPLES_MAX:
                counts = entry.counts
                while sum(counts) > SAMPLES_MAX:
                    counts = _halved(counts, 1)
                self.entries[topic] = Lasted(counts, sum(counts), entry.taught_ms)


def bucket_of(lasted_ms: Ints) -> Ints:
    """The buckets of durations (N,), in milliseconds."""
    found: Ints = np.searchsorted(_EDGES, lasted_ms).astype(np.int64)
    return found


def ends_within_ms(counts: Ints, running: Ints) -> int | None:
    """How long tasks last at most: all but one in twenty (p95), rounded up.

    `counts` (BUCKETS,): ends.
    `running` (BUCKETS,): tasks that have not ended, by how long they have run. Those that have run
        for longer than a duration count as tasks that exceed it.
    None: longer than all buckets.
    """
    ended, older = counts.sum(), _beyond(running)
    exceed = _beyond(counts) + older
    found = np.flatnonzero(20 * exceed <= ended + older)
    return EDGES_MS[found[0]] if len(found) and found[0] < len(EDGES_MS) else None


def ends_after_ms(counts: Ints, percent: int, *, up: bool = False) -> Ints:
    """After how long tasks end that have run for as long as each bucket says, (BUCKETS,).

    In milliseconds; 0: none was longer, so they end now. Only what lasted as long counts.
    `percent`: of those durations that are at most as long as the result.
    `up`: rounded up, by the bucket's upper edge (the last one has none); else down.
    """
    total = np.append(0, np.cumsum(counts))
    before, left = total[:-1], total[-1] - total[:-1]
    # The first bucket up to which there are enough.
    wanted = before + np.maximum(-(-left * percent // 100), 1)
    bucket = np.minimum(np.searchsorted(total[1:], wanted), BUCKETS - 1)
    edge = np.append(_EDGES, _EDGES[-1]) if up else np.append(0, _EDGES)
    return np.where(left > 0, edge[bucket], 0)


def _beyond(counts: Ints) -> Ints:
    """How many are in later buckets than each, (BUCKETS,)."""
    total = np.cumsum(counts)
    beyond: Ints = total[-1] - total
    return beyond


def _aged(settings: Settings, entry: Lasted, elapsed_ms: int) -> tuple[int, ...]:
    halvings = (elapsed_ms - entry.taught_ms) // settings.prior_half_life_ms
    return _halved(entry.counts, min(halvings, 63)) if halvings > 0 else entry.counts


def _halved(counts: Sequence[int], times: int) -> tuple[int, ...]:
    """Halve counts so often, rounded up: what is rare and long must not be lost first."""
    return tuple(-(-each >> times) for each in counts)
