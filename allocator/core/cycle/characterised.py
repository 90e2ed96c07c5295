"""Determines which clients are offered whole tasks, and which all that is free on an agent."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.cycle.demand_probing import probed
from allocator.core.numba.memo import fixed, memoize
from allocator.core.openings import opening_tasks
from allocator.core.policy import Subtree
from allocator.core.snapshot import Bools, Ints
from allocator.core.task_counts import has_demand

FULL_MODE = "characterised"


def characterised(
    state: State,
    demand: Ints,
    total: Ints,
    minimum: Ints,
    minimum_rows: Ints,
    scheme_of_role: Ints,
) -> Bools:
    """Return which clients are offered whole tasks, (C,): known demand, and full mode.

    `demand` (C, R), `total` (R,), `minimum` (M, R), `minimum_rows` (C, 2): as in a snapshot.
    `scheme_of_role` (n,): index of the policy's scheme that applies to each role.
    """
    clients, policy = state.clients, state.settings.policy
    # Each subtree may have its own mode.
    below = (Subtree.read(text).mode for _, text in sorted(policy.subtrees.items()))
    full = np.array([(mode or policy.mode) == FULL_MODE for mode in (policy.mode, *below)])
    if not full.any():
        return np.zeros(len(clients.framework), np.bool_)
    known, wrong = makes_offers(demand, total, minimum, minimum_rows), probed(state)
    if not full.all():
        known = known & full[scheme_of_role[clients.role]]
    return known & ~wrong if wrong.any() else known


@memoize()
def makes_offers(demand: Ints, total: Ints, minimum: Ints, minimum_rows: Ints) -> Bools:
    """Return which clients have a known demand of which several tasks can make an offer, (C,).

    A task of disk alone never makes an offer that must have cpus, for example; nor does a task of
    which an offer needs more than `OPENING_MAX`. Such clients are offered all that is free. A
    client whose task exceeds the cluster's total is included: it waits for that resource.
    """
    opens = opening_tasks(demand, minimum, minimum_rows) > 0
    return fixed(has_demand(demand) & (opens | (demand > total).any(axis=1)))
