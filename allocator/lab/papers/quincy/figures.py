"""Quincy's Figures 5 to 8 and Table 4: ten jobs at once, on both networks.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 6.2 to 6.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from allocator.lab.network.cluster import DECIDE_S, USE_EVERY_S
from allocator.lab.network.queue_scheduler import DELAY_S, MARGIN
from allocator.lab.papers.quincy.claims import (
    NARROW_NETWORK,
    OPEN_NETWORK,
    ByScheduler,
    worst_slowdown,
)
from allocator.lab.papers.quincy.jobs import APART_S, IDEAL_S, PRIME_LARGE, UPLINKS
from allocator.lab.papers.quincy.runs import (
    SCHEDULERS,
    Case,
    Measures,
    Run,
    ideal_times,
    measure,
    play_all,
)
from allocator.lab.papers.quincy.tables import (
    NOT_PUBLISHED,
    SEEDS,
    SORT_NOTE,
    SOURCE,
    TIMER_NOTE,
    seeds_note,
)
from allocator.lab.papers.report import Line, Panel, Report, Row, averaged

TABLE_4 = {
    "ideal": (2.47, 0.405, 0.124),
    "GFP": (2.54, 1.095, 0.760),
    "QFP": (2.53, 0.776, 0.437),
    "QFPX": (2.56, 0.905, 0.192),
}
"""Data in TB: all, within racks, across the core."""

CORE_PART_X = 9.0
"""Section 6.2: percent of its data that QFPX moves across the core."""

_WITHIN = 0.15

_COLUMNS = {
    "makespan_s": "makespan (s)",
    "performance": "performance",
    "mean": "slowdown l1",
    "root_mean_square": "l2",
    "worst": "largest",
    "unfairness": "unfairness",
    "total_tb": "all data (TB)",
    "rack_tb": "within racks",
    "core_tb": "across the core",
}

CLAIMS_NOTE = (
    "Of two schedulers: by how many percent the first one has more, in pairs of the same seed; a "
    "claim holds where the 95 % interval of the mean is above zero, is contrary where it is below, "
    "and else not shown."
)

SLOWDOWN_NOTE = "Slowdowns are above or below ten by so much."

_MEASURES_NOTE = (
    "Performance is the geometric mean of the time that a job takes alone over the time that it "
    "took; slowdowns are the inverse; unfairness is the coefficient of variation of performance."
)

_DEPARTS = (
    NOT_PUBLISHED + "Tasks that are killed have read in vain, which here is more. Orders and "
    "factors are to be compared."
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all schedulers of a figure have in common.

    alone: the scheduler under which jobs that run alone take their ideal times.
    apart_s: as in `quincy_runs.Case`.
    processes: that runs are spread over; -1: one for each core.
    """

    seeds: range
    uplinks: int
    alone: str
    sort_moved: str = "tables"
    shrink: int = 1
    decide_s: float = DECIDE_S
    apart_s: float = 0.0
    processes: int = -1

    def cases(self, scheduler: str, *, alone: bool = False) -> list[Case]:
        """A case for each seed."""
        network = self.uplinks, self.sort_moved, self.shrink
        times = self.decide_s, self.apart_s
        return [Case(scheduler, seed, alone, *network, *times) for seed in self.seeds]


def compare(
    schedulers: Sequence[str], setting: Setting
) -> tuple[dict[str, list[Run]], ByScheduler]:
    """Run schedulers, and measure them against jobs that run alone.

    Returns by scheduler, seed by seed; those of jobs alone as ``ideal``.
    """
    ideal = setting.cases(setting.alone, alone=True)
    cases = {name: setting.cases(name) for name in schedulers}
    wanted = [*ideal, *(case for each in cases.values() for case in each)]
    played = play_all(wanted, setting.processes)
    times = [ideal_times([played[case]]) for case in ideal]
    runs = {name: [played[case] for case in each] for name, each in cases.items()}
    found = {
        name: [measure(run, time) for run, time in zip(each, times, strict=True)]
        for name, each in runs.items()
    }
    runs["ideal"] = [played[case] for case in ideal]
    return runs, found


def _measured(name: str, measures: Sequence[Measures]) -> Row:
    cells = (averaged([getattr(each, key) for each in measures]) for key in _COLUMNS)
    return Row(name, tuple(cells))


def figures_5_to_7(seed: int = 0, trials: int = SEEDS, shrink: int = 1) -> Report:
    """Figures 5 to 7: ten jobs at once on the unconstrained network."""
    seeds = range(seed, seed + trials)
    setting = Setting(seeds, UPLINKS, "QP", shrink=shrink, apart_s=APART_S)
    runs, found = compare(SCHEDULERS, setting)
    rows = [_measured(name, found[name]) for name in SCHEDULERS]
    rows += claims_5_to_7(found)
    part = [100 * each.core_tb / each.total_tb for each in found["QFPX"]]
    cell = averaged(part, CORE_PART_X, 3.0)
    rows.append(Row("QFPX: percent of its data across the core", (cell,), _DEPARTS))
    return Report(
        name="quincy-fig-6",
        title="Ten jobs at once, unconstrained network",
        source=f"{SOURCE}, sec. 6.2 and 6.4, Figures 5 to 7",
        columns=tuple(_COLUMNS.values()),
        rows=tuple(rows),
        notes=notes_5_to_7(trials),
        panels=(
            _job_times(runs, ("ideal", "GFP", "QFP", "QFPX")),
            _tradeoff(found),
            *(_use(name, runs[name][0]) for name in ("QF", "QFP")),
        ),
    )


def claims_5_to_7(found: ByScheduler) -> list[Row]:
    """What the text says about Figures 5 to 7, claim by claim."""
    rows = [worst_slowdown(name, found, above=True) for name in ("G", "GF", "Q", "QF")]
    rows += [worst_slowdown(name, found, above=False) for name in ("GFP", "QFP", "QFPX")]
    return rows + [claim.row(found) for claim in OPEN_NETWORK]


def notes_5_to_7(trials: int) -> tuple[str, ...]:
    """What is to be known of Figures 5 to 7."""
    return (
        CLAIMS_NOTE,
        SLOWDOWN_NOTE,
        _MEASURES_NOTE,
        f"Hysteresis: a margin of {MARGIN} tasks, a delay of {DELAY_S:g} s; neither is published.",
        (
            f"The first ten jobs start {APART_S:g} s apart (`APART_S`; the time is not published), "
            "PrimeLarge first, so that 'the first thing it does is occupy most computers'. "
            "`quincy-starts` says what that decides."
        ),
        (
            "Contrary whenever the first jobs start, first: preemption lengthens the makespan "
            "here. PrimeLarge's tasks take 22 minutes each; held to its share, it runs most of "
            "them when the others have ended, and ends last. Without preemption it ends first; the "
            "idle times that follow, as in Figure 7, cost less. Second: fairness alone lowers "
            "unfairness under the greedy scheduler. The paper has it rise because some small jobs "
            "become quicker than others; why they do not here is not known."
        ),
        SORT_NOTE,
        TIMER_NOTE,
        seeds_note(trials),
    )


def figure_8(seed: int = 0, trials: int = SEEDS, shrink: int = 1) -> Report:
    """Table 4 and Figure 8: ten jobs at once with one uplink a rack."""
    setting = Setting(range(seed, seed + trials), 1, "QFPX", shrink=shrink)
    names = ("GFP", "QFP", "QFPX")
    runs, found = compare(names, setting)
    rows = [_data(name, runs[name], published) for name, published in TABLE_4.items()]
    rows += [claim.row(found) for claim in NARROW_NETWORK]
    panels = (_job_times(runs, ("ideal", *names)), _tradeoff(found))
    # The same if Sort does what the text says; the headline's schedulers only.
    headline = ("GFP", "QFPX")
    runs, found = compare(headline, replace(setting, sort_moved="text"))
    mark = ", Sort redistributes all"
    rows += [_data(name + mark, runs[name], None) for name in ("ideal", *headline)]
    same = [claim for claim in NARROW_NETWORK if {claim.more, claim.less} == set(headline)]
    rows += [Row(row.name + mark, row.cells) for row in (claim.row(found) for claim in same)]
    return Report(
        name="quincy-table-4",
        title="Ten jobs at once, constrained network",
        source=f"{SOURCE}, sec. 6.3, Table 4 and Figure 8",
        columns=("all data (TB)", "within racks", "across the core"),
        rows=tuple(rows),
        notes=(CLAIMS_NOTE, _MEASURES_NOTE, SORT_NOTE, TIMER_NOTE, seeds_note(trials)),
        panels=panels,
    )


def _data(name: str, runs: Sequence[Run], published: Sequence[float] | None) -> Row:
    measures = [measure(run, IDEAL_S) for run in runs]
    cells = []
    for at, key in enumerate(("total_tb", "rack_tb", "core_tb")):
        values = [getattr(each, key) for each in measures]
        if published is None:
            cells.append(averaged(values))
        else:
            cells.append(averaged(values, published[at], _WITHIN * published[at]))
    return Row(name, tuple(cells), "" if published is None else _DEPARTS)


def _job_times(runs: Mapping[str, Sequence[Run]], names: Sequence[str]) -> Panel:
    """Figure 5: how long each job takes, in the order of Table 3."""
    lines = []
    for name in names:
        times = ideal_times(runs[name])
        order = [job for job in IDEAL_S if job in times]
        seconds = tuple(float(np.log10(times[job])) for job in order)
        lines.append(Line(name, tuple(map(float, range(len(order)))), seconds, points=True))
    return Panel("Time of each job", "job, as in Table 3", "log10 of seconds", tuple(lines))


def _tradeoff(found: ByScheduler) -> Panel:
    """Makespan over data that crosses the core, a point for each scheduler."""
    lines = []
    for name, measures in found.items():
        makespan = averaged([each.makespan_s for each in measures])
        core = averaged([each.core_tb for each in measures])
        half = () if makespan.half is None else (makespan.half,)
        lines.append(Line(name, (core.computed,), (makespan.computed,), half, points=True))
    return Panel("Time and data", "TB across the core", "makespan (s)", tuple(lines))


def _use(name: str, run: Run) -> Panel:
    """Figure 7: tasks that run, PrimeLarge's and all, in the first seed."""
    use = run.outcome.use
    at = tuple((USE_EVERY_S * np.arange(len(use))).tolist())
    large = use[:, run.names.index(PRIME_LARGE)]
    lines = (
        Line("all tasks", at, tuple(use.sum(axis=1).tolist())),
        Line("PrimeLarge", at, tuple(large.tolist())),
    )
    return Panel(f"Use under {name}", "seconds", "tasks that run", lines, stepped=True)
