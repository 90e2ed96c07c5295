"""A copy of what the core knows at one moment, small enough to be taken between two batches.

The thread of the core makes the copy; whoever asked computes shares from it on its own thread.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from allocator import measures
from allocator.core import (
    Allocator,
    AskedRow,
    Bools,
    Floats,
    FrameworkInfo,
    Ints,
    PolicySpec,
    State,
    asked_rows,
)
from allocator.server.reports import learned_demands, quotas
from allocator.server.reports.quotas import Overdue, QuotaRows

COMMON_MAX = 24
"""So many resources have series of each framework and role; few clusters have ten."""


@dataclass(frozen=True)
class ClientRows:
    """The clients (one framework in one role each), n of them.

    `framework`, `role` (n,): handles.
    `info`: None where the framework holds something but was not added yet.
    `held`, `offered`, `demand` (n, R), in thousandths; `active`, `suppressed` (n,).
    `live` (n,): may be offered something.
    `agents`, `filters` (n,).
    `offer_age_s` (n,): how long something has been on offer to it without a break; 0 where nothing
        is.
    `waited` (n,): full cycles in a row in which it could have been served, and was not.
    `weight` (n,): beside that of its role.
    """

    framework: Ints
    role: Ints
    info: list[FrameworkInfo | None]
    held: Ints
    offered: Ints
    demand: Ints
    demand_source: list[str]
    active: Bools
    suppressed: Bools
    live: Bools
    agents: Ints
    filters: Ints
    offer_age_s: Floats
    waited: Ints
    weight: Floats


@dataclass(frozen=True)
class RoleRows:
    """The roles by handle; row 0 is the root.

    `parent`, `depth` (m,); `weight` (m,); `bound` (m,).
    """

    path: list[str]
    parent: Ints
    depth: Ints
    weight: Floats
    bound: Bools


@dataclass(frozen=True)
class AgentCounts:
    """Agents by what keeps them from being offered, if anything."""

    active: int = 0
    inactive: int = 0
    unlisted: int = 0
    """Not on the whitelist."""
    drained: int = 0
    """By operators, and neither of these."""

    @property
    def total(self) -> int:
        """All agents."""
        return self.active + self.inactive + self.unlisted + self.drained


@dataclass(frozen=True)
class AsideCounts:
    """Whose words are set aside now.

    `reasons`: rows, by reason.
    `example`: name or id of one of the frameworks; else the host of an agent.
    """

    frameworks: int = 0
    agents: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    example: str = ""


@dataclass(frozen=True)
class Report:
    """The copy, and what is computed of it.

    `resources`, R names.
    `counted` (R,): which resources count towards shares.
    `total` (R,), in thousandths: capacity of all agents.
    `common` (R,): the resources that most agents have, of which frameworks and roles have series of
        their own.
    `asked`: who is asked to leave agents, for longest first.
    """

    policy: PolicySpec
    resources: tuple[str, ...]
    counted: Bools
    total: Ints
    common: Bools
    agents: AgentCounts
    frameworks: int
    frameworks_active: int
    filters: int
    outstanding: int
    clients: ClientRows
    roles: RoleRows
    quotas: QuotaRows
    overdue: Overdue
    remembered: learned_demands.RememberedDemands
    aside: AsideCounts = field(default_factory=AsideCounts)
    asked: tuple[AskedRow, ...] = ()

    @property
    def role_count(self) -> int:
        """How many roles there are, without the root."""
        return int(self.roles.bound.sum()) - 1

    @cached_property
    def weight(self) -> Floats:
        """What each client's share is divided by, (n,): times its role's where all compete."""
        if self.policy.flat:
            return self.clients.weight * self.roles.weight[self.clients.role]
        return self.clients.weight

    @cached_property
    def share(self) -> Floats:
        """Dominant share of each client, (n,)."""
        return measures.dominant_share(self.clients.held, self.total, self.counted)

    @cached_property
    def weighted_share(self) -> Floats:
        """Dominant share of each client by its weight, (n,)."""
        return self.share / self.weight

    @cached_property
    def offered_share(self) -> Floats:
        """Dominant share of what each client is offered and does not use, (n,)."""
        return measures.dominant_share(self.clients.offered, self.total, self.counted)

    @cached_property
    def role_held(self) -> Ints:
        """What the clients of each role and of its descendants hold, (m, R)."""
        return self._up_the_tree(self.clients.held)

    @cached_property
    def role_offered(self) -> Ints:
        """The part of `role_held` that is not in use yet, (m, R)."""
        return self._up_the_tree(self.clients.offered)

    @cached_property
    def role_share(self) -> Floats:
        """Dominant share of each role, (m,)."""
        return measures.dominant_share(self.role_held, self.total, self.counted)

    @cached_property
    def role_weighted_share(self) -> Floats:
        """Dominant share of each role by its weight, (m,); 0 of rows that are free."""
        weight = self.roles.weight
        return np.divide(self.role_share, weight, np.zeros(len(weight)), where=weight > 0)

    @cached_property
    def role_offered_share(self) -> Floats:
        """Dominant share of what each role is offered and does not use, (m,)."""
        return measures.dominant_share(self.role_offered, self.total, self.counted)

    @cached_property
    def role_filters(self) -> Ints:
        """Refusals in force of the clients of each role and of its descendants, (m,)."""
        return self._up_the_tree(self.clients.filters[:, None])[:, 0]

    @cached_property
    def role_live(self) -> Bools:
        """Whether a client of the role or its descendants may be offered something, (m,)."""
        live = np.zeros((len(self.roles.path), 1), np.int64)
        np.add.at(live, self.clients.role[self.clients.live], 1)
        return self.roles.bound & (self._sum_to_parents(live)[:, 0] > 0)

    @cached_property
    def held(self) -> Ints:
        """What all clients hold, (R,)."""
        return self.clients.held.sum(axis=0)

    @cached_property
    def offered(self) -> Ints:
        """What is offered to all clients and not in use yet, (R,)."""
        return self.clients.offered.sum(axis=0)

    @cached_property
    def jain_frameworks(self) -> float:
        """Jain's index of the weighted shares of the clients that may be offered something."""
        return measures.jain_index(self.weighted_share[self.clients.live])

    @cached_property
    def jain_roles(self) -> float:
        """The same for the roles below the root, those with such a client in them."""
        rows = self.role_live & (self.roles.depth == 1)
        return measures.jain_index(self.role_weighted_share[rows])

    @cached_property
    def envy_max(self) -> float:
        """How many more tasks a client could run with another's bundle; nan: not computed."""
        live = self.clients.live
        return measures.envy_max(
            self.clients.held[live], self.clients.demand[live], self.weight[live]
        )

    def dominant_resource(self, held: Ints) -> list[str]:
        """Name of the resource with the largest share in each row of (n, R); empty if none."""
        share = measures.resource_share(held, self.total) * self.counted
        if not share.size:
            return [""] * len(share)
        largest = zip(share.argmax(axis=1).tolist(), share.max(axis=1).tolist(), strict=True)
        return [self.resources[column] if part > 0 else "" for column, part in largest]

    def _up_the_tree(self, of_client: Ints) -> Ints:
        of_role = np.zeros((len(self.roles.path), of_client.shape[1]), np.int64)
        np.add.at(of_role, self.clients.role, of_client)
        return self._sum_to_parents(of_role)

    def _sum_to_parents(self, of_role: Ints) -> Ints:
        """Add each role's row to its ancestors', level by level from the deepest."""
        depth = np.where(self.roles.bound, self.roles.depth, 0)
        for level in range(int(depth.max(initial=0)), 0, -1):
            rows = np.flatnonzero(depth == level)
            np.add.at(of_role, self.roles.parent[rows], of_role[rows])
        return of_role


def read(allocator: Allocator) -> Report:
    """Copy what the core knows; on the core's thread."""
    state = allocator.state
    space = state.space
    quota_rows, overdue = quotas.read(allocator)
    return Report(
        policy=allocator.settings.policy,
        resources=tuple(space.names),
        counted=space.counted,
        total=state.total_by_column(),
        common=_common(state),
        agents=_agents(state),
        frameworks=len(state.frameworks),
        frameworks_active=int((state.frameworks.bound & state.frameworks.active).sum()),
        filters=len(state.filters),
        outstanding=len(state.tentative),
        clients=_clients(state),
        roles=_roles(state),
        quotas=quota_rows,
        overdue=overdue,
        remembered=learned_demands.read(state),
        aside=_aside(state),
        asked=asked_rows(state),
    )


def _aside(state: State) -> AsideCounts:
    frameworks, agents = state.frameworks.aside, state.agents.aside
    every = chain(chain.from_iterable(frameworks.values()), chain.from_iterable(agents.values()))
    example = ""
    for handle in frameworks:
        info = state.frameworks.info[handle]
        example = (info.name or info.framework_id) if info else ""
        break
    for handle in () if frameworks else agents:
        agent = state.agents.info[handle]
        example = (agent.hostname or agent.agent_id) if agent else ""
        break
    reasons = Counter(row.reason for row in every)
    return AsideCounts(len(frameworks), len(agents), reasons, example)


def _common(state: State) -> Bools:
    """The resources that most agents have: any agent may make some up."""
    count = state.agents_by_column()
    common = np.zeros(len(count), np.bool_)
    common[np.argsort(-count, kind="stable")[:COMMON_MAX]] = True
    return common & (count > 0)


def _agents(state: State) -> AgentCounts:
    agents = state.agents
    active = agents.bound & agents.active
    listed = active & agents.whitelisted
    return AgentCounts(
        active=int(agents.ready.sum()),
        inactive=int((agents.bound & ~agents.active).sum()),
        unlisted=int((active & ~listed).sum()),
        drained=int((listed & agents.drained).sum()),
    )


def _clients(state: State) -> ClientRows:
    clients, books = state.clients, state.ledger.books
    rows = np.flatnonzero(clients.framework)
    framework = clients.framework[rows]
    info, source = state.frameworks.info, clients.demand_source
    since_ms = state.ledger.oldest_offer_ms()[rows]
    return ClientRows(
        framework=framework,
        role=clients.role[rows],
        info=[info[handle] for handle in framework.tolist()],
        held=state.space.by_column(books.client_held[rows]),
        offered=state.space.by_column(books.client_offered[rows]),
        demand=clients.demand[rows],
        demand_source=[source[row] for row in rows.tolist()],
        active=state.frameworks.active[framework],
        suppressed=clients.suppressed[rows],
        live=state.live_clients()[rows],
        agents=books.agents_held[rows],
        filters=state.filters.rows.per_client[rows],
        offer_age_s=np.where(since_ms >= 0, state.now_ms - since_ms, 0) / 1000,
        waited=clients.waited[rows],
        weight=clients.weight[rows],
    )


def _roles(state: State) -> RoleRows:
    roles = state.roles
    count = len(roles.path)
    return RoleRows(
        path=list(roles.path),
        parent=roles.parent[:count].copy(),
        depth=roles.depth[:count].copy(),
        weight=roles.weight[:count].copy(),
        bound=roles.bound[:count].copy(),
    )
