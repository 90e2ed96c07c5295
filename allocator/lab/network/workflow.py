"""Jobs as stages of tasks, and which of their tasks are ready.

A task reads partitions of the job's input, and what tasks of earlier stages wrote to the disks of
the computers that they ran on.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 2.1 and 5.1.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from allocator.lab.network.inputs import Input, make_input
from allocator.lab.network.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

JOB_INPUT = -1
"""In a `Need`: not a stage, but the job's own input."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that each task of a stage reads.

    stage: the stage that wrote it, or `JOB_INPUT`.
    gb: what a task reads of it.
    from_all: an equal part from each task of that stage; else task n reads what task n wrote, or
        partition n.
    """

    stage: int
    gb: float
    from_all: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks that do the same.

    compute_s: how long a task takes when it has read its input; a mean.
    spread: times are drawn evenly from the mean up and down by this part of it.
    """

    tasks: int
    compute_s: float
    spread: float
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class JobKind:
    """What a job does.

    stages: A stage needs earlier ones only.
    partitions: of its input.
    holders: on how many computers the input lies; 0: on as many as there are partitions, if so many
        there are. They are of one rack where that is given.
    network_bound: as the paper classifies it.
    """

    name: str
    stages: tuple[Stage, ...]
    partitions: int
    holders: int = 0
    one_rack: bool = False
    network_bound: bool = False


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job with all that is left to chance drawn.

    partition_at (P,): the computer of each partition.
    compute_s (N,): for each stage, the time of each of its tasks.
    """

    kind: JobKind
    partition_at: Ints
    compute_s: tuple[Floats, ...]


def draw_job(kind: JobKind, topology: Topology, rng: np.random.Generator) -> JobPlan:
    """Draw where the input lies and how long tasks take."""
    usable = np.arange(topology.computers)
    if kind.one_rack:
        usable = np.flatnonzero(topology.rack_of == rng.integers(topology.racks))
    count = min(kind.holders or kind.partitions, len(usable))
    holders = rng.choice(usable, count, replace=False)
    times = tuple(
        stage.compute_s * rng.uniform(1 - stage.spread, 1 + stage.spread, stage.tasks)
        for stage in kind.stages
    )
    return JobPlan(kind, holders[np.arange(kind.partitions) % count], times)


class TaskState(Enum):
    """What a task does."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(eq=False, slots=True)
class Task:
    """A task that is ready, or was.

    number: in the order in which tasks became ready.
    job: the job's row.
    since_s: when it came into this state.
    waited_s, ran_s: sums over all spells before this one.
    computer: where it runs or ran; -1 before.
    attempt: how often it was begun.
    reads_left: transfers that its attempt still waits for.
    """

    number: int
    job: int
    stage: int
    part: int
    input: Input
    compute_s: float
    since_s: float
    state: TaskState = TaskState.WAITING
    waited_s: float = 0.0
    ran_s: float = 0.0
    computer: int = -1
    attempt: int = 0
    reads_left: int = 0


@dataclass(eq=False, slots=True)
class Progress:
    """How far a job is.

    wrote_at (N,): for each stage, where each task ran that is done; -1 for others.
    open_tasks: for each stage, how many tasks are not done.
    """

    plan: JobPlan
    topology: Topology
    wrote_at: list[Ints] = field(default_factory=list)
    open_tasks: list[int] = field(default_factory=list)
    _given_out: list[NDArray[np.bool_]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Nothing is done."""
        for stage in self.plan.kind.stages:
            self.wrote_at.append(np.full(stage.tasks, -1))
            self.open_tasks.append(stage.tasks)
            self._given_out.append(np.zeros(stage.tasks, np.bool_))

    @property
    def ended(self) -> bool:
        """Whether all tasks are done."""
        return not any(self.open_tasks)

    def done(self, stage: int, part: int, computer: int) -> None:
        """Take note that a task is done, and where it wrote."""
        self.wrote_at[stage][part] = computer
        self.open_tasks[stage] -= 1

    def newly_ready(self) -> list[tuple[int, int, Input]]:
        """Stage, part and input of all tasks that have become ready; each is given once."""
        result = []
        for number, stage in enumerate(self.plan.kind.stages):
            if self._given_out[number].all():
                continue
            ready = ~self._given_out[number]
            for need in stage.needs:
                if need.stage == JOB_INPUT:
                    continue
                if need.from_all:
                    ready &= self.open_tasks[need.stage] == 0
                else:
                    ready &= self.wrote_at[need.stage] >= 0
            self._given_out[number] |= ready
            parts = np.flatnonzero(ready).tolist()
            result += [(number, part, self._input(stage, part)) for part in parts]
        return result

    def _input(self, stage: Stage, part: int) -> Input:
        at: list[Ints] = [np.zeros(0, np.int64)]
        gb: list[Floats] = [np.zeros(0)]
        for need in stage.needs:
            if need.stage == JOB_INPUT:
                at.append(self.plan.partition_at[part : part + 1])
            elif need.from_all:
                at.append(self.wrote_at[need.stage])
            else:
                at.append(self.wrote_at[need.stage][part : part + 1])
            gb.append(np.full(len(at[-1]), need.gb / len(at[-1])))
        return make_input(self.topology, np.concatenate(at), np.concatenate(gb))
