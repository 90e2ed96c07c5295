"""The cheapest integer flow that meets all supplies, with potentials that prove it.

A potential is a price per unit at a node. The reduced cost of an arc is its cost, plus the
potential of its tail, minus that of its head. A flow is optimal exactly if there are potentials
with which no arc with room has a negative reduced cost, and no arc that carries flow a positive one
[1]_. `cost_scaling` computes it.

References
----------
.. [1] Ahuja, Magnanti, Orlin. "Network Flows." Prentice Hall 1993, ch. 9.
.. [2] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.solvers import NotOptimal
from allocator.solvers.flow.cost_scaling import (
    Residual,
    cut_off,
    pair_up,
    scale_costs,
    sharpen,
)

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LARGEST = 2**62
_EXACT = 2**52  # float64 represents integers up to twice this exactly


class Infeasible(RuntimeError):  # noqa: N818  (it is a verdict on a problem, not a fault)
    """No flow meets all supplies.

    `nodes` (N,): mask of nodes that together supply more than the arcs out of this set can carry.
    """

    def __init__(self, nodes: Bools, supply: int, room: int) -> None:
        some = ", ".join(map(str, np.flatnonzero(nodes)[:5]))
        more = ", ..." if nodes.sum() > 5 else ""
        super().__init__(f"nodes {some}{more} supply {supply}, but only {room} can leave them")
        self.nodes = nodes


@dataclass(frozen=True, slots=True)
class Network:
    """A network of A arcs and N nodes, and each node's supply.

    `tail`, `head` (A,): the nodes, from 0, that each arc leaves and enters.
    `capacity` (A,), >= 0.
    `cost` (A,): per unit of flow; may be negative.
    `supply` (N,): negative for a demand; the sum is 0.
    """

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints
    supply: Ints


@dataclass(frozen=True, slots=True)
class FlowSolution:
    """An optimal flow and its certificate.

    `flow` (A,): of each arc.
    `potential` (N,): ``cost + potential[tail] - potential[head]`` is at least 0 for arcs with room,
        and at most 0 for arcs that carry flow.
    `cost`: total cost of the flow.
    """

    flow: Ints
    potential: Ints
    cost: int


def solve(network: Network) -> FlowSolution:
    """Find a flow of minimum cost.

    Raises ValueError on arrays that do not fit together, an unknown node, a negative capacity,
        supplies that do not sum to 0, or numbers too large for 64 bits.
    Raises Infeasible if no flow meets all supplies.
    Raises NotOptimal if the potentials do not prove the flow optimal.

    Examples
    --------
    Two tasks, each a unit, on two computers; node 4 is the sink.

    >>> tail, head = np.array([0, 0, 1, 2, 3]), np.array([2, 3, 2, 4, 4])
    >>> cost, supply = np.array([1, 5, 2, 0, 0]), np.array([1, 1, 0, 0, -2])
    >>> solution = solve(Network(tail, head, np.ones(5, np.int64), cost, supply))
    >>> solution.flow.tolist(), solution.cost
    ([0, 1, 1, 1, 1], 7)
    """
    network = checked(network)
    residual, excess, nodes = residual_of(network), network.supply.copy(), len(network.supply)
    price = np.zeros(nodes, np.int64)
    # Costs are scaled up so that an error of 1 per arc does not matter.
    if not scale_costs(residual._replace(cost=residual.cost * (nodes + 1)), price, excess):
        raise infeasible(network, residual, excess)
    price //= nodes + 1
    sharpen(residual, price)
    return proved(network, residual, price)


def residual_of(network: Network) -> Residual:
    nodes = len(network.supply)
    return pair_up(nodes, network.tail, network.head, network.cost, network.capacity)


def proved(network: Network, residual: Residual, price: Ints) -> FlowSolution:
    """Return the flow on a residual network, with its certificate. Raises NotOptimal."""
    carried = residual.room[1::2].copy()
    wrong = violation(network, carried, price)
    if wrong:
        problem = "minimum-cost flow"
        raise NotOptimal(problem, wrong, 0)
    return FlowSolution(carried, price, _total(network, carried))


def violation(network: Network, flow: Ints, potential: Ints) -> int:
    """Check that potentials prove a flow optimal.

    Returns the largest violation of a capacity or supply (in units of flow), or of an optimality
        condition (in units of cost); 0 if the flow is optimal.
    """
    if not len(network.supply):
        return 0
    nodes = len(network.supply)
    left = network.supply - _sums(nodes, network.tail, flow) + _sums(nodes, network.head, flow)
    gain = network.cost + potential[network.tail] - potential[network.head]
    wrong = [np.abs(left), -flow, flow - network.capacity]
    wrong += [np.where(flow < network.capacity, -gain, 0), np.where(flow > 0, gain, 0)]
    return max(0, *(int(each.max(initial=0)) for each in wrong))


def _sums(nodes: int, at: Ints, flow: Ints) -> Ints:
    """Sum the flow of arcs by node, (N,); `at` (A,): the node of each arc."""
    # `bincount` is much faster but adds in float64, which must not round a sum.
    if np.abs(flow.astype(np.float64)).sum() < _EXACT:
        return np.bincount(at, flow, nodes).astype(np.int64)
    sums = np.zeros(nodes, np.int64)
    np.add.at(sums, at, flow)
    return sums


def _total(network: Network, flow: Ints) -> int:
    if np.abs(flow.astype(np.float64) * network.cost).sum() < _LARGEST:
        return int((flow * network.cost).sum())
    used = np.flatnonzero((flow != 0) & (network.cost != 0))
    return sum(a * b for a, b in zip(flow[used].tolist(), network.cost[used].tolist(), strict=True))


def checked(network: Network) -> Network:
    """Convert and validate a network. Raises ValueError, see `solve`."""
    arrays = [network.tail, network.head, network.capacity, network.cost, network.supply]
    tail, head, capacity, cost, supply = (np.asarray(each, np.int64) for each in arrays)
    if len({each.shape for each in (tail, head, capacity, cost)}) != 1 or tail.ndim != 1:
        raise ValueError("tails, heads, capacities and costs must have the same length")
    nodes = len(supply)
    for end in (tail, head):
        if len(end) and not (end.min() >= 0 and end.max() < nodes):
            raise ValueError(f"an arc ends at node {end[(end < 0) | (end >= nodes)][0]} of {nodes}")
    if (capacity < 0).any():
        at = int((capacity < 0).argmax())
        raise ValueError(f"arc {at} has the negative capacity {capacity[at]}")
    total = sum(supply[supply != 0].tolist())
    if total:
        raise ValueError(f"supplies add up to {total}, not to 0")
    # Keep all intermediate results within 64 bits.
    moved = capacity.astype(np.float64).sum() + np.abs(supply.astype(np.float64)).sum()
    dearest = max(map(abs, (int(cost.max(initial=0)), int(cost.min(initial=0)))))
    if moved >= _LARGEST or dearest * (nodes + 1) * (nodes + 1) * 4 >= _LARGEST:
        raise ValueError(f"capacities of {moved:g}, or costs of {dearest}, are too large")
    return Network(tail, head, capacity, cost, supply)


def infeasible(network: Network, residual: Residual, excess: Ints) -> Exception:
    """Build `Infeasible`, or `NotOptimal` if no set of nodes proves that no flow exists."""
    nodes = cut_off(residual, excess)
    supply = int(network.supply[nodes].sum())
    room = int(network.capacity[nodes[network.tail] & ~nodes[network.head]].sum())
    if not supply > room:
        problem = "minimum-cost flow, found infeasible"
        return NotOptimal(problem, room - supply, 0)
    return Infeasible(nodes, supply, room)
