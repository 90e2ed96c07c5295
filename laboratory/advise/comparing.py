"""Candidates compared with the policy in force, day by day and seed by seed.

Each run is paired with a run of the policy in force on the same day with the same seed, so that the
day's own effect cancels out. With three days or more, each day is one observation (the mean over
its seeds); otherwise each pair of a day and a seed is.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from operator import attrgetter

import numpy as np

from laboratory.advise.measuring import RoleFigures
from laboratory.advise.playing import AdviceRun
from laboratory.reports.run_report import Interval, interval

CLOSE = 0.02
"""A smaller fractional difference counts as none."""

DAYS_ENOUGH = 3
"""With at least this many days, days are the observations."""


class Verdict(StrEnum):
    """Classes of differences."""

    LESS = "less"
    MORE = "more"
    SAME = "the same"
    NOISE = "noise"
    ONCE = "played once"


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """The change of a figure from its value under the policy in force.

    by: as a fraction of the figure (0.1: a tenth more), or in the figure's own unit.
    """

    by: Interval
    verdict: Verdict

    @property
    def low(self) -> float:
        return self.by.mean if np.isnan(self.by.half) else self.by.low

    @property
    def high(self) -> float:
        return self.by.mean if np.isnan(self.by.half) else self.by.high


@dataclass(frozen=True, slots=True)
class RoleChanges:
    """Changes for a role: wait, stay, and shortfall (as a fraction of its fair share).

    before, after: means under the policy in force, and under the candidate.
    """

    wait: MeasureChange
    stay: MeasureChange
    short: MeasureChange
    before: RoleFigures
    after: RoleFigures


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate compared with the policy in force.

    runs: number of the candidate's runs.
    stay, wait: relative change, over all roles, of the time until tasks end, and until they start.
    stays: the observations that `stay` summarizes.
    packed: change of `DayFigures.packed`, a difference of two fractions.
    never_began_before, never_began: number of tasks that never started, over all runs compared,
        under the policy in force and under the candidate.
    """

    name: str
    runs: int
    stays: tuple[float, ...]
    stay: MeasureChange
    wait: MeasureChange
    packed: MeasureChange
    roles: Mapping[str, RoleChanges]
    stay_before_s: float
    stay_s: float
    wait_before_s: float
    wait_s: float
    never_began_before: int
    never_began: int

    def gains(self) -> list[str]:
        """Roles whose tasks finish earlier."""
        return [role for role, each in self.roles.items() if each.stay.verdict is Verdict.LESS]

    def loses(self) -> list[str]:
        """Roles whose tasks finish later."""
        return [role for role, each in self.roles.items() if each.stay.verdict is Verdict.MORE]


Measure = Callable[[AdviceRun], float]


def judge(differences: Sequence[float]) -> MeasureChange:
    """Summarize and classify differences, of which there is one per observation."""
    there = [each for each in differences if not np.isnan(each)]
    by = interval(there)
    if not there or all(abs(each) < 1e-9 for each in there):
        return MeasureChange(Interval(0.0, 0.0 if len(there) > 1 else np.nan), Verdict.SAME)
    if len(there) == 1:
        return MeasureChange(by, Verdict.ONCE)
    if by.low <= 0 <= by.high:
        # A narrow interval around zero shows that there is no difference.
        small = max(abs(by.low), abs(by.high)) < CLOSE
        return MeasureChange(by, Verdict.SAME if small else Verdict.NOISE)
    if abs(by.mean) < CLOSE:
        return MeasureChange(by, Verdict.SAME)
    return MeasureChange(by, Verdict.LESS if by.mean < 0 else Verdict.MORE)


def compare(runs: Sequence[AdviceRun], before: Sequence[AdviceRun]) -> Comparison:
    """Compare runs of a candidate with the paired runs of the policy in force."""
    base = {(run.day, run.seed): run for run in before}
    pairs = [(run, base[run.day, run.seed]) for run in runs if (run.day, run.seed) in base]
    assert pairs, "the candidate has no run on a day and seed of the policy in force"
    afters, befores = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    stay, wait = attrgetter("figures.stay_s"), attrgetter("figures.wait_s")
    names = sorted({role for run, _ in pairs for role in run.figures.roles})
    stays = _by_day(pairs, relative(stay))
    return Comparison(
        name=pairs[0][0].name,
        runs=len(pairs),
        stays=tuple(stays),
        stay=judge(stays),
        wait=judge(_by_day(pairs, relative(wait, 1.0))),
        packed=judge(_by_day(pairs, lambda a, b: a.figures.packed - b.figures.packed)),
        roles={role: _of_role(role, pairs) for role in names},
        stay_before_s=_mean(befores, stay),
        stay_s=_mean(afters, stay),
        wait_before_s=_mean(befores, wait),
        wait_s=_mean(afters, wait),
        never_began_before=sum(run.figures.never_began for run in befores),
        never_began=sum(run.figures.never_began for run in afters),
    )


def relative(measure: Measure, floor: float = 0.0) -> Callable[[AdviceRun, AdviceRun], float]:
    """Relative difference of two times, each increased by `floor` seconds first."""

    def part(one: AdviceRun, other: AdviceRun) -> float:
        return (measure(one) + floor) / max(measure(other) + floor, 1e-9) - 1

    return part


def _of_role(role: str, pairs: Sequence[tuple[AdviceRun, AdviceRun]]) -> RoleChanges:
    there = [pair for pair in pairs if all(role in run.figures.roles for run in pair)]

    def of(name: str) -> Measure:
        return lambda run: float(getattr(run.figures.roles[role], name))

    short = of("short")
    after, before = ([run.figures.roles[role] for run in runs] for runs in zip(*there, strict=True))
    return RoleChanges(
        wait=judge(_by_day(there, relative(of("wait_s"), 1.0))),
        stay=judge(_by_day(there, relative(of("stay_s")))),
        short=judge(_by_day(there, lambda one, other: short(one) - short(other))),
        before=_means(before),
        after=_means(after),
    )


def _means(figures: Sequence[RoleFigures]) -> RoleFigures:
    columns = zip(*map(astuple, figures), strict=True)
    return RoleFigures(*(float(np.mean(column)) for column in columns))


def _mean(runs: Sequence[AdviceRun], measure: Measure) -> float:
    return float(np.mean([measure(run) for run in runs]))


def _by_day(
    pairs: Sequence[tuple[AdviceRun, AdviceRun]],
    difference: Callable[[AdviceRun, AdviceRun], float],
) -> list[float]:
    """The observations: one for each day, or for each pair if there are few days."""
    days: defaultdict[int, list[float]] = defaultdict(list)
    for one, other in pairs:
        days[one.day].append(difference(one, other))
    if len(days) >= DAYS_ENOUGH:
        return [float(np.mean(values)) for values in days.values()]
    return [value for values in days.values() for value in values]
