"""Queues of Spark jobs on small clusters: the Spark-on-Mesos experiment, and jobs by settings.

The experiment is that of [1]_, section V. Details missing in the paper are taken from its authors'
scripts [2]_ and from Spark's defaults:

- SparkPi with 11,000 partitions and two cores an executor; JavaWordCount over a text of some 700 MB
  with one core an executor. Executor memory is 1600 MB and 3000 MB, to which Spark on Mesos adds
  384 MB; the paper rounds to 2 GB and 3.5 GB, and so do we.
- ``--total-executor-cores`` is 128 and 64: more than the whole cluster has, so a job takes all
  executors that it is offered.
- Jobs of a queue follow each other in a shell loop, so a JVM starts in between.

Durations are not published. The means below are chosen so that a job takes about half a minute, and
that both groups would keep a perfectly packed cluster full for about the same time. WordCount's is
a little shorter, because the paper says that it ends first.

References
----------
.. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, sec. V.
.. [2] github.com/yuquanshan/personal-stash, simpletests/pi_clients.sh and wc_clients.sh.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Protocol

import numpy as np

from allocator.core import MILLI
from laboratory.frameworks.base import Framework, Identity, Quantities
from laboratory.frameworks.spark import CoarseSpark, DynamicAllocation, FineSpark, SparkSettings
from laboratory.frameworks.spark_of_paper import Habits, Job
from laboratory.resources import AgentSpec
from laboratory.workloads.scenario import InTurn, JobStage

# Queues of Spark jobs: each is submitted when the previous one has left.


class QueuedJob(Protocol):
    """An entry of a queue."""

    @property
    def executor(self) -> Quantities:
        """Needs of one executor, if known in advance."""

    def framework(self, identity: Identity, left: Callable[[], None]) -> Framework:
        """Make the job's framework; it calls `left` once it has left."""


@dataclass(frozen=True, slots=True)
class JobQueue:
    """Consecutive jobs of one role."""

    name: str
    role: str
    jobs: tuple[QueuedJob, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A cluster, and queues of Spark jobs.

    agents: with their registration times.
    gap_ms: from the end of a job to the next of its queue, used in turn.
    """

    agents: tuple[tuple[int, AgentSpec], ...]
    queues: tuple[JobQueue, ...]
    gap_ms: tuple[int, ...]
    kinds: tuple[str, ...] = ("cpus", "mem")

    @property
    def jobs(self) -> int:
        return sum(len(queue.jobs) for queue in self.queues)

    def begin(self, stage: JobStage) -> None:
        gaps = cycle(self.gap_ms)
        for queue in self.queues:
            jobs = [partial(_submitted, stage, queue, number) for number in range(len(queue.jobs))]
            stage.at(0, InTurn(stage, queue.role, jobs, gaps).submit)


def _submitted(
    stage: JobStage, queue: JobQueue, number: int, left: Callable[[], None]
) -> Framework:
    job = queue.jobs[number]
    identity = stage.identity(f"{queue.name}-{number + 1}", queue.role, job.executor)
    return job.framework(identity, left)


MIB_PER_GIB = 1024

STOP_MEAN_MS = 1_500.0
STOP_MAX_MS = 10_000

TYPE_1 = {"cpus": 4 * MILLI, "mem": 14 * MIB_PER_GIB * MILLI}
TYPE_2 = {"cpus": 8 * MILLI, "mem": 8 * MIB_PER_GIB * MILLI}
TYPE_3 = {"cpus": 6 * MILLI, "mem": 11 * MIB_PER_GIB * MILLI}


@dataclass(frozen=True, slots=True)
class Application:
    """The properties of a role's jobs.

    executor: thousandths
    tasks: number in each stage.
    task_ms: mean duration of a task of each stage.
    """

    role: str
    executor: Quantities
    slots: int
    executors_max: int
    tasks: tuple[int, ...]
    task_ms: tuple[float, ...]


PI = Application(
    role="Pi",
    executor={"cpus": 2 * MILLI, "mem": 2 * MIB_PER_GIB * MILLI},
    slots=2,
    executors_max=64,
    tasks=(110,),  # the driver's 11,000 partitions, a hundred at a time
    task_ms=(1300.0,),
)
WORD_COUNT = Application(
    role="WordCount",
    executor={"cpus": 1 * MILLI, "mem": 3584 * MILLI},
    slots=1,
    executors_max=64,
    tasks=(12, 12),  # blocks of 64 MB: map, then reduce
    task_ms=(4500.0, 900.0),
)


@dataclass(frozen=True, slots=True)
class Drivers:
    """Properties of Spark that the paper does not specify.

    start, stop, gap: factors of the drawn times: of an executor's start, of its stop after the job,
        and from one job to the next.
    habits: what drivers do with offers and executors.
    """

    start: float = 1.0
    stop: float = 1.0
    gap: float = 1.0
    habits: Habits = field(default_factory=Habits)


DRIVERS = Drivers()


def agents(*capacities: Quantities) -> tuple[AgentSpec, ...]:
    return tuple(AgentSpec(f"agent-{i + 1}", c) for i, c in enumerate(capacities))


HETEROGENEOUS = agents(TYPE_1, TYPE_1, TYPE_2, TYPE_2, TYPE_3, TYPE_3)
HOMOGENEOUS = agents(*[TYPE_3] * 6)
"""The same total CPU and memory, on equal agents."""

ONE_OF_EACH = agents(TYPE_1, TYPE_2, TYPE_3)


def experiment(
    seed: int,
    *,
    cluster: tuple[AgentSpec, ...] = HETEROGENEOUS,
    queues: int = 5,
    jobs: int = 50,
    apart_ms: int = 0,
    drivers: Drivers = DRIVERS,
) -> Experiment:
    """Section V of the paper: two groups of queues that keep submitting Spark jobs.

    queues, jobs: queues of each role, and jobs of each queue.
    apart_ms: between the registrations of two agents.
    drivers: properties of Spark that the paper does not specify.

    Notes
    -----
    Task durations are lognormal with a coefficient of variation of 0.3, as for equal pieces of work
    on shared machines. Executors need 2 to 4 s to start (a JVM, and registration with the driver)
    and the next driver starts 3 to 6 s after the previous one is done, both uniform. An executor
    takes 1.5 s on average to stop, exponential, with a maximum of 10 s, for which the driver waits
    (``spark.mesos.coarse.shutdownTimeout``).
    """
    chance = np.random.default_rng(seed)
    made = [
        JobQueue(
            f"{application.role.lower()}-{number + 1}",
            application.role,
            tuple(_job(application, chance, drivers) for _ in range(jobs)),
        )
        for application in (PI, WORD_COUNT)
        for number in range(queues)
    ]
    return Experiment(
        agents=tuple((apart_ms * i, spec) for i, spec in enumerate(cluster)),
        queues=tuple(made),
        gap_ms=tuple(round(gap * drivers.gap) for gap in _gaps_ms(chance)),
    )


def _job(application: Application, chance: np.random.Generator, drivers: Drivers) -> Job:
    stages = tuple(
        tuple(lognormal_ms(chance, mean_ms, 0.3, count))
        for count, mean_ms in zip(application.tasks, application.task_ms, strict=True)
    )
    start_ms = int(chance.integers(2_000, 4_000, endpoint=True))
    return Job(
        executor=application.executor,
        slots=application.slots,
        executors_max=application.executors_max,
        stages_ms=stages,
        start_ms=round(start_ms * drivers.start),
        stop_ms=tuple(round(stop_ms * drivers.stop) for stop_ms in stops_ms(chance)),
        habits=drivers.habits,
    )


def stops_ms(chance: np.random.Generator) -> tuple[int, ...]:
    """How long executors take to stop, used in turn."""
    drawn = np.minimum(chance.exponential(STOP_MEAN_MS, 16), STOP_MAX_MS)
    return tuple(drawn.astype(int).tolist())


def lognormal_ms(
    chance: np.random.Generator, mean_ms: float, variation: float, count: int
) -> list[int]:
    """Durations with this mean and coefficient of variation, at least 1 ms."""
    sigma = np.sqrt(np.log1p(variation**2))
    drawn = chance.lognormal(np.log(mean_ms) - sigma**2 / 2, sigma, count)
    return np.maximum(drawn.round(), 1).astype(int).tolist()


def _gaps_ms(chance: np.random.Generator) -> tuple[int, ...]:
    """Pauses between the end of one driver and the start of the next, used in turn."""
    return tuple(chance.integers(3_000, 6_000, 97, endpoint=True).tolist())


# Spark jobs by Spark's settings: queues of two roles.

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
        """Needs of one executor, if the settings determine them."""
        return self.settings.executor

    def framework(self, identity: Identity, left: Callable[[], None]) -> Framework:
        own = self.settings.identity(identity.name, identity.roles[0])
        if self.fine:
            return FineSpark(own, self.settings, self.stages_ms, left)
        return CoarseSpark(
            own, self.settings, self.stages_ms, left, start_ms=self.start_ms, stop_ms=STOP_MS
        )


def settings_of(mode: str) -> dict[str, SparkSettings]:
    """Give the settings of both roles in one of `MODES`.

    ``coarse``: executors of a fixed size, up to ``spark.cores.max``; ``greedy``: without a fixed
    size, so that one takes all cores of its offer; ``dynamic``: dynamic allocation; ``fine``:
    fine-grained mode.
    """
    dynamic = DynamicAllocation() if mode == "dynamic" else None
    cores_max = None if mode == "dynamic" else 12
    sizes = (None, None) if mode == "greedy" else (2, 1)
    return {
        role: SparkSettings(cores, memory_mib, cores_max=cores_max, dynamic=dynamic)
        for role, cores, memory_mib in (("Pi", sizes[0], 1664), ("WordCount", sizes[1], 3200))
    }


def spark_jobs(seed: int, mode: str = "coarse", *, queues: int = 2, jobs: int = 6) -> Experiment:
    """Two roles, each with queues of consecutive jobs.

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
    agents = tuple((0, spec) for spec in HETEROGENEOUS)
    return Experiment(agents, tuple(made), _gaps_ms(chance))
