"""Constrained max-min fairness (CMMF): the best shares that a constraint graph allows.

The smallest number of machines (divided by the user's weight) is made as large as the graph
allows, then the second smallest, and so on. What users can have at once is a polymatroid: any set
of users together at most the machines that some of them can use. So instead of one linear program
a round and one a user, as Algorithm 1 of [1]_, the optimum comes from the decomposition of [2]_
and [3]_: one maximum flow asks whether all can stand at the level at which the machines are used
up; if not, the cut names the users that must stand lower, and the two parts are solved by
themselves. All of it is integer arithmetic; the shares are exact fractions until the end.

The linear program's first constraint, printed as a sum in Algorithm 1, is meant for each pair:
``x[i, j] <= C[i, j]``.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2 and 5.
.. [2] Fujishige. "Lexicographically Optimal Base of a Polymatroid with Respect to a Weight
   Vector." Mathematics of Operations Research 5(2), 1980.
.. [3] Groenevelt. "Two Algorithms for Maximizing a Separable Concave Function over a Polymatroid
   Feasible Region." European Journal of Operational Research 54(2), 1991.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from ortools.graph.python import max_flow

from allocator.solvers import NotOptimal
from allocator.solvers.constraint_graph import (
    Bools,
    Floats,
    Graph,
    Ints,
    coalesce,
    whole_weights,
)

TOLERANCE = 1e-9
"""The largest residual of an answer that is returned."""

_FLOW_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Solution:
    """The optimum and its certificate.

    Attributes
    ----------
    machines : (U,) float64
        Machines of each user.
    given : (U, T) float64
        Machines of each type that each user gets.
    residual : float
        Largest violation of the conditions that `residual` checks.
    """

    machines: Floats
    given: Floats
    residual: float


def solve(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Ints | None = None
) -> Solution:
    """Find the constrained max-min fair shares of divisible machines.

    Parameters
    ----------
    eligible : (U, T) bool
        Whether user u can use machines of type t; a column may also be a single machine.
    count : (T,) int64, >= 0
        Machines of each type.
    weight : (U,) float64, > 0, optional
        Taken in thousandths of the smallest weight.
    limit : (U,) int64, >= 0, optional
        How many machines each user can use at most.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        On a weight that is not positive, a negative count or limit, or numbers so large that the
        flows exceed 64 bits.
    NotOptimal
        Where the residual exceeds `TOLERANCE`.

    Notes
    -----
    At most two maximum flows for each distinct share, over classes and groups.

    Examples
    --------
    Figure 3 of [1]_: user 1 can use machines 1 to 3, user 2 machines 3 to 10.

    >>> solve(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([2, 1, 7])).machines.tolist()
    [3.0, 7.0]
    """
    graph = coalesce(eligible, count, weight, limit)
    exact, by_class = _decompose(graph)
    machines = np.array([float(share) for share in exact])[graph.class_of_user]
    given = graph.spread(by_class, machines)
    found = residual(given, eligible, count, weight, limit)
    if not found <= TOLERANCE:
        problem = "constrained max-min fairness"
        raise NotOptimal(problem, found, TOLERANCE)
    return Solution(machines, given, found)


def residual(
    given: Floats,
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    limit: Ints | None = None,
) -> float:
    """How far machines given are from being max-min fair.

    They are when no machine is given twice, or to somebody who cannot use it, and when no user
    below its limit could use a machine that is idle or in the hands of somebody with a larger
    weighted share.

    Parameters
    ----------
    given : (U, T) float64
        Machines of each type that each user gets.
    eligible, count, weight, limit
        As in `solve`.

    Returns
    -------
    float
        Machines, the largest violation, divided by the number of machines.
    """
    if not len(given) or not count.sum():
        return 0.0
    machines = given.sum(axis=1)
    steps = np.ones(len(given)) if weight is None else whole_weights(weight)
    most = np.full(len(given), np.inf) if limit is None else limit
    # Amounts below this count as nothing.
    small = TOLERANCE * count.sum()
    idle = count - given.sum(axis=0)
    level = machines / steps
    # For each type the highest level of anybody who holds some of it; infinite where some is
    # idle.
    holder = np.where(given > small, level[:, None], 0.0).max(axis=0)
    holder[idle > small] = np.inf
    # A user below its limit must not be able to use a type that is held by somebody higher.
    envied = np.where(eligible & (count > 0), holder, 0.0).max(axis=1)
    short = np.where(machines < most - small, (envied - level) * steps, 0.0)
    # The plain conditions: nothing negative, nothing to whom it is no use, nothing twice, no
    # limit exceeded.
    wrong = [-given.min(), np.where(eligible, 0.0, given).max(), -idle.min()]
    wrong += [(machines - most).max(), min(short.max(), float(count.sum())), 0.0]
    return float(max(wrong) / count.sum())


def decompose(graph: Graph) -> list[Fraction]:
    """Machines of each user of each class at the divisible optimum, exactly, C fractions."""
    return _decompose(graph)[0]


def _decompose(graph: Graph) -> tuple[list[Fraction], Floats]:
    """Machines of each user of each class, and of each group for the class, (C, G)."""
    exact = [Fraction(0)] * len(graph.size)
    given = np.zeros(graph.eligible.shape)
    # Parts of the graph that are still to be solved, each a set of classes and a set of groups.
    parts = [(np.arange(len(graph.size)), np.arange(len(graph.count)))]
    while parts:
        rows, columns = parts.pop()
        if not len(rows) or not len(columns):
            continue
        among = graph.eligible[np.ix_(rows, columns)]
        machines = int(graph.count[columns[among.any(axis=0)]].sum())
        # Can all classes stand at the level at which the machines of this part are used up?
        level = _level(graph, rows, machines)
        claim = [_claim(graph, int(row), level) for row in rows]
        taken, low = flow(among, graph.count[columns], claim, level.denominator)
        if low.any():
            # No: some claim more than there is for them. They stand lower, on all machines that
            # they can use; the other classes share what is left. Both parts are solved by
            # themselves.
            theirs = among[low].any(axis=0)
            parts += [(rows[low], columns[theirs]), (rows[~low], columns[~theirs])]
            continue
        # Yes: this is the optimum for these classes.
        given[np.ix_(rows, columns)] = taken / level.denominator
        for row, machines in zip(rows, claim, strict=True):
            exact[row] = Fraction(machines, int(graph.size[row]) * level.denominator)
    return exact, given


def _level(graph: Graph, rows: Ints, machines: int) -> Fraction:
    """The level at which so many machines are used up, if the graph does not matter."""
    # The level at which each class reaches its limit, the lowest first.
    full = sorted((Fraction(int(graph.limit[row]), int(graph.weight[row])), row) for row in rows)
    weight = sum(int(graph.size[row] * graph.weight[row]) for row in rows)
    left = machines
    for highest, row in full:
        # All classes that are left stop before the next one is full: they share what is left.
        if highest * weight > left:
            return Fraction(left, weight)
        # This class is full below the level wanted: it takes its limit, and the others go on.
        left -= int(graph.size[row] * graph.limit[row])
        weight -= int(graph.size[row] * graph.weight[row])
    return Fraction(full[-1][0])


def _claim(graph: Graph, row: int, level: Fraction) -> int:
    """What a class takes at a level, in machines times the level's denominator."""
    most = int(graph.limit[row]) * level.denominator
    return int(graph.size[row]) * min(level.numerator * int(graph.weight[row]), most)


def flow(among: Bools, count: Ints, claim: list[int], unit: int) -> tuple[Ints, Bools]:
    """Give the classes what they claim, as far as it goes.

    Parameters
    ----------
    among : (C, G) bool
    count : (G,) int64
    claim : C integers, machines times the unit
    unit : int

    Returns
    -------
    taken : (C, G) int64, machines times the unit
    low : (C,) bool
        Classes that together claim more than there is for them; none where all is given.
    """
    classes, groups = among.shape
    supply = [int(machines) * unit for machines in count]
    if sum(supply) >= _FLOW_MAX or sum(claim) >= _FLOW_MAX:
        raise ValueError("weights times machines exceed 62 bits; choose rounder weights")
    # The network: source to classes (claims), classes to the groups that they can use, groups to
    # the sink (machines).
    rows, columns = np.nonzero(among)
    source, sink = classes + groups, classes + groups + 1
    network = max_flow.SimpleMaxFlow()
    tails = np.concatenate([np.full(classes, source), rows, classes + np.arange(groups)])
    heads = np.concatenate([np.arange(classes), classes + columns, np.full(groups, sink)])
    claims = np.array(claim, np.int64)
    capacity = np.concatenate([claims, claims[rows], np.array(supply, np.int64)])
    arcs = network.add_arcs_with_capacity(tails.astype(np.int32), heads.astype(np.int32), capacity)
    status = network.solve(source, sink)
    if status != network.OPTIMAL:
        raise NotOptimal(f"maximum flow ({status})", np.inf, 0.0)
    taken = np.zeros(among.shape, np.int64)
    taken[rows, columns] = network.flows(arcs[classes : classes + len(rows)])
    low = np.zeros(classes, np.bool_)
    # Not all is given: the classes on the source's side of the smallest cut claim too much.
    if network.optimal_flow() < sum(claim):
        side = np.asarray(network.get_source_side_min_cut())
        low[side[side < classes]] = True
    return taken, low
