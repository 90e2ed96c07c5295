"""The decomposition that solves constrained max-min fairness, and the cuts that prove the result.

The method is described in `max_min`, classes and groups in `constraint_graph`. A user's *level* is
its number of machines divided by its weight. A *cut* consists of classes whose users have the same
level, and of the groups that they use up.

Shapes: C classes, G groups, E edges (pairs of a class and a group that it can use).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from allocator.core.numba.compiled import loop
from allocator.solvers.flow.class_flow import Block, Edges, Placed, place, repair
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Graph, Ints

_FLOW_MAX = 2**60  # maximum total flow, in units

MARGIN = 2.0**-46
"""Part by which claims are reduced, so that rounding errors cause no cut."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Classes with the same level, and the groups that they use up.

    `level`: machines divided by weight, for each user below its limit; infinite if all users are at
        their limits and machines are left.
    `classes`, `groups`: rows and columns of the graph.
    """

    level: float
    classes: Ints
    groups: Ints


def at_level(graph: Graph, rows: Ints, level: float) -> Floats:
    """Return the machines of each user of the classes `rows` at a level, within its limit."""
    return np.minimum(level * graph.weight[rows], graph.limit[rows])


def level_of(graph: Graph, rows: Ints, machines: int) -> float:
    """Return the level at which the classes `rows` use up this many machines, of any group.

    Infinite if all classes reach their limits before.
    """
    # Sort classes by the level at which they reach their limit.
    size, weight, limit = graph.size[rows], graph.weight[rows], graph.limit[rows]
    full = limit / weight
    order = np.argsort(full, kind="stable")
    capped = np.cumsum((size * limit)[order])
    rising = np.cumsum((size * weight)[order][::-1])[::-1]
    before = np.concatenate([[0.0], capped[:-1]])
    # Classes from the first that would exceed the machines share what the others leave.
    stops = np.flatnonzero(before + full[order] * rising > machines)
    if not len(stops):
        return np.inf
    low, high = order[: stops[0]], order[stops[0] :]
    left = machines - math.fsum((size * limit)[low].tolist())
    return max(left, 0.0) / math.fsum((size * weight)[high].tolist())


@loop
def _touches(start: Ints, group: Ints, rows: Ints, groups: Bools) -> Bools:
    """Return which of the classes `rows` can use at least one group of a mask, (G,)."""
    result = np.zeros(len(rows), np.bool_)
    for at in range(len(rows)):
        for edge in range(start[rows[at]], start[rows[at] + 1]):
            result[at] |= groups[group[edge]]
    return result


class Decomposition:
    """The state of the decomposition: a flow, and the block of each class and group.

    A block is a part of the graph that is solved separately, see `class_flow.Block`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edges = Edges.of(graph.eligible)
        machines = max(int(graph.count.sum()), 1)
        # Flow is counted in integer units, with as many units per machine as fit 64 bits.
        self.unit = 2 ** max((_FLOW_MAX // machines).bit_length() - 1, 0)
        self.room = graph.count * self.unit
        self.flow = np.zeros(len(self.edges.group), np.int64)
        self.load = np.zeros(len(graph.count), np.int64)
        self.block_of_class = np.zeros(len(graph.size), np.int64)
        self.block_of_group = np.zeros(len(graph.count), np.int64)
        self.blocks = 0

    def decompose(self, rows: Ints, columns: Ints) -> list[Cut]:
        """Solve a part of the graph; return its cuts, from the lowest level to the highest."""
        cuts = []
        parts = [(rows, columns)]
        while parts:
            rows, columns = parts.pop()
            if not len(rows):
                continue
            level = level_of(self.graph, rows, int(self.graph.count[columns].sum()))
            over = self._fill(rows, columns, level)
            if over.any():
                # Some classes claim more machines than they can use. Solve these classes with all
                # groups that they can use, and the others with the remaining groups.
                low = self._within(rows, over)
                above, below = columns[~over[columns]], columns[over[columns]]
                parts += [(rows[~low], above), (rows[low], below)]
                continue
            cuts.append(Cut(level, rows, columns))
        return merged(cuts)

    def solve(self) -> list[Cut]:
        """Solve the whole graph, and return its cuts.

        Classes that can use the fewest groups are placed first.
        """
        choice = np.diff(self.edges.start)
        rows = np.argsort(choice, kind="stable")
        return self.decompose(rows[choice[rows] > 0], np.arange(len(self.graph.count)))

    def _fill(self, rows: Ints, columns: Ints, level: float) -> Bools:
        """Place what classes claim at a level.

        Returns (G,): as `class_flow.repair`; all false if every class of `rows` has its claim.
        """
        self.blocks += 1
        self.block_of_class[rows] = self.blocks
        self.block_of_group[columns] = self.blocks
        claim = np.zeros(len(self.graph.size), np.int64)
        machines = at_level(self.graph, rows, level) * self.graph.size[rows]
        claim[rows] = (machines * (1 - MARGIN) * self.unit).astype(np.int64)
        block = Block(rows, columns, self.block_of_class, self.block_of_group, self.blocks)
        placed = Placed(self.room, self.flow, self.load)
        place(claim, self.edges, block, placed)
        return repair(self.edges, block, placed)

    def _within(self, rows: Ints, over: Bools) -> Bools:
        """Return which of the classes `rows` can use only the groups `over` of the block."""
        edges, outside = self.edges, (self.block_of_group == self.blocks) & ~over
        return ~_touches(edges.start, edges.group, rows, outside)


def merged(cuts: list[Cut]) -> list[Cut]:
    """Merge successive cuts whose levels do not ascend."""
    result: list[Cut] = []
    for cut in cuts:
        if result and cut.level <= result[-1].level:
            last = result.pop()
            classes = np.concatenate([last.classes, cut.classes])
            groups = np.concatenate([last.groups, cut.groups])
            cut = Cut(min(last.level, cut.level), classes, groups)  # noqa: PLW2901
        result.append(cut)
    return result


TOLERANCE = 1e-9
"""The largest residual of a returned solution."""


def certificate(
    graph: Graph, edges: Edges, flow: Floats, machines: Floats, cuts: Iterable[Cut]
) -> float:
    """Check that the cuts prove an allocation optimal.

    They prove it if all of the following hold:

    - The levels of the cuts ascend.
    - Each class can use only groups of its own cut and of lower cuts, and is given only machines of
      its own cut.
    - Each user has the level of its cut, or is at its limit.
    - Each cut's groups are used up, or all its users are at their limits.

    `edges`: the edges of the graph.
    `flow` (E,): machines of each edge.
    `machines` (C,): machines of each user of the class.
    Returns the largest violation, divided by the number of all machines; infinite if one of the
        first two conditions is violated.
    """
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count), -1)
    level = [0.0]
    for at, cut in enumerate(cuts):
        if not (cut.level > level[-1]) or (of_class[cut.classes] >= 0).any():
            return np.inf
        of_class[cut.classes], of_group[cut.groups] = at, at
        level.append(cut.level)
    # The last entry is for classes in no cut, which have the number -1.
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
    """Return the largest violation of `certificate`'s conditions, in machines.

    Infinite if a class can use a group of a higher cut, or is given one of another cut.
    """
    left, worst = count.astype(np.float64), 0.0
    for row in range(len(size)):
        given = 0.0
        for edge in range(start[row], start[row + 1]):
            g, some = group[edge], flow[edge]
            if of_group[g] > of_class[row] or of_group[g] < 0 or np.isnan(some):
                return np.inf
            if some != 0 and of_group[g] != of_class[row]:
                return np.inf
            worst = max(worst, -some)
            given += some
            left[g] -= some
        due = min(levels[of_class[row]] * weight[row], limit[row])
        worst = max(worst, abs(machines[row] - due), abs(given - size[row] * machines[row]))
    for g in range(len(count)):
        worst = max(worst, -left[g])
        if levels[of_group[g]] < np.inf:
            worst = max(worst, left[g])
    return worst
