"""Compares a cycle's decisions with those of the shadow policy.

Both policies get the same frozen snapshot and seed. The shadow policy's grants are never charged.

The mode determines which clients are offered whole tasks, and which filters cover all that a client
could be offered, so both are recomputed if the shadow policy's mode differs.
"""

from dataclasses import dataclass, replace

import numpy as np

from allocator.core.cycle.characterised import FULL_MODE, makes_offers
from allocator.core.cycle.cycle import decided, offers_of
from allocator.core.diagnostics.trail import CycleRecord, Names, Seen
from allocator.core.filters.coverage import covering
from allocator.core.numba.array_structures import pair, read_only
from allocator.core.numba.bit_tables import set_pairs
from allocator.core.policy import Policy, PolicySpec
from allocator.core.snapshot import Bools, Floats, Grants, Ints, Snapshot


def in_mode(seen: Seen, probed: Bools, *, whole_tasks: bool) -> Snapshot | None:
    """Convert the input of a cycle to the input of a single policy in one mode, for all roles.

    `probed` (C,): clients that were offered all that is free to probe their demand.
    `whole_tasks`: the mode: whether clients with a known demand are served in whole tasks.
    Returns None if there were too many filters to record them. Overdue clients stay the same.
    """
    snapshot = seen.snapshot()
    clients = len(snapshot.demand)
    known = np.zeros(clients, np.bool_)
    if whole_tasks:
        rows = snapshot.minimum, snapshot.minimum_rows
        tasks = makes_offers(snapshot.demand, snapshot.total, *rows)
        known = tasks & ~probed
    tree = snapshot.tree._replace(scheme=np.zeros_like(snapshot.tree.scheme))
    if np.array_equal(known, snapshot.characterised):
        return replace(snapshot, tree=tree, plan=None)
    if not seen.filters_kept:
        return None
    covered = np.zeros_like(snapshot.filters.covered)
    set_pairs(covered, *covering(snapshot, snapshot.agents, known))
    filters = snapshot.filters._replace(covered=read_only(covered))
    return replace(snapshot, characterised=read_only(known), filters=filters, tree=tree, plan=None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of one cycle as decided by the policy in force and by the shadow policy.

    `names`: identities of the clients' rows.
    `offered`, `offered_beside` (C,): dominant share of the cluster that each policy offered each
        client.
    `of_both`, `of_policy`, `of_beside`: number of offers (pairs of client and agent) by both
        policies, only by the policy in force, and only by the shadow policy.
    """

    names: Names
    offered: Floats
    offered_beside: Floats
    of_both: int
    of_policy: int
    of_beside: int


def compare_beside(record: CycleRecord, spec: PolicySpec, policy: Policy) -> Comparison | None:
    """Let a policy decide a past cycle, and compare its decisions with the real ones.

    `spec`: gives the mode.
    Returns None if the cycle's input cannot be converted to that mode.
    Raises any exception of the policy, and `BadGrantError` for invalid grants.
    """
    assert record.seen is not None
    assert record.probed is not None
    snapshot = in_mode(record.seen, record.probed, whole_tasks=spec.mode == FULL_MODE)
    if snapshot is None:
        return None
    rows = np.arange(len(snapshot.free))
    grants = decided(policy, snapshot, record.seed, snapshot.excluded, rows)
    one, other = (_offers(snapshot, each) for each in (record.grants, grants))
    both = len(np.intersect1d(one.pairs, other.pairs, assume_unique=True))
    return Comparison(
        names=record.names,
        offered=one.share,
        offered_beside=other.share,
        of_both=both,
        of_policy=len(one.pairs) - both,
        of_beside=len(other.pairs) - both,
    )


@dataclass(frozen=True, slots=True)
class _Offers:
    """A summary of grants: distinct pairs of client and agent; dominant shares granted, (C,)."""

    pairs: Ints
    share: Floats


def _offers(snapshot: Snapshot, grants: Grants) -> _Offers:
    merged, columns, enough = offers_of(snapshot, grants)
    client = merged.client[enough]
    given = np.zeros((len(snapshot.leaf_of_client), columns.shape[1]), np.int64)
    np.add.at(given, client, columns[enough])
    counted = np.flatnonzero(snapshot.counted & (snapshot.total > 0))
    share = (given[:, counted] / snapshot.total[counted]).max(axis=1, initial=0.0)
    pairs = np.sort(pair(merged.agent[enough], client))
    return _Offers(pairs, share)
