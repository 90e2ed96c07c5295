"""Jobs as stages of tasks: which tasks are ready, and from where each reads.

A task reads partitions of the job's input, and the output of earlier tasks from the disks of the
computers where they ran (sections 2.1, 2.3 and 5.1 of the paper, and its appendix).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.core import Floats, Ints
from laboratory.network.topology import Distance, Topology

# A task's input, and the amounts of it that cross switches to a computer.


PREFERRED_PART = 0.1
"""A computer or rack that holds more than this fraction of a task's input is preferred."""


class Crossing(NamedTuple):
    """GB that cross only the rack's switch, and GB that cross the core switch."""

    rack_gb: float
    core_gb: float


class Read(NamedTuple):
    """One transfer of a task's input."""

    path: tuple[int, ...]
    distance: Distance
    gb: float


@dataclass(frozen=True, eq=False)
class Input:
    """The locations of a task's input.

    at (H,): computers, without duplicates.
    gb (H,)
    by_rack (L,): the sum for each rack.
    """

    topology: Topology
    at: Ints
    gb: Floats
    by_rack: Floats

    @property
    def total_gb(self) -> float:
        return float(self.gb.sum())

    def crossing(self, computer: int) -> Crossing:
        """Data that crosses switches if the task runs there."""
        in_rack = float(self.by_rack[self.topology.rack_of[computer]])
        here = float(self.gb[self.at == computer].sum())
        return Crossing(in_rack - here, max(float(self.by_rack.sum()) - in_rack, 0.0))

    def worst_in_rack(self, rack: int) -> Crossing:
        """The data that crosses switches if the task runs on the worst computer of a rack."""
        held = np.zeros(self.topology.computers)
        held[self.at] = self.gb
        least = float(held[self.topology.rack_of == rack].min())
        in_rack = float(self.by_rack[rack])
        return Crossing(in_rack - least, max(float(self.by_rack.sum()) - in_rack, 0.0))

    def worst(self) -> Crossing:
        """The data that crosses if the task runs on the worst computer of all.

        That computer is in the rack that holds the least input.
        """
        return self.worst_in_rack(int(self.by_rack.argmin()))

    def preferred_computers(self) -> Ints:
        return self.at[self.gb > PREFERRED_PART * self.total_gb]

    def preferred_racks(self) -> Ints:
        return np.flatnonzero(self.by_rack > PREFERRED_PART * self.total_gb)

    def reads(self, computer: int) -> Iterator[Read]:
        """The transfers if the task runs there.

        Data from a preferred computer, or from the computer itself, is a separate transfer. All
        other data is one transfer for each rack.
        """
        topology, home = self.topology, self.topology.rack_of[computer]
        alone = (self.gb > PREFERRED_PART * self.total_gb) | (self.at == computer)
        for source, gb in zip(self.at[alone].tolist(), self.gb[alone].tolist(), strict=True):
            near = Distance.RACK if topology.rack_of[source] == home else Distance.CORE
            distance = Distance.LOCAL if source == computer else near
            yield Read(topology.path(source, computer), distance, gb)
        rest = np.bincount(
            topology.rack_of[self.at[~alone]], self.gb[~alone], minlength=topology.racks
        )
        for rack in np.flatnonzero(rest).tolist():
            distance = Distance.RACK if rack == home else Distance.CORE
            yield Read(topology.path_from_rack(rack, computer), distance, float(rest[rack]))


def make_input(topology: Topology, at: Ints, gb: Floats) -> Input:
    """Add up the data on each computer.

    at (H,): computers, perhaps repeated.
    gb (H,)
    """
    held: Floats = np.bincount(at, gb, topology.computers).astype(np.float64)
    there = np.flatnonzero(held)
    by_rack: Floats = np.bincount(topology.rack_of, held, topology.racks).astype(np.float64)
    return Input(topology, there, held[there], by_rack)


# Jobs as stages of tasks.

JOB_INPUT = -1
"""In a `Need`: the job's own input instead of a stage."""


@dataclass(frozen=True, slots=True)
class Need:
    """An input of each task of a stage.

    stage: the stage that wrote it, or `JOB_INPUT`.
    gb: amount per task.
    from_all: an equal part from each task of that stage; else task n reads the output of task n, or
        partition n.
    """

    stage: int
    gb: float
    from_all: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowStage:
    """A number of equal tasks.

    compute_s: mean computing time of a task once it has read its input.
    spread: times are uniform within this fraction of the mean on either side.
    """

    tasks: int
    compute_s: float
    spread: float
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class JobKind:
    """The description of a job.

    stages: a stage needs earlier ones only.
    partitions: of its input.
    holders: number of computers that hold the input; 0: one for each partition, as far as there
        are enough computers.
    one_rack: all holders are in one rack.
    network_bound: the paper's classification.
    """

    name: str
    stages: tuple[WorkflowStage, ...]
    partitions: int
    holders: int = 0
    one_rack: bool = False
    network_bound: bool = False


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job with all its random values drawn.

    partition_at (P,): the computer of each partition.
    compute_s (N,): for each stage, the time of each of its tasks.
    """

    kind: JobKind
    partition_at: Ints
    compute_s: tuple[Floats, ...]


def draw_job(kind: JobKind, topology: Topology, rng: np.random.Generator) -> JobPlan:
    """Draw the locations of the input and the times of tasks."""
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
    """State of a task."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(eq=False, slots=True)
class WorkflowTask:
    """A task that is ready, running or done.

    number: in the order in which tasks became ready.
    job: the job's row.
    since_s: when it entered its state.
    waited_s, ran_s: sums over all earlier periods.
    computer: where it runs or ran; -1 before.
    attempt: number of starts.
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
class WorkflowProgress:
    """The progress of a job.

    wrote_at (N,): for each stage, where each finished task ran; -1 for others.
    open_tasks: for each stage, the number of unfinished tasks.
    """

    plan: JobPlan
    topology: Topology
    wrote_at: list[Ints] = field(default_factory=list)
    open_tasks: list[int] = field(default_factory=list)
    _given_out: list[NDArray[np.bool_]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for stage in self.plan.kind.stages:
            self.wrote_at.append(np.full(stage.tasks, -1))
            self.open_tasks.append(stage.tasks)
            self._given_out.append(np.zeros(stage.tasks, np.bool_))

    @property
    def ended(self) -> bool:
        return not any(self.open_tasks)

    def done(self, stage: int, part: int, computer: int) -> None:
        """Record that a task is done, and where it wrote."""
        self.wrote_at[stage][part] = computer
        self.open_tasks[stage] -= 1

    def newly_ready(self) -> list[tuple[int, int, Input]]:
        """Stage, part and input of all tasks that have become ready, each reported once."""
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

    def _input(self, stage: WorkflowStage, part: int) -> Input:
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
