"""The emulated master's own books, exact and independent of the sidecar's.

The ledger plays the module's part (`DESIGN.md`): it holds what every agent has, what is offered and
what is used, in int64 thousandths. `allocator.sim.gates` judges decisions by it.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

from allocator.sim.books import (
    AgentRow,
    Amount,
    FrameworkRow,
    Holding,
    LedgerError,
    Place,
    Refusal,
    add,
    reaches,
)

MINIMUM: tuple[Mapping[str, int], ...] = ({"cpus": 10}, {"mem": 32_000})
"""Mesos's default: 0.01 CPUs or 32 MiB."""


class Ledger:
    """Capacity, offers and use of a cluster.

    Parameters
    ----------
    kinds : sequence of str
        Names of the resources; the position is the kind's handle.
    minimum : sequence of mapping of str to int, thousandths
        An offer must reach all amounts of one of these; none given: anything that is not empty.
    filter_gpus : bool
        Whether agents with GPUs are only for frameworks with the capability.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        minimum: Iterable[Mapping[str, int]] = MINIMUM,
        *,
        filter_gpus: bool = True,
    ) -> None:
        self.kinds = tuple(kinds)
        self.zero: Amount = (0,) * len(self.kinds)
        self.minimum = [self.amount(row) for row in minimum]
        self.filter_gpus = filter_gpus
        self.paused = False
        self.agents: dict[int, AgentRow] = {}
        self.frameworks: dict[int, FrameworkRow] = {}
        self.holdings: dict[int, dict[Place, Holding]] = {}
        self.filters: dict[int, dict[Place, list[Refusal]]] = {}
        self.excluded: dict[int, set[Place]] = {}
        self._expiries: list[tuple[int, int, Place]] = []
        self.used = list(self.zero)
        self.total = list(self.zero)

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Thousandths by name as a row; a name that the ledger does not know is an error."""
        unknown = set(quantities) - set(self.kinds)
        if unknown:
            message = f"no such resource: {', '.join(sorted(unknown))}"
            raise LedgerError(message)
        return tuple(quantities.get(name, 0) for name in self.kinds)

    def rows(self) -> Iterator[tuple[int, int, int, Holding]]:
        """Every holding, as (framework, role, agent, holding)."""
        for framework, places in self.holdings.items():
            for (role, agent), holding in places.items():
                yield framework, role, agent, holding

    # Agents.

    def add_agent(self, agent: int, row: AgentRow) -> None:
        """Bind a free handle to an agent of which nothing is held."""
        if agent in self.agents or any(row.held):
            message = f"agent {agent} is bound already, or does not start empty"
            raise LedgerError(message)
        self.agents[agent] = row
        add(self.total, row.capacity)

    def resize_agent(self, agent: int, capacity: Amount) -> None:
        """Give the agent another capacity; what is held stays held."""
        row = self.agents[agent]
        add(self.total, row.capacity, -1)
        row.capacity = list(capacity)
        add(self.total, row.capacity)

    def remove_agent(self, agent: int) -> None:
        """Forget the agent, with all that is held on it."""
        add(self.total, self.agents.pop(agent).capacity, -1)
        for framework in self.frameworks:
            places = self.holdings[framework]
            for place in [place for place in places if place[1] == agent]:
                add(self.used, places.pop(place).used, -1)
            filters = self.filters[framework]
            for place in [place for place in filters if place[1] == agent]:
                del filters[place]
            excluded = self.excluded[framework]
            excluded -= {place for place in excluded if place[1] == agent}

    # Frameworks.

    def add_framework(self, framework: int, row: FrameworkRow) -> None:
        """Bind a free handle to a framework that holds nothing."""
        if framework in self.frameworks:
            message = f"framework {framework} is bound already"
            raise LedgerError(message)
        self.frameworks[framework] = row
        self.holdings[framework] = {}
        self.filters[framework] = {}
        self.excluded[framework] = set()

    def remove_framework(self, framework: int) -> None:
        """Forget the framework; what it held is free again."""
        del self.frameworks[framework], self.filters[framework], self.excluded[framework]
        for (_, agent), holding in self.holdings.pop(framework).items():
            add(self.agents[agent].held, holding.offered, -1)
            add(self.agents[agent].held, holding.used, -1)
            add(self.used, holding.used, -1)

    def deactivate_framework(self, framework: int) -> None:
        """Make no more offers to it. Its filters are dropped."""
        self.frameworks[framework].active = False
        self.filters[framework].clear()

    def suppress(self, framework: int, roles: Iterable[int] = ()) -> None:
        """Make no offers in these roles (none named: all)."""
        row = self.frameworks[framework]
        row.suppressed |= set(roles) or row.roles

    def revive(self, framework: int, roles: Iterable[int] = ()) -> None:
        """Make offers again in these roles (none named: all). Their filters are dropped."""
        row = self.frameworks[framework]
        named = set(roles) or row.roles
        row.suppressed -= named
        filters = self.filters[framework]
        for place in [place for place in filters if place[0] in named]:
            del filters[place]

    def change_roles(self, framework: int, roles: Iterable[int], suppressed: Iterable[int]) -> None:
        """Subscribe to other roles: those that go lose their filters, as those that awake do."""
        row = self.frameworks[framework]
        asleep = set(suppressed)
        dropped = (row.roles - set(roles)) | (row.suppressed - asleep)
        row.roles, row.suppressed = set(roles), asleep
        filters = self.filters[framework]
        for place in [place for place in filters if place[0] in dropped]:
            del filters[place]

    # Holdings.

    def offer(self, framework: int, place: Place, amount: Amount) -> None:
        """Book an offer."""
        row = self.agents[place[1]]
        if not reaches(row.available(), amount):
            message = f"{amount} is more than is free on agent {place[1]}"
            raise LedgerError(message)
        add(row.held, amount)
        holding = self.holdings[framework].setdefault(
            place, Holding(list(self.zero), list(self.zero))
        )
        add(holding.offered, amount)

    def use(self, framework: int, place: Place, amount: Amount) -> None:
        """Offered resources come into use."""
        holding = self.holdings[framework][place]
        _take(holding.offered, amount)
        add(holding.used, amount)
        add(self.used, amount)

    def release(self, framework: int, place: Place, amount: Amount, *, used: bool) -> None:
        """Resources come back, from use or from an offer."""
        places = self.holdings[framework]
        holding = places[place]
        _take(holding.used if used else holding.offered, amount)
        add(self.agents[place[1]].held, amount, -1)
        if used:
            add(self.used, amount, -1)
        if holding.empty:
            del places[place]

    def refuse(self, framework: int, place: Place, refusal: Refusal) -> None:
        """Keep a filter until it expires."""
        self.filters[framework].setdefault(place, []).append(refusal)
        heapq.heappush(self._expiries, (refusal.expires_ms, framework, place))

    def expire(self, now_ms: int) -> None:
        """Drop the filters that are not in force any more."""
        while self._expiries and self._expiries[0][0] < now_ms:
            _, framework, place = heapq.heappop(self._expiries)
            filters = self.filters.get(framework, {})
            left = [f for f in filters.get(place, ()) if f.expires_ms >= now_ms]
            if left:
                filters[place] = left
            else:
                filters.pop(place, None)

    def check(self) -> None:
        """Verify that the books add up; AssertionError where they do not."""
        held = {agent: list(self.zero) for agent in self.agents}
        used = list(self.zero)
        for framework, _, agent, holding in self.rows():
            assert framework in self.frameworks, f"framework {framework} holds but is not bound"
            assert min(holding.offered + holding.used) >= 0, "a negative holding"
            assert not holding.empty, "an empty holding"
            add(held[agent], holding.offered)
            add(held[agent], holding.used)
            add(used, holding.used)
        for agent, row in self.agents.items():
            assert row.held == held[agent], f"agent {agent}: {row.held} booked, {held[agent]} held"
        assert self.used == used, f"{self.used} booked as used, {used} used"
        total = list(self.zero)
        for row in self.agents.values():
            add(total, row.capacity)
        assert self.total == total, f"{self.total} booked as total, {total} there"


def _take(row: list[int], amount: Amount) -> None:
    if not reaches(row, amount) or min(amount) < 0:
        message = f"{amount} cannot be taken of {tuple(row)}"
        raise LedgerError(message)
    add(row, amount, -1)
