"""Dominant Resource Fairness (DRF): serve the client with the smallest weighted dominant share.

A client's share of a resource is the part of the cluster's total that it holds; its dominant share
is the largest of these.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4.
.. [2] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 3.
"""

from allocator.core import Snapshot
from allocator.policies.filling import Criterion, cluster_total, of_amounts


def drf(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold against the cluster's total.

    Examples
    --------
    Section 4.1 of [1]_: 9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import placement, static_snapshot
    >>> cluster = static_snapshot(capacity=[[9, 18]], demand=[[1, 4], [3, 1]])
    >>> grants = Filling(drf, "listed").allocate(cluster, seed=0)
    >>> placement(cluster, grants).sum(axis=1).tolist()
    [3, 2]
    """
    return of_amounts(snapshot, cluster_total(snapshot))
