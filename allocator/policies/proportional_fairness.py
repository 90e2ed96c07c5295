"""Proportional fairness (PF): serve the most deprived, at the prices of the fluid optimum.

At the fluid optimum every client spends its weight: tasks times the price of one task. The client
whose spending per weight is smallest is served next. CEEI (competitive equilibrium from equal
incomes) has the same optimum, for a product of utilities is a sum of logarithms.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 2.4 and 4.1.
"""

import numpy as np

from allocator.core import Floats, Snapshot
from allocator.policies.filling import Criterion, cluster_total, of_amounts

_DIGITS = 9  # of a price: what the solver promises, so that equal prices are equal


def proportional_fairness(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold at the prices of the fluid optimum, all resources added up.

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
    """Prices of the resources at the fluid optimum of the pooled cluster, (R,); the largest is 1.

    Notes
    -----
    The optimum is that of the clients which are served in this cycle, each with the part of its
    role's weight that is its own. A client whose demand is unknown enters with what it holds as the
    direction of its demand; one that needs what the cluster does not have stays out. Where no
    direction is known, all prices are equal.
    """
    from allocator.solvers.proportional_fairness import solve

    counts = snapshot.counted & (snapshot.total > 0)
    client = snapshot.tree.client
    demand, held = snapshot.demand[client], snapshot.held[client]
    # The direction of each client's demand, in parts of the cluster; what it holds stands in for
    # an unknown demand.
    needs_nothing = ~(demand > 0).any(axis=1, keepdims=True)
    direction = np.where(needs_nothing, held, demand)[:, counts] / snapshot.total[counts]
    size = direction.max(axis=1, initial=0)
    known = (size > 0) & ~(demand[:, snapshot.total == 0] > 0).any(axis=1)
    uniform = np.where(counts, 1.0, 0.0)
    if not known.any():
        return uniform
    # Clients with the same direction are one for the solver, with their weights added up.
    direction = np.round(direction[known] / size[known, None], 12)
    kinds, which = np.unique(direction, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), _weight_of_leaves(snapshot)[known]).astype(np.float64)
    # The solver's prices are of parts of the cluster; only their proportions matter.
    result = uniform.copy()
    result[counts] = solve(kinds, np.ones(kinds.shape[1]), weight).prices
    return np.round(result / result.max(), _DIGITS)


def _weight_of_leaves(snapshot: Snapshot) -> Floats:
    """Part of the whole that the weights along its branch of the tree give each leaf, (L,)."""
    tree = snapshot.tree
    # Each node's part among its siblings, then multiplied down the tree, from the root.
    below = np.bincount(tree.parent[:-1], tree.weight[:-1], minlength=len(tree.parent))
    part = np.ones(len(tree.parent))
    part[:-1] = tree.weight[:-1] / below[tree.parent[:-1]]
    for node in range(len(part) - 2, len(tree.client) - 1, -1):
        part[node] *= part[tree.parent[node]]
    leaves = len(tree.client)
    return part[:leaves] * part[tree.parent[:leaves]]
