"""A minimum-cost flow from scratch: Goldberg's cost scaling, compiled.

Arcs come in pairs, see `Residual`. The flow is optimal up to an error in the arcs' costs that
shrinks from round to round. Each round pushes excess along arcs that gain, and lowers the prices of
nodes with excess and no such arc.

References
----------
.. [1] Goldberg. "An Efficient Implementation of a Scaling Minimum-Cost Flow Algorithm." Journal
   of Algorithms 22, 1997.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, part

Ints = NDArray[np.int64]

_STEP = 8  # factor by which the error shrinks each round


class Residual(NamedTuple):
    """Arcs in pairs: arc ``2 * a`` is arc a of the network, the next one its reverse.

    `start` (N + 1,): where each node starts in `arc`.
    `arc` (2 * A,): arcs by the node that they leave.
    `head` (2 * A,).
    `cost` (2 * A,): per unit; the reverse arc has the negative.
    `room` (2 * A,): how much more an arc can carry; for the reverse arc, how much the arc carries.
    """

    start: Ints
    arc: Ints
    head: Ints
    cost: Ints
    room: Ints


class _Lists(NamedTuple):
    """Nodes by distance, as doubly linked lists, one for each distance.

    `far`: the distance of each node.
    `first`: the first node of each list.
    `after`, `before`: the next and the previous node in the list of each node.
    """

    far: Ints
    first: Ints
    after: Ints
    before: Ints


class _Waiting(NamedTuple):
    """Each node's current arc, and a ring buffer of the nodes with excess, each once."""

    at: Ints
    queue: Ints
    queued: NDArray[np.bool_]


@loop
def pair_up(nodes: int, tail: Ints, head: Ints, cost: Ints, capacity: Ints) -> Residual:
    """Build the residual network with no flow."""
    arcs = len(tail)
    start = np.zeros(nodes + 1, np.int64)
    for a in range(arcs):
        start[tail[a] + 1] += 1
        start[head[a] + 1] += 1
    start = np.cumsum(start)
    filled = start.copy()
    arc, to = np.empty(2 * arcs, np.int64), np.empty(2 * arcs, np.int64)
    price, room = np.empty(2 * arcs, np.int64), np.zeros(2 * arcs, np.int64)
    for a in range(arcs):
        arc[filled[tail[a]]] = 2 * a
        filled[tail[a]] += 1
        arc[filled[head[a]]] = 2 * a + 1
        filled[head[a]] += 1
        to[2 * a], to[2 * a + 1] = head[a], tail[a]
        price[2 * a], price[2 * a + 1] = cost[a], -cost[a]
        room[2 * a] = capacity[a]
    return Residual(start, arc, to, price, room)


@part()
def _saturate(net: Residual, price: Ints, excess: Ints) -> None:
    """Saturate every arc that gains."""
    head, cost, room = net.head, net.cost, net.room
    for e in range(len(head)):
        if room[e] > 0 and cost[e] + price[head[e ^ 1]] - price[head[e]] < 0:
            excess[head[e ^ 1]] -= room[e]
            excess[head[e]] += room[e]
            room[e ^ 1] += room[e]
            room[e] = 0


@part()
def _update_prices(net: Residual, price: Ints, excess: Ints, error: int, lists: _Lists) -> bool:
    """Lower prices by the distance from a node with a deficit, in units of the error.

    Returns False if some node with excess cannot reach a node with a deficit.
    """
    start, arc, head, cost, room = net
    far, first, after, before = lists
    nodes, last = len(price), len(first) - 1
    first[:] = -1
    active = 0
    for v in range(nodes):
        far[v] = last
        if excess[v] < 0:
            far[v], after[v], before[v] = 0, first[0], -1
            if first[0] >= 0:
                before[first[0]] = v
            first[0] = v
        active += excess[v] > 0
    # Nearest first; `first` lists the nodes at each distance.
    k, reached = 0, 0
    while k < last and active > 0:
        v = first[k]
        if v < 0:
            k += 1
            continue
        first[k] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        before[v] = -2  # done
        reached += 1
        active -= excess[v] > 0
        for at in range(start[v], start[v + 1]):
            e = arc[at] ^ 1
            w = head[arc[at]]
            if room[e] <= 0 or (far[w] < last and before[w] == -2):
                continue
            away = k + (cost[e] + price[w] - price[v]) // error + 1
            if away >= far[w]:
                continue
            # Nearer than known: move it to another list.
            if far[w] < last:
                if before[w] >= 0:
                    after[before[w]] = after[w]
                else:
                    first[far[w]] = after[w]
                if after[w] >= 0:
                    before[after[w]] = before[w]
            far[w], after[w], before[w] = away, first[away], -1
            if first[away] >= 0:
                before[first[away]] = w
            first[away] = w
    for v in range(nodes):
        price[v] -= error * min(far[v], k)
    return active == 0


@part()
def _is_stuck(net: Residual, excess: Ints, queue: Ints) -> bool:
    """Whether some node with excess cannot reach a node with a deficit."""
    start, arc, head, _, room = net
    nodes = len(excess)
    seen, size, at = np.zeros(nodes, np.bool_), 0, 0
    for v in range(nodes):
        if excess[v] < 0:
            seen[v] = True
            queue[size] = v
            size += 1
    while at < size:
        v = queue[at]
        at += 1
        for k in range(start[v], start[v + 1]):
            w = head[arc[k]]
            if room[arc[k] ^ 1] > 0 and not seen[w]:
                seen[w] = True
                queue[size] = w
                size += 1
    for v in range(nodes):
        if excess[v] > 0 and not seen[v]:
            return True
    return False


@part()
def _discharge(
    v: int, net: Residual, price: Ints, excess: Ints, error: int, waiting: _Waiting, end: int
) -> tuple[int, int]:
    """Push a node's excess; return the end of the queue, and how often its price fell."""
    start, arc, head, cost, room = net
    at, queue, queued = waiting
    nodes, lowered = len(price), 0
    while excess[v] > 0 and lowered < 4:
        if at[v] == start[v + 1]:
            # No arc gains: lower the price until one does.
            best, possible = 0, False
            for k in range(start[v], start[v + 1]):
                e = arc[k]
                if room[e] > 0 and (not possible or price[head[e]] - cost[e] > best):
                    best, possible = price[head[e]] - cost[e], True
            lowered += 1
            at[v] = start[v]
            if not possible:
                return end, -1
            price[v] = best - error
            continue
        e = arc[at[v]]
        w = head[e]
        if room[e] > 0 and cost[e] + price[v] - price[w] < 0:
            amount = min(excess[v], room[e])
            room[e] -= amount
            room[e ^ 1] += amount
            excess[v] -= amount
            excess[w] += amount
            if excess[w] > 0 and not queued[w]:
                queued[w] = True
                queue[end % nodes] = w
                end += 1
            if excess[v] == 0:
                break
        at[v] += 1
    return end, lowered


@loop
def scale_costs(net: Residual, price: Ints, excess: Ints) -> bool:
    """Find a flow of minimum cost; the costs must be multiples of the number of nodes plus 1.

    `net`: its room is changed.
    `price` (N,): changed: potentials that prove the flow optimal up to an error of 1 per arc.
    `excess` (N,): the supplies; changed, all 0 at the end.
    Returns False if no flow meets all supplies.
    """
    nodes = len(price)
    far, first = np.empty(nodes, np.int64), np.empty(3 * nodes + 2, np.int64)
    lists = _Lists(far, first, np.empty(nodes, np.int64), np.empty(nodes, np.int64))
    at, queue = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    queued = np.zeros(nodes, np.bool_)
    waiting = _Waiting(at, queue, queued)
    error = 1
    for cost in net.cost:
        error = max(error, abs(cost))
    while True:
        error = max(error // _STEP, 1)
        _saturate(net, price, excess)
        lowered, begin, end = nodes + 1, 0, 0
        for v in range(nodes):
            if excess[v] > 0:
                queue[end], queued[v] = v, True
                end += 1
        while begin < end:
            # Occasionally update all prices at once, which saves many small steps.
            if lowered > nodes:
                possible = _update_prices(net, price, excess, error, lists)
                if not possible and _is_stuck(net, excess, lists.after):
                    return False
                for v in range(nodes):
                    at[v] = net.start[v]
                lowered = 0
            v = queue[begin % nodes]
            begin += 1
            queued[v] = False
            end, more = _discharge(v, net, price, excess, error, waiting, end)
            if more < 0:
                return False
            lowered += more
            if excess[v] > 0 and not queued[v]:
                queued[v] = True
                queue[end % nodes] = v
                end += 1
        if error == 1:
            return True
