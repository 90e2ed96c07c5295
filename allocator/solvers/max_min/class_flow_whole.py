"""Taking whole machines back from classes that claim more than there is, see `max_min_whole`."""

from heapq import heapify, heappop, heappush

import numpy as np

from allocator.core.numba.compiled import loop, part
from allocator.solvers.max_min.constraint_graph import Bools, Floats, Ints


@part()
def _edge_of(row: int, wanted: int, start: Ints, group: Ints) -> int:
    """The edge between a class and a group."""
    for edge in range(start[row], start[row + 1]):
        if group[edge] == wanted:
            return edge
    return -1


@part()
def _search(
    giver: int,
    room: Ints,
    start: Ints,
    group: Ints,
    column_start: Ints,
    column_class: Ints,
    flow: Ints,
    load: Ints,
    settled: Bools,
    towards: Ints,
    by: Ints,
    queue: Ints,
    seen: Bools,
) -> int:
    """Find an overloaded group from which a chain of exchanges leads to what a class holds.

    `settled` (G,): groups that no such chain can reach any more; those that are found to be so are
        added.
    `towards`, `by` (G,): changed: the next group on the chain, and the class that exchanges the one
        for the other; -1 where the class that was asked for holds the group itself.
    Returns -1 where there is none.
    """
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
    # Where nothing was found, nothing will be: what is overloaded does not get at these groups.
    for k in range(length if found >= 0 else 0):
        settled[queue[k]] = False
    for k in range(size):
        seen[queue[len(room) + k]] = False
    return found


@loop
def give_up(
    room: Ints,
    start: Ints,
    group: Ints,
    column_start: Ints,
    column_class: Ints,
    size: Ints,
    weight: Floats,
    claim: Ints,
    flow: Ints,
    load: Ints,
) -> None:
    """Take whole machines back until no group is overloaded, from whoever stands highest.

    `room` (G,).
    `start`, `group`, `column_start`, `column_class`: of `Edges`.
    `size` (C,): users of each class.
    `weight` (C,).
    `claim` (C,): what each class holds; changed, as are the flow, (E,), and the loads, (G,). The
        flow must be one that `repair` left.
    """
    classes, groups = len(start) - 1, len(room)
    over = 0
    for g in range(groups):
        over += max(load[g] - room[g], 0)
    # First whoever would stand highest with one machine less.
    highest = [
        (-(((claim[row] - 1) // size[row]) / weight[row]), -weight[row], -row)
        for row in range(classes)
        if claim[row] > 0
    ]
    heapify(highest)
    settled, seen = np.zeros(groups, np.bool_), np.zeros(classes, np.bool_)
    towards, by = np.empty(groups, np.int64), np.empty(groups, np.int64)
    queue = np.empty(groups + classes, np.int64)
    while over > 0 and highest:
        giver = -heappop(highest)[2]
        origin = _search(
            giver, room, start, group, column_start, column_class, flow, load, settled, towards,
            by, queue, seen,
        )  # fmt: skip
        # Who cannot help now never can.
        if origin < 0:
            continue
        # As many as the chain can move, and as stand as high.
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
