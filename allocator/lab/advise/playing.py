"""One candidate on one day: played on the emulated master, and measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from allocator import policies
from allocator.core import PolicySpec
from allocator.lab.advise.candidates import Candidate
from allocator.lab.advise.measuring import NEVER, DayFigures, measure, table_of
from allocator.lab.advise.window import SETTLE_MS
from allocator.lab.experiments.play import play_until
from allocator.lab.experiments.what_if import WhatIf, settings_for
from allocator.lab.links.in_process import DirectLink
from allocator.lab.master.ledger_rows import Quota
from allocator.lab.workloads.recorded_day import Day

SHAKE = 0.01
"""A seed other than 0 has each framework come earlier or later, by this part of the day at most."""

TAIL, TAIL_MS = 0.25, 300_000
"""What waits at the end is played on for this part of the day, or so long, if that is longer."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is played: a candidate, on which of the days, with which seed."""

    candidate: Candidate
    day: int
    seed: int


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it.

    offers, declines, decisions, cycles: how many there were.
    busy_s: how long the allocator took for all of them, in real time.
    span_s: how long was played, in time of the day.
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

    @property
    def decisions_per_s(self) -> float:
        """How many decisions it makes in a second of work."""
        return self.decisions / max(self.busy_s, 1e-9)

    @property
    def load(self) -> float:
        """What part of the recorded time the allocator would be at work."""
        return self.busy_s / max(self.span_s, 1e-9)


def play_cell(days: Sequence[Day], cell: Cell) -> Run:
    """Play a day under a candidate."""
    day = shaken(with_quotas(days[cell.day], cell.candidate.quotas), cell.seed)
    spec: PolicySpec = cell.candidate.spec
    settings = replace(settings_for(day, spec), seed=cell.seed)
    span_ms = max(day.end_ms - day.begin_ms, 1)
    until_ms = span_ms + max(round(TAIL * span_ms), TAIL_MS)
    scenario = WhatIf(day)
    played = play_until(
        scenario,
        DirectLink(policies.build, settings),
        tell_demand=True,
        options=day.options,
        until_ms=until_ms,
        # Nobody asks for what roles hold over time: `measure` finds it in the tasks.
        sample_ms=until_ms,
        # What has begun ends when it ends, under any policy.
        enough=lambda now_ms: now_ms >= span_ms and not scenario.waits(now_ms),
    )
    now_ms = played.master.event_heap.now_ms
    table = table_of([*scenario.ran, *scenario.left(max(now_ms, span_ms))], day.kinds)
    record = played.record
    return Run(
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
    )


def _busy_s(latency_s: Sequence[float]) -> float:
    """How long cycles took together; the few slowest, which compile or are held up, count less."""
    each = np.array(latency_s or [0.0])
    return float(np.minimum(each, np.percentile(each, 99)).sum())


def as_it_was(day: Day) -> DayFigures:
    """Measure what was recorded."""
    return measure(day, table_of(day.ran, day.kinds, day.begin_ms), NEVER)


def with_quotas(day: Day, quotas: Mapping[str, Quota]) -> Day:
    """The day with other quotas from its beginning."""
    if not quotas:
        return day
    kept = [each for each in day.quotas if each[1] not in quotas]
    return replace(day, quotas=[*kept, *((day.begin_ms, *each) for each in quotas.items())])


def shaken(day: Day, seed: int) -> Day:
    """The same day, in which each framework came a little earlier or later; 0: as it was.

    What changes with that is chance, and no merit of a policy. All tasks of a framework are moved
    alike, and all candidates have the same seeds. What ran when the day began stays where it is,
    and nothing else gets before it.
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
