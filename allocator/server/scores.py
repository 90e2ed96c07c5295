"""Scores of clients by the policy's criterion, for operators to look at."""

import numpy as np

from allocator import policies
from allocator.core import Allocator
from allocator.core.snapshot import Floats
from allocator.policies.filling import Criterion, Filling


def scores(allocator: Allocator) -> Floats:
    """Score every client row as the next cycle would at its start; on the core's thread.

    Returns
    -------
    (C,) float64
        Comparable among siblings. nan where there is none: the client may not be served now, or
        the score depends on the agent, or the policy has no scores.
    """
    state = allocator.state
    found = np.full(len(state.clients.framework), np.nan)
    policy = policies.build(allocator.settings.policy)
    snapshot = allocator.look()
    if not isinstance(policy, Filling) or snapshot is None:
        return found
    criterion = policy.criterion(snapshot)
    if len(criterion.denominator) != 1 or criterion.residual:
        return found
    leaves = len(snapshot.tree.client)
    found[snapshot.tree.client] = _combine(criterion, snapshot.tree.weight[:leaves])
    return found


def _combine(criterion: Criterion, weight: Floats) -> Floats:
    """Scores of the leaves: a measure of nothing counts nothing, whatever it is measured by."""
    measure = criterion.measure[: len(weight)]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = measure / (criterion.denominator * weight[:, None])
    parts[measure == 0] = 0.0
    combined: Floats = parts.sum(axis=1) if criterion.additive else parts.max(axis=1)
    return combined
