"""Choosy: serve the client with the fewest machines among those that may use the agent.

This approaches the constrained max-min fair (CMMF) shares, up to a bounded number of machines.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 6.
"""

import numpy as np

from allocator.core import Snapshot
from allocator.core.numba.memo import constant, fixed, memoize
from allocator.core.snapshot import Bools, Floats
from allocator.policies.filling import (
    Criterion,
    CriterionFunction,
    characterised,
    cluster_total,
    mixed,
    of_amounts,
)

UNITS = ("agents", "tasks", "dominant_share")


def choosy(unit: str = "agents") -> CriterionFunction:
    """Make the criterion.

    `unit`: what to count. ``agents``: agents on which a client holds something, the machines of
    [1]_. ``tasks``: tasks, for machines with several slots; agents for clients without a known
    demand. ``dominant_share``: amounts, as in DRF.

    Examples
    --------
    Figure 1 of [1]_: ten machines and four users, machine by machine. The CMMF shares (Figure 4)
    are (2, 1, 3, 4); the result differs by one machine, which is moved when it becomes free.

    >>> from allocator.policies.filling import Filling
    >>> from allocator.testing import static_snapshot
    >>> can_use = [{1, 4}, {3, 4}, {2, 3, 4, 6, 7}, {5, 6, 7, 8, 9, 10}]
    >>> allowed = [[machine in those for machine in range(1, 11)] for those in can_use]
    >>> cluster = static_snapshot([[1]] * 10, clients=4, allowed=allowed)
    >>> grants = Filling(choosy("agents"), "listed").allocate(cluster, seed=0)
    >>> np.bincount(grants.client).tolist()
    [2, 1, 2, 5]
    """
    return {"agents": _agents, "tasks": _tasks, "dominant_share": _dominant_share}[unit]


def _agents(snapshot: Snapshot) -> Criterion:
    clients = len(snapshot.held)
    return mixed(
        snapshot,
        amount_gain=constant(0.0, clients),
        denominator=np.full((1, len(snapshot.total)), np.inf),
        count=snapshot.agents_held.astype(np.float64),
        count_denominator=1.0,
        agent_gain=constant(1.0, clients),
    )


def _tasks(snapshot: Snapshot) -> Criterion:
    """Count tasks, or agents if a client's demand is unknown."""
    known = characterised(snapshot)
    in_tasks, in_agents = _counted_in(known)
    return mixed(
        snapshot,
        amount_gain=constant(0.0, len(known)),
        denominator=np.full((1, len(snapshot.total)), np.inf),
        count=np.where(known, snapshot.tasks, snapshot.agents_held),
        count_denominator=1.0,
        task_gain=in_tasks,
        agent_gain=in_agents,
    )


@memoize()
def _counted_in(known: Bools) -> tuple[Floats, Floats]:
    """Return what a grant adds to the count: in tasks and in agents, (C,) each."""
    return fixed(known.astype(np.float64)), fixed((~known).astype(np.float64))


def _dominant_share(snapshot: Snapshot) -> Criterion:
    return of_amounts(snapshot, cluster_total(snapshot))
