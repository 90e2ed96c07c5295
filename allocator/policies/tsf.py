"""Task Share Fairness (TSF): serve the client that runs the smallest part of its possible tasks.

A client's task share is its number of tasks divided by the number that it could run alone on the
empty cluster, without constraints.

References
----------
.. [1] Wang, Li, Liang, Li. "Multi-Resource Fair Sharing for Datacenter Jobs with Placement
   Constraints." SC 2016, sec. IV.
"""

import math

import numpy as np

from allocator.core import Bools, Floats, Ints, Snapshot, distinct_rows
from allocator.core.numba.memo import fixed, memoize
from allocator.policies.filling import Criterion, characterised, cluster_total, mixed

_EXACT = 2**40  # a common denominator below this keeps counts of tasks exact in float64


def tsf(snapshot: Snapshot) -> Criterion:
    """Measure tasks against the tasks that would fit if the client were alone.

    A client with unknown demand is measured by its dominant share.

    Examples
    --------
    9 CPUs and 18 GB; A's task needs <1, 4>, B's <3, 1>. Alone, A could run 4 tasks and B 3. Order:
    A, B, A (1/4 < 1/3), B (1/3 < 2/4), A (2/4 < 2/3); then the CPUs are used up.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import static_snapshot
    >>> cluster = static_snapshot(capacity=[[9, 18]], demand=[[1, 4], [3, 1]])
    >>> Filling(tsf, "listed").allocate(cluster, seed=0).client.tolist()
    [0, 1, 0, 1, 0]
    """
    known = characterised(snapshot)
    whole, gain, by_amount = _gains(known, tasks_alone(snapshot))
    return mixed(
        snapshot,
        amount_gain=by_amount,
        denominator=cluster_total(snapshot),
        count=snapshot.tasks * gain,
        count_denominator=whole,
        task_gain=gain,
    )


@memoize()
def _gains(known: Bools, tasks_alone: Floats) -> tuple[int, Floats, Floats]:
    """Return the denominator, the gain of a task, and 1 for clients measured by amounts."""
    # Count in units of 1 / least common multiple, so that shares are integers and ties exact.
    alone = np.maximum(tasks_alone, 1)  # clients that fit nowhere are not served anyway
    whole = math.lcm(*np.unique(alone[known]).astype(int).tolist())
    if whole > _EXACT:
        whole = 1
    gain = np.where(known, whole / alone, 0.0)
    return whole, fixed(gain), fixed(np.where(known, 0.0, 1.0))


def tasks_alone(snapshot: Snapshot) -> Floats:
    """Count the whole tasks that each client could run alone on the empty cluster, (C,).

    0 if the demand is unknown or fits no agent. O(distinct demands * classes of agents * R).
    """
    classes = snapshot.classes
    return _alone(characterised(snapshot), snapshot.demand, classes.capacity, classes.count)


@memoize()
def _alone(known: Bools, demand_of: Ints, capacity: Ints, agents: Ints) -> Floats:
    """Compute `tasks_alone`; `agents`: number of agents of each capacity."""
    result = np.zeros(len(demand_of))
    if not known.any():
        return fixed(result)
    # The scarcest resource of each class of agents determines the tasks.
    demands = distinct_rows(demand_of[known])
    alone = np.empty(len(demands.rows))
    for row, demand in enumerate(demands.rows):
        needed = demand > 0
        fits = (capacity[:, needed] // demand[needed]).min(axis=1)
        alone[row] = (fits * agents).sum()
    result[known] = alone[demands.which]
    return fixed(result)
