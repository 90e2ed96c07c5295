"""Spark jobs with the settings of Spark: queues of two roles, as an operator would see them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.lab.frameworks.base import Framework, Identity, Quantities
from allocator.lab.frameworks.spark_coarse import CoarseSpark
from allocator.lab.frameworks.spark_fine import FineSpark
from allocator.lab.frameworks.spark_settings import DynamicAllocation, SparkSettings
from allocator.lab.workloads.job_queues import Experiment, JobQueue
from allocator.lab.workloads.spark_experiment import HETEROGENEOUS, lognormal_ms

STOP_MS = (300, 700, 1200, 2400)
MODES = ("coarse", "greedy", "dynamic", "fine")


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """One run of a Spark application.

    stages_ms: durations of the tasks of each stage.
    fine: ``spark.mesos.coarse`` is false.
    start_ms: from the launch of an executor until it takes tasks.
    """

    settings: SparkSettings
    stages_ms: tuple[tuple[int, ...], ...]
    fine: bool = False
    start_ms: int = 2_500

    @property
    def executor(self) -> Quantities:
        """What one executor takes, where the settings say so."""
        return self.settings.executor

    def framework(self, identity: Identity, left: Callable[[], None]) -> Framework:
        """Make the framework that the job is."""
        own = self.settings.identity(identity.name, identity.roles[0])
        if self.fine:
            return FineSpark(own, self.settings, self.stages_ms, left)
        return CoarseSpark(
            own, self.settings, self.stages_ms, left, start_ms=self.start_ms, stop_ms=STOP_MS
        )


def settings_of(mode: str) -> dict[str, SparkSettings]:
    """Give the settings of both roles in one of `MODES`.

    ``coarse``: executors of a fixed size, up to ``spark.cores.max``; ``greedy``: the size left
    open, so that one takes all the cores of its offer; ``dynamic``: dynamic allocation; ``fine``:
    fine-grained mode.
    """
    dynamic = DynamicAllocation() if mode == "dynamic" else None
    cores_max = None if mode == "dynamic" else 12
    sizes = (None, None) if mode == "greedy" else (2, 1)
    return {
        "Pi": SparkSettings(
            executor_cores=sizes[0],
            executor_memory_mib=1664,
            cores_max=cores_max,
            dynamic=dynamic,
        ),
        "WordCount": SparkSettings(
            executor_cores=sizes[1],
            executor_memory_mib=3200,
            cores_max=cores_max,
            dynamic=dynamic,
        ),
    }


def spark_jobs(seed: int, mode: str = "coarse", *, queues: int = 2, jobs: int = 6) -> Experiment:
    """Two roles, each with so many queues of jobs that come one after the other.

    mode: one of `MODES`, see `settings_of`.
    queues, jobs: queues of each role, and jobs of each queue.
    """
    chance = np.random.default_rng(seed)
    tasks = {"Pi": ((60, 1300.0),), "WordCount": ((12, 4500.0), (12, 900.0))}
    made = [
        JobQueue(
            f"{role.lower()}-{number + 1}",
            role,
            tuple(
                SparkApplication(
                    settings,
                    tuple(tuple(lognormal_ms(chance, ms, 0.3, n)) for n, ms in tasks[role]),
                    fine=mode == "fine",
                )
                for _ in range(jobs)
            ),
        )
        for role, settings in settings_of(mode).items()
        for number in range(queues)
    ]
    gaps_ms = tuple(chance.integers(3_000, 6_000, 97, endpoint=True).tolist())
    agents = tuple((0, spec) for spec in HETEROGENEOUS)
    return Experiment(agents, tuple(made), gaps_ms)
