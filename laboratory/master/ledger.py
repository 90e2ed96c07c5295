"""The emulated master's own books, exact and independent of the sidecar's.

The ledger plays the module's part (`DESIGN.md`): it records the capacity of every agent, and what
is offered and used, in int64 thousandths, resource by resource. `laboratory.master.gates` judges
decisions by it.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from allocator.core import AgentInfo
from laboratory.resources import (
    Amount,
    KindTable,
    Resource,
    ResourceTable,
    add,
    padded,
    plus,
    reaches,
    same,
)

RoleAgent = tuple[int, int]
"""Role and agent."""

MINIMUM: tuple[Mapping[str, int], ...] = ({"cpus": 10}, {"mem": 32_000})
"""Mesos's default: 0.01 CPUs or 32 MiB."""


class LedgerError(ValueError):
    """The emulated master broke its own rules: a defect of the simulator, not of the sidecar."""


@dataclass(slots=True)
class AgentRow:
    """An agent in the ledger.

    bound_sequence: number of the batch that binds its handle.
    capacity, held: thousandths by resource. `held` may exceed a capacity that has shrunk.
    unavailable_ms: beginning and duration of its maintenance.
    """

    info: AgentInfo
    bound_sequence: int
    capacity: list[int]
    held: list[int]
    active: bool = True
    unavailable_ms: tuple[int, int] | None = None

    def available(self) -> list[int]:
        """Resources that are not held; never negative."""
        both = zip_longest(self.capacity, self.held, fillvalue=0)
        return [c - h if c > h else 0 for c, h in both]


@dataclass(slots=True)
class FrameworkRow:
    """A framework in the ledger.

    bound_sequence: number of the batch that binds its handle.
    allowed: values that an agent may have, for each attribute named.
    minimum: thousandths by role: alternative amounts, one of which an offer must reach; empty: any
        offer will do. The master's minimum applies to roles that are not named.
    """

    framework_id: str
    bound_sequence: int
    roles: set[int]
    suppressed: set[int] = field(default_factory=set)
    capabilities: frozenset[str] = frozenset()
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    minimum: Mapping[int, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class Holding:
    """Holdings of one framework in one role on one agent, by resource."""

    offered: list[int]
    used: list[int]

    @property
    def empty(self) -> bool:
        return not any(self.offered) and not any(self.used)

    def both(self) -> Amount:
        return plus(self.offered, self.used)


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """A refusal of any offer that it covers, up to and including `expires_ms`."""

    amount: Amount
    expires_ms: int

    def covers(self, amount: Sequence[int]) -> bool:
        """Whether every entry of `amount` is at most the refused one."""
        return reaches(self.amount, amount)


@dataclass(frozen=True, slots=True)
class Quota:
    """A role's guarantees and limits, in thousandths by name."""

    guarantees: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.guarantees or self.limits)


class Ledger:
    """Capacity, offers and use of a cluster.

    names: names of the plain resources, in the order of their rows.
    minimum: thousandths; alternative amounts, one of which an offer must reach; empty: any
        non-empty offer will do.
    filter_gpus: whether agents with GPUs are only offered to frameworks with the capability.
    region: the master's; empty if it has none.
    table: resources by row.
    kinds: mapping of resources to the sidecar's kinds.
    path: of roles, by handle.
    quotas: of roles, by path.
    whitelist: hosts whose agents may be offered; None: all.
    recovery: after a failover: the number of agents, and the time, until which offers are held
        back.
    """

    def __init__(
        self,
        names: Sequence[str],
        minimum: Iterable[Mapping[str, int]] = MINIMUM,
        *,
        filter_gpus: bool = True,
        region: str = "",
    ) -> None:
        self.table = ResourceTable(names)
        self.kinds = KindTable(self.table, len(self.table))
        self.zero: Amount = (0,) * len(self.table)
        self.minimum = tuple(minimum)
        self.filter_gpus = filter_gpus
        self.region = region
        self.recovery: tuple[int, int] | None = None
        self.whitelist: frozenset[str] | None = None
        self.path: Mapping[int, str] = {}
        self.quotas: dict[str, Quota] = {}
        self.agents: dict[int, AgentRow] = {}
        self.frameworks: dict[int, FrameworkRow] = {}
        self.holdings: dict[int, dict[RoleAgent, Holding]] = {}
        self.filters: dict[int, dict[RoleAgent, list[OfferFilter]]] = {}
        self.excluded: dict[int, set[RoleAgent]] = {}
        self._expiries: list[tuple[int, int, RoleAgent]] = []
        self.used = list(self.zero)
        self.total = list(self.zero)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(resource.name for resource in self.table.resources)

    @property
    def holds_back(self) -> bool:
        """Whether all offers are held back."""
        return self.recovery is not None

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Convert thousandths by name into a row; raises LedgerError for an unknown name."""
        plain = self.table.resources[: len(self.zero)]
        unknown = set(quantities) - {resource.name for resource in plain}
        if unknown:
            raise LedgerError(f"no such resource: {', '.join(sorted(unknown))}")
        return tuple(quantities.get(resource.name, 0) for resource in plain)

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        """Convert thousandths by resource into a row; new resources get rows."""
        by_row = {self.table.row(resource): amount for resource, amount in amounts.items()}
        width = max(by_row, default=-1) + 1
        return tuple(by_row.get(row, 0) for row in range(max(width, len(self.zero))))

    def by_name(self, amount: Amount) -> Counter[str]:
        names: Counter[str] = Counter()
        for row, value in enumerate(amount):
            if value:
                names[self.table[row].name] += value
        return names

    def available(self, agent: int) -> Amount:
        """The amounts of an agent that may be offered, including shared volumes in use."""
        row = self.agents[agent]
        free = padded(row.available(), len(self.zero))
        if len(row.capacity) <= len(self.zero):
            return free
        # A shared volume is offered by its capacity, however much is held.
        capacity = padded(row.capacity, len(free))
        return tuple(
            there if there and self.table[each].shared else value
            for each, (there, value) in enumerate(zip(capacity, free, strict=True))
        )

    def rows(self) -> Iterator[tuple[int, int, int, Holding]]:
        """Every holding, as (framework, role, agent, holding)."""
        for framework, places in self.holdings.items():
            for (role, agent), holding in places.items():
                yield framework, role, agent, holding

    # Agents.

    def add_agent(self, agent: int, row: AgentRow) -> None:
        """Bind a free handle to an agent without holdings."""
        if agent in self.agents or any(row.held):
            raise LedgerError(f"agent {agent} is bound already, or does not start empty")
        self.agents[agent] = row
        add(self.total, row.capacity)

    def resize_agent(self, agent: int, capacity: Amount) -> None:
        """Change the agent's capacity; holdings stay."""
        row = self.agents[agent]
        add(self.total, row.capacity, -1)
        row.capacity = list(capacity)
        add(self.total, row.capacity)

    def remove_agent(self, agent: int) -> None:
        """Remove the agent and everything held on it."""
        add(self.total, self.agents.pop(agent).capacity, -1)
        # Its holdings, filters and exclusions go as well.
        for places in self.holdings.values():
            for place in [place for place in places if place[1] == agent]:
                add(self.used, places.pop(place).used, -1)
        self.drop_filters(agent)
        for excluded in self.excluded.values():
            excluded -= {place for place in excluded if place[1] == agent}

    def drop_filters(self, agent: int) -> None:
        """Drop the filters on an agent that is removed or has changed."""
        for filters in self.filters.values():
            _drop(filters, lambda place: place[1] == agent)

    # Frameworks.

    def add_framework(self, framework: int, row: FrameworkRow) -> None:
        """Bind a free handle to a framework; holdings recovered for it stay."""
        if framework in self.frameworks:
            raise LedgerError(f"framework {framework} is bound already")
        self.frameworks[framework] = row
        self.holdings.setdefault(framework, {})
        self.filters[framework] = {}
        self.excluded[framework] = set()

    def remove_framework(self, framework: int) -> None:
        """Remove the framework; its holdings become free."""
        del self.frameworks[framework], self.filters[framework], self.excluded[framework]
        for (_, agent), holding in self.holdings.pop(framework).items():
            add(self.agents[agent].held, holding.offered, -1)
            add(self.agents[agent].held, holding.used, -1)
            add(self.used, holding.used, -1)

    def deactivate_framework(self, framework: int) -> None:
        """Stop offers to it, and drop its filters."""
        self.frameworks[framework].active = False
        self.filters[framework].clear()

    def suppress(self, framework: int, roles: Iterable[int] = ()) -> None:
        """Stop offers in these roles; in all roles if none is named."""
        row = self.frameworks[framework]
        row.suppressed |= set(roles) or row.roles

    def revive(self, framework: int, roles: Iterable[int] = ()) -> None:
        """Resume offers in these roles, in all if none is named, and drop their filters."""
        row = self.frameworks[framework]
        named = set(roles) or row.roles
        row.suppressed -= named
        _drop(self.filters[framework], lambda place: place[0] in named)

    def change_roles(self, framework: int, roles: Iterable[int], suppressed: Iterable[int]) -> None:
        """Change the subscribed roles; drop filters of roles that were left or unsuppressed."""
        row = self.frameworks[framework]
        asleep = set(suppressed)
        # Roles that it left, and roles in which offers resume.
        dropped = (row.roles - set(roles)) | (row.suppressed - asleep)
        row.roles, row.suppressed = set(roles), asleep
        _drop(self.filters[framework], lambda place: place[0] in dropped)

    # Holdings.

    def offer(self, framework: int, place: RoleAgent, amount: Amount) -> None:
        if not reaches(self.available(place[1]), amount):
            raise LedgerError(f"{amount} is more than is free on agent {place[1]}")
        self.hold(framework, place, amount)

    def recover(self, framework: int, place: RoleAgent, amount: Amount) -> None:
        """Book running tasks of a returning agent; the framework may be unknown yet."""
        self.hold(framework, place, amount)
        self.use(framework, place, amount)

    def hold(self, framework: int, place: RoleAgent, amount: Amount) -> None:
        """Book an amount as offered, without checking that it is free."""
        places = self.holdings.setdefault(framework, {})
        holding = places.setdefault(place, Holding(list(self.zero), list(self.zero)))
        add(self.agents[place[1]].held, amount)
        add(holding.offered, amount)

    def convert(
        self, framework: int, place: RoleAgent, consumed: Amount, converted: Amount
    ) -> None:
        """Convert offered resources, and the agent's capacity with them."""
        holding = self.holdings[framework][place]
        _take(holding.offered, consumed)
        add(holding.offered, converted)
        row = self.agents[place[1]]
        add(row.held, consumed, -1)
        add(row.held, converted)
        self._turn(row, consumed, converted)

    def convert_free(self, agent: int, consumed: Amount, converted: Amount) -> None:
        """Convert free resources."""
        row = self.agents[agent]
        if not reaches(row.available(), consumed):
            raise LedgerError(f"{consumed} is more than is free on agent {agent}")
        self._turn(row, consumed, converted)

    def _turn(self, row: AgentRow, consumed: Amount, converted: Amount) -> None:
        """Change the capacities of an agent and of the cluster."""
        for amounts in (row.capacity, self.total):
            add(amounts, consumed, -1)
            add(amounts, converted)

    def use(self, framework: int, place: RoleAgent, amount: Amount) -> None:
        holding = self.holdings[framework][place]
        _take(holding.offered, amount)
        add(holding.used, amount)
        add(self.used, amount)

    def release(self, framework: int, place: RoleAgent, amount: Amount, *, used: bool) -> None:
        """Release resources, from use or from an offer."""
        places = self.holdings[framework]
        holding = places[place]
        _take(holding.used if used else holding.offered, amount)
        add(self.agents[place[1]].held, amount, -1)
        if used:
            add(self.used, amount, -1)
        if holding.empty:
            del places[place]

    def add_filter(self, framework: int, place: RoleAgent, added: OfferFilter) -> None:
        self.filters[framework].setdefault(place, []).append(added)
        heapq.heappush(self._expiries, (added.expires_ms, framework, place))

    def expire(self, now_ms: int) -> None:
        """Drop expired filters."""
        while self._expiries and self._expiries[0][0] < now_ms:
            _, framework, place = heapq.heappop(self._expiries)
            filters = self.filters.get(framework, {})
            # The queued entry may be outdated: check the filters themselves.
            left = [f for f in filters.get(place, ()) if f.expires_ms >= now_ms]
            if left:
                filters[place] = left
            else:
                filters.pop(place, None)

    def forget(self) -> None:
        """Clear everything but quotas, as for a new master."""
        for table in (self.agents, self.frameworks, self.holdings, self.filters, self.excluded):
            table.clear()
        self._expiries.clear()
        self.used, self.total = list(self.zero), list(self.zero)

    def check(self) -> None:
        """Verify that the books add up; raises AssertionError if not."""
        # Sum up the holdings, and compare with the running totals.
        held: dict[int, Amount] = dict.fromkeys(self.agents, ())
        used: Amount = ()
        for _, _, agent, holding in self.rows():
            assert min(holding.offered + holding.used) >= 0, "a negative holding"
            assert not holding.empty, "an empty holding"
            held[agent] = plus(held[agent], holding.both())
            used = plus(used, holding.used)
        for agent, row in self.agents.items():
            booked = row.held
            assert same(booked, held[agent]), f"agent {agent}: {booked} booked, {held[agent]} held"
        assert same(self.used, used), f"{self.used} booked as used, {used} used"
        total: Amount = ()
        for row in self.agents.values():
            total = plus(total, row.capacity)
        assert same(self.total, total), f"{self.total} booked as total, {total} there"


def _drop(filters: dict[RoleAgent, list[OfferFilter]], which: Callable[[RoleAgent], bool]) -> None:
    for place in [place for place in filters if which(place)]:
        del filters[place]


def _take(row: list[int], amount: Amount) -> None:
    """Subtract an amount that the row must contain."""
    if not reaches(row, amount) or min(amount, default=0) < 0:
        raise LedgerError(f"{amount} cannot be taken from {tuple(row)}")
    add(row, amount, -1)
