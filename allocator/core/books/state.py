"""The whole state of one session: tables, ledger, filters, eligibility, open decisions."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from allocator.core.books.accepted import AcceptedOffers
from allocator.core.books.eligibility import Eligibility
from allocator.core.books.ledger import Ledger
from allocator.core.books.open_decisions import OpenDecisions
from allocator.core.books.resource_space import ResourceSpace
from allocator.core.books.roles import RoleTable
from allocator.core.books.tables import AgentTable, ClientTable, FrameworkTable
from allocator.core.demand.demand_memory import DemandMemory
from allocator.core.events import Options, SetQuota
from allocator.core.filters.table import FilterTable
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.wide_tables import untouched
from allocator.core.plan import Plan
from allocator.core.settings import Settings
from allocator.core.snapshot import Bools, Ints
from allocator.rule_kinds import without_counts


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits on what a session may store.

    Handles are row numbers, so the limits on handles bound memory. Exclusions take one bit for each
    pair of client and agent. `role_depth` bounds computations that proceed level by level.
    """

    agents: int = 131_072
    frameworks: int = 65_536
    roles: int = 65_536
    role_depth: int = 64
    clients: int = 131_072
    kinds: int = 512
    filters: int = 20_000_000


class Asked(NamedTuple):
    """A request to a framework to leave an agent.

    `since_ms`: time of the first request, by the master's clock.
    `for_whom`: ids of the frameworks that should get the resources, by the plan that first required
        the request.
    `answer`: as in the protocol; empty: none yet.
    `until_ms`: when a refusal expires.
    """

    since_ms: int
    for_whom: tuple[str, ...]
    answer: str = ""
    until_ms: int = 0


@loop
def _free(capacity: Ints, held: Ints, shared: Bools, rows: Ints, free: Ints) -> None:
    """Fill in what is free on some agents (n,) of each kind, (K, n); zeros are not written."""
    for kind in range(len(capacity)):
        all_free = kind < len(shared) and shared[kind]
        for place in range(len(rows)):
            amount = capacity[kind, rows[place]]
            if not all_free:
                amount -= held[kind, rows[place]]
            if amount > 0:
                free[kind, place] = amount


class State:
    """The complete state of the allocator.

    Events change it through `allocator.core.apply`. A cycle, in `Allocator.allocate` and
    `cycle.commit`, changes the clock, expired filters, the holdings of its decisions, which clients
    were served or wait, collections of gangs, and the number of learnt durations.

    `now_ms`: the host's clock, as last reported.
    `paused_ms`: when the master last paused or resumed decisions.
    `memory`: what was learnt about frameworks, also in earlier sessions.
    `asked`: requests to leave agents, by (framework, agent) handles.
    `beyond`: the largest handle above the limit that was seen, for agents, frameworks and roles;
        0: none.
    """

    # Caches, which also change when they are read.
    DERIVED: ClassVar[tuple[str, ...]] = ("_total", "_total_version")

    def __init__(self, settings: Settings, limits: SessionLimits) -> None:
        self.settings = settings
        self.session_limits = limits
        self.options = Options()
        self.now_ms = 0
        self.paused = False
        self.paused_ms = 0
        self.whitelist: frozenset[str] | None = None
        self.quotas: dict[str, SetQuota] = {}
        self.quota_version = 0
        self.beyond = {"agents": 0, "frameworks": 0, "roles": 0}
        self.space = ResourceSpace(limits.kinds, self.options.fairness_excluded)
        self.agents = AgentTable()
        self.frameworks = FrameworkTable()
        self.roles = RoleTable()
        self.clients = ClientTable()
        self.ledger = Ledger()
        self.filters = FilterTable(limits.filters)
        self.eligibility = Eligibility()
        self.open_decisions = OpenDecisions()
        self.accepted = AcceptedOffers()
        self.memory = DemandMemory()
        self.plan: Plan | None = None
        self.asked: dict[tuple[int, int], Asked] = {}
        self._total: Ints = np.zeros(0, np.int64)
        self._total_version = -1
        self._reserved = (-1, -1, -1, -1)
        self.set_options(self.options)

    def set_options(self, options: Options) -> None:
        """Set the master's options, and begin with an empty resource space for them."""
        self.options = options
        self.space = ResourceSpace(self.session_limits.kinds, options.fairness_excluded)
        self.clients = ClientTable()  # its columns must match the new space
        settings = self.settings
        caps = (without_counts(rule.cap or {}) for rule in settings.caps.values())
        claims = (rule.claim or {} for rule in settings.claims.values())
        for amounts in (*options.minimum, *settings.limits.values(), *caps, *claims):
            self.space.quantities(amounts)
        self._reserved = (-1, -1, -1, -1)  # the new table has no columns yet
        self.reserve()

    def reserve(self, *, agents: int = 0, clients: int = 0) -> None:
        """Give all tables room for the same numbers of agents and clients, and for all kinds."""
        kinds, columns = len(self.space), len(self.space.names)
        rows_a, rows_c = len(self.agents.bound), len(self.clients.framework)
        # Called often; usually there is enough room.
        unchanged = (rows_a, rows_c, kinds, columns) == self._reserved
        if unchanged and agents <= rows_a and clients <= rows_c:
            return
        self.agents.reserve(agents)
        self.agents.reserve_kinds(kinds)
        self.clients.reserve(clients, columns)
        # These two tables double their rows; all others follow their size.
        rows_a, rows_c = len(self.agents.bound), len(self.clients.framework)
        self.ledger.reserve(agents=rows_a, clients=rows_c, kinds=kinds)
        self.filters.reserve(agents=rows_a, clients=rows_c, kinds=kinds)
        self.eligibility.reserve(agents=rows_a, clients=rows_c)
        self._reserved = (rows_a, rows_c, kinds, columns)

    @property
    def free(self) -> Ints:
        """Amounts that may be offered, (A, K); 0 where more is held than the capacity.

        Shared resources may be offered while they are held.
        """
        return self.free_on(None).T

    def free_on(self, agents: Ints | None) -> Ints:
        """Return what is free on some agents, (K, J), or on all of them."""
        held, capacity = self.ledger.books.agent_held, self.agents.capacity
        count = capacity.shape[1] if agents is None else len(agents)
        free = untouched((len(capacity), count), np.int64)
        # Beyond the last agent nothing is free.
        rows = loop_view(np.arange(self.agents.end) if agents is None else agents)
        _free(capacity, held, loop_view(self.space.shared_kind), rows, free)
        return free

    def total_by_kind(self) -> Ints:
        kinds = len(self.agents.capacity)
        if self._total_version != self.agents.version or len(self._total) != kinds:
            self._total = self.agents.capacity.sum(axis=1)
            self._total_version = self.agents.version
        return self._total

    def agents_by_column(self) -> Ints:
        """Return how many agents have each resource, (R,): the largest count of its kinds."""
        found = np.zeros(len(self.space.names), np.int64)
        has = np.count_nonzero(self.agents.capacity[: len(self.space)], axis=1)
        np.maximum.at(found, self.space.column_of_kind, has)
        return found

    def total_by_column(self) -> Ints:
        return self.space.by_column(self.total_by_kind()[:, None])[0]

    def held_by_column(self) -> Ints:
        """Return what each client holds, by name, (C, R); each shared volume counts once."""
        books, space = self.ledger.books, self.space
        if not space.shared_kind.any():
            return space.by_column(books.client_held)
        # A client holds each shared volume once, however many of its tasks use it.
        held = space.by_column(books.client_held, kinds=~space.shared_kind)
        for kind in np.flatnonzero(space.shared_kind).tolist():
            rows = np.flatnonzero(books.held[kind])
            once = np.minimum(books.held[kind, rows], self.agents.capacity[kind, books.agent[rows]])
            np.add.at(held[:, space.column_of_kind[kind]], books.client[rows], once)
        return held

    def offered_by_column(self) -> Ints:
        """Return what each client has on offer and not in use, by name, (C, R)."""
        return self.space.by_column(self.ledger.books.client_offered)

    def set_capacity(self, agent: int, capacity: Ints) -> None:
        self.agents.set_capacity(agent, capacity)
        self.ledger.books.touched[agent] = True

    def live_clients(self) -> Bools:
        """Return which clients may be offered something, (C,)."""
        clients = self.clients
        live = clients.subscribed & ~clients.suppressed & self.frameworks.active[clients.framework]
        live &= ~self.paused_roles()[clients.role]
        if satiated := self.satiated:
            live &= ~np.isin(clients.framework, satiated)
        return live & ~self.over_budget(hard=True) if self.memory.budgets.over else live

    @property
    def satiated(self) -> tuple[int, ...]:
        """The frameworks that have too many refusals in force to get offers."""
        return self.filters.satiated(self.clients.framework)

    def paused_roles(self) -> Bools:
        """Return which roles operators paused, directly or by an ancestor, (n,) by handle."""
        if not self.settings.pauses:
            return np.zeros(len(self.roles.path), np.bool_)
        return self.roles.inherit(dict.fromkeys(self.settings.pauses, 1), 0) > 0

    def over_budget(self, *, hard: bool) -> Bools:
        """Return which clients' roles are over a budget: a hard one, or one that is not, (C,)."""
        over = {path: 1 for path, is_hard in self.memory.budgets.over.items() if is_hard == hard}
        found: Bools = self.roles.inherit(over, 0)[self.clients.role] > 0
        return found

    def check(self) -> None:
        """Verify every invariant; slow. Raises AssertionError."""
        self.ledger.check(self.now_ms)
        self.filters.check()
        self.eligibility.check()
        # Held plus free equals the capacity, unless more is held than the capacity.
        held, capacity = self.ledger.books.agent_held, self.agents.capacity
        over = held > capacity
        kept = np.where(over, held, held + self.free_on(None)) == np.where(over, held, capacity)
        kept[: len(self.space)] |= self.space.shared_kind[:, None]
        assert kept.all()
        assert not held[:, ~self.agents.bound].any()
        # Every client has its row, its framework and its role; free rows hold nothing.
        clients = self.clients
        rows = np.flatnonzero(clients.framework)
        assert len(rows) == len(clients)
        for row in rows.tolist():
            framework, role = int(clients.framework[row]), int(clients.role[row])
            assert clients.row(framework, role) == row
            assert row in self.frameworks.clients[framework]
            assert self.roles.is_bound(role)
        assert not self.ledger.books.client_held[:, clients.framework == 0].any()
        assert not clients.subscribed[clients.framework == 0].any()
