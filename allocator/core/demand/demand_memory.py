"""Demands observed in frameworks, remembered for similar ones.

Each Spark job is a framework of its own, and its demand is only known when it is about to end.
Demands are therefore remembered by *topic*: the role with the pattern of the name, with the
principal, with the user. A new framework without a stated demand starts with the remembered one,
its *prior*, until its acceptances confirm or refute it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from allocator.core.demand.budget_memory import BudgetMemory
from allocator.core.demand.durations import Durations
from allocator.core.demand.topics import Topic
from allocator.core.demand.usage_memory import UsageMemory
from allocator.core.settings import Settings

_CERTAINTY = 4
"""Maximum certainty of a demand, in units of what it needs to count: so it can be unlearned."""


def common_unit(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    """Find the largest amounts that divide both.

    None if their shapes differ, or one is empty. Amounts of a single resource always have the same
    shape, so one must be a multiple of the other.

    >>> common_unit((6000, 6144), (4000, 4096))
    (2000, 2048)
    >>> common_unit((4000, 1408), (8000, 1408)), common_unit((3000,), (2000,))
    (None, None)
    """
    times, other_times = gcd(*one), gcd(*other)
    if not times or not other_times or len(one) != len(other):
        return None
    if any(a * other_times != b * times for a, b in zip(one, other, strict=True)):
        return None
    shared = gcd(times, other_times)
    if shared not in (times, other_times) and sum(map(bool, one)) == 1:
        return None
    return tuple(amount // times * shared for amount in one)


@dataclass(frozen=True, slots=True)
class Remembered:
    """A demand that is remembered.

    `amounts`, in thousandths.
    `weight`: number of lessons that agreed; halved by each that did not, and over time.
    `taught_ms`: time of the latest lesson, on the memory's own clock.
    """

    amounts: Mapping[str, int]
    weight: int
    taught_ms: int


class DemandMemory:
    """Demands by topic. It outlives sessions.

    `entries` (dict of topic to Remembered): the latest lesson comes last.
    `elapsed_ms`: time that passed in sessions: masters' clocks need not agree.
    `durations`: how long tasks ran, by the same topics of names.
    `usage`: what clients held on average before they left.
    `budgets`: what roles used of their budgets.
    `clock_ms`: the session's clock; -1: it did not tell the time yet.
    `confirmed`, `refuted`, `probes`: priors that the first acceptance agreed with, or not; offers
        of all that is free to frameworks that had waited with a prior.
    """

    def __init__(self) -> None:
        self.entries: dict[Topic, Remembered] = {}
        self.elapsed_ms = 0
        self.durations = Durations()
        self.usage = UsageMemory()
        self.budgets = BudgetMemory()
        self.confirmed = 0
        self.refuted = 0
        self.probes = 0
        self.clock_ms = -1

    def advance(self, now_ms: int) -> None:
        """Set the time, on the session's clock."""
        if self.clock_ms >= 0:
            self.elapsed_ms += now_ms - self.clock_ms
        self.clock_ms = now_ms

    def begin_session(self) -> None:
        """Expect another clock."""
        self.clock_ms = -1
        self.usage.begin_session()

    def weight(self, settings: Settings, topic: Topic) -> int:
        """The current certainty of a topic's demand; 0 if there is none."""
        entry = self.entries.get(topic)
        if entry is None:
            return 0
        halvings = (self.elapsed_ms - entry.taught_ms) // settings.prior_half_life_ms
        return entry.weight >> min(halvings, 63)

    def recall(self, settings: Settings, topics: Iterable[Topic]) -> Mapping[str, int] | None:
        """Find a prior: the demand of the first topic that is certain enough."""
        for topic in topics:
            if self.weight(settings, topic) >= settings.learn_after:
                return self.entries[topic].amounts
        return None

    def teach(
        self,
        settings: Settings,
        topic: Topic,
        amounts: Mapping[str, int],
        *,
        times: int = 1,
        one_task: bool = False,
    ) -> None:
        """Take a lesson.

        `amounts`, in thousandths: None of them 0.
        `times`: number of equal lessons.
        `one_task`: these are certainly the amounts of one task; otherwise they may be those of
            several.
        """
        entry, most = self.entries.get(topic), _CERTAINTY * settings.learn_after
        if not settings.priors_max or (
            # It is as certain as it can be, and was taught at this moment: many are, in a batch.
            entry is not None
            and (entry.weight, entry.taught_ms) == (most, self.elapsed_ms)
            and entry.amounts == amounts
        ):
            return
        weight = self.weight(settings, topic)
        self.entries.pop(topic, None)
        known = entry.amounts if entry else {}
        unit = _unit(known, amounts)
        if unit is not None and unit == amounts:
            weight += times
        elif unit is not None and not one_task:
            # It may be several tasks of the known size: that agrees, and teaches nothing. If it
            # shows that the known amounts were several tasks, it counts once.
            weight += unit != known
        else:
            # It disagrees: each lesson halves the weight. At zero, the lesson's amounts replace the
            # known ones.
            needed = max(weight.bit_length(), 1)
            unit = known if times < needed else dict(amounts)
            weight = weight >> times if times < needed else times - needed + 1
        self.entries[topic] = Remembered(unit, min(weight, most), self.elapsed_ms)
        while len(self.entries) > settings.priors_max:
            del self.entries[next(iter(self.entries))]


def _unit(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int] | None:
    """Find the common unit of amounts by name."""
    if one.keys() != other.keys():
        return None
    found = common_unit(tuple(one.values()), tuple(other[name] for name in one))
    return None if found is None else dict(zip(one, found, strict=True))
