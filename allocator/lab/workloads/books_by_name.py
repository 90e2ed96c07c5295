"""What an allocator's books say, with ids and names instead of handles."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from allocator.core import Bools, Holdings, Ints, State
from allocator.lab.frameworks.base import Quantities

Place: TypeAlias = tuple[str, str, str]
"""Id of the framework, role, id of the agent."""


def agent_id(state: State, agent: int) -> str:
    """Return the id of an agent; empty where there is none."""
    info = state.agents.info[agent] if 0 < agent < len(state.agents.info) else None
    return info.agent_id if info else ""


def framework_id(state: State, framework: int) -> str:
    """Return the id of a framework; empty where it is not known."""
    known = state.frameworks.info
    info = known[framework] if 0 < framework < len(known) else None
    return info.framework_id if info else ""


def roles_of(state: State, framework: int) -> list[str]:
    """List the roles that a framework is in, or holds something in."""
    clients = state.frameworks.clients[framework]
    return [state.roles.path[int(state.clients.role[client])] for client in clients]


def by_name(state: State, amounts: Ints) -> Quantities:
    """Add amounts (K,) of all kinds up by name; zeros are left out."""
    columns = state.space.by_column(amounts[None])[0].tolist()
    return {name: n for name, n in zip(state.space.names, columns, strict=True) if n}


def used_on(state: State, agents: Iterable[int]) -> dict[Place, Quantities]:
    """What is in use on some agents, and not only on offer."""
    result: dict[Place, Quantities] = {}
    books, clients = state.ledger.books, state.clients
    for agent in agents:
        for row in state.ledger.rows_of_agent(agent).tolist():
            amounts = by_name(state, books.held[row] - books.offered[row])
            client = books.client[row]
            who = framework_id(state, int(clients.framework[client]))
            if amounts and who:
                role = state.roles.path[int(clients.role[client])]
                result[who, role, agent_id(state, agent)] = amounts
    return result


def rows_by_name(
    state: State, holdings: Holdings, wanted: Bools
) -> Iterator[tuple[Place, Quantities]]:
    """Give the rows that are wanted, (N,), and that name a framework and an agent there is."""
    whole = np.zeros(len(state.space), np.int64)
    for row in np.flatnonzero(wanted).tolist():
        who = framework_id(state, int(holdings.framework[row]))
        where = agent_id(state, int(holdings.agent[row]))
        whole[holdings.kind] = holdings.amount[row]
        amounts = by_name(state, whole)
        if who and where and amounts:
            yield (who, state.roles.path[int(holdings.role[row])], where), amounts
