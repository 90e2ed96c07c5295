"""What proves an allocation constrained max-min fair: cuts; or that nobody envies anybody.

The cuts prove it at the price of looking at each edge once. Envy needs no cuts, and the matrix of
all users and types: it is the definition, for tests and for allocations from elsewhere.
"""

from collections.abc import Iterable

import numpy as np

from allocator.core.numba.compiled import loop
from allocator.solvers.flow.class_flow import Edges
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Graph, Ints
from allocator.solvers.max_min.cuts import Cut

TOLERANCE = 1e-9
"""The largest residual of an answer that is returned."""


def certificate(
    graph: Graph, edges: Edges, flow: Floats, machines: Floats, cuts: Iterable[Cut]
) -> float:
    """Check that the cuts prove an allocation optimal.

    They do when levels ascend; when each class can use only groups of its own cut and of lower
    ones, is given only those of its own cut, and has its weight times the level of that, or its
    limit; and when each cut's groups are used up, or all its classes are at their limits.

    `edges`: of the graph.
    `flow` (E,): machines by edge.
    `machines` (C,): of each user of the class.
    Returns the largest violation, in parts of all machines; infinite where the cuts are no chain.
    """
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count), -1)
    level = [0.0]
    for at, cut in enumerate(cuts):
        if not (cut.level > level[-1]) or (of_class[cut.classes] >= 0).any():
            return np.inf
        of_class[cut.classes], of_group[cut.groups] = at, at
        level.append(cut.level)
    # The last entry is that of classes in no cut.
    levels = np.array([*level[1:], 0.0])
    wrong = _violation(
        edges.start, edges.group, flow, of_class, of_group, levels, graph.count, graph.size,
        graph.weight, graph.limit, machines,
    )  # fmt: skip
    return float(wrong) / max(int(graph.count.sum()), 1)


@loop
def _violation(
    start: Ints,
    group: Ints,
    flow: Floats,
    of_class: Ints,
    of_group: Ints,
    levels: Floats,
    count: Ints,
    size: Ints,
    weight: Floats,
    limit: Floats,
    machines: Floats,
) -> float:
    """The largest violation in machines; infinite where a class meets a group that it must not."""
    left, worst = count.astype(np.float64), 0.0
    for row in range(len(size)):
        given = 0.0
        for edge in range(start[row], start[row + 1]):
            g, some = group[edge], flow[edge]
            # Nobody can use what is in a higher cut, and nobody is given what is not in its own.
            if of_group[g] > of_class[row] or of_group[g] < 0 or np.isnan(some):
                return np.inf
            if some != 0 and of_group[g] != of_class[row]:
                return np.inf
            worst = max(worst, -some)
            given += some
            left[g] -= some
        # Each class has what its level makes.
        due = min(levels[of_class[row]] * weight[row], limit[row])
        worst = max(worst, abs(machines[row] - due), abs(given - size[row] * machines[row]))
    for g in range(len(count)):
        # Each group gives all, or all that is asked.
        worst = max(worst, -left[g])
        if levels[of_group[g]] < np.inf:
            worst = max(worst, left[g])
    return worst


def envy(
    given: Floats,
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    limit: Floats | Ints | None = None,
) -> float:
    """How far machines given are from being max-min fair, without cuts.

    They are when no machine is given twice, or to somebody who cannot use it, and when no user
    below its limit could use a machine that is idle or in the hands of somebody with a larger
    weighted share.

    `given` (U, T): machines of each type that each user gets.
    `eligible`, `count`, `weight`, `limit`: as in `solve`.
    Returns the largest violation, in machines, divided by the number of machines.
    """
    if not len(given) or not count.sum():
        return 0.0
    machines = given.sum(axis=1)
    steps = np.ones(len(given)) if weight is None else np.asarray(weight, np.float64)
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
