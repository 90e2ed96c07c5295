"""The tables of agents, frameworks and clients, one row each."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from allocator.core.books.collecting import Collecting, GangOffers
from allocator.core.bounds import CAPACITY_MAX
from allocator.core.demand.own_words import OwnWords, Requested
from allocator.core.events import TOO_MANY, AgentInfo, Aside, FrameworkInfo, SetAside, bounded
from allocator.core.numba.array_structures import FEWEST, FreeRows, grow_by_kind, pair
from allocator.core.numba.columns import Table, column, listed
from allocator.core.resources import format_amount
from allocator.core.snapshot import Bools, Floats, Ints

_FEW_PAIRS = 512
"""Up to this many pairs are looked up one by one; above, each distinct pair is looked up once."""

REVOCABLE, SHARED, REFINED = 1, 2, 4
"""Bits of `ClientTable.takes`: special resources that a framework's capabilities let it use."""


class AgentTable(Table):
    """Agents by handle; row 0 is unused.

    `aside`: ignored input of agents; contains only agents with such input.
    `capacity` (K, A), in thousandths.
    `version`: grows whenever a capacity changes.
    """

    bound: Bools = column(np.bool_)
    info: list[AgentInfo | None] = listed(lambda: None)
    """None if the row is unused."""
    active: Bools = column(np.bool_)
    whitelisted: Bools = column(np.bool_)
    drained: Bools = column(np.bool_)
    """Whether an operator drains it."""
    drained_from_ms: Ints = column()
    """When a drain of the calendar begins, in ms since 1970; 0: none is ahead."""
    unavailable_from_ms: Ints = column()
    """When maintenance begins, in ms; -1: none is planned."""
    unavailable_for_ms: Ints = column()
    changed_ms: Ints = column()
    """When it was added, or last activated or deactivated."""

    DERIVED: ClassVar[tuple[str, ...]] = ("_named",)

    def __init__(self) -> None:
        super().__init__()
        self.aside: dict[int, Aside] = {}
        self.capacity: Ints = np.zeros((0, FEWEST), np.int64)
        self.version = 0
        self._named: dict[str, list[int]] | None = None

    @property
    def ready(self) -> Bools:
        """Which agents may be offered, (A,)."""
        return self.bound & self.active & self.whitelisted & ~self.drained

    @property
    def end(self) -> int:
        """The row after the last agent."""
        return len(self.bound) - int(np.argmax(self.bound[::-1])) if self.bound.any() else 0

    def is_bound(self, agent: int) -> bool:
        return 0 < agent < len(self.bound) and bool(self.bound[agent])

    def bind(self, agent: Ints, info: Sequence[AgentInfo], *, active: Bools) -> None:
        for row, its_info in zip(agent.tolist(), info, strict=True):
            self.set_info(row, its_info)
        self.bound[agent] = True
        self.active[agent] = active
        self.unavailable_from_ms[agent] = -1
        self.unavailable_for_ms[agent] = 0

    def set_info(self, agent: int, info: AgentInfo) -> None:
        self.info[agent] = info
        self._named = None
        self.aside.pop(agent, None)
        if info.set_aside:
            self.aside[agent] = bounded(info.set_aside)

    def note_too_large(self, agent: int) -> None:
        """Record that an agent has more of a resource than can be counted."""
        most = format_amount(CAPACITY_MAX)
        row = SetAside("resources", TOO_MANY, f"an amount exceeds the maximum and counts as {most}")
        self.aside[agent] = bounded([row, *self.aside.get(agent, ())])

    def reserve_kinds(self, kinds: int) -> None:
        """Give `capacity` a row for each kind, and a column for each agent."""
        self.capacity = grow_by_kind(self.capacity, kinds, len(self.bound))

    def add_capacity(self, agent: Ints, kind: Ints, amount: Ints) -> None:
        """Set amounts (N, len(kind)) of new agents."""
        row, column = np.nonzero(amount)  # zeros are not written, so that they take no memory
        self.capacity[kind[column], agent[row]] = amount[row, column]
        self.version += 1

    def set_capacity(self, agent: int, capacity: Ints) -> None:
        """Replace the capacity of an agent, (K,)."""
        changed = np.flatnonzero(self.capacity[:, agent] != capacity)
        self.capacity[changed, agent] = capacity[changed]
        self.version += 1

    def unbind(self, agent: int) -> None:
        self.clear(agent)
        self.set_capacity(agent, np.zeros(len(self.capacity), np.int64))
        self.aside.pop(agent, None)
        self._named = None

    def named(self, name: str) -> list[int]:
        """Return the agents with an id or a host name, ascending.

        Many drains may follow each other, so all names are looked up at once.
        """
        if self._named is None:
            self._named = {}
            for agent in np.flatnonzero(self.bound).tolist():
                info = self.info[agent]
                assert info is not None
                for each in {info.agent_id, info.hostname}:
                    self._named.setdefault(each, []).append(agent)
        return self._named.get(name, [])

    def __len__(self) -> int:
        return int(np.count_nonzero(self.bound))


class FrameworkTable(Table):
    """Frameworks by handle; row 0 is unused.

    `request`: the content of a framework's last REQUEST call.
    `words`: the needs stated in a framework's information.
    `unserved`: roles in which a framework is not served, because a limit is reached.
    `aside`: ignored input of frameworks; contains only frameworks with such input.
    `request_aside`: the part of `aside` that is due to REQUEST calls.
    """

    bound: Bools = column(np.bool_)
    info: list[FrameworkInfo | None] = listed(lambda: None)
    """None if the framework is unknown; it may still hold resources."""
    active: Bools = column(np.bool_)
    changed_ms: Ints = column()
    """When it subscribed, or was last activated or deactivated."""
    served: Ints = column()
    """The last turn in which it was served in any role; at first the last turn before it came."""
    clients: list[set[int]] = listed(set)
    """The rows of its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.request: dict[int, Requested] = {}
        self.words: dict[int, OwnWords] = {}
        self.unserved: dict[int, frozenset[int]] = {}
        self.aside: dict[int, Aside] = {}
        self.request_aside: dict[int, Aside] = {}

    def forget(self, framework: int) -> None:
        self.info[framework] = None
        self.bound[framework] = False
        self.active[framework] = False
        for of_framework in (
            self.request,
            self.words,
            self.unserved,
            self.aside,
            self.request_aside,
        ):
            of_framework.pop(framework, None)

    def is_bound(self, framework: int) -> bool:
        return 0 < framework < len(self.bound) and bool(self.bound[framework])

    def __len__(self) -> int:
        return int(np.count_nonzero(self.bound))


class ClientTable(Table):
    """Clients: one framework in one role each; row 0 is unused. Dictionaries are by client.

    `minimum`: alternatives, each amounts by name: an offer must reach one of them. An empty tuple:
        any non-empty offer is enough. Absent: the client has no minimum of its own.
    `unfit`: names that a client's demand or minimum contains and no agent has.
    `gangs`: number of tasks that must start together.
    `unlike`: the tasks of gangs whose tasks differ, or are for certain agents.
    `collecting`: what each collecting gang keeps; the earliest collection comes first. An entry is
        in force only while its client has `waited`.
    `gang_offers`: how clients reacted to gangs that they were offered.
    `too_large`: clients whose gang, at its turn, would not have fitted even into empty agents.
    `rests`: by principal, the time until which its gangs may not begin to collect, in ms of the
        master's clock.
    `looked_ms`: when `lasts_ms` was looked up, see `before_drains`; 0: never.
    `version`: grows whenever a client is added, leaves, or changes its state.
    `minimum_version`: grows whenever a client's own minimum changes.
    """

    # Only for detecting changes, so a restored table may start again from 0.
    DERIVED: ClassVar[tuple[str, ...]] = ("minimum_version",)

    framework: Ints = column()
    """0 if the row is free."""
    role: Ints = column()
    subscribed: Bools = column(np.bool_)
    """False if the framework left the role, but still holds something in it."""
    suppressed: Bools = column(np.bool_)
    takes: Ints = column()
    """Special resources that the framework can use: `REVOCABLE`, `SHARED`, `REFINED`, added up."""
    served: Ints = column()
    """The last turn in which it was served, see `turns`; 0: never."""
    waited: Ints = column()
    """Consecutive full cycles in which some agent could have served it, quotas aside, but it was
    offered nothing; 0 for a client that wants no offers."""
    offered_ms: Ints = column()
    """When a cycle last decided to offer it something; 0: never."""
    changed_ms: Ints = column()
    """When it subscribed to the role, or was last suppressed or revived."""
    declines: Ints = column()
    """Consecutive offers that it declined in full."""
    accepts: Ints = column()
    """Number of times that it accepted something of an offer."""
    demand: Ints = column(wide=True)
    """(C, R), in thousandths: the size of one task that is in force now."""
    learned: Ints = column(wide=True)
    """The size of one task according to acceptances and ended tasks, (C, R)."""
    prior: Ints = column(wide=True)
    """The size of one task learnt from similar frameworks, (C, R); zeros once acceptances
    contradict it."""
    by_prior: Bools = column(np.bool_)
    """Whether `demand` is `prior`."""
    guessed: Bools = column(np.bool_)
    """Whether `demand` is a prior or learnt, rather than stated."""
    mixed: Bools = column(np.bool_)
    """Its tasks need less on agents where it runs already, so no demand can be learnt."""
    lasts_ms: Ints = column()
    """The p95 of the durations of its tasks at `looked_ms`; 0: unknown."""
    hungry: Ints = column()
    """For a guessed demand: consecutive full cycles in which it was offered nothing and had not
    declined anything."""
    probes: Ints = column()
    """Number of times that it was offered all free resources because of `hungry`."""
    used: Floats = column(np.float64, wide=True)
    """(C, R), in thousandths: what it held on average, see `usage_memory`; zeros if not kept."""
    used_agents: Floats = column(np.float64)
    """Number of agents on which it held something, on average."""
    weight: Floats = column(np.float64)
    """Multiplies the weight of its role; 0 if the row is unused."""
    demand_source: list[str] = listed(str)
    """``request``, ``label``, ``operator``, ``learned``, ``prior``, or empty if the demand is
    unknown."""

    def __init__(self) -> None:
        super().__init__()
        self.minimum: dict[int, tuple[Mapping[str, int], ...]] = {}
        self.unfit: dict[int, frozenset[str]] = {}
        self.gangs: dict[int, int] = {}
        self.unlike: dict[int, Requested] = {}
        self.collecting: dict[int, Collecting] = {}
        self.gang_offers: dict[int, GangOffers] = {}
        self.too_large: set[int] = set()
        self.rests: dict[str, int] = {}
        self.looked_ms = 0
        self.version = 0
        self.minimum_version = 0
        self._row: dict[tuple[int, int], int] = {}
        self._free = FreeRows(first=1)

    def row(self, framework: int, role: int) -> int:
        """Return the row of a client; 0: none."""
        return self._row.get((framework, role), 0)

    def rows(self, framework: Ints, role: Ints) -> Ints:
        """Return the rows of clients (N,); 0: none."""
        if len(framework) <= _FEW_PAIRS or ((framework | role) >> np.int64(31)).any():
            return self._look_up(framework, role)
        # Many pairs usually name few distinct clients.
        keys, which = np.unique(pair(framework, role), return_inverse=True)
        return self._look_up(keys >> np.int64(32), keys & np.int64(2**32 - 1))[which]

    def _look_up(self, framework: Ints, role: Ints) -> Ints:
        row = self._row
        pairs = zip(framework.tolist(), role.tolist(), strict=True)
        return np.array([row.get(each, 0) for each in pairs], np.int64)

    def open(self, framework: int, role: int) -> int:
        row = self._free.take()
        self.reserve(row + 1)
        self._row[framework, role] = row
        self.framework[row] = framework
        self.role[row] = role
        self.weight[row] = 1.0
        self.version += 1
        return row

    def close(self, row: int) -> None:
        del self._row[int(self.framework[row]), int(self.role[row])]
        self.clear(row)
        if self.minimum.pop(row, None) is not None:
            self.minimum_version += 1
        self.unfit.pop(row, None)
        self.forget_gang(row)
        self._free.give(row)
        self.version += 1

    def forget_gang(self, row: int) -> None:
        for of_gang in (self.gangs, self.unlike, self.collecting, self.gang_offers):
            of_gang.pop(row, None)
        self.too_large.discard(row)

    def __len__(self) -> int:
        return len(self._row)
