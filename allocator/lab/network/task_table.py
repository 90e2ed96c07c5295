"""Tasks as columns, by their numbers: what a network of thousands of them is built from quickly."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from allocator.lab.network.inputs import Crossing
from allocator.lab.network.workflow import Task

Ints = NDArray[np.int64]

_FIRST = 256


class Triples:
    """Task, place and cost, in three columns that grow."""

    def __init__(self) -> None:
        self._columns = np.zeros((3, 0), np.int64)
        self._new: list[tuple[int, int, int]] = []

    def add(self, number: int, place: int, cost: int) -> None:
        """Put one at the end."""
        self._new.append((number, place, cost))

    def columns(self) -> Ints:
        """All of them, (3, P)."""
        if self._new:
            new = np.array(self._new, np.int64).T
            self._columns = np.concatenate([self._columns, new], axis=1)
            self._new.clear()
        return self._columns


class TaskTable:
    """What there is to know about each task, by its number.

    waits (N,)
    job, computer (N,): the computer is -1 for tasks that do not run.
    since_s, waited_s, ran_s (N,): as in `Task`.
    anywhere, here (N,): cost of the data that crosses switches, at worst and where the task runs.
    computers, racks: preferred ones, and the cost there: for a rack that of its worst computer.
    """

    def __init__(self, cost: Callable[[Crossing], int]) -> None:
        """Begin without tasks; the function says what moving data costs."""
        self._cost = cost
        self.tasks: list[Task] = []
        self.computers, self.racks = Triples(), Triples()
        self.waits = np.zeros(_FIRST, np.bool_)
        self.job, self.anywhere, self.here = (np.zeros(_FIRST, np.int64) for _ in range(3))
        self.computer = np.full(_FIRST, -1)
        self.since_s, self.waited_s, self.ran_s = (np.zeros(_FIRST) for _ in range(3))

    def wait(self, tasks: Sequence[Task]) -> None:
        """Take note of tasks that wait: new ones, in the order of their numbers, or killed ones."""
        for task in tasks:
            if task.number == len(self.tasks):
                self._add(task)
            self.waits[task.number], self.computer[task.number] = True, -1
            self._times(task)

    def run(self, task: Task) -> None:
        """Take note that a task runs."""
        self.waits[task.number], self.computer[task.number] = False, task.computer
        self.here[task.number] = self._cost(task.input.crossing(task.computer))
        self._times(task)

    def _times(self, task: Task) -> None:
        at = task.number
        self.since_s[at], self.waited_s[at], self.ran_s[at] = (
            task.since_s,
            task.waited_s,
            task.ran_s,
        )

    def _add(self, task: Task) -> None:
        if task.number == len(self.waits):
            self._grow()
        self.tasks.append(task)
        at, read = task.number, task.input
        self.job[at], self.anywhere[at] = task.job, self._cost(read.worst())
        for computer in read.preferred_computers().tolist():
            self.computers.add(at, computer, self._cost(read.crossing(computer)))
        for rack in read.preferred_racks().tolist():
            self.racks.add(at, rack, self._cost(read.worst_in_rack(rack)))

    def _grow(self) -> None:
        for name in ("waits", "job", "anywhere", "here", "since_s", "waited_s", "ran_s"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
        self.computer = np.concatenate([self.computer, np.full_like(self.computer, -1)])
