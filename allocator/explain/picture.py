"""What explanations need of the books, copied at one moment.

`take` runs on the thread that owns the core, and does no more than copy; everything else works on
the picture.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    see,
)
from allocator.v1.types_pb2 import Quantities
from allocator.wire.codec.proto_types import write_quantities

NEVER = -1
"""A time that there is not, or is not known."""

CLIENTS_MAX = 200
"""So many clients are explained one by one; of a role with more, those that wait longest."""

CLIENTS_MIN = 10
PAIRS_MAX = 2_000_000
"""Of a large cluster fewer are, so that they have no more agents between them than this."""

FILTERS_MAX = 1000
"""So many filters of a client are looked at."""

FILTER_CELLS_MAX = 2**22
"""All filters are copied up to so many amounts; beyond that their bits alone count."""


ASIDE_MAX = 10
"""Of so many frameworks of a role it is told what of their words is set aside."""


@dataclass(frozen=True)
class AgentRows:
    """The agents by handle; row 0 is none.

    `bound`, `active`, `whitelisted`, `drained` (A,); `changed_ms` (A,);
    `capacity` (A, R), in thousandths.
    """

    info: tuple[AgentInfo | None, ...]
    bound: Bools
    active: Bools
    whitelisted: Bools
    drained: Bools
    changed_ms: Ints
    capacity: Ints

    @property
    def ready(self) -> Bools:
        """Which agents may be offered, (A,)."""
        return self.bound & self.active & self.whitelisted & ~self.drained


@dataclass(frozen=True)
class ClientRows:
    """The clients by row.

    `subscribed`, `suppressed`, `active` (C,): the last is the framework's.
    `live` (C,): may be offered something.
    `changed_ms`, `inactive_ms`, `offered_ms` (C,): when it was suppressed or revived; when its
        framework was activated or not; when it was decided last to offer it something, 0: never.
    `waited`, `declines`, `takes` (C,); `demand`, `held`, `offered` (C, R), in thousandths.
    `source`: where the demand is from.
    """

    subscribed: Bools
    suppressed: Bools
    active: Bools
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
    source: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """A client to be explained, and what only matters to it.

    `rule`: what it requires of agents.
    `excluded`, `told` (A,): by handle: where it may not go; and where the master's offer
        constraints say so.
    `filter_agent`, `filter_expires_ms` (n,): its filters in force.
    `filters`: how many there are.
    `unfit`: resources that it asks for and no agent has.
    """

    client: int
    rule: Rule
    excluded: Bools
    told: Bools
    filter_agent: Ints
    filter_expires_ms: Ints
    filters: int
    unfit: frozenset[str]


@dataclass(frozen=True)
class Holding:
    """What a client holds on the agent that is asked about, (R,) each, thousandths."""

    client: int
    held: Ints
    offered: Ints


@dataclass(frozen=True)
class Picture:
    """The copy.

    `resources`, R names; `counted` (R,); `total` (R,), in thousandths.
    `constraints`: the operator's rules.
    `policy_error`: why the substitute decided the last cycle.
    `snapshot`: what a cycle over all agents would begin with; None where nobody may be offered
        anything.
    `bound_paths`: roles that the first of its bounds are for.
    `traits`: by handle: what rules look at.
    `agent`: the one that is asked about; 0: none.
    `holdings`: on that agent.
    `left_out`: clients of the role that are not among the subjects.
    `set_aside` (name, tuple of SetAside): of the words of the first frameworks, or of the agent.
    `asked`: of those who are asked to leave agents: the frameworks, or those on the agent.
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
    policy: PolicySpec
    policy_error: str
    names: Names
    snapshot: Snapshot | None
    bound_paths: tuple[str, ...]
    quotas: QuotaUse
    agents: AgentRows
    traits: tuple[AgentTraits | None, ...]
    clients: ClientRows
    subjects: tuple[Subject, ...]
    agent: int
    holdings: tuple[Holding, ...]
    cycles: tuple[CycleRecord, ...]
    events: tuple[OfferEvent, ...]
    left_out: int
    set_aside: tuple[tuple[str, Aside], ...]
    asked: tuple[AskedRow, ...] = ()

    @cached_property
    def columns(self) -> AgentColumns:
        """What agents are like, by attribute: a condition looks at each value once."""
        return AgentColumns(self.traits)

    @cached_property
    def held_share(self) -> Floats:
        """Dominant shares of what clients hold, (C,)."""
        return self.shares(self.clients.held)

    @cached_property
    def offered_share(self) -> Floats:
        """Dominant shares of what clients have on offer, (C,)."""
        return self.shares(self.clients.offered)

    def shares(self, amounts: Ints) -> Floats:
        """Dominant shares of amounts (n, R), (n,)."""
        columns = self.counted & (self.total > 0)
        if not columns.any():
            return np.zeros(len(amounts))
        return (amounts[:, columns] / self.total[columns]).max(axis=1)

    def framework_name(self, client: int) -> str:
        return name_of(self.names, client)

    def framework_id(self, client: int) -> str:
        """The id of a client's framework; empty where it is not known."""
        handle = int(self.names.framework[client])
        info = self.names.info[handle] if handle < len(self.names.info) else None
        return info.framework_id if info else ""

    def named(self, amounts: Ints) -> dict[str, int]:
        """Amounts (R,) by name, without zeros."""
        pairs = zip(self.resources, amounts.tolist(), strict=False)
        return {name: amount for name, amount in pairs if amount}

    def quantities(self, amounts: Ints) -> Quantities:
        return write_quantities(self.named(amounts))

    def agent_name(self, handle: int) -> str:
        info = self.agents.info[handle] if handle < len(self.agents.info) else None
        return agent_name(info, handle)


def name_of(names: Names, client: int) -> str:
    """What to call a client's framework: its name, or its id, or its handle."""
    handle = int(names.framework[client])
    info = names.info[handle] if handle < len(names.info) else None
    return (info.name or info.framework_id) if info else f"framework {handle}"


def agent_name(info: AgentInfo | None, handle: int) -> str:
    """What to call an agent: its host, or its id, or its handle."""
    return (info.hostname or info.agent_id) if info else f"agent {handle}"


def take(allocator: Allocator, kind: str, name: str) -> Picture:
    """Copy what is needed to explain one framework, role or agent.

    `kind`: ``framework``, ``role`` or ``agent``.
    `name`: a framework's id or name, a role's path, an agent's id or host.
    Raises UnknownSubjectError.
    """
    # First, whether or not there is such a subject: the host wrote down that somebody looks.
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
    snapshot = None
    if taken is not None:
        cells = max(1, taken.filters.amount.shape[1])
        seen = see(taken, FILTER_CELLS_MAX // cells)
        snapshot = None if seen is None else seen.snapshot()
    trail = allocator.trail
    quotas = allocator.quota_use()
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
        policy=state.settings.policy,
        policy_error=allocator.last_cycle.policy_error,
        names=(trail or Trail()).names(state),
        snapshot=snapshot,
        bound_paths=tuple(quotas.path),
        quotas=quotas,
        agents=_agents(state),
        traits=tuple(state.eligibility.traits),
        clients=_clients(state),
        subjects=tuple(_subject(state, row) for row in chosen),
        agent=agent,
        holdings=_holdings(state, agent) if agent else (),
        cycles=trail.latest() if trail else (),
        events=tuple(trail.events) if trail else (),
        left_out=len(rows) - len(chosen),
        set_aside=_set_aside(state, handles, agent),
        asked=tuple(
            each for each in asked_rows(state) if each.agent == agent or each.framework in handles
        ),
    )


def _set_aside(state: State, handles: list[int], agent: int) -> tuple[tuple[str, Aside], ...]:
    """What is set aside of the words of an agent, or of the first frameworks that have any."""
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
        changed_ms=agents.changed_ms.copy(),
        capacity=state.space.by_column(agents.capacity),
    )


def _clients(state: State) -> ClientRows:
    clients, frameworks = state.clients, state.frameworks
    return ClientRows(
        subscribed=clients.subscribed.copy(),
        suppressed=clients.suppressed.copy(),
        active=frameworks.active[clients.framework],
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
        source=tuple(clients.demand_source),
    )


def _subject(state: State, client: int) -> Subject:
    eligibility, filters = state.eligibility, state.filters
    agent, expires_ms = filters.of_client(client, FILTERS_MAX)
    return Subject(
        client=client,
        rule=eligibility.rule_of(client),
        excluded=eligibility.excluded_of(client),
        told=eligibility.told_of(client),
        filter_agent=agent,
        filter_expires_ms=expires_ms,
        filters=int(filters.rows.per_client[client]),
        unfit=state.clients.unfit.get(client, frozenset()),
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
    """There is nobody of that name.

    `known`: names and ids that there are, in no order; some may be empty, or there twice.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name
        self.known = list(known)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return UnknownSubjectError, (self.kind, self.name, self.known)


def handles_of_framework(state: State, name: str) -> list[int]:
    """Find the framework of that id, or all of that name."""
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
    """Find the rows of the clients in a role or below it."""
    if not path or state.roles.row(path) is None:
        raise UnknownSubjectError("role", path, state.roles.path)
    # By name, for the numbering of the tree is kept when it is asked for, and this only looks.
    inside = [f"{each}/".startswith(f"{path}/") for each in state.roles.path]
    clients = state.clients
    rows = np.flatnonzero(clients.framework)
    return [int(row) for row in rows if inside[int(clients.role[row])]]


def handle_of_agent(state: State, name: str) -> int:
    """Find the handle of the agent of that id, or else on that host."""
    infos = {handle: info for handle, info in enumerate(state.agents.info) if info is not None}
    for what in ("agent_id", "hostname"):
        for handle, info in infos.items():
            if getattr(info, what) == name:
                return handle
    known = [each for info in infos.values() for each in (info.hostname, info.agent_id)]
    raise UnknownSubjectError("agent", name, known)
