"""Queues of Spark jobs: the next is submitted when the one before has left."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol

from allocator.lab.frameworks.base import Framework, Identity, Quantities
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Stage


class QueuedJob(Protocol):
    """What a queue holds."""

    @property
    def executor(self) -> Quantities:
        """What one executor takes, as far as it is known before."""
        ...

    def framework(self, identity: Identity, left: Callable[[], None]) -> Framework:
        """Make the framework that the job is; it calls `left` once it has left."""
        ...


@dataclass(frozen=True, slots=True)
class JobQueue:
    """Jobs of one role, one after the other."""

    name: str
    role: str
    jobs: tuple[QueuedJob, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A cluster, and queues of Spark jobs.

    agents: when each agent registers.
    gap_ms: from the end of a job to the registration of the next of its queue, taken in turn.
    """

    agents: tuple[tuple[int, AgentSpec], ...]
    queues: tuple[JobQueue, ...]
    gap_ms: tuple[int, ...]
    kinds: tuple[str, ...] = ("cpus", "mem")

    @property
    def jobs(self) -> int:
        """How many jobs there are in all."""
        return sum(len(queue.jobs) for queue in self.queues)

    def begin(self, stage: Stage) -> None:
        """Submit the first job of every queue."""
        gaps = cycle(self.gap_ms)
        for queue in self.queues:
            stage.at(0, _Submitter(stage, queue, gaps).submit)


class _Submitter:
    def __init__(self, stage: Stage, queue: JobQueue, gaps: Iterator[int]) -> None:
        self._stage = stage
        self._queue = queue
        self._gaps = gaps
        self._next = 0

    def submit(self) -> None:
        job = self._queue.jobs[self._next]
        self._next += 1
        name = f"{self._queue.name}-{self._next}"
        identity = self._stage.identity(name, self._queue.role, job.executor)
        self._stage.submit(job.framework(identity, self._left))
        if self._next == len(self._queue.jobs):
            self._stage.exhausted()

    def _left(self) -> None:
        self._stage.ended(self._queue.role)
        if self._next < len(self._queue.jobs):
            self._stage.master.event_heap.after(next(self._gaps), self.submit)
