"""How many tasks an offer begins with.

An offer must reach the client's minimum. If one task is less than that, the first grant on an
agent is of as many tasks as reach it together; what is added to the offer later is a task each.
"""

import numpy as np

from allocator.core.numba.array_types import Bools, Ints
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.memo import fixed, memoize

OPENING_MAX = 128
"""Maximum number of tasks with which an offer begins: they are tried one by one if some of what
is free is special. A demand that needs more says too little about what the framework takes."""


@memoize(size=2)
def opening_tasks(demand: Ints, minimum: Ints, minimum_rows: Ints) -> Ints:
    """Return the smallest number of tasks that reaches each client's minimum, (C,).

    0: none up to `OPENING_MAX` does, or the demand is unknown.

    `demand` (C, R), `minimum` (M, R), `minimum_rows` (C, 2): as in a snapshot.
    """
    return fixed(_opening_tasks(*map(loop_view, (demand, minimum, minimum_rows))))


@memoize(size=2)
def opens_with_several(known: Bools, opening: Ints) -> Bools:
    """Return which clients, of those offered whole tasks (C,), need more than one to start with."""
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
                    # Rounded up; a task that needs none of it never reaches it.
                    tasks = max(tasks, (least + one - 1) // one if one > 0 else OPENING_MAX + 1)
            fewest = min(fewest, tasks)
        opening[client] = fewest if fewest <= OPENING_MAX else 0
    return opening
