"""Copies the parts of the books that explanations need, at one moment.

`take` runs on the thread that owns the core and only copies; all other code works on the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from allocator.core import (
    AgentColumns,
    AgentInfo,
    AgentTraits,
    Allocator,
    Aside,
    AskedRow,
    Bools,
    BudgetRow,
    CapTable,
    Collecting,
    CycleRecord,
    Floats,
    FrameworkInfo,
    Ints,
    Kind,
    Names,
    OfferEvent,
    PolicySpec,
    QuotaUse,
    Rule,
    SetConstraint,
    Snapshot,
    State,
    Trail,
    asked_rows,
    budget_rows,
    collectors,
    ends_within,
    resting,
    see,
)
from allocator.explain.next_offer import Held, take_held
from allocator.v1.types_pb2 import Quantities
from allocator.wire.codec.proto_types import write_quantities

NEVER = -1
"""Stands for a time that does not exist, or is unknown."""

CLIENTS_MAX = 200
"""Maximum number of clients explained one by one; of a role, those that have waited longest."""

CLIENTS_MIN = 10
PAIRS_MAX = 2_000_000
"""Maximum number of pairs of these clients and agents; a large cluster allows fewer clients."""

FILTERS_MAX = 1000

FILTER_CELLS_MAX = 2**22
"""Maximum number of amounts of filters to copy; beyond it, only their bits are copied."""


ASIDE_MAX = 10


@dataclass(frozen=True)
class AgentRows:
    """The agents by handle; row 0 is unused. Fields are as in `AgentTable`.

    `capacity` (A, R), in thousandths.
    """

    info: tuple[AgentInfo | None, ...]
    bound: Bools
    active: Bools
    whitelisted: Bools
    drained: Bools
    drained_from_ms: Ints
    changed_ms: Ints
    capacity: Ints

    @property
    def ready(self) -> Bools:
        return self.bound & self.active & self.whitelisted & ~self.drained


@dataclass(frozen=True)
class ClientRows:
    """The clients by row.

    `subscribed`, `suppressed` (C,): as in `ClientTable`; `active` (C,): whether the framework is.
    `changed_ms` (C,): when it was last suppressed or revived.
    `inactive_ms` (C,): when its framework was last activated or deactivated.
    `offered_ms` (C,): when a cycle last decided to offer it something; 0: never.
    `paused` (C,): whether operators paused the role or one of its ancestors.
    `demand`, `held`, `offered` (C, R), in thousandths.
    `wants` (C,): as returned by `wanting`.
    """

    subscribed: Bools
    suppressed: Bools
    active: Bools
    paused: Bools
    live: Bools
    changed_ms: Ints
    inactive_ms: Ints
    offered_ms: Ints
    waited: Ints
    declines: Ints
    takes: Ints
    demand: Ints
    held: Ints
    offered: Ints
    wants: Bools
    source: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """A client to be explained.

    `excluded` (A,): agents from which it is excluded, by handle.
    `told` (A,): those of them from which the master's offer constraints exclude it.
    `late` (A,): those of them that are drained before its tasks would end.
    `lasts_ms`: p95 of the durations of its tasks that `late` is based on; 0: unknown.
    `filter_agent`, `filter_expires_ms` (n,): its filters in force.
    `unfit`: resources that it requests and no agent has.
    `ends_within_ms`: p95 of the durations of tasks of its topic; None: unknown.
    """

    client: int
    rule: Rule
    excluded: Bools
    told: Bools
    late: Bools
    lasts_ms: int
    filter_agent: Ints
    filter_expires_ms: Ints
    filters: int
    unfit: frozenset[str]
    ends_within_ms: int | None


@dataclass(frozen=True)
class Holding:
    """A client's holdings on the agent in question, (R,) each, in thousandths."""

    client: int
    held: Ints
    offered: Ints


@dataclass(frozen=True)
class Picture:
    """A copy of the books.

    `resources`: R names; `counted` (R,); `total` (R,), in thousandths.
    `policy_error`: why the substitute decided the last cycle; empty if the policy did.
    `snapshot`: the snapshot with which a full cycle would start; None if no client can be served.
    `bound_paths`: paths of the roles of the first rows of the snapshot's bounds.
    `caps`: caps inside roles; their bounds are the next rows.
    `traits`: the agents' traits that rules examine, by handle.
    `agent`: the agent in question; 0 if none.
    `left_out`: number of clients of the role that are not among the subjects.
    `set_aside`: pairs (name, ignored input) of the first frameworks, or of the agent.
    `asked`: requests to leave agents: to the frameworks, or on the agent.
    `used` (C, R), in thousandths: average holdings; None: no averages are kept.
    `resting`: by client, the time in ms until which its gang must not begin to collect.
    `held`: the basis of forecasts; None: there is nothing to forecast.
    `budgets`: all budgets, and what is left of them.
    """

    now_ms: int
    cycle: int
    paused: bool
    paused_ms: int
    resources: tuple[str, ...]
    counted: Bools
    total: Ints
    kinds: tuple[Kind | None, ...]
    constraints: tuple[SetConstraint, ...]
    outstanding_max: float
    drain_ahead_ms: int
    policy: PolicySpec
    policy_error: str
    names: Names
    snapshot: Snapshot | None
    bound_paths: tuple[str, ...]
    quotas: QuotaUse
    caps: CapTable
    agents: AgentRows
    traits: tuple[AgentTraits | None, ...]
    clients: ClientRows
    subjects: tuple[Subject, ...]
    cycles: tuple[CycleRecord, ...]
    events: tuple[OfferEvent, ...]
    agent: int = 0
    holdings: tuple[Holding, ...] = ()
    left_out: int = 0
    set_aside: tuple[tuple[str, Aside], ...] = ()
    asked: tuple[AskedRow, ...] = ()
    collecting: Mapping[int, Collecting] = field(default_factory=dict)
    used: Ints | None = None
    resting: Mapping[int, int] = field(default_factory=dict)
    held: Held | None = None
    budgets: tuple[BudgetRow, ...] = ()

    @cached_property
    def columns(self) -> AgentColumns:
        """The agents' traits by attribute, so that a condition is evaluated once per value."""
        return AgentColumns(self.traits)

    @cached_property
    def held_share(self) -> Floats:
        return self.shares(self.clients.held)

    @cached_property
    def offered_share(self) -> Floats:
        return self.shares(self.clients.offered)

    def shares(self, amounts: Ints) -> Floats:
        """Dominant shares, (n,), of amounts (n, R)."""
        columns = self.counted & (self.total > 0)
        if not columns.any():
            return np.zeros(len(amounts))
        return (amounts[:, columns] / self.total[columns]).max(axis=1)

    def framework_name(self, client: int) -> str:
        return name_of(self.names, client)

    def framework_id(self, client: int) -> str:
        info = self._info(client)
        return info.framework_id if info else ""

    def principal(self, client: int) -> str:
        """Return the principal of a client's framework; empty if it has none."""
        info = self._info(client)
        return info.principal if info else ""

    def _info(self, client: int) -> FrameworkInfo | None:
        handle = int(self.names.framework[client])
        return self.names.info[handle] if handle < len(self.names.info) else None

    def named(self, amounts: Ints) -> dict[str, int]:
        pairs = zip(self.resources, amounts.tolist(), strict=False)
        return {name: amount for name, amount in pairs if amount}

    def quantities(self, amounts: Ints) -> Quantities:
        return write_quantities(self.named(amounts))

    def agent_name(self, handle: int) -> str:
        info = self.agents.info[handle] if handle < len(self.agents.info) else None
        return agent_name(info, handle)


def name_of(names: Names, client: int) -> str:
    """Return the name, id or handle of a client's framework, for display."""
    handle = int(names.framework[client])
    info = names.info[handle] if handle < len(names.info) else None
    return (info.name or info.framework_id) if info else f"framework {handle}"


def agent_name(info: AgentInfo | None, handle: int) -> str:
    """Return the host name, id or handle of an agent, for display."""
    return (info.hostname or info.agent_id) if info else f"agent {handle}"


def take(allocator: Allocator, kind: str, name: str) -> Picture:
    """Copy what is needed to explain one framework, role or agent.

    `kind`: ``framework``, ``role`` or ``agent``.
    `name`: a framework's id or name, a role's path, an agent's id or host name.

    Raises UnknownSubjectError.
    """
    # Preview first: the caller has recorded a preview, whether or not the subject exists.
    taken = allocator.preview()
    state = allocator.state
    agent, handles = 0, list[int]()
    if kind == "framework":
        handles = handles_of_framework(state, name)
        rows = [row for handle in handles for row in state.frameworks.clients[handle]]
    elif kind == "role":
        rows = rows_of_role(state, name)
    else:
        agent = handle_of_agent(state, name)
        rows = []
    waited = state.clients.waited
    most = min(CLIENTS_MAX, max(CLIENTS_MIN, PAIRS_MAX // max(1, len(state.agents))))
    chosen = sorted(rows, key=lambda row: (-int(waited[row]), row))[:most]
    handles += [int(state.clients.framework[row]) for row in chosen]
    found = _picture(allocator, taken, chosen)
    return replace(
        found,
        agent=agent,
        holdings=_holdings(state, agent) if agent else (),
        left_out=len(rows) - len(chosen),
        set_aside=_set_aside(state, handles, agent),
        asked=tuple(
            each for each in asked_rows(state) if each.agent == agent or each.framework in handles
        ),
    )


def take_clients(allocator: Allocator, rows: Sequence[int]) -> Picture:
    return _picture(allocator, allocator.preview(), rows)


def _picture(allocator: Allocator, taken: Snapshot | None, rows: Sequence[int]) -> Picture:
    state, snapshot = allocator.state, None
    if taken is not None:
        cells = max(1, taken.filters.amount.shape[1])
        seen = see(taken, FILTER_CELLS_MAX // cells)
        snapshot = None if seen is None else seen.snapshot()
    trail = allocator.trail
    quotas = allocator.quota_use()
    subjects = tuple(_subject(state, row) for row in rows)
    return Picture(
        now_ms=state.now_ms,
        cycle=allocator.cycle,
        paused=state.paused,
        paused_ms=state.paused_ms,
        resources=tuple(state.space.names),
        counted=state.space.counted,
        total=state.total_by_column().copy(),
        kinds=tuple(state.space.kinds),
        constraints=tuple(state.settings.constraints.values()),
        outstanding_max=state.settings.outstanding_max,
        drain_ahead_ms=state.settings.drain_ahead_ms,
        policy=state.settings.policy,
        policy_error=allocator.last_cycle.policy_error,
        names=(trail or Trail()).names(state),
        snapshot=snapshot,
        bound_paths=tuple(quotas.path),
        quotas=quotas,
        caps=allocator.caps(),
        agents=_agents(state),
        traits=tuple(state.eligibility.traits),
        clients=_clients(state),
        used=allocator.used(),
        subjects=subjects,
        cycles=trail.latest() if trail else (),
        events=tuple(trail.events) if trail else (),
        collecting=collectors(state),
        resting=resting(state),
        held=None if snapshot is None else _held(state, subjects),
        budgets=tuple(budget_rows(state)),
    )


def _held(state: State, subjects: tuple[Subject, ...]) -> Held | None:
    """Copy the basis of forecasts for these clients, unless none of them wants offers."""
    live = state.live_clients()
    barred = [each.excluded for each in subjects if live[each.client]]
    if not barred:
        return None
    return take_held(state, np.logical_and.reduce(barred))


def _set_aside(state: State, handles: list[int], agent: int) -> tuple[tuple[str, Aside], ...]:
    """Return the ignored input of an agent, or of the first frameworks that have any."""
    host = agent_name(state.agents.info[agent], agent)
    found = [(host, state.agents.aside[agent])] if agent in state.agents.aside else []
    for handle in dict.fromkeys(handles):
        info, rows = state.frameworks.info[handle], state.frameworks.aside.get(handle)
        if info and rows and len(found) < ASIDE_MAX:
            found.append((info.name or info.framework_id, rows))
    return tuple(found)


def _agents(state: State) -> AgentRows:
    agents = state.agents
    return AgentRows(
        info=tuple(agents.info),
        bound=agents.bound.copy(),
        active=agents.active.copy(),
        whitelisted=agents.whitelisted.copy(),
        drained=agents.drained.copy(),
        drained_from_ms=agents.drained_from_ms.copy(),
        changed_ms=agents.changed_ms.copy(),
        capacity=state.space.by_column(agents.capacity),
    )


def _clients(state: State) -> ClientRows:
    clients, frameworks = state.clients, state.frameworks
    return ClientRows(
        subscribed=clients.subscribed.copy(),
        suppressed=clients.suppressed.copy(),
        active=frameworks.active[clients.framework],
        paused=state.paused_roles()[clients.role],
        live=state.live_clients(),
        changed_ms=clients.changed_ms.copy(),
        inactive_ms=frameworks.changed_ms[clients.framework],
        offered_ms=clients.offered_ms.copy(),
        waited=clients.waited.copy(),
        declines=clients.declines.copy(),
        takes=clients.takes.copy(),
        demand=clients.demand.copy(),
        held=state.held_by_column(),
        offered=state.offered_by_column(),
        wants=wanting(state),
        source=tuple(clients.demand_source),
    )


def wanting(state: State) -> Bools:
    """Return which clients, (C,), want an offer by their own statements, and have none.

    Clients that refuse something, or declined their last offer completely, may want nothing, and
    are not included.
    """
    clients = state.clients
    refuses = (state.filters.rows.per_client > 0) | (clients.declines > 0)
    return state.live_clients() & ~refuses & ~state.ledger.books.client_offered.any(axis=1)


def _subject(state: State, client: int) -> Subject:
    eligibility, filters = state.eligibility, state.filters
    agent, expires_ms = filters.of_client(client, FILTERS_MAX)
    return Subject(
        client=client,
        rule=eligibility.rule_of(client),
        excluded=eligibility.excluded_of(client),
        told=eligibility.told_of(client),
        late=eligibility.late_of(client),
        lasts_ms=int(state.clients.lasts_ms[client]),
        filter_agent=agent,
        filter_expires_ms=expires_ms,
        filters=int(filters.rows.per_client[client]),
        unfit=state.clients.unfit.get(client, frozenset()),
        ends_within_ms=ends_within(state, client),
    )


def _holdings(state: State, agent: int) -> tuple[Holding, ...]:
    books, space = state.ledger.books, state.space
    rows = state.ledger.rows_of_agent(agent)
    held, offered = space.by_column(books.held[rows]), space.by_column(books.offered[rows])
    return tuple(
        Holding(client, *amounts)
        for client, *amounts in zip(books.client[rows].tolist(), held, offered, strict=True)
    )


class UnknownSubjectError(LookupError):
    """No subject has this name.

    `known`: existing names and ids, unordered; may contain empty texts and duplicates.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name
        self.known = list(known)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return UnknownSubjectError, (self.kind, self.name, self.known)


def handles_of_framework(state: State, name: str) -> list[int]:
    """Handle of the framework with this id, or handles of all with this name."""
    infos: Mapping[int, FrameworkInfo] = {
        handle: info for handle, info in enumerate(state.frameworks.info) if info is not None
    }
    found = [handle for handle, info in infos.items() if info.framework_id == name]
    found = found or [handle for handle, info in infos.items() if info.name == name]
    if not found:
        known = [each for info in infos.values() for each in (info.name, info.framework_id)]
        raise UnknownSubjectError("framework", name, known)
    return found


def rows_of_role(state: State, path: str) -> list[int]:
    if not path or state.roles.row(path) is None:
        raise UnknownSubjectError("role", path, state.roles.path)
    # `RoleTable.inside` would fill a cache, but explanations must not change the state.
    inside = [f"{each}/".startswith(f"{path}/") for each in state.roles.path]
    clients = state.clients
    rows = np.flatnonzero(clients.framework)
    return [int(row) for row in rows if inside[int(clients.role[row])]]


def handle_of_agent(state: State, name: str) -> int:
    """Handle of the agent with this id, or else on this host."""
    infos = {handle: info for handle, info in enumerate(state.agents.info) if info is not None}
    for what in ("agent_id", "hostname"):
        for handle, info in infos.items():
            if getattr(info, what) == name:
                return handle
    known = [each for info in infos.values() for each in (info.hostname, info.agent_id)]
    raise UnknownSubjectError("agent", name, known)
