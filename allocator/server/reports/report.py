"""A copy of the books at one moment, small enough to be made between two records.

The books' thread makes the copy; the thread of the request computes shares from it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from allocator import measures
from allocator.core import (
    SAMPLES_MIN,
    UNKNOWN,
    Allocator,
    Bools,
    Floats,
    Ints,
    QuotaUse,
    State,
    asked_rows,
    budget_rows,
    collectors,
)
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import types_pb2
from allocator.wire.codec.proto_types import write_budget_use


class Remembered:
    """The remembered demands that new frameworks may start with, and the results of priors so far.

    `rows`: the demands, as in a dump. Their weight is the number of lessons that agree, halved by
        those that do not, and with time; a demand counts if its weight is large enough.
    `durations`: number of names with known durations, and of those with too few ends.
    """

    def __init__(self, state: State) -> None:
        memory, settings = state.memory, state.settings
        self.rows: list[dict[str, Any]] = []
        for topic, entry in memory.entries.items():
            (role, kind, who), weight = topic, memory.weight(settings, topic)
            row = {"role": role, kind: who, "demand": dict(entry.amounts), "weight": weight}
            self.rows.append({**row, "counts": weight >= settings.learn_after})
        self.confirmed, self.refuted = memory.confirmed, memory.refuted
        self.probes = memory.probes
        durations = memory.durations.entries.values()
        known = sum(each.total >= SAMPLES_MIN for each in durations)
        self.durations = known, len(durations) - known


class Overdue(NamedTuple):
    """Numbers of clients that may be offered something and have waited longer than patience allows.

    `filters`: those with filters.
    `limit`: of the others, those in a role that has reached a limit.
    `nothing`: all others; `frameworks`: number of their frameworks.
    """

    filters: int = 0
    limit: int = 0
    nothing: int = 0
    frameworks: int = 0


def _overdue(allocator: Allocator, quotas: QuotaUse) -> Overdue:
    state = allocator.state
    patience, clients = state.settings.patience_cycles, state.clients
    if not patience:
        return Overdue()
    reached: Bools = np.asarray((quotas.left <= 0).any(axis=1))
    # Rows are ordered deepest first, so in reverse each finds the final flag of its ancestor.
    for index in range(len(reached) - 1, -1, -1):
        reached[index] |= quotas.above[index] >= 0 and reached[quotas.above[index]]
    of_role = np.append(reached, False)[quotas.of_role]
    late = np.flatnonzero(state.live_clients() & (clients.waited >= patience))
    late = late[~np.isin(late, list(collectors(state)))]  # their gangs already collect
    refuses = state.filters.rows.per_client[late] > 0
    limited = (of_role[clients.role] | allocator.capped())[late] & ~refuses
    nothing = late[~refuses & ~limited]
    frameworks = len(np.unique(clients.framework[nothing]))
    return Overdue(int(refuses.sum()), int(limited.sum()), len(nothing), frameworks)


class Gangs:
    """Gangs that wait for room.

    `too_large`: those that did not fit even on empty agents when their turn came.
    `kept` (R,), in thousandths: free amounts kept for collecting gangs.
    """

    def __init__(self, state: State) -> None:
        gangs = collectors(state)
        self.collecting, self.too_large = len(gangs), len(state.clients.too_large)
        self.kept = np.zeros(len(state.space.names), np.int64)
        for its in gangs.values():
            # Amounts that were lent since then are no longer free.
            free = state.space.by_column(state.free_on(np.array(its.agent, np.int64))).sum(axis=0)
            noted = np.array(its.kept, np.int64)  # columns may have been added
            self.kept[: len(noted)] += np.minimum(noted, free[: len(noted)])
        self.starts = copy(state.memory.durations.starts)


class ClientRows:
    """The n clients.

    `framework`, `role` (n,): handles.
    `info`: None if the framework holds something but was not added yet.
    `held`, `offered`, `demand` (n, R), in thousandths; `active`, `suppressed` (n,).
    `used` (n, R), in thousandths: held on average; None: no averages are kept.
    `live` (n,): whether it may be offered something.
    `agents`, `filters` (n,): number of agents with holdings, and of filters in force.
    `offer_age_s` (n,): for how long it has had offers without a break; 0 if it has none.
    `waited` (n,): full cycles in a row in which it could have been served, and was not.
    `weight` (n,): without that of its role.
    """

    def __init__(self, allocator: Allocator) -> None:
        state, used = allocator.state, allocator.used()
        clients, books = state.clients, state.ledger.books
        rows = np.flatnonzero(clients.framework)
        info, source = state.frameworks.info, clients.demand_source
        self.framework, self.role = clients.framework[rows], clients.role[rows]
        self.info = [info[handle] for handle in self.framework.tolist()]
        self.held = state.space.by_column(books.client_held, rows)
        self.offered = state.space.by_column(books.client_offered, rows)
        self.demand = clients.demand[rows]
        self.demand_source = [source[row] for row in rows.tolist()]
        self.active = state.frameworks.active[self.framework]
        self.suppressed, self.live = clients.suppressed[rows], state.live_clients()[rows]
        self.agents = books.agents_held[rows]
        self.filters = state.filters.rows.per_client[rows]
        since_ms = state.ledger.oldest_offer_ms()[rows]
        self.offer_age_s = np.where(since_ms >= 0, state.now_ms - since_ms, 0) / 1000
        self.waited, self.weight = clients.waited[rows], clients.weight[rows]
        self.used = None if used is None else used[rows]


class RoleRows:
    """The m roles by handle; row 0 is the root.

    `paused` (m,): whether operators paused the role or an ancestor.
    """

    def __init__(self, state: State) -> None:
        roles = state.roles
        count = len(roles.path)
        self.path, self.paused = list(roles.path), state.paused_roles()
        self.parent, self.depth = roles.parent[:count].copy(), roles.depth[:count].copy()
        self.weight, self.bound = roles.weight[:count].copy(), roles.bound[:count].copy()


class Aside(NamedTuple):
    """Frameworks and agents whose input is set aside now.

    `frameworks`: without those whose only entry is a demand that no agent can meet.
    `example`: name or id of one of the frameworks; else the host of an agent.
    """

    frameworks: int
    agents: int
    reasons: Mapping[str, int]
    example: str


class Unfit(NamedTuple):
    """Frameworks that ask for resources that no agent has.

    `example`: name or id of one of the frameworks.
    `names`: a few resources that it asks for and no agent has.
    """

    frameworks: int = 0
    example: str = ""
    names: Sequence[str] = ()


COMMON_MAX = 24
"""Maximum number of resources with series per framework and role; few clusters have ten."""


class Report:
    """The copy, and values computed from it.

    `counted` (R,): resources that count towards shares.
    `total` (R,), in thousandths: capacity of all agents.
    `common` (R,): resources that most agents have; frameworks and roles have series of these.
    `agents`: numbers of agents, by the reason, if any, that they are not offered.
    `quotas`: of the q roles with a quota or a limit; `scalar` (R,): resources with quotas.
    `asked`: clients asked to leave agents, the longest waiting first.
    """

    def __init__(self, allocator: Allocator) -> None:
        """Make the copy; on the books' thread."""
        state = allocator.state
        space, frameworks = state.space, state.frameworks
        self.policy = allocator.settings.policy
        self.resources, self.counted = tuple(space.names), space.counted
        self.total, self.common = state.total_by_column(), _common(state)
        self.agents = _agents(state)
        self.frameworks = len(frameworks)
        self.frameworks_active = int((frameworks.bound & frameworks.active).sum())
        self.filters, self.open_decisions = len(state.filters), len(state.open_decisions)
        self.clients, self.roles = ClientRows(allocator), RoleRows(state)
        self.quotas, self.scalar = allocator.quota_use(), space.scalar
        self.overdue = _overdue(allocator, self.quotas)
        self.gangs, self.remembered = Gangs(state), Remembered(state)
        self.aside, self.unfit = _aside(state), _unfit(state)
        self.asked, self.now_ms = asked_rows(state), state.now_ms
        self.budgets = [write_budget_use(row, state.now_ms) for row in budget_rows(state)]

    @property
    def headroom(self) -> Ints:
        """Amounts that must stay free for guarantees, (R,)."""
        return np.maximum(self.quotas.guarantee - self.quotas.consumed, 0).sum(axis=0)

    @property
    def role_count(self) -> int:
        return int(self.roles.bound.sum()) - 1

    @cached_property
    def weight(self) -> Floats:
        """Weight that divides each client's share, (n,): times its role's if all compete."""
        if self.policy.flat:
            return self.clients.weight * self.roles.weight[self.clients.role]
        return self.clients.weight

    @cached_property
    def share(self) -> Floats:
        return measures.dominant_share(self.clients.held, self.total, self.counted)

    @cached_property
    def weighted_share(self) -> Floats:
        """Dominant share of each client, divided by its weight, (n,)."""
        return self.share / self.weight

    @cached_property
    def offered_share(self) -> Floats:
        return measures.dominant_share(self.clients.offered, self.total, self.counted)

    @cached_property
    def role_held(self) -> Ints:
        return self._up_the_tree(self.clients.held)

    @cached_property
    def role_offered(self) -> Ints:
        """The part of `role_held` that is not in use yet, (m, R)."""
        return self._up_the_tree(self.clients.offered)

    @cached_property
    def role_share(self) -> Floats:
        return measures.dominant_share(self.role_held, self.total, self.counted)

    @cached_property
    def role_used_share(self) -> Floats | None:
        """Dominant share of each role's average holdings, (m,); None: no averages are kept."""
        if self.clients.used is None:
            return None
        return measures.dominant_share(
            self._up_the_tree(self.clients.used), self.total, self.counted
        )

    @cached_property
    def role_weighted_share(self) -> Floats:
        """Dominant share of each role, divided by its weight, (m,); 0 for unbound rows."""
        weight = self.roles.weight
        return np.divide(self.role_share, weight, np.zeros(len(weight)), where=weight > 0)

    @cached_property
    def role_offered_share(self) -> Floats:
        return measures.dominant_share(self.role_offered, self.total, self.counted)

    @cached_property
    def role_filters(self) -> Ints:
        """Number of filters in force of clients of each role and its descendants, (m,)."""
        return self._up_the_tree(self.clients.filters[:, None])[:, 0]

    @cached_property
    def role_live(self) -> Bools:
        """Whether a client of the role or its descendants may be offered something, (m,)."""
        live = np.zeros((len(self.roles.path), 1), np.int64)
        np.add.at(live, self.clients.role[self.clients.live], 1)
        return self.roles.bound & (self._sum_to_parents(live)[:, 0] > 0)

    @cached_property
    def held(self) -> Ints:
        return self.clients.held.sum(axis=0)

    @cached_property
    def offered(self) -> Ints:
        """Offered amounts that are not in use yet, (R,)."""
        return self.clients.offered.sum(axis=0)

    @cached_property
    def jain_frameworks(self) -> float:
        """Jain's index of the weighted shares of clients that may be offered something."""
        return measures.jain_index(self.weighted_share[self.clients.live])

    @cached_property
    def jain_roles(self) -> float:
        """Jain's index of the weighted shares of top-level roles with such clients."""
        rows = self.role_live & (self.roles.depth == 1)
        return measures.jain_index(self.role_weighted_share[rows])

    @cached_property
    def envy_max(self) -> float:
        """Maximum gain of a client, in tasks, from holding another's bundle; nan: not computed."""
        live = self.clients.live
        return measures.envy_max(
            self.clients.held[live], self.clients.demand[live], self.weight[live]
        )

    def dominant_resource(self, held: Ints) -> list[str]:
        """Resource with the largest share in each row of (n, R); empty if none."""
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
    return Report(allocator)


def _aside(state: State) -> Aside:
    frameworks, agents = state.frameworks.aside, state.agents.aside
    every = chain(chain.from_iterable(frameworks.values()), chain.from_iterable(agents.values()))
    reasons = Counter(row.reason for row in every)
    # Demands for resources that no agent has are not ignored, but counted by `_unfit`.
    unfit = set(_frameworks_of(state, state.clients.unfit))
    some = [
        handle
        for handle, rows in frameworks.items()
        if handle not in unfit or any(row.reason != UNKNOWN for row in rows)
    ]
    example = ""
    if some:
        info = state.frameworks.info[some[0]]
        example = (info.name or info.framework_id) if info else ""
    elif agents:
        agent = state.agents.info[next(iter(agents))]
        example = (agent.hostname or agent.agent_id) if agent else ""
    return Aside(len(some), len(agents), reasons, example)


UNFIT_NAMES = 3


def _unfit(state: State) -> Unfit:
    unfit = state.clients.unfit
    if not unfit:
        return Unfit()
    client, names = next(iter(unfit.items()))
    info = state.frameworks.info[int(state.clients.framework[client])]
    example = (info.name or info.framework_id) if info else ""
    return Unfit(len(set(_frameworks_of(state, unfit))), example, sorted(names)[:UNFIT_NAMES])


def _frameworks_of(state: State, clients: Iterable[int]) -> list[int]:
    """Frameworks of clients; one in several roles occurs several times."""
    found: list[int] = state.clients.framework[list(clients)].tolist()
    return found


def _common(state: State) -> Bools:
    """Resources that most agents have; any agent may invent others."""
    count = state.agents_by_column()
    common = np.zeros(len(count), np.bool_)
    common[np.argsort(-count, kind="stable")[:COMMON_MAX]] = True
    return common & (count > 0)


def _agents(state: State) -> Mapping[str, int]:
    agents = state.agents
    active = agents.bound & agents.active
    listed = active & agents.whitelisted
    return {
        "active": int(agents.ready.sum()),
        "inactive": int((agents.bound & ~agents.active).sum()),
        "unlisted": int((active & ~listed).sum()),
        "drained": int((listed & agents.drained).sum()),
    }


def write_clients(
    state: Report, score: Floats, role: str, fair: Report | None = None
) -> list[pb.Share]:
    """Write the clients of a role (empty: all) and its descendants, the largest share first.

    `score` (n,): of each client of the report.
    `fair`: report of an allocation from scratch with the same clients; None: not computed.
    """
    fair_share = np.full(len(state.share), np.nan) if fair is None else fair.share
    clients = state.clients
    wanted = below(state, role)[clients.role]
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(-state.weighted_share[rows], kind="stable")]
    dominant = state.dominant_resource(clients.held)
    return [
        write_client(state, row, dominant[row], float(score[row]), float(fair_share[row]))
        for row in rows.tolist()
    ]


def write_client(
    state: Report,
    row: int,
    dominant: str,
    score: float = float("nan"),
    fair_share: float = float("nan"),
) -> pb.Share:
    """Write one client.

    `dominant`: name of its dominant resource.
    `fair_share`: its dominant share in an allocation from scratch.
    """
    clients, info = state.clients, state.clients.info[row]
    return pb.Share(
        role=state.roles.path[clients.role[row]],
        framework_id=info.framework_id if info else "",
        framework_name=info.name if info else "",
        active=bool(clients.active[row]),
        suppressed=bool(clients.suppressed[row]),
        paused=bool(state.roles.paused[clients.role[row]]),
        weight=float(state.weight[row]),
        share=float(state.share[row]),
        weighted_share=float(state.weighted_share[row]),
        dominant_resource=dominant,
        score=score,
        held=quantities_of(state.resources, clients.held[row]),
        demand=quantities_of(state.resources, clients.demand[row]),
        demand_source=clients.demand_source[row],
        agents=int(clients.agents[row]),
        filters=int(clients.filters[row]),
        offered_share=float(state.offered_share[row]),
        offer_age_s=float(clients.offer_age_s[row]),
        waited_cycles=int(clients.waited[row]),
        fair_share=fair_share,
        fairness_error=float(state.share[row] - fair_share),
    )


def write_roles(state: Report, role: str, fair: Report | None = None) -> list[pb.Share]:
    """Write a role and its descendants, by path; an empty role: all."""
    roles = state.roles
    fair_share = np.full(len(roles.path), np.nan) if fair is None else fair.role_share
    rows = np.flatnonzero(below(state, role) & (roles.depth > 0)).tolist()
    dominant = state.dominant_resource(state.role_held)
    return [
        pb.Share(
            role=roles.path[row],
            active=bool(state.role_live[row]),
            paused=bool(roles.paused[row]),
            weight=float(roles.weight[row]),
            share=float(state.role_share[row]),
            weighted_share=float(state.role_weighted_share[row]),
            dominant_resource=dominant[row],
            score=float("nan"),
            held=quantities_of(state.resources, state.role_held[row]),
            filters=int(state.role_filters[row]),
            offered_share=float(state.role_offered_share[row]),
            fair_share=float(fair_share[row]),
            fairness_error=float(state.role_share[row] - fair_share[row]),
        )
        for row in sorted(rows, key=roles.path.__getitem__)
    ]


def frameworks_below(clients: Iterable[tuple[str, int]]) -> Mapping[str, set[int]]:
    """Frameworks of each role and its descendants; `clients`: role path and framework handle.

    >>> frameworks_below([("eng/ads", 1), ("eng", 2)])
    {'eng/ads': {1}, 'eng': {1, 2}}
    """
    found: dict[str, set[int]] = {}
    for path, framework in clients:
        while path:
            found.setdefault(path, set()).add(framework)
            path = path.rpartition("/")[0]  # noqa: PLW2901 - up the tree
    return found


def below(state: Report, role: str) -> np.ndarray:
    """Whether each role is this one or one of its descendants, (m,)."""
    bound = state.roles.bound
    if not role:
        return bound
    inside = [path == role or path.startswith(f"{role}/") for path in state.roles.path]
    return bound & np.array(inside, np.bool_)


def quantities_of(
    resources: Sequence[str], amounts: Ints, named: Bools | None = None
) -> types_pb2.Quantities:
    """Write amounts (R,) by name; without `named` (R,) those that are not 0."""
    columns = np.flatnonzero(amounts if named is None else named).tolist()
    return types_pb2.Quantities(
        name=[resources[column] for column in columns],
        amount=[int(amounts[column]) for column in columns],
    )
