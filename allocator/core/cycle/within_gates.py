"""Applies guarantees as the module's gates do: decision by decision.

A policy grants in steps. If some agents hold more than their capacity, less is free in the cluster
than on single agents. Then a client may be granted what its role is owed, and later in the cycle,
when all guarantees are met, the rest of the same agent. Both grants are correct, but they are sent
as one decision, which a gate would reduce because other roles are still owed something at that
point. The later grant is therefore dropped, and can be made in the next cycle.
"""

import numpy as np

from allocator.core.numba.compiled import loop, loop_view
from allocator.core.snapshot import Bools, Bounds, Ints


def are_at_stake(bounds: Bounds, given: Ints) -> bool:
    """Whether gates may reduce any decision if `given` (R,) is granted in total.

    A grant uses either its role's guarantee or what is free beyond all guarantees. Unless one of
    these is overdrawn, the order of grants does not matter.
    """
    overdrawn = (bounds.available < bounds.required) | (bounds.available < given)
    return bool(bounds.required.any() and overdrawn.any())


def kept(bounds: Bounds, decision: Ints, client: Ints, counted: Ints) -> Bools:
    """Return which grants pass the gates, (G,): in each decision, all before the first that fails.

    `decision` (G,): index of each grant's decision in the answer; -1: not in the answer.
    `client` (G,); `counted` (G, R), in thousandths: the amounts that count against quota.
    """
    order = np.argsort(decision, kind="stable")
    found = np.ones(len(decision), np.bool_)
    order = order[decision[order] >= 0]
    top = _top(bounds)[bounds.of_client[client]]
    owed, available = bounds.owed.copy(), bounds.available.copy()
    _judge(order, decision, top, loop_view(counted), owed, available, found)
    return found


def _top(bounds: Bounds) -> Ints:
    """Return the outermost role with a quota that contains each, (Q + 1,); -1 at the end."""
    top = np.append(np.arange(len(bounds.above)), -1)
    # Ancestors have higher rows.
    for row in range(len(bounds.above) - 1, -1, -1):
        if bounds.above[row] >= 0:
            top[row] = top[bounds.above[row]]
    return top


@loop
def _judge(
    order: Ints,
    decision: Ints,
    top: Ints,
    counted: Ints,
    owed: Ints,
    available: Ints,
    found: Bools,
) -> None:
    """Pass decisions through the gate; mark in `found` the grants that pass."""
    columns = counted.shape[1]
    required = np.zeros(columns, np.int64)
    for row in range(len(owed)):
        required += owed[row]
    own, room = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    at = 0
    while at < len(order):
        # Compute what a decision for this role may get: everything, if no other role has a claim.
        role = top[order[at]]
        for r in range(columns):
            own[r] = owed[role, r] if role >= 0 else 0
            room[r] = own[r] + max(available[r] - required[r], 0)
            if required[r] <= own[r]:
                room[r] = np.iinfo(np.int64).max
        # Go through the decision's grants in order, as long as they fit.
        this, fits = decision[order[at]], True
        while at < len(order) and decision[order[at]] == this:
            grant = order[at]
            for r in range(columns):
                fits &= counted[grant, r] <= room[r]
            found[grant] = fits
            if fits:
                for r in range(columns):
                    room[r] -= counted[grant, r]
                    available[r] -= counted[grant, r]
                    paid = min(counted[grant, r], owed[role, r]) if role >= 0 else 0
                    if role >= 0:
                        owed[role, r] -= paid
                    required[r] -= paid
            at += 1
