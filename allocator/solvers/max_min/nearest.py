"""Of all ways to give users their shares of machines, the one nearest to their holdings.

Shares are rounded down or up: as few as possible down, those with the smallest fractions first. Of
all ways to do that, as few machines as possible change hands. Of those, the changes are spread: a
user loses machines of all types in proportion, and gains them wherever there is room. So no user
waits for the machines of one type while others are as good. This is one minimum-cost flow whose
costs rise with the part of a pair's machines that change.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, sec. 14 (convex costs by
   parallel arcs).
"""

import numpy as np

from allocator.solvers.flow.min_cost_flow import Network
from allocator.solvers.flow.min_cost_flow import solve as cheapest
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Ints

_STEPS = 8  # arcs per pair and direction, each dearer than the one before: changes are spread
_ROUNDING = 1e-12  # relative to the number of all machines


def solve(eligible: Bools, count: Ints, share: Floats, held: Ints) -> Ints:
    """Give each user its machines, of types that it can use.

    At most sixteen arcs per eligible pair.

    `eligible` (U, T).
    `count` (T,), >= 0: machines of each type.
    `share` (U,), >= 0: target of each user; feasible together, up to rounding.
    `held` (U, T), >= 0: current holdings; those that the user cannot use do not count.
    Returns (U, T): each user's total is its share rounded down or up.
    Raises Infeasible if not all can have their shares, rounded down.
    Raises NotOptimal if the flow is not proved to be the cheapest.

    Examples
    --------
    Both can use all; the first has two machines too many, the second nothing.

    >>> held = np.array([[4, 4], [0, 0]])
    >>> solve(np.ones((2, 2), bool), np.array([4, 4]), np.array([6.0, 2.0]), held)
    array([[3, 3],
           [1, 1]])
    """
    users, types = eligible.shape
    # Ignore rounding errors of shares.
    slack = _ROUNDING * max(int(count.sum()), 1)
    least = np.floor(share + slack).astype(np.int64)
    machines = np.maximum(np.ceil(share - slack).astype(np.int64), least)
    # One more machine that changes hands costs more than any spreading of changes.
    dear = _STEPS * (users + types + 1)
    arcs = _of_pairs(eligible, count, machines, held, dear)
    # One machine less costs more than any change that it causes; and two cost more than any one.
    less = dear * (users + types) * (100 + np.floor(99 * (share - least)).astype(np.int64)) // 50
    # The nodes: users, types, and the sink.
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
    """Build the arcs of pairs: tails, heads, rooms and costs, step by step."""
    user, kind = np.nonzero(eligible)
    most = np.minimum(count[kind], machines[user])
    keeps = np.minimum(held[user, kind], most)
    arcs = []
    for part, price in ((keeps, 0), (most - keeps, dear)):
        # Steps of about equal size that add up to the whole.
        ends = part * np.arange(_STEPS + 1)[:, None] // _STEPS
        for step in range(_STEPS):
            room = ends[step + 1] - ends[step]
            some = room > 0
            cost = np.full(int(some.sum()), price + step)
            arcs.append((user[some], len(eligible) + kind[some], room[some], cost))
    return arcs
