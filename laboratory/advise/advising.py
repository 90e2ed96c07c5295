"""Advice from recorded days: the order of runs, and the report."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from allocator.core import PolicySpec
from laboratory.advise.bottlenecks import Bottleneck, bottlenecks_of
from laboratory.advise.comparing import Comparison, compare
from laboratory.advise.limits import Bound, bounds_of, cut_down
from laboratory.advise.measuring import DayFigures
from laboratory.advise.playing import (
    AdviceCell,
    AdviceRun,
    Candidate,
    as_it_was,
    collects_of,
    every_policy,
    in_words,
    more_of,
    pasts_of,
    plain,
    play_cell,
)
from laboratory.advise.reading import ReadDay
from laboratory.advise.recommending import Advice, recommend
from laboratory.workloads.recorded_day import Day

Spread = Callable[[Callable[[AdviceCell], AdviceRun], Sequence[AdviceCell]], Iterable[AdviceRun]]
"""Plays cells, possibly in several processes; returns the runs in order."""

Told = Callable[[int, int], None]
"""Called with the number of finished runs, and the total as far as it is known."""

SETTINGS_OF = 2
"""Variants of settings are tried for this many of the best policies."""

FINALISTS = 5
"""This many of the best are played with all seeds, in addition to the policy in force."""

NEARLY = 0.05
"""A candidate counts as nearly equal if its tasks finish later by at most this fraction."""


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """The whole report.

    recorded: figures of the played part of each day, as recorded.
    base: runs of the policy in force, for each day and seed.
    compared: all candidates, the best first.
    quotas: the policy in force with reduced guarantees; None if none should be reduced.
    """

    days: tuple[ReadDay, ...]
    now: PolicySpec
    recorded: tuple[DayFigures, ...]
    base: tuple[AdviceRun, ...]
    runs: Mapping[str, tuple[AdviceRun, ...]]
    compared: tuple[Comparison, ...]
    quotas: Comparison | None
    bounds: tuple[Bound, ...]
    bottlenecks: tuple[Bottleneck, ...]
    advice: Advice


def policy_of(days: Sequence[ReadDay]) -> PolicySpec:
    """The policy in force at the end of the last day."""
    settings = days[-1].day.settings
    assert settings is not None
    return plain(settings.policy)


def advise(days: Sequence[ReadDay], seeds: int, spread: Spread, tell: Told) -> AdviceReport:
    """Play days under every policy, then the best ones again, and recommend.

    First every policy is played once on each recorded day, then other settings of the best ones,
    and finally the best of all with all seeds. Only these last runs decide, because early results
    may be due to chance.
    """
    now = policy_of(days)
    whole_days = [each.day for each in days]
    played = [each.played for each in days]
    player = _Player(played, spread, tell)
    base = Candidate(now)
    first = [Candidate(spec) for spec in every_policy(now)]
    bounds = bounds_of(whole_days)
    quotas = cut_down(whole_days[-1], bounds)
    cut = [Candidate(now, quotas)] if quotas else []
    to_come = (FINALISTS + 1 + len(cut)) * seeds
    player.play([*first, *cut], range(1), to_come=to_come + SETTINGS_OF * 5)
    best = [each.spec for each in player.best(first, now, SETTINGS_OF)]
    second = [Candidate(spec) for spec in more_of(best, [each.spec for each in first])]
    second += [
        Candidate(spec, past=past)
        for spec in {in_words(each): each for each in (now, *best)}.values()
        for past in pasts_of(played, spec)
    ]
    second += [
        Candidate(spec, collect_s=collect_s)
        for spec in {in_words(each): each for each in (now, *best)}.values()
        for collect_s in collects_of(played)
    ]
    player.play(second, range(1), to_come=to_come)
    tried = [*first, *second]
    finalists = [each for each in player.best(tried, now, FINALISTS) if each.name != base.name]
    player.play([base, *finalists, *cut], range(1, seeds + 1), to_come=0)
    compared = {each.name: player.compared(each, base) for each in tried if each.name != base.name}
    # First the candidates played with all seeds, because only these have intervals; among equals,
    # by the time until tasks end.
    order = sorted(compared.values(), key=lambda each: (-each.runs, each.stay_s))
    candidates = {each.name: each for each in tried}
    of_quotas = player.compared(cut[0], base) if cut else None
    bottlenecks = bottlenecks_of(whole_days)
    final = [each for each in order if each.name in {other.name for other in finalists}]
    return AdviceReport(
        days=tuple(days),
        now=now,
        recorded=tuple(map(as_it_was, played)),
        base=tuple(player.runs[base.name]),
        runs={name: tuple(runs) for name, runs in player.runs.items()},
        compared=tuple(order),
        quotas=of_quotas,
        bounds=tuple(bounds),
        bottlenecks=tuple(bottlenecks),
        advice=recommend(now, candidates, final, bounds, bottlenecks, of_quotas),
    )


class _Player:
    """Plays candidates, and keeps their runs in `runs`, by the candidate's name."""

    def __init__(self, days: Sequence[Day], spread: Spread, tell: Told) -> None:
        self.runs: defaultdict[str, list[AdviceRun]] = defaultdict(list)
        self._days = days
        self._spread = spread
        self._tell = tell
        self._done = 0

    def play(self, candidates: Sequence[Candidate], seeds: Iterable[int], *, to_come: int) -> None:
        """Play candidates on all days with the given seeds.

        to_come: how many more runs per day may follow, for the total that progress reports state.
        """
        cells = [
            AdviceCell(candidate, day, seed)
            for seed in seeds
            for day in range(len(self._days))
            for candidate in candidates
        ]
        total = self._done + len(cells) + to_come * len(self._days)
        for run in self._spread(partial(play_cell, self._days), cells) if cells else ():
            self.runs[run.name].append(run)
            self._done += 1
            self._tell(self._done, total)

    def best(self, candidates: Sequence[Candidate], now: PolicySpec, count: int) -> list[Candidate]:
        """The best one, then nearly equal ones with the fewest changed settings, then others."""
        ranked = sorted(candidates, key=lambda each: self._order(each.name))
        never_began, stay_s = self._order(ranked[0].name)

        def order(each: Candidate) -> tuple[bool, int]:
            its_never_began, its_stay_s = self._order(each.name)
            near = its_never_began <= never_began and its_stay_s <= stay_s * (1 + NEARLY)
            return not near, each.changes(now) if near else 0

        return [ranked[0], *sorted(ranked[1:], key=order)][:count]

    def _order(self, name: str) -> tuple[int, float]:
        """Sort key: first the number of tasks that never started, then the time of completion."""
        runs = [run for run in self.runs[name] if run.seed == 0]
        never_began = sum(run.figures.never_began for run in runs)
        return never_began, sum(run.figures.stay_s for run in runs)

    def compared(self, candidate: Candidate, base: Candidate) -> Comparison:
        """Compare a candidate with the policy in force.

        Uses its runs with seeds other than 0 if there are any, because those with seed 0 decided
        which candidates are compared.
        """
        runs = self.runs[candidate.name]
        return compare([run for run in runs if run.seed] or runs, self.runs[base.name])
