"""The candidates, and one of them played on one day of the emulated master and measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from allocator import policies
from allocator.core import PolicySpec
from allocator.policies import MODES, POLICIES
from laboratory.advise.measuring import NEVER, DayFigures, measure, table_of
from laboratory.advise.reading import SETTLE_MS
from laboratory.experiments.what_if import WhatIf, settings_for
from laboratory.links.base import DirectLink
from laboratory.master.ledger import Quota
from laboratory.workloads.play import play
from laboratory.workloads.recorded_day import Day, Ran

# Candidates: every policy of the registry, both modes, and some settings of the best.


class Past(NamedTuple):
    """The section `[fairness]`: how much past use counts; a half-life of 0: not at all."""

    half_life_s: int
    usage_weight: float

    def __str__(self) -> str:
        """In words.

        >>> f"{Past(600, 0.5)}; {Past(0, 0.5)}"
        'half_life_s=600 usage_weight=0.5; half_life_s=0'
        """
        weight = f" usage_weight={self.usage_weight:g}" if self.half_life_s else ""
        return f"half_life_s={self.half_life_s}{weight}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy with its settings, and others that replace recorded ones.

    quotas: by role.
    past: how much past use counts; None: as recorded.
    collect_s: how long a gang collects, `starvation.collect_s`; None: as recorded.
    """

    spec: PolicySpec
    quotas: dict[str, Quota] = field(default_factory=dict)
    past: Past | None = None
    collect_s: int | None = None

    @property
    def name(self) -> str:
        """A unique description."""
        more = [] if self.past is None else [str(self.past)]
        more += [] if self.collect_s is None else [f"collect_s={self.collect_s}"]
        return " ".join([in_words(self.spec), *more, *(f"quota of {role}" for role in self.quotas)])

    def changes(self, now: PolicySpec) -> int:
        """Count the settings that an operator has to change, quotas aside."""
        return changes(self.spec, now) + (self.past is not None) + (self.collect_s is not None)


def in_words(spec: PolicySpec) -> str:
    """Describe a policy.

    >>> in_words(PolicySpec("choosy", "best_fit", parameters={"unit": "tasks"}))
    'choosy oblivious best_fit unit=tasks'
    """
    words = [spec.name, spec.mode, spec.selection, "flat" if spec.flat else ""]
    words += [f"{key}={value}" for key, value in sorted(spec.parameters.items())]
    words += [f"{role}:{below}" for role, below in sorted(spec.subtrees.items())]
    return " ".join(filter(None, words))


def plain(spec: PolicySpec) -> PolicySpec:
    """Remove settings that equal the defaults."""
    entry = POLICIES[spec.name]
    selection = "" if spec.selection in entry.selections[:1] else spec.selection
    chosen = spec.parameters.items()
    parameters = {key: value for key, value in chosen if value != entry.parameters[key][0]}
    return replace(spec, selection=selection, parameters=parameters)


def every_policy(now: PolicySpec) -> list[PolicySpec]:
    """List the policy in force, then every other one, in both modes and with its defaults."""
    now = plain(now)
    found = [now]
    for name, entry in POLICIES.items():
        for mode in MODES:
            subtrees = now.subtrees if entry.criterion is not None else {}
            spec = PolicySpec(name, mode=mode, flat=now.flat, subtrees=dict(subtrees))
            if spec not in found:
                found.append(spec)
    return found


def settings_of(spec: PolicySpec) -> Iterator[PolicySpec]:
    """Yield the policy with one other setting: each selection, each value of a parameter."""
    entry = POLICIES[spec.name]
    for selection in entry.selections[1:]:
        yield replace(spec, selection=selection)
    for key, values in entry.parameters.items():
        for value in values[1:]:
            yield replace(spec, parameters={**spec.parameters, key: value})


def more_of(best: Sequence[PolicySpec], tried: Sequence[PolicySpec]) -> list[PolicySpec]:
    """List the settings of the best policies that were not tried yet."""
    found: list[PolicySpec] = []
    for spec in best:
        found += [each for each in settings_of(spec) if each not in tried and each not in found]
    return found


def changes(spec: PolicySpec, now: PolicySpec) -> int:
    """Count the settings that an operator has to change."""
    return sum(
        (
            spec.name != now.name,
            spec.mode != now.mode,
            spec.selection != now.selection,
            spec.flat != now.flat,
            spec.parameters != now.parameters,
            spec.subtrees != now.subtrees,
        )
    )


# Candidates for how much past use counts, if roles come and go.

ABSENCE_MS = 60_000
"""A role that wants nothing for this long, and then something again, has come back."""

LONGER = (1, 4)
"""Half-lives are these multiples of the median absence."""

PAST_WEIGHTS = (0.5, 1.0)


def absences_ms(day: Day) -> list[int]:
    """How long each role wanted nothing before it came back: one duration per return."""
    wants: dict[str, list[tuple[int, int]]] = {}
    for task in day.ran:
        wants.setdefault(task.role, []).append((task.wanted_ms, task.end_ms))
    found = []
    for each in wants.values():
        each.sort()
        until_ms = each[0][1]
        for wanted_ms, end_ms in each:
            found.append(wanted_ms - until_ms)
            until_ms = max(until_ms, end_ms)
    return [absence_ms for absence_ms in found if absence_ms >= ABSENCE_MS]


def pasts_of(days: Sequence[Day], spec: PolicySpec) -> list[Past]:
    """List how past use might count under a policy, on the days to be played.

    The list is empty if the policy plans (plans ignore the past), or if no role comes back. It
    omits half-lives longer than the days, whose effect these would not show.
    """
    back_ms = [absence_ms for day in days for absence_ms in absences_ms(day)]
    if POLICIES[spec.name].criterion is None or not back_ms:
        return []
    span_s = max(day.end_ms - day.begin_ms for day in days) // 1000
    half_lives_s = [times * round(float(np.median(back_ms)) / 1000) for times in LONGER]
    found = [
        Past(half_life_s, weight)
        for half_life_s in half_lives_s
        if half_life_s <= span_s
        for weight in PAST_WEIGHTS
    ]
    settings = days[-1].settings
    assert settings is not None
    if settings.half_life_ms:
        found.append(Past(0, settings.usage_weight))
    now = Past(settings.half_life_ms // 1000, settings.usage_weight)
    return [past for past in found if past != now]


# Candidates for how long gangs collect, if there are any.

COLLECTS_S = (0, 60, 600, 3600)


def gangs_of(day: Day) -> set[str]:
    """Return the ids of the frameworks that ran tasks in gangs."""
    ran = {task.framework for task in day.ran}
    return {name for name, each in day.frameworks.items() if each.gang > 1 and name in ran}


def collects_of(days: Sequence[Day]) -> list[int]:
    """List how long gangs might collect, in s; empty: there are none, or they never collect."""
    settings = days[-1].settings
    assert settings is not None
    if not settings.patience_cycles or not any(map(gangs_of, days)):
        return []
    return [each for each in COLLECTS_S if 1000 * each != settings.collect_ms]


# One candidate on one day.

SHAKE = 0.01
"""A seed other than 0 shifts each framework's arrival by at most this fraction of the day."""

TAIL, TAIL_MS = 0.25, 300_000
"""Waiting tasks are played beyond the end for this fraction of the day, and at least this long."""


@dataclass(frozen=True, slots=True)
class AdviceCell:
    """One run: a candidate, a day, a seed."""

    candidate: Candidate
    day: int
    seed: int


@dataclass(frozen=True, slots=True)
class AdviceRun:
    """The result of a cell.

    offers, declines, decisions, cycles: how many there were.
    busy_s: total time that the allocator took, in real time.
    span_s: the time played, in time of the day.
    gang_wait_s: how long tasks of gangs waited on average; NaN: there are no gangs.
    """

    name: str
    day: int
    seed: int
    figures: DayFigures
    offers: int
    declines: int
    decisions: int
    cycles: int
    busy_s: float
    span_s: float
    gang_wait_s: float = float("nan")

    @property
    def decisions_per_s(self) -> float:
        """Decisions per second of the allocator's work."""
        return self.decisions / max(self.busy_s, 1e-9)

    @property
    def load(self) -> float:
        """Fraction of the recorded time that the allocator would be at work."""
        return self.busy_s / max(self.span_s, 1e-9)


def play_cell(days: Sequence[Day], cell: AdviceCell) -> AdviceRun:
    day = shaken(with_quotas(days[cell.day], cell.candidate.quotas), cell.seed)
    spec: PolicySpec = cell.candidate.spec
    settings = replace(settings_for(day, spec), seed=cell.seed)
    if (past := cell.candidate.past) is not None:
        half_life_ms = past.half_life_s * 1000
        settings = replace(settings, half_life_ms=half_life_ms, usage_weight=past.usage_weight)
    if cell.candidate.collect_s is not None:
        settings = replace(settings, collect_ms=cell.candidate.collect_s * 1000)
    span_ms = max(day.end_ms - day.begin_ms, 1)
    until_ms = span_ms + max(round(TAIL * span_ms), TAIL_MS)
    scenario = WhatIf(day)
    played = play(
        scenario,
        DirectLink(policies.build, settings),
        tell_demand=True,
        to_end=False,
        options=day.options,
        until_ms=until_ms,
        # No samples are needed: `measure` derives shares from the tasks.
        sample_ms=until_ms,
        # Tasks that have started end at a known time under any policy.
        enough=lambda now_ms: now_ms >= span_ms and not scenario.waits(now_ms),
    )
    now_ms = played.master.event_heap.now_ms
    every = [*scenario.ran, *scenario.left(max(now_ms, span_ms))]
    table = table_of(every, day.kinds)
    record = played.record
    return AdviceRun(
        name=cell.candidate.name,
        day=cell.day,
        seed=cell.seed,
        figures=measure(day, table, max(now_ms, span_ms)),
        offers=record.offers,
        declines=record.declines,
        decisions=sum(record.outcomes.values()),
        cycles=len(record.latency_s),
        busy_s=_busy_s(record.latency_s),
        span_s=now_ms / 1000,
        gang_wait_s=_gang_wait_s(day, every, max(now_ms, span_ms)),
    )


def _gang_wait_s(day: Day, tasks: Sequence[Ran], now_ms: int) -> float:
    """Mean wait of tasks of gangs; those that did not start have waited until now."""
    gangs = gangs_of(day)
    waits_ms = [
        (task.start_ms if task.start_ms >= 0 else now_ms) - task.wanted_ms
        for task in tasks
        if task.framework in gangs
    ]
    return float(np.mean(waits_ms)) / 1000 if waits_ms else float("nan")


def _busy_s(latency_s: Sequence[float]) -> float:
    """Total time of the cycles; the slowest, which compile or are delayed, are capped."""
    each = np.array(latency_s or [0.0])
    return float(np.minimum(each, np.percentile(each, 99)).sum())


def as_it_was(day: Day) -> DayFigures:
    return measure(day, table_of(day.ran, day.kinds, day.begin_ms), NEVER)


def with_quotas(day: Day, quotas: Mapping[str, Quota]) -> Day:
    """The day with other quotas from its beginning."""
    if not quotas:
        return day
    kept = [each for each in day.quotas if each[1] not in quotas]
    return replace(day, quotas=[*kept, *((day.begin_ms, *each) for each in quotas.items())])


def shaken(day: Day, seed: int) -> Day:
    """The same day with each framework's arrival shifted a little; 0: unchanged.

    Differences between shifts measure chance, not the merit of a policy. All tasks of a framework
    are shifted alike, and all candidates have the same seeds. Tasks running at the beginning of the
    day are not shifted, and no other task gets ahead of them.
    """
    if seed == 0:
        return day
    chance = np.random.default_rng(seed)
    names = sorted(day.frameworks.keys() | {task.framework for task in day.ran})
    most_ms = round((day.end_ms - day.begin_ms) * SHAKE)
    moves_ms = chance.integers(-most_ms, most_ms + 1, len(names)).tolist()
    move_ms = dict(zip(names, moves_ms, strict=True))
    settled_ms = day.begin_ms + SETTLE_MS

    def moved(time_ms: int, framework: str) -> int:
        return max(time_ms + move_ms[framework], min(time_ms, settled_ms))

    there = {task.framework for task in day.ran if task.start_ms <= day.begin_ms}
    frameworks = {
        name: each if name in there else replace(each, came_ms=moved(each.came_ms, name))
        for name, each in day.frameworks.items()
    }
    ran = [
        task
        if task.start_ms <= day.begin_ms
        else replace(task, wanted_ms=moved(task.wanted_ms, task.framework))
        for task in day.ran
    ]
    return replace(day, frameworks=frameworks, ran=ran)
