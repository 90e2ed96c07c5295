"""The cost of not knowing the needs of Spark's executors.

The same jobs are played with four sources of demands: none (all free resources of an agent are
offered, as by Mesos's own allocator); learned from each framework; remembered from earlier
frameworks; and set by operators' rules. Spark itself cannot declare demands.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from allocator import policies
from allocator.core import PolicySpec, SetDemand, Settings
from laboratory.experiments.runs import CHARACTERISED
from laboratory.links.base import DirectLink
from laboratory.reports.run_report import Figures, figures
from laboratory.workloads.play import play
from laboratory.workloads.spark_experiment import settings_of, spark_jobs

SOURCES = ("oblivious", "learnt", "remembered", "told")


@dataclass(frozen=True, slots=True)
class SourceRun:
    """One run.

    source: one of `SOURCES`.
    confirmed, refuted: remembered demands that a framework's first acceptance agreed with, or
        contradicted.
    probes: times that a framework was offered all free resources after a long time without offers.
    """

    source: str
    jobs: int
    figures: Figures
    confirmed: int
    refuted: int
    probes: int


@dataclass(frozen=True, slots=True)
class Average:
    """Means of several runs with one source.

    offers, declines, executors: per job. In fine-grained mode tasks count as executors.
    wait_max_s: longest time from the registration of any job to its first offer.
    confirmed, refuted, probes: per run, see `SourceRun`.
    """

    source: str
    offers: float
    declines: float
    executors: float
    makespan_s: float
    wait_max_s: float
    confirmed: float
    refuted: float
    probes: float


def settings_for(source: str, policy: str, mode: str, seed: int) -> Settings:
    """Make settings with which a sidecar knows demands from one source only."""
    spec = PolicySpec(policy, mode="oblivious" if source == "oblivious" else CHARACTERISED)
    settings = Settings(policy=spec, seed=seed)
    if source != "remembered":
        settings.priors_max = 0
    if source == "told":
        for role, spark in settings_of(mode).items():
            if spark.executor:
                settings.demands[role, ""] = SetDemand(role, "", spark.executor)
    return settings


def play_source(
    source: str, mode: str = "coarse", *, policy: str = "drf", seed: int = 0, jobs: int = 6
) -> SourceRun:
    """Play the jobs with one source of demands.

    source: one of `SOURCES`.
    mode: Spark's configuration, one of `MODES` of `spark_experiment`. Demands are known only if
        executors have a fixed size.
    jobs: number in each of four queues, two per role.
    """
    scenario = spark_jobs(seed, mode, jobs=jobs)
    link = DirectLink(policies.build, settings_for(source, policy, mode, seed))
    played = play(scenario, link, tell_demand=False)
    memory = link.allocator.state.memory
    return SourceRun(
        source=source,
        jobs=scenario.jobs,
        figures=figures(played, policy, mode, seed),
        confirmed=memory.confirmed,
        refuted=memory.refuted,
        probes=memory.probes,
    )


def average(runs: Iterable[SourceRun]) -> Average:
    every = list(runs)
    jobs = sum(run.jobs for run in every)
    numbers = [run.figures for run in every]
    return Average(
        source=every[0].source,
        offers=sum(each.offers for each in numbers) / jobs,
        declines=sum(each.declines for each in numbers) / jobs,
        executors=sum(each.executors for each in numbers) / jobs,
        makespan_s=float(np.mean([each.makespan_s for each in numbers])),
        wait_max_s=max(each.wait_max_s for each in numbers),
        confirmed=float(np.mean([run.confirmed for run in every])),
        refuted=float(np.mean([run.refuted for run in every])),
        probes=float(np.mean([run.probes for run in every])),
    )
