"""Averages over time of what clients hold, and their effect on clients' shares."""

from dataclasses import dataclass

import numpy as np

from allocator.core.books.state import State
from allocator.core.bounds import quoted
from allocator.core.demand.usage_memory import UsageMemory
from allocator.core.events import EventError
from allocator.core.snapshot import Floats, Ints

AGENTS = ""
"""The name under which the number of agents is stored, beside the names of resources."""


NO_USE = "no client has past use yet"


@dataclass(frozen=True, slots=True)
class ForgetUsage:
    """Reset averages to zero; an operator's command, not a setting.

    `role`: a path, which includes its descendants; empty: all roles.
    `framework_id`: empty: all frameworks, including those that left.
    """

    role: str = ""
    framework_id: str = ""

    def concerns(self, role: str, framework_id: str) -> bool:
        inside = not self.role or role == self.role or role.startswith(f"{self.role}/")
        return inside and self.framework_id in {"", framework_id}


def forget(state: State, event: ForgetUsage) -> None:
    """Reset averages. Raises EventError if there are none."""
    memory, clients = state.memory.usage, state.clients
    if not state.settings.half_life_ms:
        message = "no averages are kept; set fairness.half_life_s above 0"
        raise EventError("value", "half_life_s", message)
    rows = np.flatnonzero(clients.used.any(axis=1) | (clients.used_agents > 0)).tolist()
    rows = [client for client in rows if event.concerns(*_names(state, client))]
    gone = [key for key in memory.absent if event.concerns(*key)]
    if not rows and not gone:
        field = "framework_id" if event.framework_id else "role"
        name = getattr(event, field)
        message = f"{quoted(name)} has no past use; check its spelling" if name else NO_USE
        raise EventError("value", field, message)
    clients.used[rows] = 0
    clients.used_agents[rows] = 0
    memory.forget(gone)


def count_until(state: State, now_ms: int) -> None:
    """Update the averages to `now_ms`, with the current holdings; call this before they change."""
    memory, clients = state.memory.usage, state.clients
    if memory.half_life_ms != state.settings.half_life_ms:
        memory.set_half_life(state.settings.half_life_ms)
        if not memory.half_life_ms:
            clients.used[:] = 0
            clients.used_agents[:] = 0
    if not memory.half_life_ms:
        return
    parts = list(memory.pass_time(now_ms))
    if not parts:
        return
    # Skip clients that never held anything: a framework may have thousands of such roles.
    agents_held = state.ledger.books.agents_held
    rows = np.flatnonzero((agents_held > 0) | clients.used.any(axis=1))
    held, agents_held = state.held_by_column()[rows], agents_held[rows]
    used, used_agents = clients.used[rows, : held.shape[1]], clients.used_agents[rows]
    for added, factor in parts:
        used = (used + held * added) * factor
        used_agents = (used_agents + agents_held * added) * factor
    clients.used[rows, : held.shape[1]], clients.used_agents[rows] = used, used_agents


def averages(state: State, inherited: Floats) -> tuple[Floats, Floats]:
    """Return the average holdings of each client (C, R), in thousandths, and number of agents (C,).

    `inherited`: returned by the function of the same name.
    """
    memory, clients = state.memory.usage, state.clients
    used = clients.used[:, : len(state.space.names)]
    of_others = inherited * memory.scale
    amounts = (used + of_others[:, :-1]) * memory.norm
    return amounts, (clients.used_agents + of_others[:, -1]) * memory.norm


def inherited(state: State) -> Floats:
    """Return what clients that left add to the averages of others, (C, R + 1); last column: agents.

    The unit is thousandths / `scale`. The average of a client that left is divided equally among
    the subscribed clients of its role. So a role keeps its history when new frameworks replace old
    ones; each Spark job, for example, is a new framework.
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
    return np.floor(averages(state, inherited(state))[0]).astype(np.int64)


def counted(state: State, held: Ints, inherited: Floats) -> tuple[Ints, Floats]:
    """Return what counts for each client's share: amounts (C, R), in thousandths, and agents (C,).

    It is (1 - k) x held now + k x average, where k is the setting `usage_weight`.

    `inherited`: returned by the function of the same name.
    """
    k = state.settings.usage_weight
    amounts, agents = averages(state, inherited)
    mixed = np.floor((1.0 - k) * held + k * amounts).astype(np.int64)
    return mixed, (1.0 - k) * state.ledger.books.agents_held + k * agents


def come(state: State, client: int) -> None:
    path, framework_id = _names(state, client)
    if (path, framework_id) not in state.memory.usage.absent:
        return
    column = {name: index for index, name in enumerate(state.space.names)}
    known = column.keys() | {AGENTS}
    for name, amount in state.memory.usage.come(path, framework_id, known).items():
        if name == AGENTS:
            state.clients.used_agents[client] += amount
        else:
            state.clients.used[client, column[name]] += amount


def leave(state: State, client: int) -> None:
    """Store the average of a client whose row is about to be freed."""
    _leave(state, client, state.memory.usage, 1.0)


def end_session(state: State) -> None:
    """Store the averages of all clients; the next session may have other rows and columns."""
    for client in np.flatnonzero(state.clients.used.any(axis=1)).tolist():
        leave(state, client)


def usage_of(state: State) -> dict[tuple[str, str], dict[str, float]]:
    """Return the averages of all clients, present or not, by (role path, framework id) and name.

    If there are more than `ABSENT_MAX`, the oldest are added up by role.
    """
    memory, everything = state.memory.usage, UsageMemory()
    if memory.half_life_ms:
        for (path, framework_id), amounts in memory.absent.items():
            now = {name: amount * memory.scale * memory.norm for name, amount in amounts.items()}
            everything.leave(path, framework_id, now)
        for client in np.flatnonzero(state.clients.used.any(axis=1)).tolist():
            _leave(state, client, everything, memory.norm)
    return everything.absent


def _leave(state: State, client: int, memory: UsageMemory, factor: float) -> None:
    """Add a client's average, multiplied by a factor, to a memory."""
    clients, names = state.clients, state.space.names
    used = clients.used[client] * factor
    amounts = {names[column]: float(used[column]) for column in np.flatnonzero(used).tolist()}
    if amounts:
        amounts[AGENTS] = float(clients.used_agents[client]) * factor
        memory.leave(*_names(state, client), amounts)


def _names(state: State, client: int) -> tuple[str, str]:
    """Return a client's role path and its framework's id, which is empty if unknown."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    path = state.roles.path[int(state.clients.role[client])]
    return path, "" if info is None else info.framework_id
