"""Asset fairness: serve the client with the smallest weighted sum of shares.

All resources are weighted equally. The policy is here for comparison: it violates the sharing
incentive, since a client may get less than an equal part of the cluster would give it.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4.3.1.
"""

from allocator.core import Snapshot
from allocator.policies.filling import Criterion, cluster_total, of_amounts


def asset_fairness(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold against the cluster's total, summed over resources.

    Examples
    --------
    Section 4.3.1 of [1]_: 9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>. The fluid optimum is
    (63/25, 54/25); a hundred such clusters in one come close to it with whole tasks.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import placement, static_snapshot
    >>> cluster = static_snapshot(capacity=[[900, 1800]], demand=[[1, 4], [3, 1]])
    >>> grants = Filling(asset_fairness, "listed").allocate(cluster, seed=0)
    >>> placement(cluster, grants).sum(axis=1).tolist()
    [252, 216]
    """
    return of_amounts(snapshot, cluster_total(snapshot), additive=True)
