"""Averages over time of what clients hold, and what counts for their shares."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.snapshot import Floats, Ints

AGENTS = ""
"""The name under which the number of agents is kept, beside those of resources."""


def count_until(state: State, now_ms: int) -> None:
    """Let what is held count until `now_ms`, before anything changes."""
    memory, clients = state.memory.usage, state.clients
    if memory.half_life_ms != state.settings.half_life_ms:
        memory.set_half_life(state.settings.half_life_ms)
        if not memory.half_life_ms:
            clients.used[:] = 0
            clients.used_agents[:] = 0
    if not memory.half_life_ms:
        return
    held = None
    for added, factor in memory.pass_time(now_ms):
        if held is None:
            held, agents_held = state.held_by_column(), state.ledger.books.agents_held
        clients.used[: len(held), : held.shape[1]] += held * added
        clients.used_agents[: len(held)] += agents_held * added
        if factor != 1.0:
            clients.used *= factor
            clients.used_agents *= factor


def averages(state: State, inherited: Floats) -> tuple[Floats, Floats]:
    """What each client held on average, (C, R), in thousandths, and on how many agents, (C,).

    `inherited`: see there.
    """
    memory, clients = state.memory.usage, state.clients
    used = clients.used[:, : len(state.space.names)]
    of_others = inherited * memory.scale
    amounts = (used + of_others[:, :-1]) * memory.norm
    return amounts, (clients.used_agents + of_others[:, -1]) * memory.norm


def inherited(state: State) -> Floats:
    """What clients that left used, (C, R + 1), in thousandths / `scale`; the last column: agents.

    It counts for the clients of the same role, in equal parts. So a role keeps its history when its
    frameworks are replaced by others, as with Spark, of which each job is one.
    """
    clients, roles = state.clients, state.roles
    column = {name: index for index, name in enumerate((*state.space.names, AGENTS))}
    result = np.zeros((len(clients.framework), len(column)))
    rows = np.flatnonzero(clients.subscribed)
    of_role = np.bincount(clients.role[rows], minlength=len(roles.path))
    total = np.zeros((len(of_role), len(column)))
    for path, amounts in state.memory.usage.of_roles().items():
        role = roles.row(path)
        if role is None or not of_role[role]:
            continue
        for name, amount in amounts.items():
            if name in column:
                total[role, column[name]] = amount / of_role[role]
    result[rows] = total[clients.role[rows]]
    return result


def used(state: State) -> Ints:
    """As the amounts of `averages`, rounded down."""
    return np.floor(averages(state, inherited(state))[0]).astype(np.int64)


def counted(state: State, held: Ints, inherited: Floats) -> tuple[Ints, Floats]:
    """What counts for each client's share: amounts (C, R), in thousandths, and agents (C,).

    It is (1 - k) x now + k x average, with the weight k of the settings. `held` (C, R): now.
    """
    k = state.settings.usage_weight
    amounts, agents = averages(state, inherited)
    mixed = np.floor((1.0 - k) * held + k * amounts).astype(np.int64)
    return mixed, (1.0 - k) * state.ledger.books.agents_held + k * agents


def come(state: State, client: int) -> None:
    """Give a client that subscribes what is known of it from before."""
    if not state.memory.usage.absent:
        return
    path, framework_id = _names(state, client)
    column = {name: index for index, name in enumerate(state.space.names)}
    known = column.keys() | {AGENTS}
    for name, amount in state.memory.usage.come(path, framework_id, known).items():
        if name == AGENTS:
            state.clients.used_agents[client] += amount
        else:
            state.clients.used[client, column[name]] += amount


def leave(state: State, client: int) -> None:
    """Keep what is known of a client whose row is about to be freed."""
    used = state.clients.used[client]
    columns = np.flatnonzero(used)
    if len(columns):
        amounts = {state.space.names[column]: float(used[column]) for column in columns.tolist()}
        amounts[AGENTS] = float(state.clients.used_agents[client])
        state.memory.usage.leave(*_names(state, client), amounts)


def end_session(state: State) -> None:
    """Keep what is known of all clients: a next session may have other rows and columns."""
    for client in np.flatnonzero(state.clients.used.any(axis=1)).tolist():
        leave(state, client)


def usage_of(state: State) -> dict[tuple[str, str], dict[str, float]]:
    """Averages by role path and framework id, then by name, of all clients, present or not."""
    memory, clients, names = state.memory.usage, state.clients, state.space.names
    if not memory.half_life_ms:
        return {}
    found = {
        key: {name: amount * memory.scale * memory.norm for name, amount in amounts.items()}
        for key, amounts in memory.absent.items()
    }
    for client in np.flatnonzero(clients.used.any(axis=1)).tolist():
        used = clients.used[client] * memory.norm
        its = found.setdefault(_names(state, client), {})
        for column in np.flatnonzero(used).tolist():
            its[names[column]] = its.get(names[column], 0.0) + float(used[column])
        agents = float(clients.used_agents[client]) * memory.norm
        its[AGENTS] = its.get(AGENTS, 0.0) + agents
    return found


def _names(state: State, client: int) -> tuple[str, str]:
    """The role's path, and the framework's id; empty if the framework is unknown."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    path = state.roles.path[int(state.clients.role[client])]
    return path, "" if info is None else info.framework_id
