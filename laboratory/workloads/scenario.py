"""The interface of workloads, and their progress."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from laboratory.frameworks.base import Framework, Identity, Quantities
from laboratory.master.emulated import EmulatedMaster
from laboratory.resources import AgentSpec


@dataclass(slots=True)
class JobProgress:
    """The progress of a workload.

    jobs: number of all jobs.
    submitted_ms, ended_ms: role and time of each job that has registered, and of each that has
        left.
    exhausted_ms: when each source of jobs submitted its last job.
    """

    jobs: int
    submitted_ms: list[tuple[str, int]] = field(default_factory=list)
    ended_ms: list[tuple[str, int]] = field(default_factory=list)
    exhausted_ms: list[int] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return len(self.ended_ms) >= self.jobs


@dataclass(frozen=True, slots=True)
class JobStage:
    """The environment that a workload is played in.

    tell_demand: whether frameworks declare the needs of a task.
    """

    master: EmulatedMaster
    progress: JobProgress
    tell_demand: bool

    def identity(self, name: str, role: str, need: Quantities) -> Identity:
        """The description of a framework without special options."""
        return Identity(name, (role,), dict(need) if self.tell_demand else {})

    def submit(self, framework: Framework) -> None:
        role = framework.identity.roles[0]
        self.progress.submitted_ms.append((role, self.master.event_heap.now_ms))
        self.master.subscribe(framework)

    def ended(self, role: str) -> None:
        self.progress.ended_ms.append((role, self.master.event_heap.now_ms))

    def exhausted(self) -> None:
        """Note that a source of jobs is exhausted."""
        self.progress.exhausted_ms.append(self.master.event_heap.now_ms)

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        self.master.event_heap.at(time_ms, action)


class InTurn:
    """Submits the jobs of a queue, each when the previous one has left.

    jobs: each makes its framework, given a callback for when it has left.
    gaps_ms: from the end of a job to the next one.
    """

    def __init__(
        self,
        stage: JobStage,
        role: str,
        jobs: Sequence[Callable[[Callable[[], None]], Framework]],
        gaps_ms: Iterator[int],
    ) -> None:
        self._stage = stage
        self._role = role
        self._to_come = list(reversed(jobs))
        self._gaps_ms = gaps_ms

    def submit(self) -> None:
        self._stage.submit(self._to_come.pop()(self._left))
        if not self._to_come:
            self._stage.exhausted()

    def _left(self) -> None:
        self._stage.ended(self._role)
        if self._to_come:
            self._stage.master.event_heap.after(next(self._gaps_ms), self.submit)


class Scenario(Protocol):
    """A cluster and its workload."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the resources."""

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        """Agents, with their registration times."""

    @property
    def jobs(self) -> int:
        """Number of all jobs."""

    def begin(self, stage: JobStage) -> None:
        """Schedule all submissions."""


def set_stage(scenario: Scenario, master: EmulatedMaster, *, tell_demand: bool) -> JobProgress:
    """Schedule registrations of agents and submissions of jobs; returns the progress."""
    progress = JobProgress(scenario.jobs)
    for register_ms, spec in scenario.agents:
        master.event_heap.at(register_ms, partial(master.add_agent, spec))
    scenario.begin(JobStage(master, progress, tell_demand))
    return progress
