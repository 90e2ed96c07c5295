"""Agents that are alike, of which solvers make one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class EqualAgents(NamedTuple):
    """The sorts of agents, in the order of the first agent of each.

    `first` (G,): the first agent of each sort.
    `of_agent` (A,): the sort of each agent.
    `copies` (G,): how many agents are of each.
    """

    first: Ints
    of_agent: Ints
    copies: Ints


def equal_agents(capacity: NDArray[np.float64], able: NDArray[np.bool_]) -> EqualAgents:
    """Tell agents apart by their capacity (A, R), and by who can run on them, (F, A)."""
    rows = np.column_stack([capacity, able.T])
    _, first, of_agent, copies = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    # In the order of their first rows, whatever their sizes.
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return EqualAgents(first[order], place[of_agent.reshape(-1)], copies[order])
