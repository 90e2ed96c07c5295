"""Lists agents, with what is free on them, and the frameworks that hold something there."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from allocator.core import (
    AgentInfo,
    Allocator,
    Bools,
    State,
    attributes_of,
    parse_constraint,
)
from allocator.explain import agent_name, handles_of_framework, rows_of_role
from allocator.server.reports import agent_rows
from allocator.server.reports.report import quantities_of
from allocator.server.views.lists.bounds import (
    PARTS_MAX,
    check_state,
    most_of,
    named,
    true_names,
)
from allocator.server.views.rejected import RejectedError
from allocator.v1 import admin_pb2 as pb
from allocator.v1.explain_pb2 import Holder

STATES: Mapping[str, Callable[[State], Bools]] = {
    "active": lambda state: state.agents.ready,
    "inactive": lambda state: ~state.agents.active,
    "unlisted": lambda state: ~state.agents.whitelisted,
    "drained": lambda state: state.agents.drained,
    "maintenance": lambda state: state.agents.unavailable_from_ms >= 0,
}
"""Which agents are in each state, (A,), by the state's name."""


class Candidates(NamedTuple):
    """The agents to choose from.

    `wanted` (A,): those that match the request, apart from names and attributes.
    """

    info: list[AgentInfo | None]
    wanted: Bools


def candidates(allocator: Allocator, request: pb.ListAgentsRequest) -> Candidates:
    """Copy what is needed to choose; on the books' thread.

    Raises RejectedError and UnknownSubjectError.
    """
    check_state(request.state, STATES)
    state = allocator.state
    wanted = state.agents.bound.copy()
    if request.framework:
        handles = handles_of_framework(state, request.framework)
        clients = [row for each in handles for row in state.frameworks.clients[each]]
        wanted &= _holding(state, clients)
    if request.role:
        wanted &= _holding(state, rows_of_role(state, request.role))
    if request.state:
        wanted &= STATES[request.state](state)
    return Candidates(list(state.agents.info), wanted)


def choose(found: Candidates, request: pb.ListAgentsRequest) -> tuple[list[int], int]:
    """Choose handles, in order of their names, and count the others; on any thread."""
    most, info = most_of(request.limit), found.info
    handles: list[int] = np.flatnonzero(found.wanted).tolist()
    if request.names:
        bearers = named("agent", info, request.names, lambda info: (info.hostname, info.agent_id))
        handles = [each for each in handles if each in bearers]
    if request.attributes:
        handles = _fitting(info, handles, request.attributes)
    chosen = heapq.nsmallest(
        most, handles, key=lambda each: agent_rows.natural(agent_name(info[each], each))
    )
    return chosen, len(handles) - len(chosen)


def _holding(state: State, clients: list[int]) -> Bools:
    """Whether some of these clients hold something on each agent, (A,)."""
    ledger = state.ledger
    holding = np.zeros(len(state.agents.bound), np.bool_)
    for client in clients:
        holding[ledger.books.agent[ledger.rows_of_client(client)]] = True
    return holding


def _fitting(infos: Sequence[AgentInfo | None], handles: list[int], expression: str) -> list[int]:
    try:
        clauses = parse_constraint(expression)
    except ValueError as error:
        raise RejectedError(f"attributes: {error}") from None

    def fits(info: AgentInfo | None) -> bool:
        attributes = attributes_of(info) if info else {}
        return all(clause.holds(attributes) for clause in clauses)

    return [each for each in handles if fits(infos[each])]


class AgentsCopy:
    """The rows of n agents.

    `flags`: by state, (n,); `unavailable_from_ms`, `unavailable_for_ms` (n,).
    `of_agent` (H,): index of each holding's agent.
    `framework`, `role` (H,): handles; `held`, `offered` (H, R), in thousandths.
    """

    def __init__(
        self, allocator: Allocator, handles: Iterable[int], infos: Sequence[AgentInfo | None]
    ) -> None:
        """Copy the rows of some agents, if these still exist; on the books' thread.

        `infos`: the agents' information from when they were chosen.
        """
        state, agents, ledger = allocator.state, allocator.state.agents, allocator.state.ledger
        there = [
            each for each in handles if agents.is_bound(each) and agents.info[each] is infos[each]
        ]
        chosen = np.array(there, np.int64)
        of_each = [ledger.rows_of_agent(each) for each in there]
        holdings = np.concatenate(of_each) if of_each else np.empty(0, np.int64)
        client = ledger.books.client[holdings]
        self.rows = agent_rows.take(allocator, chosen)
        self.info = [infos[each] or AgentInfo("") for each in there]
        self.flags = {name: of(state)[chosen] for name, of in STATES.items()}
        self.unavailable_from_ms = agents.unavailable_from_ms[chosen]
        self.unavailable_for_ms = agents.unavailable_for_ms[chosen]
        self.of_agent = np.repeat(np.arange(len(there)), [len(each) for each in of_each])
        self.framework, self.role = state.clients.framework[client], state.clients.role[client]
        self.held = state.space.by_column(ledger.books.held, holdings)
        self.offered = state.space.by_column(ledger.books.offered, holdings)
        self.frameworks = {
            each: state.frameworks.info[each] for each in set(self.framework.tolist())
        }
        self.paths = list(state.roles.path)


def write(copied: AgentsCopy) -> Iterator[pb.ListedAgent]:
    """Write agents, without the rules that drain them; on any thread."""
    rows = copied.rows
    held = rows.used + rows.offered
    share = agent_rows.part_of(held, rows.capacity).max(axis=1, initial=0.0)
    free = np.maximum(rows.capacity - held, 0)
    # Bounds of each agent's holdings.
    bounds = np.searchsorted(copied.of_agent, np.arange(len(copied.info) + 1)).tolist()
    for place, info in enumerate(copied.info):
        inside = slice(bounds[place], bounds[place + 1])
        yield pb.ListedAgent(
            agent_id=info.agent_id,
            hostname=info.hostname,
            attributes=info.attributes,
            region=info.region,
            zone=info.zone,
            states=true_names((name, bool(flag[place])) for name, flag in copied.flags.items()),
            total=quantities_of(rows.resources, rows.capacity[place]),
            free=quantities_of(rows.resources, free[place]),
            offered=quantities_of(rows.resources, rows.offered[place]),
            used=quantities_of(rows.resources, rows.used[place]),
            held_share=float(share[place]),
            frameworks=len(set(copied.framework[inside].tolist())),
            holders=_holders(copied, place, inside),
            unavailable_from_ms=int(copied.unavailable_from_ms[place]),
            unavailable_for_ms=int(copied.unavailable_for_ms[place]),
        )


def _holders(copied: AgentsCopy, place: int, inside: slice) -> list[Holder]:
    """Frameworks that hold something on an agent, the largest share first."""
    rows, found = copied.rows, []
    capacity = rows.capacity[place][None]
    share = agent_rows.part_of(copied.held[inside], capacity).max(axis=1, initial=0.0)
    for number in np.argsort(-share, kind="stable")[:PARTS_MAX].tolist():
        row = inside.start + number
        handle = int(copied.framework[row])
        info = copied.frameworks[handle]
        found.append(
            Holder(
                framework=(info.name or info.framework_id) if info else f"framework {handle}",
                framework_id=info.framework_id if info else "",
                role=copied.paths[int(copied.role[row])],
                held=quantities_of(rows.resources, copied.held[row]),
                offered=quantities_of(rows.resources, copied.offered[row]),
                share=float(share[number]),
            )
        )
    return found
