"""Repair of a flow that had minimum cost before a change of the network, compiled.

The terms are those of `cost_scaling`; *potential* is another word for a node's price. With the
previous potentials, arcs with a negative reduced cost are filled, and arcs with a positive one are
emptied. This leaves excess at some nodes and deficits at others, near the change. Then each excess
goes along a shortest path to the nearest node with a deficit, and the potentials of nearer nodes
are updated.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, sec. 9.7 (successive shortest
   paths).
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, part
from allocator.solvers.flow.cost_scaling import Ints, Residual

_FAR = np.iinfo(np.int64).max

UNKNOWN = np.iinfo(np.int64).min
"""The potential of a node that the previous network did not have."""


class _Found(NamedTuple):
    """The state of a search for a shortest path.

    `far`, `by` (N,): the distance of each reached node, and the arc by which it was reached.
    `touched` (N,): the reached nodes.
    `state` (N,): 0 not reached, 1 reached, 2 distance final.
    """

    far: Ints
    by: Ints
    touched: Ints
    state: Ints


@part()
def _ease(net: Residual, price: Ints) -> None:
    """Change potentials as little as possible so that the arcs satisfy the optimality conditions.

    If no potential satisfies all arcs of a node, or the node is new, it gets the lowest potential
    at which no arc that leaves it gains.
    """
    start, arc, head, cost, room = net
    for v in range(len(price)):
        low, high, bounded, above = 0, 0, False, False
        for k in range(start[v], start[v + 1]):
            e = arc[k]
            if price[head[e]] == UNKNOWN:
                continue
            even = price[head[e]] - cost[e]
            if room[e] > 0:
                low, bounded = (max(low, even) if bounded else even), True
            if room[e ^ 1] > 0:
                high, above = (min(high, even) if above else even), True
        if price[v] == UNKNOWN:
            price[v] = low if bounded else high
        if above:
            price[v] = min(price[v], high)
        if bounded:
            price[v] = max(price[v], low)


@loop
def settle(net: Residual, price: Ints, flow: Ints, excess: Ints) -> None:
    """Put the previous flow on the network, except where potentials show that it is not optimal.

    `net`: the residual network without flow; its room is changed.
    `price` (N,): the previous potentials, `UNKNOWN` for new nodes; changed.
    `flow` (A,): the previous flow.
    `excess` (N,): the supplies; changed to the imbalance that the flow leaves at each node.
    """
    head, cost, room = net.head, net.cost, net.room
    for a in range(len(flow)):
        amount = min(max(flow[a], 0), room[2 * a])
        room[2 * a] -= amount
        room[2 * a + 1] += amount
    _ease(net, price)
    for a in range(len(flow)):
        tail, to = head[2 * a + 1], head[2 * a]
        gain = cost[2 * a] + price[tail] - price[to]
        for e in range(2 * a, 2 * a + 2):
            if gain < 0 and room[e] > 0:
                room[e ^ 1] += room[e]
                room[e] = 0
            gain = -gain
        excess[tail] -= room[2 * a + 1]
        excess[to] += room[2 * a + 1]


@part()
def _search(
    origin: int, back: int, net: Residual, price: Ints, excess: Ints, found: _Found
) -> tuple[int, int]:
    """Find the node nearest to the origin that has the opposite imbalance.

    `back`: 0 if the origin has excess, to search along arcs; 1 if it has a deficit, to search
        against their direction.
    `found`: its `state` must be all 0.
    Returns the node, or -1 if there is none; and the number of reached nodes.
    """
    start, arc, head, cost, room = net
    far, by, touched, state = found
    sign = 1 - 2 * back
    far[origin], by[origin], state[origin] = 0, -1, 1
    touched[0], size = origin, 1
    # The search never goes farther than the nearest candidate so far.
    best, end = -1, _FAR
    heap = [(np.int64(0), np.int64(origin))]
    while len(heap) > 0:
        away, v = heappop(heap)
        if away >= end:
            break
        if state[v] == 2:
            continue
        state[v] = 2
        for k in range(start[v], start[v + 1]):
            e = arc[k] ^ back
            w = head[arc[k]]
            if room[e] <= 0 or state[w] == 2:
                continue
            longer = away + cost[e] + sign * (price[v] - price[w])
            if longer >= end or (state[w] == 1 and far[w] <= longer):
                continue
            if state[w] == 0:
                state[w] = 1
                touched[size] = w
                size += 1
            far[w], by[w] = longer, e
            if excess[w] * sign < 0:
                best, end = w, longer
            else:
                heappush(heap, (longer, w))
    return best, size


@loop
def repair(net: Residual, price: Ints, excess: Ints) -> int:
    """Remove the imbalances of a flow so that it meets all supplies at minimum cost.

    `net`: its room is changed.
    `price` (N,): potentials at which no arc gains; updated so that this remains true.
    `excess` (N,): the imbalances; changed, all 0 at the end.
    Returns -1, or a node whose supply cannot be met.
    """
    start, head, room, nodes = net.start, net.head, net.room, len(price)
    far, by = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    touched, state = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    found = _Found(far, by, touched, state)
    # Nodes with many arcs come last, because a search scans all arcs of its origin; most of these
    # nodes are balanced by then.
    wrong = np.flatnonzero(excess)
    wrong = wrong[np.argsort(start[wrong + 1] - start[wrong])]
    for at in range(len(wrong)):
        origin = int(wrong[at])
        while excess[origin] != 0:
            back = int(excess[origin] < 0)
            target, size = _search(origin, back, net, price, excess, found)
            if target < 0:
                return origin
            sign, end = 1 - 2 * back, far[target]
            for k in range(size):
                v = touched[k]
                if state[v] == 2 and far[v] < end:
                    price[v] += sign * (far[v] - end)
                state[v] = 0
            amount = min(abs(excess[origin]), abs(excess[target]))
            v = target
            while v != origin:
                amount = min(amount, room[by[v]])
                v = head[by[v] ^ 1 ^ back]
            v = target
            while v != origin:
                room[by[v]] -= amount
                room[by[v] ^ 1] += amount
                v = head[by[v] ^ 1 ^ back]
            excess[origin] -= sign * amount
            excess[target] += sign * amount
    return -1


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
    start, arc, head, _, room = net
    nodes, queue = len(excess), np.empty(len(excess), np.int64)
    for back in (1, 0):
        sign = 1 - 2 * back
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
        inside = seen != (back == 1)
        if (excess[inside] > 0).any():
            return inside
    return np.zeros(nodes, np.bool_)
