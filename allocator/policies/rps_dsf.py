"""Residual PS-DSF (rPS-DSF): rank clients by their dominant share of what is free on the agent.

The scarcer a resource becomes on an agent, the later clients that need much of it are served there;
once it is used up, their score there is infinite.

References
----------
.. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, sec. IV.
"""

import numpy as np

from allocator.core import Snapshot
from allocator.policies.filling import Criterion, of_amounts


def rps_dsf(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold against what is free on each agent now.

    A resource that the agent never had does not count there; an exhausted one makes the score
    infinite.

    Examples
    --------
    Section IV of [1]_, Table I, row rPS-DSF.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import placement, static_snapshot
    >>> cluster = static_snapshot(capacity=[[100, 30], [30, 100]], demand=[[5, 1], [1, 5]])
    >>> grants = Filling(rps_dsf, "joint").allocate(cluster, seed=0)
    >>> placement(cluster, grants).tolist()
    [[19, 2], [2, 19]]
    """
    takes_part = snapshot.counted & (snapshot.capacity > 0)
    return of_amounts(
        snapshot, np.where(takes_part, snapshot.free_by_column, np.inf), residual=True
    )
