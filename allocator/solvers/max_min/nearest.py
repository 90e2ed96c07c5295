"""Assignment of whole machines by given shares, with as few changes of holdings as possible.

Goals, the most important first:

1. Shares are rounded down or up: as few as possible down, those with the smallest fractions first.
2. As few machines as possible change hands.
3. Changes are spread over types: a user loses machines of all types in proportion, and gains
   machines of all types with room. So no user waits for machines of one type while machines of
   another would do.

One minimum-cost flow finds the assignment. The cost per machine of a pair, a user and a type, rises
with the part of the pair's machines that change.

Shapes: U users, T types.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, sec. 14 (convex costs by
   parallel arcs).
"""

import numpy as np

from allocator.solvers.flow.min_cost_flow import Network
from allocator.solvers.flow.min_cost_flow import solve as cheapest
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Ints

_STEPS = 8  # arcs per pair and direction, with rising costs so that changes are spread
_ROUNDING = 1e-12  # rounding error of shares, relative to the number of all machines


def solve(eligible: Bools, count: Ints, share: Floats, held: Ints) -> Ints:
    """Assign whole machines to users.

    The network has at most sixteen arcs per eligible pair.

    `eligible` (U, T): whether user u can use machines of type t.
    `count` (T,), >= 0: number of machines of each type.
    `share` (U,), >= 0: machines that each user should get; all shares together must be feasible up
        to rounding.
    `held` (U, T), >= 0: machines of each type that each user holds now; machines of types that the
        user cannot use are ignored.
    Returns (U, T): machines of each type that each user gets, in total its share rounded down or
        up.
    Raises Infeasible if not all users can have their shares, rounded down.
    Raises NotOptimal if the flow is not proved to be the cheapest.

    Examples
    --------
    Both users can use all types; the first has two machines too many, the second has none.

    >>> held = np.array([[4, 4], [0, 0]])
    >>> solve(np.ones((2, 2), bool), np.array([4, 4]), np.array([6.0, 2.0]), held)
    array([[3, 3],
           [1, 1]])
    """
    users, types = eligible.shape
    slack = _ROUNDING * max(int(count.sum()), 1)
    least = np.floor(share + slack).astype(np.int64)
    machines = np.maximum(np.ceil(share - slack).astype(np.int64), least)
    # If one more machine changes hands, that costs more than the worst spread of changes.
    dear = _STEPS * (users + types + 1)
    arcs = _of_pairs(eligible, count, machines, held, dear)
    # Rounding a share down costs more than all changes of holdings that it could avoid; rounding
    # two shares down costs more than rounding down any single one.
    less = dear * (users + types) * (100 + np.floor(99 * (share - least)).astype(np.int64)) // 50
    end = users + types
    arcs.append((np.arange(users), np.full(users, end), machines - least, less))
    kinds = np.arange(types)
    arcs.append((users + kinds, np.full(types, end), count, np.zeros(types, np.int64)))
    tail, head, room, cost = (np.concatenate(column) for column in zip(*arcs, strict=True))
    supply = np.concatenate([machines, np.zeros(types, np.int64), [-machines.sum()]])
    flow = cheapest(Network(tail, head, room, cost, supply)).flow
    given = np.zeros((users, types), np.int64)
    of_pair = (tail < users) & (head < end)
    np.add.at(given, (tail[of_pair], head[of_pair] - users), flow[of_pair])
    return given


def _of_pairs(
    eligible: Bools, count: Ints, machines: Ints, held: Ints, dear: int
) -> list[tuple[Ints, Ints, Ints, Ints]]:
    """Build the arcs from users to types: for each step their tails, heads, rooms and costs."""
    user, kind = np.nonzero(eligible)
    most = np.minimum(count[kind], machines[user])
    keeps = np.minimum(held[user, kind], most)
    arcs = []
    for part, price in ((keeps, 0), (most - keeps, dear)):
        ends = part * np.arange(_STEPS + 1)[:, None] // _STEPS
        for step in range(_STEPS):
            room = ends[step + 1] - ends[step]
            some = room > 0
            cost = np.full(int(some.sum()), price + step)
            arcs.append((user[some], len(eligible) + kind[some], room[some], cost))
    return arcs
