"""Lots: grants many tiny tasks at a time.

If thousands of a client's tasks fit into one agent, a grant is made of a *lot* of them. Demands are
untrusted: a task of a thousandth of a MiB would otherwise cause millions of grants on one agent.
"""

import numpy as np

from allocator.core.numba.memo import fixed, memoize
from allocator.core.snapshot import Ints

LOTS_LEAST, LOTS_MOST = 2**10, 2**14
"""Minimum and maximum number of lots that fit into the largest agent; less in a large cluster.
Less than one lot of an agent stays unused."""

LOTS_OF_CLUSTER = 2**18
"""Desired number of lots on all agents together."""


def lots_max(agents: int) -> int:
    """Return the maximum number of lots that fit into the largest agent."""
    return min(max(LOTS_OF_CLUSTER // max(agents, 1), LOTS_LEAST), LOTS_MOST)


@memoize()
def in_lots(demand: Ints, largest: Ints, most: int) -> Ints:
    """Combine tasks into lots where more than `most` tasks fit into the largest agent.

    `demand` (C, R), in thousandths: the size of one task; zeros if unknown.
    `largest` (R,), in thousandths: the largest capacity of any agent, by resource.
    Returns (C, R): the size of a lot, or the unchanged demand.
    """
    needed, small = demand > 0, demand <= (largest - 1) // most
    tiny = np.flatnonzero(needed.any(axis=1) & (small | ~needed).all(axis=1))
    if not len(tiny):
        return demand
    tasks = np.full((len(tiny), len(largest)), np.iinfo(np.int64).max)
    np.floor_divide(largest, demand[tiny], out=tasks, where=needed[tiny])
    lots = demand.copy()
    lots[tiny] *= -(-tasks.min(axis=1) // most)[:, None]
    return fixed(lots)
