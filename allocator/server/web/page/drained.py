"""Agents that operators drain: the frameworks with holdings there, and since when."""

from typing import NamedTuple

import numpy as np

from allocator.core import Allocator
from allocator.server.reports import agent_rows

SHOWN_MAX = 25


class DrainedAgent(NamedTuple):
    """A drained agent.

    `name`: host, or id.
    `names`: by which a drain may name it.
    `frameworks`: number of those that still hold something on it.
    `used`: fraction of its fullest resource that is held, 0 to 1.
    """

    name: str
    names: frozenset[str]
    frameworks: int
    used: float


class DrainedAgents(NamedTuple):
    """Agents with the largest holdings, and the number of others; `empty`: without holdings."""

    rows: tuple[DrainedAgent, ...]
    more: int
    empty: int


def take(allocator: Allocator) -> DrainedAgents:
    state = allocator.state
    agents, ledger = state.agents, state.ledger
    rows = np.flatnonzero(agents.bound & agents.drained)
    copied = agent_rows.take(allocator, rows)
    held = copied.used + copied.offered
    used = agent_rows.part_of(held, copied.capacity).max(axis=1, initial=0.0)
    found = []
    for place in np.argsort(-used, kind="stable")[:SHOWN_MAX].tolist():
        row, info = int(rows[place]), agents.info[rows[place]]
        of_agent = ledger.rows_of_agent(row)
        clients = ledger.books.client[of_agent]
        frameworks = len(np.unique(state.clients.framework[clients]))
        names = frozenset((info.agent_id, info.hostname)) if info else frozenset[str]()
        found.append(DrainedAgent(copied.name[place], names, frameworks, float(used[place])))
    return DrainedAgents(tuple(found), len(rows) - len(found), int((held == 0).all(axis=1).sum()))
