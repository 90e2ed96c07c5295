"""Lots: demands of which thousands fit into one agent are granted many tasks at a time.

Otherwise each task is a separate grant. Demands are untrusted: one of a thousandth of a MiB would
cause millions of grants on one agent.
"""

import numpy as np

from allocator.core.numba.memo import fixed, memoize
from allocator.core.snapshot import Ints

LOTS_LEAST, LOTS_MOST = 2**10, 2**14
"""Minimum and maximum number of lots that fit into the largest agent; fewer in a large cluster,
since each is a grant. Less than one lot of an agent stays unused."""

LOTS_OF_CLUSTER = 2**18
"""Lots wanted on all agents together."""


def lots_max(agents: int) -> int:
    """Return how many lots may fit into the largest agent."""
    return min(max(LOTS_OF_CLUSTER // max(agents, 1), LOTS_LEAST), LOTS_MOST)


@memoize()
def in_lots(demand: Ints, largest: Ints, most: int) -> Ints:
    """Multiply demands that fit more than `most` times into the largest agent, so that they do not.

    `demand` (C, R), in thousandths: one task's needs; zeros if unknown.
    `largest` (R,), in thousandths: the most that an agent has of each resource.
    `most`: the maximum number of lots that fit into such an agent.
    Returns (C, R): what one grant is made of; other demands are unchanged.
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
