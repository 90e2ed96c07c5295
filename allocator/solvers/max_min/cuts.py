"""The cuts of constrained max-min fairness: which users have which level, on which machines.

See `max_min`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from allocator.core.numba.compiled import loop
from allocator.solvers.flow.class_flow import Block, Edges, Placed, place, repair
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Graph, Ints

_FLOW_MAX = 2**60  # units in total
_MARGIN = 2.0**-46  # part of each claim that is left out, so that rounding makes no cut


@dataclass(frozen=True, slots=True)
class Cut:
    """Classes with the same level, and the groups that they use up.

    `level`: machines by weight of each user below its limit; infinite if all are at their limits
        and machines are left.
    `classes`, `groups`: rows and columns of the graph.
    """

    level: float
    classes: Ints
    groups: Ints


def at_level(graph: Graph, rows: Ints, level: float) -> Floats:
    """Machines of each user of these classes at a level."""
    return np.minimum(level * graph.weight[rows], graph.limit[rows])


def level_of(graph: Graph, rows: Ints, machines: int) -> float:
    """The level at which this many machines are used up, ignoring eligibility.

    Infinite if all classes reach their limits before.
    """
    # Classes by the level at which they reach their limit, ascending, with the total that all take
    # at that level.
    size, weight, limit = graph.size[rows], graph.weight[rows], graph.limit[rows]
    full = limit / weight
    order = np.argsort(full, kind="stable")
    capped = np.cumsum((size * limit)[order])
    rising = np.cumsum((size * weight)[order][::-1])[::-1]
    before = np.concatenate([[0.0], capped[:-1]])
    # The remaining classes stop before the next one reaches its limit: they share what is left.
    stops = np.flatnonzero(before + full[order] * rising > machines)
    if not len(stops):
        return np.inf
    low, high = order[: stops[0]], order[stops[0] :]
    left = machines - math.fsum((size * limit)[low].tolist())
    return max(left, 0.0) / math.fsum((size * weight)[high].tolist())


@loop
def _touches(start: Ints, group: Ints, rows: Ints, groups: Bools) -> Bools:
    """Which of these classes can use one of these groups."""
    result = np.zeros(len(rows), np.bool_)
    for at in range(len(rows)):
        for edge in range(start[rows[at]], start[rows[at] + 1]):
            result[at] |= groups[group[edge]]
    return result


@loop
def _parts(
    start: Ints,
    group: Ints,
    before: Ints,
    given: Floats,
    room: Ints,
    unit: int,
    flow: Ints,
    load: Ints,
) -> tuple[Ints, Ints]:
    """The part of each class and group: a group belongs to the lowest class that can use it.

    A class belongs to the highest part that it can use. The flow and the loads become what is
    given within the parts, as far as there is room.
    """
    classes, groups = len(before), len(load)
    held = np.zeros(groups)
    of_class, of_group = np.full(classes, -1), np.full(groups, before.max() if classes else 0)
    for row in range(classes):
        for edge in range(start[row], start[row + 1]):
            of_group[group[edge]] = min(of_group[group[edge]], before[row])
            held[group[edge]] += given[edge]
    for row in range(classes):
        for edge in range(start[row], start[row + 1]):
            of_class[row] = max(of_class[row], of_group[group[edge]])
        for edge in range(start[row], start[row + 1]):
            g = group[edge]
            if of_group[g] == of_class[row] and given[edge] > 0:
                fits = min(1.0, room[g] / unit / held[g]) * (1 - _MARGIN)
                flow[edge] = int(given[edge] * fits * unit)
                load[g] += flow[edge]
    return of_class, of_group


class Decomposition:
    """A flow in progress, and the part of the graph that each class and group is in."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edges = Edges.of(graph.eligible)
        machines = max(int(graph.count.sum()), 1)
        # As many units per machine as fit 64 bits.
        self.unit = 2 ** max((_FLOW_MAX // machines).bit_length() - 1, 0)
        self.room = graph.count * self.unit
        self.flow = np.zeros(len(self.edges.group), np.int64)
        self.load = np.zeros(len(graph.count), np.int64)
        self.block_of_class = np.zeros(len(graph.size), np.int64)
        self.block_of_group = np.zeros(len(graph.count), np.int64)
        self.blocks = 0

    def _decompose(self, rows: Ints, columns: Ints) -> list[Cut]:
        """Solve a part of the graph: its cuts, from the lowest to the highest."""
        cuts = []
        parts = [(rows, columns)]
        while parts:
            rows, columns = parts.pop()
            if not len(rows):
                continue
            # Can all have the level at which the machines of this part are used up?
            level = level_of(self.graph, rows, int(self.graph.count[columns].sum()))
            over = self._fill(rows, columns, level)
            if over.any():
                # No: some claim more than there is for them. They get a lower level, on all
                # machines that they can use; the other classes share what is left.
                low = self._within(rows, over)
                above, below = columns[~over[columns]], columns[over[columns]]
                parts += [(rows[~low], above), (rows[low], below)]
                continue
            # Yes: this is optimal for these classes.
            cuts.append(Cut(level, rows, columns))
        return _merged(cuts)

    def anew(self) -> list[Cut]:
        """Solve the whole graph, classes with the least choice first."""
        choice = np.diff(self.edges.start)
        rows = np.argsort(choice, kind="stable")
        return self._decompose(rows[choice[rows] > 0], np.arange(len(self.graph.count)))

    def mended(self, flow: Floats, cuts: tuple[Cut, ...]) -> list[Cut]:
        """Solve the graph from the optimum of a slightly different one."""
        # Each cut's part of the graph is what its classes can use and those of no lower cut can.
        before = np.full(len(self.graph.size), len(cuts))
        for number, cut in enumerate(cuts):
            before[cut.classes] = number
        edges, flows = self.edges, (self.flow, self.load)
        of_class, of_group = _parts(
            edges.start, edges.group, before, flow, self.room, self.unit, *flows
        )
        solved: list[Cut] = []
        for number in range(len(cuts) + 1):
            rows, columns = np.flatnonzero(of_class == number), np.flatnonzero(of_group == number)
            found = self._decompose(rows, columns)
            # A part with a lower level than its predecessor is solved together with it.
            while found and solved and found[0].level <= solved[-1].level:
                last = solved.pop()
                rows = np.concatenate([last.classes, *(cut.classes for cut in found)])
                columns = np.concatenate([last.groups, *(cut.groups for cut in found)])
                found = self._decompose(rows, columns)
            solved += found
        return _merged(solved)

    def _fill(self, rows: Ints, columns: Ints, level: float) -> Bools:
        """Give these classes their claims at a level; return the groups with too little."""
        self.blocks += 1
        self.block_of_class[rows] = self.blocks
        self.block_of_group[columns] = self.blocks
        claim = np.zeros(len(self.graph.size), np.int64)
        machines = at_level(self.graph, rows, level) * self.graph.size[rows]
        claim[rows] = (machines * (1 - _MARGIN) * self.unit).astype(np.int64)
        block = Block(rows, columns, self.block_of_class, self.block_of_group, self.blocks)
        placed = Placed(self.room, self.flow, self.load)
        place(claim, self.edges, block, placed)
        return repair(self.edges, block, placed)

    def _within(self, rows: Ints, over: Bools) -> Bools:
        """Classes that can use nothing in this block but these groups."""
        edges, outside = self.edges, (self.block_of_group == self.blocks) & ~over
        return ~_touches(edges.start, edges.group, rows, outside)


def _merged(cuts: list[Cut]) -> list[Cut]:
    """The same chain, with one cut per level."""
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
"""The largest residual of a returned answer."""


def certificate(
    graph: Graph, edges: Edges, flow: Floats, machines: Floats, cuts: Iterable[Cut]
) -> float:
    """Check that the cuts prove an allocation optimal.

    They do if levels ascend; if each class can use only groups of its own cut and of lower ones, is
    given only those of its own cut, and has its weight times the cut's level, or its limit; and if
    each cut's groups are used up, or all its classes are at their limits.

    `edges`: of the graph.
    `flow` (E,): machines by edge.
    `machines` (C,): of each user of the class.
    Returns the largest violation, in parts of all machines; infinite if the cuts are no chain.
    """
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count), -1)
    level = [0.0]
    for at, cut in enumerate(cuts):
        if not (cut.level > level[-1]) or (of_class[cut.classes] >= 0).any():
            return np.inf
        of_class[cut.classes], of_group[cut.groups] = at, at
        level.append(cut.level)
    # The last entry is for classes in no cut.
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
    """The largest violation in machines; infinite if a class uses or can use a forbidden group."""
    left, worst = count.astype(np.float64), 0.0
    for row in range(len(size)):
        given = 0.0
        for edge in range(start[row], start[row + 1]):
            g, some = group[edge], flow[edge]
            # No class can use a group of a higher cut, or is given one of another cut.
            if of_group[g] > of_class[row] or of_group[g] < 0 or np.isnan(some):
                return np.inf
            if some != 0 and of_group[g] != of_class[row]:
                return np.inf
            worst = max(worst, -some)
            given += some
            left[g] -= some
        # Each class has what its level entitles it to.
        due = min(levels[of_class[row]] * weight[row], limit[row])
        worst = max(worst, abs(machines[row] - due), abs(given - size[row] * machines[row]))
    for g in range(len(count)):
        # Each group gives everything, or all that is wanted.
        worst = max(worst, -left[g])
        if levels[of_group[g]] < np.inf:
            worst = max(worst, left[g])
    return worst
