"""What ran on a cluster, as far as its allocator's journal tells: agents, frameworks, tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core import Options, Settings
from allocator.lab.frameworks.base import Quantities
from allocator.lab.master.ledger_rows import Quota


@dataclass(frozen=True, slots=True)
class Ran:
    """What a framework had in use on an agent, from one moment to another.

    framework: its id.
    need: thousandths
    wanted_ms: the earliest moment at which the framework is taken to have wanted it.
    """

    framework: str
    role: str
    need: Quantities
    wanted_ms: int
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class DayAgent:
    """An agent, and when it was there.

    capacity: thousandths; by name, whatever it is reserved for; the most that it had.
    left_ms: -1 where it was there at the end.
    """

    agent_id: str
    hostname: str
    capacity: Quantities
    came_ms: int
    left_ms: int = -1


@dataclass(slots=True)
class DayFramework:
    """A framework, and when it was there.

    demand: thousandths; what it said that a task needs; empty: nothing.
    allowed: by role: the ids of the agents that it could be offered; no entry: all of them.
    left_ms: -1 where it was there at the end.
    """

    framework_id: str
    name: str
    roles: tuple[str, ...]
    came_ms: int
    demand: Quantities = field(default_factory=dict)
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    left_ms: int = -1


@dataclass(slots=True)
class Day:
    """All that was recorded; times are in milliseconds of the master's clock.

    begin_ms, end_ms: from the first record to the last.
    settings: what operators had set at the end.
    kinds: names of the resources.
    agents, frameworks: by id.
    ran: in the order in which they ended.
    unfinished: how many of these were still running at the end.
    quotas: when a role was given which.
    """

    begin_ms: int = 0
    end_ms: int = 0
    options: Options = field(default_factory=Options)
    settings: Settings | None = None
    kinds: tuple[str, ...] = ()
    agents: dict[str, DayAgent] = field(default_factory=dict)
    frameworks: dict[str, DayFramework] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    unfinished: int = 0
    quotas: list[tuple[int, str, Quota]] = field(default_factory=list)
    weights: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
