"""Repair of a flow that had minimum cost before a change of the network, compiled.

The terms are those of `allocator.solvers.flow.cost_scaling`; *potential* is another word for a
node's price. With the previous potentials, arcs with a negative reduced cost are filled, and arcs
with a positive one are emptied. This leaves excess at some nodes and deficits at others, near the
change. Then each excess goes along a shortest path to the nearest node with a deficit, and the
potentials of nearer nodes are updated.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, sec. 9.7 (successive shortest
   paths).
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from allocator.core.numba.compiled import loop, part
from allocator.solvers.flow.cost_scaling import Ints, Residual
from allocator.solvers.flow.min_cost_flow import (
    FlowSolution,
    Network,
    checked,
    infeasible,
    proved,
    residual_of,
    solve,
)

_FAR = np.iinfo(np.int64).max

UNKNOWN = np.iinfo(np.int64).min
"""The potential of a node that the previous network did not have."""

REPAIR_MAX = 1 / 8
"""If more than this part of the nodes is unbalanced, the flow is computed from scratch."""


def solve_again(network: Network, flow: Ints, potential: Ints) -> FlowSolution:
    """Find a flow of minimum cost, starting from the solution of a similar network.

    `flow` (A,), `potential` (N,): that solution, by the arcs and nodes of this network. Arcs that
        the other network lacks have the flow 0; nodes that it lacks have the potential `UNKNOWN`.
    Raises the same errors as `min_cost_flow.solve`.
    """
    repaired = repair(network, flow, potential)
    return solve(network) if repaired is None else repaired


def repair(network: Network, flow: Ints, potential: Ints) -> FlowSolution | None:
    """Do the same as `solve_again` by repair only; None: too much has changed."""
    network = checked(network)
    residual, excess = residual_of(network), network.supply.copy()
    price = potential.astype(np.int64)
    _settle(residual, price, flow.astype(np.int64), excess)
    if np.count_nonzero(excess) > max(REPAIR_MAX * len(network.supply), 2):
        return None
    if _balance(residual, price, excess) >= 0:
        raise infeasible(network, residual, excess)
    return proved(network, residual, price)


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
def _settle(net: Residual, price: Ints, flow: Ints, excess: Ints) -> None:
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
def _balance(net: Residual, price: Ints, excess: Ints) -> int:
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
