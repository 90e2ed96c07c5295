"""Runs of Quincy's experiments, and the measures that its paper takes of them.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 5.2 and 6.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.lab.experiments.spread import spread
from allocator.lab.network.cluster import DECIDE_S, ClusterRun, Outcome
from allocator.lab.network.flow_scheduler import CORE_COST, FlowScheduler
from allocator.lab.network.queue_scheduler import QueueScheduler
from allocator.lab.network.slots import Scheduler
from allocator.lab.papers.quincy.jobs import SORT_MOVED, UPLINKS, cluster, draw_jobs

Floats = NDArray[np.float64]

SCHEDULERS = ("G", "GF", "GFP", "GFH", "GFPH", "Q", "QF", "QP", "QFP", "QFPX")
"""Queues or a flow; fairness, preemption, hysteresis, and a core switch that costs more."""

CORE_COST_X = 20.0
COMPUTERS_A_JOB = 24
"""Ten jobs at once on the whole cluster."""


def make_scheduler(name: str, seed: int) -> Scheduler:
    """Make a scheduler by the name that the paper gives it; the seed is for those with queues."""
    fair, preempts = "F" in name, "P" in name
    if name.startswith("G"):
        return QueueScheduler(seed, fair=fair, preempts=preempts, sticky="H" in name)
    core_cost = CORE_COST_X if name.endswith("X") else CORE_COST
    return FlowScheduler(fair=fair, preempts=preempts, core_cost=core_cost)


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the experiment.

    scheduler: one of `SCHEDULERS`.
    alone: one job at a time; else a job for every `COMPUTERS_A_JOB` computers, but three at least.
    uplinks: of each rack; with fewer than `UPLINKS` the network is constrained, and PrimeLarge left
        out.
    sort_moved: A key of `quincy_jobs.SORT_MOVED`.
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
class Run:
    """What came of a case: the outcome, and of each job its name and whether the network binds it.

    names: by job.
    network_bound (J,)
    """

    outcome: Outcome
    names: tuple[str, ...]
    network_bound: NDArray[np.bool_]


def play(case: Case) -> Run:
    """Run a case."""
    topology = cluster(case.uplinks, case.shrink)
    moved, large = SORT_MOVED[case.sort_moved], case.uplinks >= UPLINKS
    jobs = draw_jobs(topology, moved, case.seed, large=large, shrink=case.shrink)
    concurrency = 1 if case.alone else max(3, topology.computers // COMPUTERS_A_JOB)
    scheduler = make_scheduler(case.scheduler, case.seed)
    times = {"decide_s": case.decide_s, "apart_s": case.apart_s}
    run = ClusterRun(topology, jobs, concurrency, scheduler, **times)
    return Run(
        run.play(),
        tuple(job.kind.name for job in jobs),
        np.array([job.kind.network_bound for job in jobs]),
    )


def play_all(cases: Iterable[Case], processes: int = -1) -> Mapping[Case, Run]:
    """Run cases side by side, each once."""
    wanted = list(dict.fromkeys(cases))
    return dict(zip(wanted, spread(play, wanted, jobs=processes), strict=True))


@dataclass(frozen=True, slots=True)
class Measures:
    """Section 5.2.

    performance: system normalised performance: the geometric mean of the jobs' normalised
        performances, which are the times that they take alone over those that they took; 1 is
        ideal.
    mean, root_mean_square, worst: norms of the slowdowns, the inverses of these.
    unfairness: coefficient of variation of the normalised performances.
    network_performance, cpu_performance: the geometric mean for jobs that are bound by the network,
        and for others.
    total_tb, rack_tb, core_tb: what was read, and which part of it through a rack's switch only,
        and through the core.
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


def measure(run: Run, ideal_s: Mapping[str, float]) -> Measures:
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
    """The geometric mean of positive numbers."""
    return float(np.exp(np.log(values).mean()))


def ideal_times(runs: Sequence[Run]) -> dict[str, float]:
    """How long each job takes alone: its mean over runs of one job at a time."""
    names = runs[0].names
    times: dict[str, list[float]] = {name: [] for name in names}
    for run in runs:
        for name, took in zip(run.names, run.outcome.job_s.tolist(), strict=True):
            times[name].append(took)
    return {name: float(np.mean(took)) for name, took in times.items()}
