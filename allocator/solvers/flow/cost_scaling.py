"""A minimum-cost flow from scratch: Goldberg's cost scaling, compiled.

Each node has a price. The *reduced cost* of an arc is its cost, plus the price of the node that it
leaves, minus the price of the node that it enters. An arc *gains* if it has room and a negative
reduced cost: sending flow along it lowers the total cost. A node's *excess* is the flow that
reaches it, or is supplied there, and has not left yet; a negative excess is a *deficit*.

Each round makes the flow optimal up to an error in the arcs' costs, which is smaller than in the
round before. A round saturates all arcs that gain; then it pushes excess along arcs that gain, and
lowers the price of a node with excess and no such arc.

Shapes: N nodes, A arcs.

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
    """The residual network: arc ``2 * a`` is arc a of the network, ``2 * a + 1`` its reverse.

    `start` (N + 1,): where each node's arcs start in `arc`, then 2 * A.
    `arc` (2 * A,): arcs in the order of the nodes that they leave.
    `head` (2 * A,): the node that each arc enters.
    `cost` (2 * A,): per unit of flow; the reverse arc has the negative cost.
    `room` (2 * A,): how much more an arc can carry; for a reverse arc, how much its arc carries.
    """

    start: Ints
    arc: Ints
    head: Ints
    cost: Ints
    room: Ints


class _Lists(NamedTuple):
    """Doubly linked lists of nodes, one for each distance from a deficit.

    `far` (N,): the distance of each node.
    `first` (3 * N + 2,): the first node in the list of each distance.
    `after`, `before` (N,): the next and the previous node in the node's list.
    """

    far: Ints
    first: Ints
    after: Ints
    before: Ints


class _Waiting(NamedTuple):
    """The nodes that wait for their excess to be pushed.

    `at` (N,): position in `Residual.arc` of the next arc to try of each node.
    `queue` (N,): ring buffer of nodes, each at most once; `queued` (N,): whether a node is in it.
    """

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
    """Fill every arc that gains up to its capacity."""
    head, cost, room = net.head, net.cost, net.room
    for e in range(len(head)):
        if room[e] > 0 and cost[e] + price[head[e ^ 1]] - price[head[e]] < 0:
            excess[head[e ^ 1]] -= room[e]
            excess[head[e]] += room[e]
            room[e ^ 1] += room[e]
            room[e] = 0


@part()
def _update_prices(net: Residual, price: Ints, excess: Ints, error: int, lists: _Lists) -> bool:
    """Lower each node's price by the error times the node's distance to a deficit.

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
    # Dijkstra's algorithm from the deficits; integer distances index the lists.
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
            # The node is nearer than known so far: move it to another list.
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
def _reached(net: Residual, excess: Ints, queue: Ints, back: int) -> NDArray[np.bool_]:
    """Find the nodes that can reach a deficit (`back` = 1), or that an excess can reach (0)."""
    start, arc, head, _, room = net
    sign, nodes = 1 - 2 * back, len(excess)
    seen, size, at = np.zeros(nodes, np.bool_), 0, 0
    for v in range(nodes):
        if excess[v] * sign > 0:
            seen[v] = True
            queue[size] = v
            size += 1
    while at < size:
        v = queue[at]
        at += 1
        for k in range(start[v], start[v + 1]):
            w = head[arc[k]]
            if room[arc[k] ^ back] > 0 and not seen[w]:
                seen[w] = True
                queue[size] = w
                size += 1
    return seen


@part()
def _is_stuck(net: Residual, excess: Ints, queue: Ints) -> bool:
    seen = _reached(net, excess, queue, 1)
    for v in range(len(excess)):
        if excess[v] > 0 and not seen[v]:
            return True
    return False


@part()
def _discharge(
    v: int, net: Residual, price: Ints, excess: Ints, error: int, waiting: _Waiting, end: int
) -> tuple[int, int]:
    """Push a node's excess along arcs that gain, lowering its price if there is no such arc.

    Returns the new end of the queue, and how often the price was lowered; -1 instead if the node
        has excess but no arc with room.
    """
    start, arc, head, cost, room = net
    at, queue, queued = waiting
    nodes, lowered = len(price), 0
    while excess[v] > 0 and lowered < 4:
        if at[v] == start[v + 1]:
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
    """Find a flow of minimum cost.

    `net`: the residual network without flow; its costs must be multiples of N + 1. Its room is
        changed.
    `price` (N,): initial prices; changed to prices that prove the flow optimal up to an error of 1
        per arc.
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
            # Updating all prices at once now and then saves many small steps.
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


@loop
def sharpen(net: Residual, price: Ints) -> None:
    """Lower potentials until no arc gains; the flow must be optimal."""
    start, arc, head, cost, room = net
    nodes = len(price)
    queue, queued = np.arange(nodes), np.ones(nodes, np.bool_)
    begin, end = 0, nodes
    while begin < end:
        v = queue[begin % nodes]
        begin += 1
        queued[v] = False
        for k in range(start[v], start[v + 1]):
            e = arc[k]
            w = head[e]
            if room[e] > 0 and cost[e] + price[v] - price[w] < 0:
                price[w] = cost[e] + price[v]
                if not queued[w]:
                    queued[w] = True
                    queue[end % nodes] = w
                    end += 1


@loop
def cut_off(net: Residual, excess: Ints) -> NDArray[np.bool_]:
    """Find a set of nodes whose total excess cannot leave the set; return a mask, (N,).

    The set consists of the nodes that cannot reach a deficit; or, if none of these has excess, of
    the nodes reachable from a node with excess.
    """
    queue = np.empty(len(excess), np.int64)
    for back in (1, 0):
        inside = _reached(net, excess, queue, back) != (back == 1)
        if (excess[inside] > 0).any():
            return inside
    return np.zeros(len(excess), np.bool_)
