"""Proportional fairness (PF): serve the client that has spent least, at the optimum's prices.

At the fluid optimum every client spends its weight: tasks times the price of one task. The client
with the smallest spending per weight is served next. CEEI (competitive equilibrium from equal
incomes) has the same optimum.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 2.4 and 4.1.
"""

import numpy as np

from allocator.core import Bools, Floats, Ints, Snapshot, Tree, distinct_rows
from allocator.core.numba.memo import fixed, memoize
from allocator.policies.filling import Criterion, cluster_total, of_amounts

_DIGITS = 9  # of a price; the solver's precision, so that equal prices compare equal
_DIGITS_OF_SMALL = 6


def proportional_fairness(snapshot: Snapshot) -> Criterion:
    """Measure holdings at the prices of the fluid optimum, summed over resources.

    Examples
    --------
    CEEI on the cluster of NSDI 2011, sec. 4.3.2: 9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>.
    The optimum is (45/11, 18/11); eleven such clusters in one come close with whole tasks.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import placement, static_snapshot
    >>> cluster = static_snapshot(capacity=[[99, 198]], demand=[[1, 4], [3, 1]])
    >>> grants = Filling(proportional_fairness, "listed").allocate(cluster, seed=0)
    >>> placement(cluster, grants).sum(axis=1).tolist()
    [45, 18]
    """
    total = cluster_total(snapshot)
    with np.errstate(divide="ignore", invalid="ignore"):
        return of_amounts(snapshot, np.where(total > 0, total / prices(snapshot), 0), additive=True)


def prices(snapshot: Snapshot) -> Floats:
    """Return the resources' prices at the fluid optimum of the pooled cluster, (R,); at most 1.

    The optimum is over the clients served in this cycle, each with its own part of its role's
    weight. The holdings of a client with unknown demand stand for its demand. A client that needs a
    resource which the cluster lacks is left out. If no demand is known, all prices are equal.
    """
    tree, demand = snapshot.tree, snapshot.demand
    # Usually all demands are known; then the memoized prices of the last cycle can be reused.
    held = None if _all_of(snapshot.has_demand, tree.client) else snapshot.held
    return _prices(demand, held, snapshot.counted, snapshot.total, tree.client, _weights(tree))


@memoize()
def _prices(
    demand: Ints, held: Ints | None, counted: Bools, total: Ints, client: Ints, weight: Floats
) -> Floats:
    """Compute `prices`; `held` is None if all demands are known, `weight` is per leaf."""
    from allocator.solvers.fluid.proportional_fairness import solve

    counts = counted & (total > 0)
    # As fractions of the cluster; holdings stand for unknown demands.
    wanted = demand[client]
    if held is not None:
        wanted = np.where((wanted > 0).any(axis=1, keepdims=True), wanted, held[client])
    direction = wanted[:, counts] / total[counts]
    size = direction.max(axis=1, initial=0)
    known = (size > 0) & ~(demand[client][:, total == 0] > 0).any(axis=1)
    uniform = np.where(counts, 1.0, 0.0)
    if not known.any():
        return fixed(uniform)
    # Merge clients with the same direction, and add up their weights.
    direction = np.round(direction[known] / size[known, None], 12)
    kinds, which, _ = distinct_rows(direction)
    weights = np.bincount(which, weight[known]).astype(np.float64)
    # The solver's prices are per fraction of the cluster; only their ratios matter.
    result = uniform.copy()
    result[counts] = solve(kinds, np.ones(kinds.shape[1]), weights).prices
    return fixed(_rounded(result / result.max()))


def _rounded(prices: Floats) -> Floats:
    """Round so that equal prices compare equal; keep at least `_DIGITS_OF_SMALL` digits."""
    exponent = np.floor(np.log10(np.where(prices > 0, prices, 1.0)))
    digits = np.maximum(_DIGITS, _DIGITS_OF_SMALL - 1 - exponent)
    scale = 10.0 ** np.minimum(digits, 300)
    return np.round(prices * scale) / scale


@memoize()
def _all_of(known: Bools, client: Ints) -> bool:
    return bool(known[client].all())


def _weights(tree: Tree) -> Floats:
    return _weight_of_leaves(tree.parent, tree.weight, len(tree.client))


@memoize()
def _weight_of_leaves(parent: Ints, weight: Floats, leaves: int) -> Floats:
    # Multiply each node's fraction among its siblings down from the root, relative to the largest
    # weight, so that sums do not overflow.
    weight = weight / weight.max()
    below = np.bincount(parent[:-1], weight[:-1], minlength=len(parent))
    part = np.ones(len(parent))
    part[:-1] = weight[:-1] / below[parent[:-1]]
    for node in range(len(part) - 2, leaves - 1, -1):
        part[node] *= part[parent[node]]
    return fixed(part[:leaves] * part[parent[:leaves]])
