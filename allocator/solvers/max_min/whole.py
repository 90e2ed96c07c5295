"""Constrained max-min fairness (CMMF) of whole machines.

This is the problem of `max_min`, whose terms are used here, for machines that cannot be divided.
The vector of users' levels, in ascending order, is made lexicographically as large as possible. The
amounts that users can have at the same time form an integral polymatroid, so greedy and local
methods are exact [2]_, [3]_.

Some optimum gives no user more than its share of divisible machines, rounded up (see `_ceiling`).
So the solver first lets each user claim that many. While more machines are claimed than exist, the
user with the highest level gives up one, if necessary by a chain of exchanges with other users.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2 and 5.1 ("Algorithm for Non-Divisible Resources").
.. [2] Federgruen, Groenevelt. "The Greedy Procedure for Resource Allocation Problems."
   Operations Research 34(6), 1986.
.. [3] Frank, Murota. "Decreasing Minimization on M-convex Sets: Background and Structures."
   Mathematical Programming 195, 2022, sec. 3: nothing is left to improve by single exchanges.
"""

from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from allocator.core.numba.compiled import loop, part
from allocator.solvers import NotOptimal
from allocator.solvers.flow.class_flow import Block, Edges, Placed, place, repair
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Graph, Ints, coalesce


@part()
def _edge_of(row: int, wanted: int, start: Ints, group: Ints) -> int:
    for edge in range(start[row], start[row + 1]):
        if group[edge] == wanted:
            return edge
    return -1


class _Search(NamedTuple):
    """The state of the search for chains of exchanges.

    A chain leads from an overloaded group to a group that the giving class holds. Along the chain,
    each class gives up machines of one group and takes as many of the next; at the end, the giving
    class gives up machines.

    `settled` (G,): groups through which no chain passes; extended by searches that find nothing.
    `towards`, `by` (G,): the next group on the chain, -1 at its end; and the class that gives up
        machines of this group.
    `queue` (G + C,): groups, then classes, that the current search has reached.
    `seen` (C,): classes that the current search has reached.
    """

    settled: Bools
    towards: Ints
    by: Ints
    queue: Ints
    seen: Bools


@part()
def _search(giver: int, edges: Edges, placed: Placed, search: _Search) -> int:
    """Find an overloaded group from which a chain leads to a group that the class `giver` holds.

    Returns the overloaded group, with the chain in `search`; -1 if there is none.
    """
    start, group, column_start, _, column_class = edges
    room, flow, load = placed
    settled, towards, by, queue, seen = search
    length = 0
    for edge in range(start[giver], start[giver + 1]):
        g = group[edge]
        if flow[edge] > 0 and not settled[g]:
            settled[g] = True
            towards[g], by[g] = -1, giver
            queue[length] = g
            length += 1
    found, at = -1, 0
    for k in range(length):
        if load[queue[k]] > room[queue[k]]:
            found = queue[k]
    size = 0
    while found < 0 and at < length:
        g = queue[at]
        at += 1
        for k in range(column_start[g], column_start[g + 1]):
            row = column_class[k]
            if seen[row]:
                continue
            seen[row] = True
            queue[len(room) + size] = row
            size += 1
            for edge in range(start[row], start[row + 1]):
                other = group[edge]
                if flow[edge] > 0 and not settled[other]:
                    settled[other] = True
                    towards[other], by[other] = g, row
                    queue[length] = other
                    length += 1
                    if load[other] > room[other]:
                        found = other
            if found >= 0:
                break
    # The reached groups stay settled if none was found: no overloaded group leads to them.
    for k in range(length if found >= 0 else 0):
        settled[queue[k]] = False
    for k in range(size):
        seen[queue[len(room) + k]] = False
    return found


@loop
def give_up(edges: Edges, placed: Placed, size: Ints, weight: Floats, claim: Ints) -> None:
    """Take machines back from the users with the highest levels until no group is overloaded.

    `placed`: holdings as `repair` leaves them; changed.
    `size` (C,): number of users of each class.
    `weight` (C,): weight of each user of the class.
    `claim` (C,): number of machines that each class holds; changed.
    """
    start, group, (room, flow, load) = edges.start, edges.group, placed
    classes, groups = len(start) - 1, len(room)
    over = 0
    for g in range(groups):
        over += max(load[g] - room[g], 0)
    # The heap starts with the class whose user would have the highest level with one machine less.
    highest = [
        (-(((claim[row] - 1) // size[row]) / weight[row]), -weight[row], -row)
        for row in range(classes)
        if claim[row] > 0
    ]
    heapify(highest)
    towards, by = np.empty(groups, np.int64), np.empty(groups, np.int64)
    queue = np.empty(groups + classes, np.int64)
    search = _Search(np.zeros(groups, np.bool_), towards, by, queue, np.zeros(classes, np.bool_))
    while over > 0 and highest:
        giver = -heappop(highest)[2]
        origin = _search(giver, edges, placed, search)
        # A class from which no chain relieves a group now never will.
        if origin < 0:
            continue
        # Move as many machines as the chain allows, one from each user with the same level.
        amount = min(load[origin] - room[origin], (claim[giver] - 1) % size[giver] + 1)
        g = origin
        while g >= 0:
            amount = min(amount, flow[_edge_of(by[g], g, start, group)])
            g = towards[g]
        g = origin
        while g >= 0:
            flow[_edge_of(by[g], g, start, group)] -= amount
            if towards[g] >= 0:
                flow[_edge_of(by[g], towards[g], start, group)] += amount
            g = towards[g]
        claim[giver] -= amount
        load[origin] -= amount
        over -= amount
        if claim[giver] > 0:
            level = ((claim[giver] - 1) // size[giver]) / weight[giver]
            heappush(highest, (-level, -weight[giver], -giver))


@dataclass(frozen=True)
class WholeTaskSolution:
    """An optimum; there may be others, with the same levels in ascending order.

    `by_class` (C, G): machines of each group that each class gets.
    `machines` (U,): machines of each user.
    `given` (U, T): machines of each type that each user gets; computed on first use.
    """

    graph: Graph
    by_class: Ints

    @cached_property
    def machines(self) -> Ints:
        # If a class's machines cannot be divided equally, users in lower rows get one more.
        graph, of_class = self.graph, self.graph.class_of_user
        order = np.argsort(of_class, kind="stable")
        first = np.cumsum(graph.size) - graph.size
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.repeat(first, graph.size)
        least, more = np.divmod(self.by_class.sum(axis=1), graph.size)
        return least[of_class] + (rank < more[of_class])

    @cached_property
    def given(self) -> Ints:
        return self.graph.spread(self.by_class, self.machines)


def solve(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Floats | Ints | None = None
) -> WholeTaskSolution:
    """Find constrained max-min fair shares of whole machines.

    Levels are computed in float64. Among users with the same level, the one with the smaller weight
    gets a machine first, because its level grows by more; then the one in the lower row.

    Arguments are as in `max_min.solve`; limits are rounded down.
    Raises ValueError as `max_min.solve` does.
    Raises NotOptimal, with the number of machines as residual, if `improvement` finds a user.

    Examples
    --------
    Figure 5 of [1]_: nine machines; the types are 1, 2, 3-4, 5, 6-9.

    >>> users = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]], bool)
    >>> solve(users, np.array([1, 1, 2, 1, 4])).machines.tolist()
    [2, 3, 4]
    """
    limit = None if limit is None else np.floor(np.asarray(limit, np.float64))
    return solve_classes(coalesce(eligible, count, weight, limit))


def solve_classes(
    graph: Graph, divisible: max_min.ClassSolution | None = None
) -> WholeTaskSolution:
    """Find the shares of a graph's classes; their limits must be integers.

    `divisible`: the optimum of the same graph for divisible machines, if known.
    """
    divisible = divisible or max_min.solve_classes(graph)
    by_class = divisible.edges.matrix(_fit(graph, divisible))
    sizes = (graph.weight, graph.limit, graph.size)
    better = improvement(by_class, graph.eligible, graph.count, *sizes)
    if better is not None:
        problem = f"constrained max-min fairness: class {better} could have a higher level"
        raise NotOptimal(problem, 1.0, 0.0)
    return WholeTaskSolution(graph, by_class)


def improvement(
    given: Ints,
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    limit: Floats | Ints | None = None,
    size: Ints | None = None,
) -> int | None:
    """Find a user that could have one more machine in a better allocation.

    The user gets the machine by a chain of exchanges that ends at an idle machine; or at a user
    that loses one, if the vector of levels still becomes lexicographically larger ([3]_).

    `given` (U, T): machines of each type that each user gets.
    `eligible`, `count`, `weight`, `limit`: as in `solve`.
    `size` (U,): if a row stands for several users, their number; they share the machines of the row
        as equally as possible.
    Returns the row of the user; None, which proves optimality, if there is none.
    Raises AssertionError if a machine is given twice, or to a user that cannot use it.
    """
    assert (given >= 0).all()
    assert not given[~np.asarray(eligible)].any()
    assert (given.sum(axis=0) <= count).all()
    users = len(given)
    steps = np.ones(users) if weight is None else np.asarray(weight, np.float64)
    size = np.ones(users, np.int64) if size is None else size
    machines = given.sum(axis=1)
    # The level of each row's lowest user, and of its highest user with one machine less. Users are
    # donors in descending order of the latter.
    level = machines // size / steps
    less = (-(-machines // size) - 1) / steps
    donors = np.lexsort((np.arange(users), -steps, -less))
    wanting = np.ones(users, bool) if limit is None else machines // size + 1 <= limit
    idle = np.flatnonzero(given.sum(axis=0) < count)
    reached_type = np.zeros(len(count), bool)
    reached_user = np.zeros(users, bool)
    # Search chains backwards: from idle machines first, then from each donor's machines. Skip types
    # and users that an earlier, better start has reached.
    for donor in (None, *donors.tolist()):
        if donor is not None and (reached_user[donor] or not machines[donor]):
            continue
        frontier = idle if donor is None else np.flatnonzero(given[donor] > 0)
        while len(frontier := frontier[~reached_type[frontier]]):
            reached_type[frontier] = True
            able = np.flatnonzero(eligible[:, frontier].any(axis=1) & ~reached_user)
            reached_user[able] = True
            # Return a user that is below its limit, and below the donor's level after its loss.
            for user in able[wanting[able]]:
                if donor is None or (level[user], steps[user]) < (less[donor], steps[donor]):
                    return int(user)
            # The other users could exchange a machine that they hold: continue with those machines.
            frontier = np.flatnonzero((given[able] > 0).any(axis=0))
    return None


def _ceiling(graph: Graph, divisible: max_min.ClassSolution) -> Ints:
    """Return a number of machines that no user of a class exceeds in some optimum, (C,).

    It is the user's share of divisible machines, rounded up. Proof: let x be the optimum with
    divisible machines, and y the best allocation of whole machines that nowhere exceeds x rounded
    up. Suppose that an exchange from j to i improves y, so ``y[i] >= x[i]`` and
    ``y[i] / w[i] < (y[j] - 1) / w[j]``. The sets of possible allocations are M-convex, so there is
    a k with ``y[k] < x[k]`` to which i could give in x, so
    ``x[k] / w[k] <= x[i] / w[i]``, and to which j could give in y. Either k is j, and then
    ``(y[j] - 1) / w[j] < x[j] / w[j] <= x[i] / w[i] <= y[i] / w[i]``; or k has room below its
    ceiling and is below i in y, so the exchange from j to k improves y and stays within. Both
    contradict the assumption.
    """
    slack = 1e-12 * int(graph.count.sum())
    most = np.ceil(divisible.machines * (1 + 1e-12) + slack)
    return np.minimum(most, graph.limit).astype(np.int64)


def _fit(graph: Graph, divisible: max_min.ClassSolution) -> Ints:
    """Find the optimal flow by edge, (E,), starting from the claims of `_ceiling`."""
    edges, (classes, groups) = divisible.edges, graph.eligible.shape
    flow = divisible.flow.astype(np.int64)
    load = np.zeros(groups, np.int64)
    np.add.at(load, edges.group, flow)
    rows, columns = np.argsort(graph.eligible.sum(axis=1), kind="stable"), np.arange(groups)
    claim = graph.size * _ceiling(graph, divisible)
    whole = Block(rows, columns, np.zeros(classes, np.int64), np.zeros(groups, np.int64), 0)
    placed = Placed(graph.count, flow, load)
    place(claim, edges, whole, placed)
    repair(edges, whole, placed)
    give_up(edges, placed, graph.size, graph.weight, claim)
    return flow
