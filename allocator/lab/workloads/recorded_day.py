"""What ran on a cluster, as far as its allocator's journal tells: agents, frameworks, tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core import Options, Settings
from allocator.lab.frameworks.base import Quantities
from allocator.lab.master.ledger_rows import Quota


@dataclass(frozen=True, slots=True)
class Ran:
    """What a framework had in use on an agent, from one moment to another.

    Attributes
    ----------
    framework : str
        Its id.
    role : str
    need : dict of str to int, thousandths
    wanted_ms : int
        The earliest moment at which the framework is taken to have wanted it.
    start_ms, end_ms : int
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

    Attributes
    ----------
    capacity : dict of str to int, thousandths
        By name, whatever it is reserved for; the most that it had.
    left_ms : int
        -1 where it was there at the end.
    """

    agent_id: str
    hostname: str
    capacity: Quantities
    came_ms: int
    left_ms: int = -1


@dataclass(slots=True)
class DayFramework:
    """A framework, and when it was there.

    Attributes
    ----------
    demand : dict of str to int, thousandths
        What it said that a task needs; empty: nothing.
    allowed : dict of str to frozenset of str
        By role: the ids of the agents that it could be offered; no entry: all of them.
    left_ms : int
        -1 where it was there at the end.
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

    Attributes
    ----------
    begin_ms, end_ms : int
        From the first record to the last.
    options : Options
    settings : Settings
        What operators had set at the end.
    kinds : tuple of str
        Names of the resources.
    agents, frameworks
        By id.
    ran : list of Ran
        In the order in which they ended.
    unfinished : int
        How many of these were still running at the end.
    quotas : list of (int, str, Quota)
        When a role was given which.
    weights : list of (int, mapping of str to float)
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
