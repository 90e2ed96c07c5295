"""Clients within their roles' claims: served before all others.

A claim is what a role is entitled to beyond its guarantee. Nothing is kept free for it: what the
role does not use is lent. So in a cycle with such clients the policy is asked twice: first for
these, up to what their claims leave, and then for all.
"""

from dataclasses import replace

import numpy as np

from allocator.core.cycle import derived, gangs, within_budgets
from allocator.core.numba.array_structures import is_in, read_only
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Grants, Snapshot


def allocate(policy: Policy, snapshot: Snapshot, seed: int) -> Grants:
    """Let a policy decide: first for clients within claims, then for all, as budgets allow."""
    first = _with_claims(snapshot)
    if first is None:
        return within_budgets.allocate(policy, snapshot, seed)
    given = gangs.ask(policy, first, seed)
    given = given.some(_is_claimed(snapshot, given))
    left = derived.after(snapshot, [given])
    return derived.joined(snapshot, [given, within_budgets.allocate(policy, left, seed)])


def claimants(snapshot: Snapshot) -> Bools:
    """Return which clients are within all claims of their roles, and within budget, (C,)."""
    bounds, claimed = snapshot.bounds, snapshot.claimed
    if claimed is None:
        return np.zeros(len(bounds.of_client), np.bool_)
    has = np.append((claimed >= 0).any(axis=1), False)
    spent = np.append(~(claimed > 0).any(axis=1) & has[:-1], False)
    # From the top down, so that roles below inherit it. Rows of claims come first.
    for row in range(len(claimed) - 1, -1, -1):
        has[row] |= has[bounds.above[row]]
        spent[row] |= spent[bounds.above[row]]
    found: Bools = (has & ~spent)[bounds.of_client]
    return found if snapshot.over_budget is None else found & ~snapshot.over_budget


def _with_claims(snapshot: Snapshot) -> Snapshot | None:
    """The snapshot of the clients within claims and without gangs; None: there are none."""
    claimed = snapshot.claimed
    if claimed is None:
        return None
    mine = claimants(snapshot)
    if snapshot.gangs is not None:
        mine[snapshot.gangs.client] = False
        snapshot = gangs.without_collected(snapshot)
    if not mine[snapshot.tree.client].any():
        return None
    left = snapshot.bounds.left.copy()
    part = left[: len(claimed)]
    part[claimed >= 0] = np.minimum(part, claimed)[claimed >= 0]
    bounds = snapshot.bounds._replace(left=read_only(left))
    return replace(derived.among(snapshot, mine), bounds=bounds, gangs=None)


def _is_claimed(snapshot: Snapshot, grants: Grants) -> Bools:
    """Return which grants contain something that a claim of the client's roles names, (G,).

    What is granted beside such amounts in the same offer, as shared volumes, belongs to them.
    """
    assert snapshot.claimed is not None
    claimed, bounds, counted = snapshot.claimed, snapshot.bounds, derived.counted(snapshot, grants)
    found, row = np.zeros(len(grants), np.bool_), bounds.of_client[grants.client]
    named = np.vstack([claimed, np.full_like(claimed[:1], -1)]) >= 0
    while (row >= 0).any():
        found |= ((counted > 0) & named[row]).any(axis=1) & (row >= 0)
        row = np.where(row >= 0, bounds.above[row], -1)
    pair, beside = grants.pair, ~(counted > 0).any(axis=1)
    return found | (beside & is_in(pair[found], pair))
