"""Converts the unlike tasks of gangs to amounts by column."""

from typing import NamedTuple

import numpy as np

from allocator.core.books.state import State
from allocator.core.demand.own_words import Requested
from allocator.core.numba.array_structures import read_only
from allocator.core.snapshot import Gangs, Ints, Lines


class _Read(NamedTuple):
    """Tasks, and their sizes (l, R) and numbers (l,)."""

    tasks: Requested
    size: Ints
    number: Ints


class UnlikeTasks:
    """Converts unlike tasks, and remembers them: a framework may request often, of many clients."""

    def __init__(self) -> None:
        self._columns: tuple[object, int] = (None, 0)
        self._read: dict[int, _Read] = {}
        self._agents: tuple[object, int] = (None, 0)
        self._handle: dict[str, int] = {}

    def added_to(self, state: State, gangs: Gangs) -> Gangs:
        """Return gangs with their unlike tasks, and the refusals of these clients."""
        columns = state.space, len(state.space.names)
        if columns != self._columns:
            self._columns, self._read = columns, {}
        read, every = {}, state.clients.unlike
        for client in filter(every.__contains__, gangs.client.tolist()):
            known = self._read.get(client)
            if known is None or known.tasks is not every[client]:
                known = _converted(state, every[client])
            read[client] = known
        self._read = read
        unlike = {
            client: Lines(known.size, known.number, self._agents_of(state, known.tasks))
            for client, known in read.items()
        }
        refuser, refused = _refusals(state, np.array(list(unlike), np.int64))
        return gangs._replace(unlike=unlike, refuser=refuser, refused=refused)

    def _agents_of(self, state: State, tasks: Requested) -> Ints:
        """Return the handle of the only agent for each of some tasks, as in `Lines`."""
        if not any(each.agent for each in tasks):
            return read_only(np.zeros(len(tasks), np.int64))
        agents = state.agents, state.agents.version
        if agents != self._agents:
            handles = np.flatnonzero(state.agents.bound).tolist()
            infos = map(state.agents.info.__getitem__, handles)
            named = zip(infos, handles, strict=True)
            self._handle = {info.agent_id: handle for info, handle in named if info}
            self._agents = agents
        found = (self._handle.get(each.agent, -1) if each.agent else 0 for each in tasks)
        return read_only(np.fromiter(found, np.int64, len(tasks)))


def _converted(state: State, tasks: Requested) -> _Read:
    size = np.array([state.space.demanded(each.amounts) for each in tasks], np.int64)
    count = np.array([each.number for each in tasks], np.int64)
    return _Read(tasks, read_only(size), read_only(count))


def _refusals(state: State, clients: Ints) -> tuple[Ints, Ints]:
    """Return the client and the agent (handle) of each filter of some clients (n,), by client."""
    rows = state.filters.rows
    mine = np.zeros(len(rows.per_client), np.bool_)
    mine[clients] = rows.per_client[clients] > 0
    if not mine.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    found = np.flatnonzero(mine[rows.client])
    found = found[np.argsort(rows.client[found], kind="stable")]
    return rows.client[found].astype(np.int64), rows.agent[found].astype(np.int64)
