"""Whether it is by rule that a cycle gave nothing.

The module sees what is free and who takes offers. It does not see what operators told the sidecar,
what demands are known, or what a plan is for. So an answer that gives nothing says whether these
explain it; where they do not, something is amiss, and after a while the module decides once.
"""

from dataclasses import replace

import numpy as np

from allocator.core.books.quota import is_owed
from allocator.core.cycle.decisions import Decisions
from allocator.core.snapshot import Bools, Ints, Snapshot


def explained(
    decisions: Decisions, snapshot: Snapshot, able: Ints, error: str, *, plans: bool
) -> Decisions:
    """Say with the decisions of a cycle over all agents whether there is nothing by rule.

    `snapshot`: as it was taken.
    `able` (n,): clients that some agent could serve, and that were given nothing.
    `error`: why the policy could not decide; empty where it could.
    `plans`: the policy waits for what its plan says.
    """
    if len(decisions) or error:
        return decisions
    by_rule = plans or bool(is_kept_back(snapshot, able).all())
    return replace(decisions, holds_back=by_rule)


def is_kept_back(snapshot: Snapshot, clients: Ints) -> Bools:
    """Say of clients that some agent could serve whether a quota or a limit may keep them back.

    In doubt it does: where a bound leaves less of something than an agent may have free.

    `snapshot`: as it was taken.
    `clients` (n,).
    Returns (n,).
    """
    bounds = snapshot.bounds
    if not len(clients) or not len(bounds.above):
        return np.zeros(len(clients), np.bool_)
    most = snapshot.free_by_column[snapshot.agents].max(axis=0)
    # From the top down, so that what holds of a role holds of all below it. The last row is for
    # clients without any bound.
    tight = np.append((bounds.left < most).any(axis=1), False)
    for row in range(len(bounds.above) - 1, -1, -1):
        tight[row] |= tight[bounds.above[row]]
    kept: Bools = tight[bounds.of_client[clients]] | tight[bounds.of_framework[clients]]
    # What has to stay free for others' guarantees.
    if bounds.required.any() and (bounds.available - bounds.required < most).any():
        kept |= ~is_owed(bounds, clients)
    return kept
