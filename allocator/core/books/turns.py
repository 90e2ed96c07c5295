"""Turns: the order of service among clients with equal scores.

Each cycle that offers something is one *turn*; turns are numbered. Among clients with equal scores,
the one whose framework was last served (in any of its roles) in the earliest turn comes first;
among the clients of such frameworks, the one that was itself served in the earliest turn. A new
framework counts as served in the current turn. So a framework cannot move to the front by
resubscribing, leaving, reviving, or joining many or other roles, and each other framework is served
at most once before a waiting one.

A cycle with several agents serves several clients at once. To keep a framework with many roles from
taking all of these agents, only its longest-waiting role counts as above; its second role counts as
served one turn later, its third two turns later, and so on.

A role takes the place of its longest-waiting framework, but not one before the role's own last turn
allows: a framework that takes nothing must not keep its role in front for other frameworks.
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
"""Maximum age in turns; older turns, which are years ago, are treated alike."""


class Turns(NamedTuple):
    """The number of the last turn of each client, framework and role.

    `client`, `framework` (C,): the last turn of the client itself; of its framework in any role.
    `belongs_to`, `in_role` (C,): the client's framework and role, by handle.
    `role` (n,): the last turn of the role or a descendant; for the root: of any role.
    `here` (n,): the last turn of the frameworks in the role itself.
    """

    client: Ints
    framework: Ints
    belongs_to: Ints
    in_role: Ints
    role: Ints
    here: Ints


def last_turn(state: State) -> int:
    return int(state.roles.served[ROOT])


def turns_of(state: State) -> Turns:
    clients, roles = state.clients, state.roles
    of_framework = state.frameworks.served[clients.framework]
    belongs_to, in_role = clients.framework, clients.role
    return Turns(clients.served, of_framework, belongs_to, in_role, roles.served, roles.served_here)


def behind(belongs_to: Ints, top: Ints, own: Ints, role: Ints) -> Ints:
    """Return how many turns later each leaf (L,) counts as served, due to its framework's others.

    The count is 0 for the longest-waiting leaf of a framework, 1 for the next, and so on. It is at
    most the number of frameworks, since that many turns serve all of them.

    `belongs_to` (L,): handle of each leaf's framework.
    `top`, `own` (L,): the last turn of the root's child above the leaf, and of the leaf itself. The
        longest wait is that with the lowest `top`, then the lowest `own`.
    `role` (L,): breaks remaining ties: lower numbers first.
    """
    leaves = np.bincount(belongs_to)
    if leaves.max(initial=0) <= 1:
        return np.zeros(len(own), np.int64)
    # Sorted so that the leaves of a framework are adjacent, the longest wait first.
    order = np.lexsort((role, own, top, belongs_to))
    begins = np.cumsum(leaves) - leaves
    rank = np.empty(len(own), np.int64)
    rank[order] = np.arange(len(own)) - begins[belongs_to[order]]
    return np.minimum(rank, np.count_nonzero(leaves))


def take_turn(state: State, client: Ints) -> None:
    """Record that clients (N,) were served in a new turn; without clients there is no turn."""
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
    # For each node: the earliest last turn of the leaves below it. Children come before parents.
    oldest = np.full(nodes, last)
    for node in range(nodes - 1):
        if node < leaves:
            oldest[node] = turn[node]
        oldest[parent[node]] = min(oldest[parent[node]], oldest[node])
    # Earlier turns give smaller numbers; the leaf's own turn breaks ties between frameworks.
    for node in range(nodes - 1):
        first = min(max(last - max(oldest[node], own[node]), 0), _OLDEST)
        then = min(max(last - own[node], 0), _OLDEST)
        result[node] = -((first << _AGE_BITS) + then)
    return result


def line_up(parent: Ints, turn: Ints, own: Ints) -> Ints:
    """Order the nodes of a tree by turns.

    `parent` (N,): leaves first, children before parents; -1 for the root, which is the last node.
    `turn` (L,): the last turn of each leaf's framework, plus the result of `behind`.
    `own` (N,): each node's own last turn; for the root: the latest turn.
    Returns (N,), at most 0: among siblings the smallest comes first; the root has 0.
    """
    # Adding `behind` may give a future turn, so ages are relative to the latest turn of all.
    last = max(int(own[-1]), int(turn.max(initial=0)))
    placed: Ints = _line_up(last, *map(loop_view, (parent, turn, own)))
    return placed
