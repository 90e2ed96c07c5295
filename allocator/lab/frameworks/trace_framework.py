"""Frameworks that arrive at given times, each with its tasks: what traces are turned into."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from allocator.lab.frameworks.base import Quantities, TaskQueue
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Stage


@dataclass(frozen=True, slots=True)
class Arrival:
    """A framework with equal tasks.

    need: thousandths; of one task.
    durations_ms: one for each task.
    allowed: for each attribute named here, the values that an agent may have.
    """

    time_ms: int
    name: str
    role: str
    need: Quantities
    durations_ms: tuple[int, ...]
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Replay:
    """A cluster that is there from the beginning, and what arrives."""

    kinds: tuple[str, ...]
    agents: tuple[tuple[int, AgentSpec], ...]
    arrivals: tuple[Arrival, ...]

    @property
    def jobs(self) -> int:
        """How many frameworks arrive."""
        return len(self.arrivals)

    def begin(self, stage: Stage) -> None:
        """Plan all arrivals."""
        for arrival in self.arrivals:
            stage.at(arrival.time_ms, partial(_submit, stage, arrival))
        stage.at(max(arrival.time_ms for arrival in self.arrivals), stage.exhausted)


def _submit(stage: Stage, arrival: Arrival) -> None:
    plain = stage.identity(arrival.name, arrival.role, arrival.need)
    identity = replace(plain, allowed=arrival.allowed, capabilities=arrival.capabilities)
    left = partial(stage.ended, arrival.role)
    stage.submit(TaskQueue(identity, arrival.need, arrival.durations_ms, left=left))
