"""Agents, with what is free on them and who holds something there."""

import heapq
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from allocator.core import (
    AgentInfo,
    Allocator,
    Bools,
    Ints,
    State,
    attributes_of,
    parse_constraint,
)
from allocator.explain import UnknownSubjectError, agent_name, handles_of_framework, rows_of_role
from allocator.server.reports import agent_rows
from allocator.server.reports.report import quantities_of
from allocator.server.views.lists.bounds import (
    PARTS_MAX,
    UnknownWordError,
    check_state,
    most_of,
    true_names,
)
from allocator.v1 import admin_pb2 as pb
from allocator.v1.explain_pb2 import Holder

STATES: Mapping[str, Callable[[State], Bools]] = {
    "active": lambda state: state.agents.ready,
    "inactive": lambda state: ~state.agents.active,
    "unlisted": lambda state: ~state.agents.whitelisted,
    "drained": lambda state: state.agents.drained,
    "maintenance": lambda state: state.agents.unavailable_from_ms >= 0,
}
"""By name, which agents are in a state, (A,)."""


def list_agents(allocator: Allocator, request: pb.ListAgentsRequest) -> pb.ListAgentsResponse:
    """Choose and read; what drains an agent is not told yet.

    Raises UnknownWordError and UnknownSubjectError.
    """
    check_state(request.state, STATES)
    most = most_of(request.limit)
    state, info = allocator.state, allocator.state.agents.info
    found = _chosen(state, request)
    shown = heapq.nsmallest(
        most, found, key=lambda each: agent_rows.natural(agent_name(info[each], each))
    )
    agents = _written(allocator, np.array(shown, np.int64))
    return pb.ListAgentsResponse(agents=agents, left_out=len(found) - len(shown))


def _chosen(state: State, request: pb.ListAgentsRequest) -> list[int]:
    """Find the handles of the agents that are asked for, ascending."""
    wanted = state.agents.bound.copy()
    if request.names:
        wanted &= _named(state, list(request.names))
    if request.framework:
        handles = handles_of_framework(state, request.framework)
        clients = [row for each in handles for row in state.frameworks.clients[each]]
        wanted &= _holding(state, clients)
    if request.role:
        wanted &= _holding(state, rows_of_role(state, request.role))
    if request.state:
        wanted &= STATES[request.state](state)
    found: list[int] = np.flatnonzero(wanted).tolist()
    return _fitting(state, found, request.attributes) if request.attributes else found


def _named(state: State, names: list[str]) -> Bools:
    """Which agents have one of these ids or hosts, (A,)."""
    named = np.zeros(len(state.agents.bound), np.bool_)
    missing = set(names)
    for handle, info in enumerate(state.agents.info):
        if info is not None and (mine := {info.agent_id, info.hostname}) & set(names):
            named[handle] = True
            missing -= mine
    for name in (each for each in names if each in missing):
        infos = [info for info in state.agents.info if info is not None]
        known = [each for info in infos for each in (info.hostname, info.agent_id)]
        raise UnknownSubjectError("agent", name, known)
    return named


def _holding(state: State, clients: list[int]) -> Bools:
    """On which agents some of these clients hold something, (A,)."""
    ledger = state.ledger
    holding = np.zeros(len(state.agents.bound), np.bool_)
    for client in clients:
        holding[ledger.books.agent[ledger.rows_of_client(client)]] = True
    return holding


def _fitting(state: State, handles: list[int], expression: str) -> list[int]:
    """Keep the agents for which all clauses hold."""
    try:
        clauses = parse_constraint(expression)
    except ValueError as error:
        raise UnknownWordError(f"attributes: {error}") from None

    def fits(info: AgentInfo | None) -> bool:
        attributes = attributes_of(info) if info else {}
        return all(clause.holds(attributes) for clause in clauses)

    return [each for each in handles if fits(state.agents.info[each])]


def _written(allocator: Allocator, handles: Ints) -> Iterator[pb.ListedAgent]:
    state, agents = allocator.state, allocator.state.agents
    rows = agent_rows.take(allocator, handles)
    held = rows.used + rows.offered
    share = agent_rows.part_of(held, rows.capacity).max(axis=1, initial=0.0)
    free = np.maximum(rows.capacity - held, 0)
    flags = {name: of(state) for name, of in STATES.items()}
    for place, handle in enumerate(handles.tolist()):
        info = agents.info[handle] or AgentInfo("")
        count, holders = _holders(allocator, rows, place, handle)
        yield pb.ListedAgent(
            agent_id=info.agent_id,
            hostname=info.hostname,
            attributes=info.attributes,
            region=info.region,
            zone=info.zone,
            states=true_names((name, bool(flag[handle])) for name, flag in flags.items()),
            total=quantities_of(rows.resources, rows.capacity[place]),
            free=quantities_of(rows.resources, free[place]),
            offered=quantities_of(rows.resources, rows.offered[place]),
            used=quantities_of(rows.resources, rows.used[place]),
            held_share=float(share[place]),
            frameworks=count,
            holders=holders,
            unavailable_from_ms=int(agents.unavailable_from_ms[handle]),
            unavailable_for_ms=int(agents.unavailable_for_ms[handle]),
        )


def _holders(
    allocator: Allocator, rows: agent_rows.AgentRows, place: int, handle: int
) -> tuple[int, list[Holder]]:
    """How many frameworks hold something on an agent, and what, the largest part first."""
    state = allocator.state
    books, clients = state.ledger.books, state.clients
    holdings = state.ledger.rows_of_agent(handle)
    client = books.client[holdings]
    held = state.space.by_column(books.held[holdings])
    offered = state.space.by_column(books.offered[holdings])
    share = agent_rows.part_of(held, rows.capacity[place][None]).max(axis=1, initial=0.0)
    found = []
    for row in np.argsort(-share, kind="stable")[:PARTS_MAX].tolist():
        framework = int(clients.framework[client[row]])
        info = state.frameworks.info[framework]
        found.append(
            Holder(
                framework=(info.name or info.framework_id) if info else f"framework {framework}",
                framework_id=info.framework_id if info else "",
                role=state.roles.path[int(clients.role[client[row]])],
                held=quantities_of(rows.resources, held[row]),
                offered=quantities_of(rows.resources, offered[row]),
                share=float(share[row]),
            )
        )
    return len(np.unique(clients.framework[client])), found
