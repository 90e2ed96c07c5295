"""Computes the *opening*: the number of tasks with which an offer begins.

An offer must reach the client's minimum. If one task does not, the first grant on an agent has as
many tasks as do; later grants add one task each.
"""

import numpy as np

from allocator.core.numba.array_types import Bools, Ints
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.memo import fixed, memoize

OPENING_MAX = 128
"""Maximum number of tasks in the first grant of an offer.

It is bounded because the numbers are tried one by one where special resources are free. A demand of
which more tasks are needed for an offer is no useful estimate of what the client accepts."""


@memoize(size=2)
def opening_tasks(demand: Ints, minimum: Ints, minimum_rows: Ints) -> Ints:
    """Return the smallest number of tasks that reaches each client's minimum, (C,).

    0: more than `OPENING_MAX`, or the demand is unknown. Arguments are as in a snapshot.
    """
    return fixed(_opening_tasks(*map(loop_view, (demand, minimum, minimum_rows))))


@memoize(size=2)
def opens_with_several(known: Bools, opening: Ints) -> Bools:
    """Return which clients (C,) that are offered whole tasks begin with another number than one."""
    return fixed(known & (opening != 1))


@loop
def _opening_tasks(demand: Ints, minimum: Ints, minimum_rows: Ints) -> Ints:
    opening = np.zeros(len(demand), np.int64)
    for client in range(len(demand)):
        needs = False
        for r in range(demand.shape[1]):
            needs |= demand[client, r] > 0
        if not needs:
            continue
        first, end = minimum_rows[client]
        fewest = OPENING_MAX + 1 if first < end else 1
        for row in range(first, end):
            tasks = 1
            for r in range(demand.shape[1]):
                least, one = minimum[row, r], demand[client, r]
                if least > one:
                    # Round up; a task without this resource never reaches the row.
                    tasks = max(tasks, (least + one - 1) // one if one > 0 else OPENING_MAX + 1)
            fewest = min(fewest, tasks)
        opening[client] = fewest if fewest <= OPENING_MAX else 0
    return opening
