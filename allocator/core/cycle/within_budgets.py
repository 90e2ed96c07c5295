"""Clients over a soft budget: served after all others, with what these cannot have.

Policies know no budgets. So in a cycle with such clients the policy is asked twice: for all others,
and then for these, on what is left. Guarantees are promises that soft budgets do not touch: clients
that are over budget take part in the first question, too, as far as a guarantee is owed to them
alone.
"""

from dataclasses import replace

import numpy as np

from allocator.core.cycle import derived, gangs
from allocator.core.numba.array_structures import read_only
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Grants, Snapshot


def allocate(policy: Policy, snapshot: Snapshot, seed: int) -> Grants:
    """Let a policy decide, each gang as a whole, and clients over budget last."""
    last = snapshot.over_budget
    if last is None:
        return gangs.allocate(policy, snapshot, seed)
    first = _with_guaranteed(snapshot, last)
    given = gangs.allocate(policy, first, seed)
    left = derived.after(snapshot, [given])
    if left.gangs is not None:
        waits = ~np.isin(left.gangs.collects, given.client) & ~last[left.gangs.collects]
        kept = left.gangs._replace(collects=left.gangs.collects[waits])
        left = gangs.without_collected(replace(left, gangs=kept))
    return derived.joined(snapshot, [given, gangs.allocate(policy, _among(left, last), seed)])


def _among(snapshot: Snapshot, taking_part: Bools) -> Snapshot:
    """The snapshot in which only some of the clients, (C,), are served, with their gangs.

    Gangs of clients over budget do not collect.
    """
    assert snapshot.over_budget is not None
    return derived.with_gangs_among(snapshot, taking_part, ~snapshot.over_budget)


def _with_guaranteed(snapshot: Snapshot, last: Bools) -> Snapshot:
    """The snapshot of the clients within budget, and of those that alone are owed a guarantee."""
    bounds = snapshot.bounds
    if not bounds.owed.any():
        return _among(snapshot, ~last)
    # Below which bounds there are clients within budget that would take what is owed.
    served = snapshot.tree.client[~last[snapshot.tree.client]]
    others = np.zeros(len(bounds.above) + 1, np.bool_)
    bound = np.unique(bounds.of_client[served])
    while len(bound := bound[bound >= 0]):
        others[bound] = True
        bound = np.unique(bounds.above[bound])
    alone = np.append(bounds.owed.any(axis=1), False) & ~others
    most = np.where(bounds.owed > 0, np.minimum(bounds.left, bounds.owed), bounds.left)
    left = np.where(alone[:-1, None], most, bounds.left)
    # From the top down, so that those below inherit it.
    for row in range(len(bounds.above) - 1, -1, -1):
        alone[row] |= alone[bounds.above[row]]
    first = replace(snapshot, bounds=bounds._replace(left=read_only(left)))
    return _among(first, ~last | alone[bounds.of_client])
