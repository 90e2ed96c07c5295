"""Turns: the order of service among clients with equal scores.

Each cycle that offers something is one *turn*, and has the next number. Among equals, the client
whose framework had its last turn longest ago, in any of its roles, comes first; among those, the
one whose own last turn was longest ago. A new framework counts as having just had its turn. So a
framework cannot move to the front by subscribing again, leaving, reviving, or joining many or other
roles. A waiting framework is passed by each other framework at most once.

A cycle with several agents serves several clients at once. To keep a framework with many roles from
taking all of these places, only its role with the longest wait is in front; the next one is one
turn behind it, and so on.

A role is as far in front as its framework with the longest wait, but not further than its own last
turn allows: a framework that takes nothing does not keep its role in front for others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.core.books.roles import ROOT
from allocator.core.books.state import State
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.snapshot import Ints

_AGE_BITS = 31
_OLDEST = (1 << _AGE_BITS) - 1
"""Turns longer ago than this, which is years, are not distinguished."""


class Turns(NamedTuple):
    """The number of the last turn of each client, framework and role.

    `client`, `framework` (C,): the client itself; its framework, in whichever role.
    `belongs_to`, `in_role` (C,): which framework that is, and in which role the client is.
    `role` (n,): the role and its descendants; the root's is the number of the latest turn.
    `here` (n,): the role's own frameworks.
    """

    client: Ints
    framework: Ints
    belongs_to: Ints
    in_role: Ints
    role: Ints
    here: Ints


def last_turn(state: State) -> int:
    """Number of the last turn."""
    return int(state.roles.served[ROOT])


def turns_of(state: State) -> Turns:
    """Copy the turns from the tables."""
    clients, roles = state.clients, state.roles
    of_framework = state.frameworks.served[clients.framework]
    belongs_to, in_role = clients.framework, clients.role
    return Turns(clients.served, of_framework, belongs_to, in_role, roles.served, roles.served_here)


def behind(belongs_to: Ints, top: Ints, own: Ints, role: Ints) -> Ints:
    """Count how many turns each leaf is behind its framework's last one.

    The leaf of a framework that has waited longest is 0 behind, the next one 1, and so on, up to
    the number of frameworks, since that many turns serve all of them.

    `belongs_to` (L,): each leaf's framework.
    `top`, `own` (L,): the last turn of the root's child above the leaf; the leaf's own.
        The longest wait is determined by the first, then by the second.
    `role` (L,): among equals, the lower number is in front.
    Returns (L,).
    """
    leaves = np.bincount(belongs_to)
    if leaves.max(initial=0) <= 1:
        return np.zeros(len(own), np.int64)
    # In this order the leaves of a framework are adjacent; its first one is where it begins.
    order = np.lexsort((role, own, top, belongs_to))
    begins = np.cumsum(leaves) - leaves
    rank = np.empty(len(own), np.int64)
    rank[order] = np.arange(len(own)) - begins[belongs_to[order]]
    return np.minimum(rank, np.count_nonzero(leaves))


def take_turn(state: State, client: Ints) -> None:
    """Record a turn of these clients (N,); without clients there is no turn."""
    if not len(client):
        return
    clients, roles = state.clients, state.roles
    turn = last_turn(state) + 1
    clients.served[client] = turn
    state.frameworks.served[clients.framework[client]] = turn
    above = clients.role[client]
    roles.served_here[above] = turn
    while above.any():
        roles.served[above] = turn
        above = roles.parent[above]
    roles.served[ROOT] = turn


@loop
def _line_up(
    last: int,
    parent: NDArray[np.int64],
    turn: NDArray[np.int64],
    own: NDArray[np.int64],
) -> NDArray[np.int64]:
    nodes, leaves = len(parent), len(turn)
    result = np.zeros(nodes, np.int64)
    # The leaf below each node that has waited longest. Children come before parents.
    oldest = np.full(nodes, last)
    for node in range(nodes - 1):
        if node < leaves:
            oldest[node] = turn[node]
        oldest[parent[node]] = min(oldest[parent[node]], oldest[node])
    # Longer ago is smaller; ties of frameworks are broken by the leaf's own turn.
    for node in range(nodes - 1):
        first = min(max(last - max(oldest[node], own[node]), 0), _OLDEST)
        then = min(max(last - own[node], 0), _OLDEST)
        result[node] = -((first << _AGE_BITS) + then)
    return result


def line_up(parent: Ints, turn: Ints, own: Ints) -> Ints:
    """Order the nodes of a tree by turns.

    `parent` (N,): leaves first, children before parents; -1 for the root, the last node.
    `turn` (L,): the last turn of each leaf's framework, and how many turns it is `behind`.
    `own` (N,): each node's own last turn; the root's is the last of all.
    Returns (N,): among siblings the smaller comes first; the root has 0, the largest.
    """
    # Leaves that are behind may have a future turn, so count back from the latest.
    last = max(int(own[-1]), int(turn.max(initial=0)))
    placed: Ints = _line_up(last, *map(loop_view, (parent, turn, own)))
    return placed
