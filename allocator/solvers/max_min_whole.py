"""Constrained max-min fairness (CMMF) of whole machines.

As `max_min`, for machines that cannot be divided: the vector of weighted shares, in ascending
order, is lexicographically as large as it can be. What users can have is then an integral
polymatroid, and the greedy algorithm is exact [2]_: give one machine after the other to the user
with the lowest share who can still have one, moving the machines of others where that is needed.
It starts from shares that no optimum falls below (see `_floor`), so only the last few machines of
each user are given one by one.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2 and 5.1 ("Algorithm for Non-Divisible Resources").
.. [2] Federgruen, Groenevelt. "The Greedy Procedure for Resource Allocation Problems."
   Operations Research 34(6), 1986.
.. [3] Frank, Murota. "Decreasing Minimization on M-convex Sets: Background and Structures."
   Mathematical Programming 195, 2022, sec. 3: nothing is left to improve by single exchanges.
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from allocator.solvers import NotOptimal, max_min
from allocator.solvers.constraint_graph import (
    Bools,
    Floats,
    Graph,
    Ints,
    coalesce,
    whole_weights,
)


@dataclass(frozen=True, slots=True)
class Solution:
    """An optimum; there may be others, with the same shares in ascending order.

    Attributes
    ----------
    machines : (U,) int64
        Machines of each user.
    given : (U, T) int64
        Machines of each type that each user gets.
    """

    machines: Ints
    given: Ints


def solve(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Ints | None = None
) -> Solution:
    """Find constrained max-min fair shares of whole machines.

    Parameters
    ----------
    eligible, count, weight, limit
        As in `max_min.solve`.

    Returns
    -------
    Solution
        Checked by `improvement`.

    Raises
    ------
    ValueError
        As `max_min.solve` does.
    NotOptimal
        Where the certificate finds an improvement, with the number of machines as residual.

    Notes
    -----
    Of users with the same share, the one with the smaller weight comes first (its share grows by
    more), then the one in the lower row.

    Examples
    --------
    Figure 5 of [1]_: nine machines; the types are 1, 2, 3-4, 5, 6-9.

    >>> users = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]], bool)
    >>> solve(users, np.array([1, 1, 2, 1, 4])).machines.tolist()
    [2, 3, 4]
    """
    # Give everybody its lower bound, then the last machines one by one.
    graph = coalesce(eligible, count, weight, limit)
    floor = _floor(graph)
    flow = max_min.flow(graph.eligible, graph.count, [int(n) for n in graph.size * floor], 1)[0]
    _fill(graph, flow)
    # Within a class some users have one machine more than others: those in the lower rows.
    machines = np.zeros(len(graph.class_of_user), np.int64)
    for row, size in enumerate(graph.size):
        users = np.flatnonzero(graph.class_of_user == row)
        machines[users] = (flow[row].sum() + size - 1 - np.arange(size)) // size
    given = graph.spread(flow, machines)
    better = improvement(given, eligible, count, weight, limit)
    if better is not None:
        problem = f"constrained max-min fairness: user {better} could stand higher"
        raise NotOptimal(problem, 1.0, 0.0)
    return Solution(machines, given)


def improvement(
    given: Ints,
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    limit: Ints | None = None,
) -> int | None:
    """Find a user that could stand higher at the cost of one that stands higher anyway.

    Parameters
    ----------
    given : (U, T) int64
        Machines of each type that each user gets.
    eligible, count, weight, limit
        As in `max_min.solve`.

    Returns
    -------
    int or None
        The row of a user who could have one machine more, by a chain of exchanges that ends at an
        idle machine, or at a user whose loss leaves the vector of shares lexicographically larger
        ([3]_); None where there is none, which proves optimality.

    Raises
    ------
    AssertionError
        Where a machine is given twice, or to somebody who cannot use it.
    """
    assert (given >= 0).all()
    assert not given[~np.asarray(eligible)].any()
    assert (given.sum(axis=0) <= count).all()
    steps = np.ones(len(given), np.int64) if weight is None else whole_weights(weight)
    machines = given.sum(axis=1)
    # Where each user stands, and where it would stand with one machine less. Whoever would stand
    # highest afterwards is asked first to give one away.
    level = [Fraction(int(m), int(w)) for m, w in zip(machines, steps, strict=True)]
    less = [Fraction(int(m) - 1, int(w)) for m, w in zip(machines, steps, strict=True)]
    donors = sorted(range(len(given)), key=lambda user: (-less[user], -int(steps[user]), user))
    wanting = np.ones(len(given), bool) if limit is None else machines < limit
    idle = np.flatnonzero(given.sum(axis=0) < count)
    reached_type = np.zeros(len(count), bool)
    reached_user = np.zeros(len(given), bool)
    # Look for chains backwards: from idle machines first, then from each donor's machines. What
    # was reached from an earlier start need not be looked at again: that start was at least as
    # good.
    for donor in (None, *donors):
        if donor is not None and (reached_user[donor] or not machines[donor]):
            continue
        frontier = idle if donor is None else np.flatnonzero(given[donor] > 0)
        while len(frontier := frontier[~reached_type[frontier]]):
            # Users who could take one of these machines.
            reached_type[frontier] = True
            users = np.flatnonzero(eligible[:, frontier].any(axis=1) & ~reached_user)
            reached_user[users] = True
            # One of them that wants more, and would still stand lower than the donor after the
            # exchange.
            for user in users[wanting[users]]:
                if donor is None or (level[user], steps[user]) < (less[donor], steps[donor]):
                    return int(user)
            # The others could pass on a machine that they hold, in exchange: go on with these.
            frontier = np.flatnonzero((given[users] > 0).any(axis=0))
    return None


def _floor(graph: Graph) -> Ints:
    """Machines that each user of a class has in every optimum, (C,).

    Let x be the divisible optimum, y a whole one, and ``y[i] + 1 <= x[i]``. Both use all that can
    be used, so some user j has ``y[j] > x[j]``, could give i a machine in y, and i could give to j
    in x: so j's level in x is not below i's. If y[i] / w[i] were below ``(y[j] - 1) / w[j]``, y
    could be improved. So ``y[i] / w[i] >= x[i] / w[i] - 1 / w[j]``.
    """
    # The larger of 0 and ``x - weight / smallest weight``, rounded up; never more than x itself.
    divisible = max_min.decompose(graph)
    smallest = int(graph.weight.min(initial=1))
    floor = np.zeros(len(graph.size), np.int64)
    for row, machines in enumerate(divisible):
        weight = int(graph.weight[row])
        floor[row] = max(0, min(int(machines), -int(-(machines - Fraction(weight, smallest)) // 1)))
    return floor


def _fill(graph: Graph, flow: Ints) -> None:
    """Give what is left, one round of a class's users at a time; `flow` is changed."""
    queue: list[tuple[Fraction, int, int]] = []

    # The queue has the lowest class first; a class that is at its limit is not entered.
    def enter(row: int) -> None:
        machines = int(flow[row].sum()) // int(graph.size[row])
        if machines < graph.limit[row]:
            weight = int(graph.weight[row])
            heapq.heappush(queue, (Fraction(machines, weight), weight, row))

    for row in range(len(graph.size)):
        enter(row)
    idle = graph.count - flow.sum(axis=0)
    while queue:
        _, _, row = heapq.heappop(queue)
        size = int(graph.size[row])
        # One machine more for each of its users: up to the end of this round.
        wanted = size - int(flow[row].sum()) % size
        while wanted:
            moved = _augment(graph.eligible, flow, idle, row, wanted)
            wanted -= moved
            if not moved:  # what a class cannot have now it can never have: it leaves the queue
                break
        else:
            enter(row)


def _augment(eligible: Bools, flow: Ints, idle: Ints, start: int, wanted: int) -> int:
    """Give a class more machines along one shortest chain of exchanges; return how many."""
    giver = np.full(len(idle), -1)  # the class from which a group was reached
    through = np.full(len(flow), -1)  # the group from which a class was reached
    frontier = np.flatnonzero(eligible[start])
    giver[frontier] = start
    # Search in breadth, for the shortest chain: classes that hold machines of the groups reached,
    # then groups that these could use instead.
    while len(frontier) and not idle[frontier].any():
        holders = (flow[:, frontier] > 0) & (through < 0)[:, None]
        holders[start] = False
        rows = np.flatnonzero(holders.any(axis=1))
        if not len(rows):
            return 0
        through[rows] = frontier[holders[rows].argmax(axis=1)]
        reached = eligible[rows] & (giver < 0)
        frontier = np.flatnonzero(reached.any(axis=0))
        giver[frontier] = rows[reached[:, frontier].argmax(axis=0)]
    if not len(frontier):
        return 0
    # Follow the chain back from the idle machines. It can move no more than each class on it
    # holds.
    group = int(frontier[idle[frontier].argmax()])
    chain = [(int(giver[group]), group)]
    amount = min(wanted, int(idle[group]))
    while chain[-1][0] != start:
        row = chain[-1][0]
        group = int(through[row])
        amount = min(amount, int(flow[row, group]))
        chain.append((int(giver[group]), group))
    # Every class on the chain takes machines of the group it was followed to, and gives up as
    # many of the group through which it was reached.
    idle[chain[0][1]] -= amount
    for row, group in chain:
        flow[row, group] += amount
    for (row, _), (_, group) in pairwise(chain):
        flow[row, group] -= amount
    return amount
