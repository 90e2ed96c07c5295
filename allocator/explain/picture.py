"""Copies the parts of the books that explanations need, at one moment.

`take` runs on the thread that owns the core and only copies; all other code works on the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from allocator.core import (
    AgentColumns,
    AgentInfo,
    Allocator,
    Aside,
    AskedRow,
    Bools,
    Floats,
    FrameworkInfo,
    Ints,
    Names,
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


class AgentRows:
    """The agents by handle; row 0 is unused. Fields are as in `AgentTable`.

    `capacity` (A, R), in thousandths.
    """

    def __init__(self, state: State) -> None:
        agents = state.agents
        self.info = tuple(agents.info)
        self.bound, self.active = agents.bound.copy(), agents.active.copy()
        self.whitelisted, self.drained = agents.whitelisted.copy(), agents.drained.copy()
        self.ready = agents.ready
        self.drained_from_ms = agents.drained_from_ms.copy()
        self.changed_ms = agents.changed_ms.copy()
        self.capacity = state.space.by_column(agents.capacity)


class ClientRows:
    """The clients by row.

    `subscribed`, `suppressed` (C,): as in `ClientTable`; `active` (C,): whether the framework is.
    `changed_ms` (C,): when it was last suppressed or revived.
    `inactive_ms` (C,): when its framework was last activated or deactivated.
    `offered_ms` (C,): when a cycle last decided to offer it something; 0: never.
    `paused` (C,): whether operators paused the role or one of its ancestors.
    `satiated` (C,): whether its framework has too many refusals in force to get offers.
    `demand`, `held`, `offered` (C, R), in thousandths.
    `wants` (C,): as returned by `wanting`.
    """

    def __init__(self, state: State) -> None:
        clients, frameworks = state.clients, state.frameworks
        self.subscribed, self.suppressed = clients.subscribed.copy(), clients.suppressed.copy()
        self.active = frameworks.active[clients.framework]
        self.paused = state.paused_roles()[clients.role]
        self.satiated = np.isin(clients.framework, state.satiated)
        self.live = state.live_clients()
        self.changed_ms = clients.changed_ms.copy()
        self.inactive_ms = frameworks.changed_ms[clients.framework]
        self.offered_ms, self.waited = clients.offered_ms.copy(), clients.waited.copy()
        self.takes, self.demand = clients.takes.copy(), clients.demand.copy()
        self.held, self.offered = state.held_by_column(), state.offered_by_column()
        self.wants, self.source = wanting(state), tuple(clients.demand_source)


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

    def __init__(self, state: State, client: int) -> None:
        eligibility = state.eligibility
        self.client, self.rule = client, eligibility.rule_of(client)
        self.excluded = eligibility.excluded_of(client)
        self.told, self.late = eligibility.told_of(client), eligibility.late_of(client)
        self.lasts_ms = int(state.clients.lasts_ms[client])
        self.filter_agent, self.filter_expires_ms = state.filters.of_client(client, FILTERS_MAX)
        self.unfit = state.clients.unfit.get(client, frozenset())
        self.ends_within_ms = ends_within(state, client)


class Holding(NamedTuple):
    """A client's holdings on the agent in question, (R,) each, in thousandths."""

    client: int
    held: Ints
    offered: Ints


class Picture:
    """A copy of the books.

    `resources`: R names; `counted` (R,); `total` (R,), in thousandths.
    `policy_error`: why the substitute decided the last cycle; empty if the policy did.
    `snapshot`: the snapshot with which a full cycle would start; None if no client can be served.
    `caps`: caps inside roles; their bounds are the rows of the snapshot's bounds after `quotas`.
    `traits`: the agents' traits that rules examine, by handle.
    `used` (C, R), in thousandths: average holdings; None: no averages are kept.
    `resting`: by client, the time in ms until which its gang must not begin to collect.
    `held`: the basis of forecasts; None: there is nothing to forecast.
    `budgets`: all budgets, and what is left of them.

    About the role or agent in question:

    `agent`: its handle; 0 if none. `holdings`: what is held on it.
    `left_out`: number of clients of the role that are not among the subjects.
    `set_aside`: pairs (name, ignored input) of the first frameworks, or of the agent.
    `asked`: requests to leave agents: to the frameworks, or on the agent.
    """

    agent: int = 0
    holdings: tuple[Holding, ...] = ()
    left_out: int = 0
    set_aside: tuple[tuple[str, Aside], ...] = ()
    asked: tuple[AskedRow, ...] = ()

    def __init__(self, allocator: Allocator, rows: Sequence[int]) -> None:
        """Copy, on the books' thread; `rows`: the clients to be explained."""
        state, space, trail = allocator.state, allocator.state.space, allocator.trail
        settings = state.settings
        self.now_ms, self.cycle = state.now_ms, allocator.cycle
        self.paused, self.paused_ms = state.paused, state.paused_ms
        self.resources, self.counted = tuple(space.names), space.counted
        self.total, self.kinds = state.total_by_column().copy(), tuple(space.kinds)
        self.constraints = tuple(settings.constraints.values())
        self.outstanding_max = settings.outstanding_max
        self.drain_ahead_ms = settings.drain_ahead_ms
        self.policy_error = allocator.last_cycle.policy_error
        self.names = (trail or Trail()).names(state)
        self.snapshot = _excerpt(allocator.preview())
        self.quotas, self.caps = allocator.quota_use(), allocator.caps()
        self.agents, self.clients = AgentRows(state), ClientRows(state)
        self.traits = tuple(state.eligibility.traits)
        self.used = allocator.used()
        self.subjects = tuple(Subject(state, row) for row in rows)
        self.cycles = trail.latest() if trail else ()
        self.events = tuple(trail.events) if trail else ()
        self.collecting, self.resting = collectors(state), resting(state)
        self.held = None if self.snapshot is None else _held(state, self.subjects)
        self.budgets = tuple(budget_rows(state))

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
    found = Picture(allocator, chosen)
    found.agent, found.left_out = agent, len(rows) - len(chosen)
    found.holdings = _holdings(state, agent) if agent else ()
    found.set_aside = _set_aside(state, handles, agent)
    found.asked = tuple(
        each for each in asked_rows(state) if each.agent == agent or each.framework in handles
    )
    return found


def _excerpt(taken: Snapshot | None) -> Snapshot | None:
    """Copy what later changes of the books would overwrite."""
    if taken is None:
        return None
    cells = max(1, len(taken.filters.amount))
    seen = see(taken, FILTER_CELLS_MAX // cells)
    return None if seen is None else seen.snapshot()


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


def wanting(state: State) -> Bools:
    """Return which clients, (C,), want an offer by their own statements, and have none.

    Clients that refuse something, or declined their last offer completely, may want nothing, and
    are not included.
    """
    clients = state.clients
    refuses = (state.filters.rows.per_client > 0) | (clients.declines > 0)
    return state.live_clients() & ~refuses & ~state.ledger.books.client_offered.any(axis=0)


def _holdings(state: State, agent: int) -> tuple[Holding, ...]:
    books, space = state.ledger.books, state.space
    rows = state.ledger.rows_of_agent(agent)
    held, offered = (space.by_column(each, rows) for each in (books.held, books.offered))
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
