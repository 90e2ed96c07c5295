"""A maximum flow from classes of users to groups of machines, repaired rather than recomputed.

Classes and groups are those of `constraint_graph`. A *claim* is the number of machines that a class
asks for. `place` first assigns every claim to groups that the class can use, even beyond their
room. `repair` then moves machines from overloaded groups to groups with room, along shortest chains
of exchanges, until no chain is left (Dinic's algorithm on the groups). In an exchange, a class
gives up machines of one group and takes as many of another. The flow of earlier claims is kept
where possible.

The groups that remain overloaded, and the groups that their holders could use instead, form the
minimum cut: its users claim more machines than the groups have.

Shapes: C classes, G groups, E edges (pairs of a class and a group that it can use).
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, part

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = TypeVar("Numbers", Floats, Ints)


class Edges(NamedTuple):
    """The pairs of a class and a group that it can use, numbered class by class.

    `start` (C + 1,): the first edge of each class, then E.
    `group` (E,): the group of each edge.
    `column_start` (G + 1,): where each group's entries in the next two arrays start, then E.
    `column_edge`, `column_class` (E,): the edges in the order of their groups, and their classes.
    """

    start: Ints
    group: Ints
    column_start: Ints
    column_edge: Ints
    column_class: Ints

    @classmethod
    def of(cls, eligible: Bools) -> "Edges":
        """List the true entries of a matrix, (C, G)."""
        return _list(np.ascontiguousarray(eligible))

    def matrix(self, flow: Numbers) -> Numbers:
        """Convert a flow by edge, (E,), to a matrix by class and group, (C, G)."""
        classes, groups = len(self.start) - 1, len(self.column_start) - 1
        result = np.zeros((classes, groups), flow.dtype)
        result[np.repeat(np.arange(classes), np.diff(self.start)), self.group] = flow
        return result


class Block(NamedTuple):
    """A subset of the classes and groups; a function that takes a block leaves the others alone.

    `rows`, `columns`: the classes and the groups of the block.
    `of_class` (C,), `of_group` (G,): the number of the block of every class and group.
    `number`: the number of this block.
    """

    rows: Ints
    columns: Ints
    of_class: Ints
    of_group: Ints
    number: int


class Placed(NamedTuple):
    """The machines that classes hold; functions change `flow` and `load` in place.

    `room` (G,): machines of each group.
    `flow` (E,): machines of the edge's group that its class holds.
    `load` (G,): machines of the group that all classes hold; if above its room, it is overloaded.
    """

    room: Ints
    flow: Ints
    load: Ints


class _Chains(NamedTuple):
    """The state of the search for chains of exchanges to a group with room.

    `far_class` (C,), `far_group` (G,): number of exchanges to a group with room; negative if
        unknown, or if no chain is left.
    `next_class` (C,), `next_group` (G,): the next edge to try.
    `queue` (G,): groups to visit.
    `path` (2 * G + 2,): the edges of the chain: for each exchange the one given up, then the other.
    """

    far_class: Ints
    far_group: Ints
    next_class: Ints
    next_group: Ints
    queue: Ints
    path: Ints


@loop
def _list(eligible: Bools) -> Edges:
    classes, groups = eligible.shape
    start, column_start = np.zeros(classes + 1, np.int64), np.zeros(groups + 1, np.int64)
    for row in range(classes):
        for g in range(groups):
            start[row + 1] += eligible[row, g]
            column_start[g + 1] += eligible[row, g]
    start, column_start = np.cumsum(start), np.cumsum(column_start)
    group, column_edge = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    column_class, filled = np.empty(start[-1], np.int64), column_start.copy()
    edge = 0
    for row in range(classes):
        for g in range(groups):
            if eligible[row, g]:
                group[edge] = g
                column_edge[filled[g]], column_class[filled[g]] = edge, row
                filled[g] += 1
                edge += 1
    return Edges(start, group, column_start, column_edge, column_class)


@loop
def place(claim: Ints, edges: Edges, part_of: Block, placed: Placed) -> None:
    """Make each class of a block hold as many machines as it claims; groups may be overloaded.

    `claim` (C,): in the unit of the flow.
    `placed`: changed; keeps as much of its flow as possible.
    """
    start, group, (room, flow, load) = edges.start, edges.group, placed
    rows, block_of_group, block = part_of.rows, part_of.of_group, part_of.number
    # Give up machines of other blocks' groups; scale the remaining holdings to the claim.
    for row in rows:
        held = 0
        for edge in range(start[row], start[row + 1]):
            g = group[edge]
            if block_of_group[g] != block:
                load[g] -= flow[edge]
                flow[edge] = 0
            held += flow[edge]
        if held:
            ratio = claim[row] / held * (1 - 1e-12)
            for edge in range(start[row], start[row + 1]):
                if flow[edge]:
                    kept = int(flow[edge] * ratio)
                    load[group[edge]] += kept - flow[edge]
                    flow[edge] = kept
    # Fill groups with room. Put any remainder on one usable group, a different one for each row.
    for row in rows:
        left, usual, usable = claim[row], -1, 0
        for edge in range(start[row], start[row + 1]):
            left -= flow[edge]
        for edge in range(start[row], start[row + 1]):
            g = group[edge]
            if left > 0 and block_of_group[g] == block:
                usable += 1
                usual = edge if row % usable == 0 else usual
                more = min(left, room[g] - load[g])
                if more > 0:
                    flow[edge] += more
                    load[g] += more
                    left -= more
        if left > 0 and usual >= 0:
            flow[usual] += left
            load[group[usual]] += left


@part()
def _measure(edges: Edges, part_of: Block, placed: Placed, chains: _Chains) -> bool:
    """Compute the number of exchanges between each group and a group with room.

    Returns whether a chain leads from some overloaded group to a group with room.
    """
    start, group, column_start, _, column_class = edges
    _, columns, block_of_class, block_of_group, block = part_of
    room, flow, load = placed
    far_class, far_group, queue = chains.far_class, chains.far_group, chains.queue
    size, found = 0, False
    for g in columns:
        far_group[g] = -1
        if load[g] < room[g]:
            far_group[g] = 0
            queue[size] = g
            size += 1
    at = 0
    while at < size:
        g = queue[at]
        at += 1
        for k in range(column_start[g], column_start[g + 1]):
            row = column_class[k]
            if block_of_class[row] != block or far_class[row] >= 0:
                continue
            # The class could use this group, so the groups it holds are one exchange further away.
            far_class[row] = far_group[g]
            for edge in range(start[row], start[row + 1]):
                other = group[edge]
                if flow[edge] > 0 and block_of_group[other] == block and far_group[other] < 0:
                    far_group[other] = far_group[g] + 1
                    found = found or load[other] > room[other]
                    queue[size] = other
                    size += 1
    return found


@part()
def _exchange(origin: int, edges: Edges, part_of: Block, placed: Placed, chains: _Chains) -> None:
    """Move the excess of an overloaded group along all shortest chains."""
    start, group, column_start, column_edge, column_class = edges
    _, _, block_of_class, block_of_group, block = part_of
    room, flow, load = placed
    far_class, far_group, next_class, next_group, _, path = chains
    depth, g = 0, origin
    while load[origin] > room[origin]:
        if far_group[g] == 0:
            # At a group with room: move as much as each link of the chain allows.
            amount = min(load[origin] - room[origin], room[g] - load[g])
            for k in range(depth):
                amount = min(amount, flow[path[2 * k]])
            for k in range(depth):
                flow[path[2 * k]] -= amount
                flow[path[2 * k + 1]] += amount
            load[origin] -= amount
            load[g] += amount
            if load[g] >= room[g]:
                far_group[g] = -2
            depth, g = 0, origin
            continue
        # A class that holds machines of this group may be able to use a group nearer to room.
        moved = False
        while next_group[g] < column_start[g + 1]:
            k = next_group[g]
            row, edge = column_class[k], column_edge[k]
            near = far_group[g] - 1
            if block_of_class[row] == block and flow[edge] > 0 and far_class[row] == near:
                while next_class[row] < start[row + 1]:
                    other = group[next_class[row]]
                    if far_group[other] == near and block_of_group[other] == block:
                        break
                    next_class[row] += 1
                if next_class[row] < start[row + 1]:
                    path[2 * depth], path[2 * depth + 1] = edge, next_class[row]
                    depth, g, moved = depth + 1, group[next_class[row]], True
                    break
            next_group[g] += 1
        if moved:
            continue
        # A dead end: exclude the group from the rest of this round.
        far_group[g] = -2
        if g == origin:
            return
        depth, g = 0, origin


@part()
def _reached(edges: Edges, part_of: Block, placed: Placed, queue: Ints) -> Bools:
    """Find the overloaded groups and, transitively, the groups that their holders could use."""
    start, group, column_start, column_edge, column_class = edges
    _, columns, block_of_class, block_of_group, block = part_of
    room, flow, load = placed
    reached = np.zeros(len(room), np.bool_)
    size, at = 0, 0
    for g in columns:
        if load[g] > room[g]:
            reached[g] = True
            queue[size] = g
            size += 1
    while at < size:
        g = queue[at]
        at += 1
        for k in range(column_start[g], column_start[g + 1]):
            row = column_class[k]
            if block_of_class[row] == block and flow[column_edge[k]] > 0:
                for edge in range(start[row], start[row + 1]):
                    other = group[edge]
                    if block_of_group[other] == block and not reached[other]:
                        reached[other] = True
                        queue[size] = other
                        size += 1
    return reached


@loop
def repair(edges: Edges, part_of: Block, placed: Placed) -> Bools:
    """Move machines between groups of a block until no overloaded group can be relieved.

    `placed`: its flow and loads are changed.
    Returns (G,): the groups that remain overloaded, and those that their holders could use instead;
        together they have fewer machines than are claimed of them.
    """
    start, (room, _, load) = edges.start, placed
    classes, groups = len(start) - 1, len(room)
    far_class, far_group = np.empty(classes, np.int64), np.full(groups, -1)
    next_class, next_group = np.empty(classes, np.int64), np.empty(groups, np.int64)
    queue, path = np.empty(groups, np.int64), np.empty(2 * groups + 2, np.int64)
    chains = _Chains(far_class, far_group, next_class, next_group, queue, path)
    while True:
        for row in part_of.rows:
            far_class[row], next_class[row] = -1, start[row]
        for g in part_of.columns:
            next_group[g] = edges.column_start[g]
        if not _measure(edges, part_of, placed, chains):
            break
        for g in part_of.columns:
            if load[g] > room[g] and far_group[g] > 0:
                _exchange(g, edges, part_of, placed, chains)
    return _reached(edges, part_of, placed, queue)
