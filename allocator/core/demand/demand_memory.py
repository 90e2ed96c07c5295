"""Remembers demands of frameworks for similar ones that come later.

Each Spark job is a new framework, whose demand is known only when it is about to end. Demands are
therefore remembered by *topic*: a role together with a pattern of names, a principal or a user. A
new framework without a stated demand starts with the remembered one, its *prior*, until its
acceptances confirm or refute it.
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
"""Maximum weight of a demand, in multiples of `learn_after`, so that it can be unlearned."""


def common_unit(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    """Return the largest amounts of which both arguments are whole multiples.

    None if their ratios of resources differ, or one is empty. With a single resource, None unless
    one amount is a multiple of the other.
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
    """A remembered demand.

    `amounts`, in thousandths.
    `weight`: number of lessons that agree with it; halved by each that does not, and over time.
    `taught_ms`: time of the latest lesson, by the memory's own clock.
    """

    amounts: Mapping[str, int]
    weight: int
    taught_ms: int


class DemandMemory:
    """Demands by topic. It outlives sessions.

    `entries`: demand by topic; the latest lesson is last.
    `elapsed_ms`: the memory's own clock: total time of all sessions, since masters' clocks differ.
    `clock_ms`: the session's clock; -1: not known yet.
    `confirmed`, `refuted`: number of priors that agreed with the first acceptance, or did not.
    `probes`: number of offers of all that is free to clients that had waited with a guessed demand.
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
        if self.clock_ms >= 0:
            self.elapsed_ms += now_ms - self.clock_ms
        self.clock_ms = now_ms

    def begin_session(self) -> None:
        """Begin a session, whose clock may differ from the previous one."""
        self.clock_ms = -1
        self.usage.begin_session()

    def weight(self, settings: Settings, topic: Topic) -> int:
        """Return the current weight of a topic's demand; 0: none is remembered."""
        entry = self.entries.get(topic)
        if entry is None:
            return 0
        halvings = (self.elapsed_ms - entry.taught_ms) // settings.prior_half_life_ms
        return entry.weight >> min(halvings, 63)

    def recall(self, settings: Settings, topics: Iterable[Topic]) -> Mapping[str, int] | None:
        """Return a prior: the demand of the first topic with enough weight; None: there is none."""
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
        """Learn from a task or an acceptance.

        `amounts`, in thousandths, all above 0.
        `times`: number of equal lessons.
        `one_task`: whether these are certainly the amounts of one task; if not, maybe of several.
        """
        entry, most = self.entries.get(topic), _CERTAINTY * settings.learn_after
        if not settings.priors_max or (
            # Nothing changes if the weight is at its maximum, and was so at the same moment: many
            # lessons of a batch are like this.
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
            # A multiple of the remembered demand agrees with it and adds nothing. If the remembered
            # demand is the multiple, it is replaced by the unit, and the lesson counts once.
            weight += unit != known
        else:
            # The lesson contradicts the remembered amounts. Each such lesson halves their weight;
            # at zero, the lesson's amounts replace them.
            needed = max(weight.bit_length(), 1)
            unit = known if times < needed else dict(amounts)
            weight = weight >> times if times < needed else times - needed + 1
        self.entries[topic] = Remembered(unit, min(weight, most), self.elapsed_ms)
        while len(self.entries) > settings.priors_max:
            del self.entries[next(iter(self.entries))]


def _unit(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int] | None:
    if one.keys() != other.keys():
        return None
    found = common_unit(tuple(one.values()), tuple(other[name] for name in one))
    return None if found is None else dict(zip(one, found, strict=True))
