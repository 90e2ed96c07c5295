"""Constrained max-min fairness (CMMF): the best shares that a constraint graph allows.

A user's *level* is its number of machines divided by its weight. The smallest level is made as
large as the graph allows, then the second smallest, and so on.

The amounts that users can have at the same time form a polymatroid: together, any set of users has
at most the machines that at least one of them can use. So the decomposition of [2]_ and [3]_
replaces the linear programs of Algorithm 1 in [1]_, one per round and user. A maximum flow tests
whether all users can have the level at which the machines are used up. If not, the minimum cut
identifies the users that must have a lower level. The two parts are then solved separately, each
starting with its part of the flow.

The cuts are the certificate. Users of a cut can use only machines of this cut and of lower cuts,
and they use up the machines of this cut. So they cannot have more without taking machines from a
user whose level is not higher.

In Algorithm 1, the first constraint of the linear program is printed as a sum, but it must hold for
each pair: ``x[i, j] <= C[i, j]``.

Shapes: U users, T types; C classes, G groups, E edges, see `constraint_graph` and `class_flow`.

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
from functools import cached_property

import numpy as np

from allocator.solvers import NotOptimal
from allocator.solvers.flow.class_flow import Edges
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Graph, Ints, coalesce
from allocator.solvers.max_min.cuts import TOLERANCE, Cut, Decomposition, at_level, certificate


@dataclass(frozen=True)
class ClassSolution:
    """The optimum for classes of users and groups of machines.

    `flow` (E,): machines of each edge.
    `machines` (C,): machines of each user of the class.
    `cuts`: from the lowest level to the highest. Each class and group is in one cut, except classes
        that can use no machine.
    `residual`: as returned by `certificate`.
    """

    graph: Graph
    edges: Edges
    flow: Floats
    machines: Floats
    cuts: tuple[Cut, ...]
    residual: float

    @cached_property
    def given(self) -> Floats:
        """Machines of each group that each class gets, (C, G)."""
        return self.edges.matrix(self.flow)


@dataclass(frozen=True)
class MaxMinSolution:
    """The optimum and its certificate.

    `classes`: the solution for classes and groups, which has the cuts.
    `machines` (U,): machines of each user.
    `given` (U, T): machines of each type that each user gets; computed on first use.
    `residual`: largest violation of the conditions that `certificate` checks.
    """

    classes: ClassSolution

    @cached_property
    def machines(self) -> Floats:
        return self.classes.machines[self.classes.graph.class_of_user]

    @cached_property
    def given(self) -> Floats:
        return self.classes.graph.spread(self.classes.given, self.machines)

    @property
    def residual(self) -> float:
        return self.classes.residual


def solve(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Floats | Ints | None = None
) -> MaxMinSolution:
    """Find the constrained max-min fair shares of divisible machines.

    Computes at most two maximum flows per distinct level, over classes and groups. Users whose
    levels differ by less than 1e-13 of all machines may get the same level.

    `eligible` (U, T): whether user u can use machines of type t; a type may also be a single
        machine.
    `count` (T,), >= 0: number of machines of each type.
    `weight` (U,), > 0: 1 by default.
    `limit` (U,), >= 0: maximum number of machines for each user; unlimited by default.
    Raises ValueError on invalid arguments, as `coalesce`.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.

    Examples
    --------
    Figure 3 of [1]_: user 1 can use machines 1 to 3, user 2 machines 3 to 10.

    >>> solve(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([2, 1, 7])).machines.tolist()
    [3.0, 7.0]
    """
    return MaxMinSolution(solve_classes(coalesce(eligible, count, weight, limit)))


def solve_classes(graph: Graph) -> ClassSolution:
    """Find the shares of a graph's classes; raises NotOptimal as `solve`."""
    work = Decomposition(graph)
    return proved(work, work.solve())


def proved(work: Decomposition, cuts: list[Cut]) -> ClassSolution:
    """Return what a decomposition found, with its certificate; raises NotOptimal as `solve`."""
    graph, machines = work.graph, np.zeros(len(work.graph.size))
    for cut in cuts:
        machines[cut.classes] = at_level(graph, cut.classes, cut.level)
    given = work.flow / work.unit
    residual = certificate(graph, work.edges, given, machines, cuts)
    if not residual <= TOLERANCE:
        problem = "constrained max-min fairness"
        raise NotOptimal(problem, residual, TOLERANCE)
    return ClassSolution(graph, work.edges, given, machines, tuple(cuts), residual)
