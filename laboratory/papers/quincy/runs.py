"""The thirty jobs of Quincy's experiments, and their cluster.

Published values are used if there are any: computers, racks, links, partitions and their sizes.
The others are named constants here, chosen so that single jobs take about as long as in the paper's
Table 3 and read as much as in its Table 2.

Source: section 5 and Table 3 of the paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from allocator.core import Floats
from laboratory.experiments.spread import spread
from laboratory.network.cluster import DECIDE_S, ClusterRun, Outcome, Scheduler
from laboratory.network.schedulers import CORE_COST, FlowScheduler, QueueScheduler
from laboratory.network.topology import Topology, even_racks
from laboratory.network.workflow import (
    JOB_INPUT,
    JobKind,
    JobPlan,
    Need,
    WorkflowStage,
    draw_job,
)

COMPUTERS = 243
RACKS = 8
GIGABIT_GB_S = 0.125
UPLINKS = 6
"""Number of gigabit links; one in the constrained network."""

DISK_GB_S = 0.24
"""Four disks over which the data is striped; their speed is not published."""

APART_S = 3.0
"""Time between the starts of the first jobs in Figures 5 to 7: for `QuincyCase.apart_s`.
PrimeLarge starts first and occupies most computers before others have tasks; the text says that
these then wait for it without preemption. The time is not published; `figures.starts` compares
some."""

SPREAD = 0.15
"""Relative spread of task times in a stage; a fifth of it for the long tasks of Prime.
Not published."""

SORT_GB = 3.7
"""Size of a partition of Sort; the paper says around 4 GB, and 3.7 gives the total of Table 2."""

SORT_MOVED = {"text": 1.0, "tables": 0.1}
"""The fraction of its input that Sort redistributes.
The text says all of it. Then 7/8 of some 480 GB would cross the core switch under any scheduler,
but the tables have less than a third of that. A tenth fits them; the rest of a sorting task's
input is then assumed to be on the computer that partitioned its range.
"""

PAGERANK_SPREAD = 0.02
"""Relative spread in the second phases of PageRank: they read from the same places, and end within
seconds of each other, as the text of section 6.1 says. Not published."""

PAGERANK_BUCKET_GB = 0.11
"""Output of a task of a first phase; not published."""

PAGERANK_RANKS_GB = 0.03
"""Output of a task of a second phase; not published."""

JOIN_BUCKET_GB = 0.25
"""Output of a task of the first phase; not published."""

WORD_PARTS = (2, 4, 5, 6, 8, 10, 15, 20, 25, 100)
PRIME_PARTS = (2, 4, 5, 6, 8, 10, 15, 20, 25, 500, 1000, 1500, 2000)

PRIME_LARGE = "PrimeLarge240"

IDEAL_S = {
    **dict(
        zip(
            [f"PrimeSmall{parts}" for parts in PRIME_PARTS],
            (14, 14, 14, 14, 15, 15, 15, 17, 17, 29, 44, 57, 71),
            strict=True,
        )
    ),
    PRIME_LARGE: 1360,
    **dict(
        zip(
            [f"WordCount{parts}" for parts in WORD_PARTS],
            (44, 45, 47, 48, 49, 47, 52, 56, 54, 61),
            strict=True,
        )
    ),
    "Join40": 309,
    "Join5": 365,
    "Sort10": 365,
    "Sort40": 409,
    "Sort80": 562,
    "PageRank240": 877,
}
"""Table 3: seconds that each job takes alone."""


def cluster(uplinks: int = UPLINKS, shrink: int = 1) -> Topology:
    """The cluster, with this many gigabit links from each rack to the core switch.

    `shrink` divides the number of computers, and the rate of the uplinks.
    """
    racks = even_racks(COMPUTERS // shrink, RACKS)
    return Topology(racks, DISK_GB_S, GIGABIT_GB_S, uplinks * GIGABIT_GB_S / shrink)


def _prime(name: str, parts: int, compute_s: float) -> JobKind:
    need = Need(JOB_INPUT, 0.01)
    return JobKind(name, (WorkflowStage(parts, compute_s, SPREAD / 5, (need,)),), parts)


def _word_count(parts: int) -> JobKind:
    count = WorkflowStage(parts, 26.0, SPREAD, (Need(JOB_INPUT, 0.05),))
    merge = WorkflowStage(1, 7.0, SPREAD, (Need(0, 0.001 * parts, from_all=True),))
    return JobKind(f"WordCount{parts}", (count, merge), parts)


def _sort(parts: int, moved: float) -> JobKind:
    sample = WorkflowStage(parts, 40.0, SPREAD, (Need(JOB_INPUT, SORT_GB),))
    ranges = WorkflowStage(1, 5.0, SPREAD, (Need(0, 0.001 * parts, from_all=True),))
    cut = WorkflowStage(
        parts, 110.0, SPREAD, (Need(JOB_INPUT, SORT_GB), Need(1, 0.001, from_all=True))
    )
    needs = (Need(2, moved * SORT_GB, from_all=True), Need(2, (1 - moved) * SORT_GB))
    order = WorkflowStage(parts, 120.0, SPREAD, needs if moved < 1 else needs[:1])
    return JobKind(f"Sort{parts}", (sample, ranges, cut, order), parts, network_bound=True)


def _join(holders: int) -> JobKind:
    first = WorkflowStage(40, 125.0, SPREAD, (Need(JOB_INPUT, (11.8 + 41.8) / 40),))
    needs = (Need(JOB_INPUT, 41.8 / 40), Need(0, JOIN_BUCKET_GB, from_all=True))
    second = WorkflowStage(40, 130.0, SPREAD, needs)
    name = f"Join{holders}"
    return JobKind(name, (first, second), 40, holders, one_rack=holders < 40, network_bound=True)


def _page_rank(iterations: int = 3) -> JobKind:
    stages: list[WorkflowStage] = []
    for _ in range(iterations):
        before = len(stages) - 1
        needs: tuple[Need, ...] = (Need(JOB_INPUT, 1.0),)
        if stages:
            needs += (Need(before, PAGERANK_RANKS_GB),)
        stages.append(WorkflowStage(240, 143.0, SPREAD, needs))
        needs = (Need(before + 1, PAGERANK_BUCKET_GB, from_all=True),)
        stages.append(WorkflowStage(240, 105.0, PAGERANK_SPREAD, needs))
    return JobKind("PageRank240", tuple(stages), 240, network_bound=True)


def kinds(moved: float, shrink: int = 1) -> list[JobKind]:
    """The thirty jobs in the order of Table 3.

    moved: the part of its input that Sort redistributes.
    shrink: divides the number of tasks of each stage, rounding up.
    """
    whole = [
        *(_prime(f"PrimeSmall{parts}", parts, 6.0) for parts in PRIME_PARTS),
        _prime(PRIME_LARGE, 240, 1312.0),
        *(_word_count(parts) for parts in WORD_PARTS),
        _join(40),
        _join(5),
        *(_sort(parts, moved) for parts in (10, 40, 80)),
        _page_rank(),
    ]
    return [_shrunk(kind, shrink) for kind in whole]


def _shrunk(kind: JobKind, shrink: int) -> JobKind:
    stages = tuple(replace(stage, tasks=-(-stage.tasks // shrink)) for stage in kind.stages)
    parts, holders = -(-kind.partitions // shrink), -(-kind.holders // shrink)
    return replace(kind, stages=stages, partitions=parts, holders=holders)


def draw_jobs(
    topology: Topology, moved: float, seed: int, *, large: bool = True, shrink: int = 1
) -> list[JobPlan]:
    """Draw an experiment: PrimeLarge first, if `large`, then the others in random order.

    A seed gives the same jobs in the same order on any network.
    """
    rng = np.random.default_rng(seed)
    plans = {kind.name: draw_job(kind, topology, rng) for kind in kinds(moved, shrink)}
    first = plans.pop(PRIME_LARGE)
    others: Sequence[JobPlan] = list(plans.values())
    order = rng.permutation(len(others)).tolist()
    return ([first] if large else []) + [others[at] for at in order]


# Runs of Quincy's experiments, and the paper's measures.
#
# Source: sec. 5.2 and 6.


SCHEDULERS = ("G", "GF", "GFP", "GFH", "GFPH", "Q", "QF", "QP", "QFP", "QFPX")
"""G: queues, Q: flow; F: fairness, P: preemption, H: hysteresis, X: an expensive core switch."""

CORE_COST_X = 20.0
COMPUTERS_A_JOB = 24
"""Number of computers per concurrent job: ten jobs on the whole cluster."""


def make_scheduler(name: str, seed: int) -> Scheduler:
    """Make a scheduler by the paper's name; the seed is for those with queues."""
    fair, preempts = "F" in name, "P" in name
    if name.startswith("G"):
        return QueueScheduler(seed, fair=fair, preempts=preempts, sticky="H" in name)
    core_cost = CORE_COST_X if name.endswith("X") else CORE_COST
    return FlowScheduler(fair=fair, preempts=preempts, core_cost=core_cost)


@dataclass(frozen=True, slots=True)
class QuincyCase:
    """One run of the experiment.

    scheduler: one of `SCHEDULERS`.
    alone: one job at a time; else a job for every `COMPUTERS_A_JOB` computers, at least three.
    uplinks: of each rack; with fewer than `UPLINKS` the network is constrained, and PrimeLarge left
        out.
    sort_moved: a key of `SORT_MOVED`.
    shrink: how many times smaller cluster and jobs are than the paper's.
    decide_s: as `network.cluster.DECIDE_S`.
    apart_s: between the starts of the first jobs.
    """

    scheduler: str
    seed: int
    alone: bool = False
    uplinks: int = UPLINKS
    sort_moved: str = "tables"
    shrink: int = 1
    decide_s: float = DECIDE_S
    apart_s: float = 0.0


@dataclass(frozen=True, slots=True)
class QuincyRun:
    """The result of a case.

    names: by job.
    network_bound (J,)
    """

    outcome: Outcome
    names: tuple[str, ...]
    network_bound: NDArray[np.bool_]


def play(case: QuincyCase) -> QuincyRun:
    topology = cluster(case.uplinks, case.shrink)
    moved, large = SORT_MOVED[case.sort_moved], case.uplinks >= UPLINKS
    jobs = draw_jobs(topology, moved, case.seed, large=large, shrink=case.shrink)
    concurrency = 1 if case.alone else max(3, topology.computers // COMPUTERS_A_JOB)
    scheduler = make_scheduler(case.scheduler, case.seed)
    times = {"decide_s": case.decide_s, "apart_s": case.apart_s}
    run = ClusterRun(topology, jobs, concurrency, scheduler, **times)
    return QuincyRun(
        run.play(),
        tuple(job.kind.name for job in jobs),
        np.array([job.kind.network_bound for job in jobs]),
    )


def play_all(cases: Iterable[QuincyCase], processes: int = -1) -> Mapping[QuincyCase, QuincyRun]:
    """Run cases in parallel, each once."""
    wanted = list(dict.fromkeys(cases))
    return dict(zip(wanted, spread(play, wanted, jobs=processes), strict=True))


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of section 5.2.

    performance: system normalised performance: the geometric mean of the jobs' normalised
        performances, which are their times alone divided by their times in the run; 1 is ideal.
    mean, root_mean_square, worst: norms of the slowdowns, the inverses of these.
    unfairness: coefficient of variation of the normalised performances.
    network_performance, cpu_performance: geometric means over network-bound jobs, and over the
        others.
    total_tb, rack_tb, core_tb: data read: all, through a rack's switch only, and through the core.
    """

    makespan_s: float
    performance: float
    mean: float
    root_mean_square: float
    worst: float
    unfairness: float
    network_performance: float
    cpu_performance: float
    total_tb: float
    rack_tb: float
    core_tb: float


def measure(run: QuincyRun, ideal_s: Mapping[str, float]) -> Measures:
    """Measure a run.

    ideal_s: how long each job takes alone, by name.
    """
    alone = np.array([ideal_s[name] for name in run.names])
    slowdown = run.outcome.job_s / alone
    performance = 1 / slowdown
    _, rack, core = (run.outcome.moved_gb / 1000).tolist()
    return Measures(
        makespan_s=run.outcome.makespan_s,
        performance=geometric_mean(performance),
        mean=float(slowdown.mean()),
        root_mean_square=float(np.sqrt((slowdown**2).mean())),
        worst=float(slowdown.max()),
        unfairness=float(performance.std() / performance.mean()),
        network_performance=geometric_mean(performance[run.network_bound]),
        cpu_performance=geometric_mean(performance[~run.network_bound]),
        total_tb=float(run.outcome.moved_gb.sum()) / 1000,
        rack_tb=rack,
        core_tb=core,
    )


def geometric_mean(values: Floats) -> float:
    return float(np.exp(np.log(values).mean()))


def ideal_times(runs: Sequence[QuincyRun]) -> dict[str, float]:
    """How long each job takes alone: its mean over runs of one job at a time."""
    names = runs[0].names
    times: dict[str, list[float]] = {name: [] for name in names}
    for run in runs:
        for name, took in zip(run.names, run.outcome.job_s.tolist(), strict=True):
            times[name].append(took)
    return {name: float(np.mean(took)) for name, took in times.items()}
