"""Constrained max-min fairness (CMMF): the best shares that a constraint graph allows.

The smallest number of machines (divided by the user's weight) is made as large as the graph allows,
then the second smallest, and so on. What users can have at once is a polymatroid: any set of users
has together at most the machines that some of them can use. So instead of one linear program per
round and user, as in Algorithm 1 of [1]_, the optimum comes from the decomposition of [2]_ and
[3]_: one maximum flow tests whether all can have the level at which the machines are used up. If
not, the minimum cut names the users that must have a lower level, and the two parts are solved
separately, each starting with its part of the flow.

The cuts are the certificate: users of a cut can use only machines of its own and of lower cuts, and
use up its own. So none of them can have more without taking from one that has no more.

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

from collections.abc import Iterable
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

    `edges`: of the graph.
    `flow` (E,): machines by edge.
    `machines` (C,): of each user of the class.
    `cuts`: from the lowest level to the highest; each class and group is in one of them, except
        classes that can use no machine.
    `residual`: from `certificate`.
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

    `classes`: with the cuts.
    `machines` (U,): machines of each user.
    `given` (U, T): machines of each type that each user gets; computed on first use.
        `constraint_graph.by_machine` converts it to machines.
    `residual`: largest violation of the conditions that `certificate` checks.
    """

    classes: ClassSolution

    @cached_property
    def machines(self) -> Floats:
        """Machines of each user."""
        return self.classes.machines[self.classes.graph.class_of_user]

    @cached_property
    def given(self) -> Floats:
        """Machines of each type that each user gets."""
        return self.classes.graph.spread(self.classes.given, self.machines)

    @property
    def residual(self) -> float:
        """Largest violation of the certificate's conditions."""
        return self.classes.residual


def solve(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Floats | Ints | None = None
) -> MaxMinSolution:
    """Find the constrained max-min fair shares of divisible machines.

    At most two maximum flows per distinct level, over classes and groups. Sets of users whose
    levels differ by less than 1e-13 of all machines may be merged.

    `eligible` (U, T): whether user u can use machines of type t; a column may also be a single
        machine.
    `count` (T,), >= 0: machines of each type.
    `weight` (U,), > 0.
    `limit` (U,), >= 0: most machines for each user.
    Raises ValueError on a weight that is not positive and finite, a negative count or limit, or
        arrays that do not fit together.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.

    Examples
    --------
    Figure 3 of [1]_: user 1 can use machines 1 to 3, user 2 machines 3 to 10.

    >>> solve(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([2, 1, 7])).machines.tolist()
    [3.0, 7.0]
    """
    return MaxMinSolution(solve_classes(coalesce(eligible, count, weight, limit)))


def solve_classes(
    graph: Graph, flow: Floats | None = None, cuts: Iterable[Cut] = ()
) -> ClassSolution:
    """Find the shares of classes.

    `flow` (E,), `cuts`: the start: the optimum of a slightly different graph, in rows and edges of
        this one; the groups of the cuts are ignored.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.
    """
    work = Decomposition(graph)
    found = work.anew() if flow is None else work.mended(flow, tuple(cuts))
    machines = np.zeros(len(graph.size))
    for cut in found:
        machines[cut.classes] = at_level(graph, cut.classes, cut.level)
    given = work.flow / work.unit
    residual = certificate(graph, work.edges, given, machines, found)
    if not residual <= TOLERANCE:
        problem = "constrained max-min fairness"
        raise NotOptimal(problem, residual, TOLERANCE)
    return ClassSolution(graph, work.edges, given, machines, tuple(found), residual)
