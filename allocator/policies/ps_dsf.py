"""Per-Server Dominant-Share Fairness (PS-DSF): rank clients by dominant shares of the agent.

A client's total holdings are measured against the capacity of the agent that is being filled. So a
client whose task takes a small share of this kind of agent comes first, and tasks gather on agents
that suit them.

References
----------
.. [1] Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao. "Per-Server Dominant-Share Fairness
   (PS-DSF): A Multi-Resource Fair Allocation Mechanism for Heterogeneous Servers." ICC 2017.
.. [2] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 4 and 5.
"""

import numpy as np

from allocator.core import Snapshot
from allocator.policies.filling import Criterion, of_amounts


def ps_dsf(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold against the capacity of each agent.

    A resource that the agent lacks does not count: a task that needs it does not fit anyway, and in
    oblivious mode, holding it elsewhere must not delay a client on this agent.

    Examples
    --------
    Section IV of [2]_, Table I, row PS-DSF: each framework settles on the agent that suits it.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import placement, static_snapshot
    >>> cluster = static_snapshot(capacity=[[100, 30], [30, 100]], demand=[[5, 1], [1, 5]])
    >>> grants = Filling(ps_dsf, "joint").allocate(cluster, seed=0)
    >>> placement(cluster, grants).tolist()
    [[19, 0], [2, 20]]
    """
    takes_part = snapshot.counted & (snapshot.capacity > 0)
    return of_amounts(snapshot, np.where(takes_part, snapshot.capacity, np.inf))
