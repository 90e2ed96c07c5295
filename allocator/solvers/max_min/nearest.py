"""Of all ways to give users their shares of machines the one that is nearest to what they hold.

Shares are rounded down or up, and as few down as can be, those with the smallest parts first. Of
all ways to do that as few machines as can be change hands. Of those ways, the changes are spread:
what a user is to lose it loses on all types in proportion, and what it is to gain it gains wherever
there is room. So nobody waits for the machines of one type while others are as good. It is one flow
of minimum cost, whose costs rise with the part of a pair's machines that change.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, sec. 14 (convex costs by
   parallel arcs).
"""

import numpy as np

from allocator.solvers.flow.min_cost_flow import Network
from allocator.solvers.flow.min_cost_flow import solve as cheapest
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Ints

_STEPS = 8  # the changes of a pair are spread as evenly as this
_ROUNDING = 1e-12  # of all machines


def solve(eligible: Bools, count: Ints, share: Floats, held: Ints) -> Ints:
    """Give each user its machines, of types that it can use.

    At most sixteen arcs for each pair that may meet.

    `eligible` (U, T).
    `count` (T,), >= 0: machines of each type.
    `share` (U,), >= 0: what each user is to have; all of them can, but for rounding.
    `held` (U, T), >= 0: what it has; of what it cannot use none counts.
    Returns (U, T): of each user in all the whole number below its share, or above.
    Raises Infeasible where not all can have their shares, rounded down.
    Raises NotOptimal where the flow is not proved to be the cheapest.

    Examples
    --------
    Both can use all; the first has two machines too many, the second nothing.

    >>> held = np.array([[4, 4], [0, 0]])
    >>> solve(np.ones((2, 2), bool), np.array([4, 4]), np.array([6.0, 2.0]), held)
    array([[3, 3],
           [1, 1]])
    """
    users, types = eligible.shape
    # What rounding may have taken from a share, or added, makes no machine.
    slack = _ROUNDING * max(int(count.sum()), 1)
    least = np.floor(share + slack).astype(np.int64)
    machines = np.maximum(np.ceil(share - slack).astype(np.int64), least)
    # One machine more that changes hands is dearer than any spreading of changes can be.
    dear = _STEPS * (users + types + 1)
    arcs = _of_pairs(eligible, count, machines, held, dear)
    # One machine less: dearer than whatever else changes because of it; and two are dearer than
    # one, whichever.
    less = dear * (users + types) * (100 + np.floor(99 * (share - least)).astype(np.int64)) // 50
    # The nodes: users, types, and one where all flow ends.
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
    """Give the arcs of pairs: tails, heads, rooms and costs, step by step."""
    user, kind = np.nonzero(eligible)
    most = np.minimum(count[kind], machines[user])
    keeps = np.minimum(held[user, kind], most)
    arcs = []
    for part, price in ((keeps, 0), (most - keeps, dear)):
        # In steps of about the same size, which add up to the whole.
        ends = part * np.arange(_STEPS + 1)[:, None] // _STEPS
        for step in range(_STEPS):
            room = ends[step + 1] - ends[step]
            some = room > 0
            cost = np.full(int(some.sum()), price + step)
            arcs.append((user[some], len(eligible) + kind[some], room[some], cost))
    return arcs
