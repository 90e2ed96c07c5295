"""What the schedulers see: which computers run what, and which tasks wait."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from allocator.lab.network.topology import Topology
from allocator.lab.network.workflow import Task

Ints = NDArray[np.int64]


@dataclass(eq=False, slots=True)
class Slots:
    """Computers, each of which runs one task or the root of a job.

    on: the task that each computer runs.
    root: the job whose root a computer runs; -1: none.
    running: each job's tasks that run, in the order in which they were begun.
    waiting (J,): how many tasks of each job wait.
    """

    topology: Topology
    on: list[Task | None]
    root: list[int]
    running: list[dict[Task, None]]
    waiting: Ints

    @property
    def for_tasks(self) -> int:
        """How many computers run no root."""
        return sum(job < 0 for job in self.root)

    @property
    def free(self) -> list[int]:
        """Computers that run nothing."""
        return [
            computer
            for computer, (task, job) in enumerate(zip(self.on, self.root, strict=True))
            if task is None and job < 0
        ]

    @property
    def held(self) -> Ints:
        """How many tasks of each job run, (J,)."""
        return np.array([len(tasks) for tasks in self.running], np.int64)


def empty_slots(topology: Topology, jobs: int) -> Slots:
    """Nothing runs and nothing waits."""
    count = topology.computers
    nothing: list[dict[Task, None]] = [{} for _ in range(jobs)]
    return Slots(topology, [None] * count, [-1] * count, nothing, np.zeros(jobs, np.int64))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a scheduler wants.

    kill: tasks that are stopped and lose their work; first of all.
    start (Task, int): tasks and the computers on which they are begun then; also ones that have
        been killed.
    """

    kill: list[Task] = field(default_factory=list)
    start: list[tuple[Task, int]] = field(default_factory=list)


class Scheduler(Protocol):
    """Decides what runs where."""

    @property
    def looks_again_s(self) -> float:
        """How often it wants to decide although nothing has happened; infinite: never."""
        ...

    def ready(self, tasks: Sequence[Task]) -> None:
        """Take note of tasks that are new, or that wait again because they were killed."""
        ...

    def begun(self, task: Task) -> None:
        """Take note that a task has been begun."""
        ...

    def place_root(self, slots: Slots, now_s: float) -> int:
        """Choose a computer that runs no root for the root of a job; what runs there is killed."""
        ...

    def decide(self, slots: Slots, now_s: float) -> Decision:
        """Say what is to be killed and begun; it happens at once."""
        ...
