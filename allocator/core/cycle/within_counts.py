"""Caps on tasks and agents: drops grants that exceed them, and lets the policy decide again.

Policies do not know these caps; see `allocator.core.counts` for what keeps most grants within them.
Grants of clients that share a cap, and grants on several further agents, may together exceed it.
From the first of these on they are dropped, and the policy is asked again for what that leaves.
"""

from dataclasses import replace

import numpy as np

from allocator.core.cycle import derived, gangs, within_claims
from allocator.core.cycle.servable import servable
from allocator.core.numba.array_structures import distinct, is_in, read_only
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Grants, Ints, Snapshot

ROUNDS_MAX = 8
"""Maximum number of times that the policy is asked again for all clients. Each time the grants of
every holder go on at least by one. Then it is asked once more, without clients whose grants were
dropped; these get the rest in later cycles."""


def allocate(policy: Policy, snapshot: Snapshot, seed: int) -> Grants:
    """Let a policy decide, within claims and budgets, and within caps on tasks and agents."""
    if snapshot.counts is None:
        return within_claims.allocate(policy, snapshot, seed)
    given, left = list[Grants](), _without_barred(snapshot)
    grants = within_claims.allocate(policy, left, seed)
    for asked in range(ROUNDS_MAX + 1):
        kept = within(left, grants)
        if kept.all():
            break
        given.append(grants.some(kept))
        waits = grants.client[~kept] if asked == ROUNDS_MAX else np.empty(0, np.int64)
        left = _without_barred(_after(_where(left, grants), given[-1], waits))
        grants = within_claims.allocate(policy, left, seed)
    return derived.joined(snapshot, [*given, without_excess(left, grants)])


def _where(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """The snapshot with only the agents of grants, (G,), if no others can serve a client.

    A policy grants until nothing fits. If an agent had room for no client then, it has none now,
    unless grants that are dropped used up a bound.
    """
    if len(snapshot.bounds.above) or snapshot.gangs is not None:
        return snapshot
    agents = distinct(grants.agent)
    excluding = np.zeros_like(snapshot.excluding)  # exclusions from others do not matter
    excluding[agents] = snapshot.excluding[agents]
    return replace(snapshot, agents=read_only(agents), excluding=read_only(excluding))


def _after(snapshot: Snapshot, given: Grants, waits: Ints) -> Snapshot:
    """The snapshot after grants, without gangs that are granted, and without clients that wait."""
    left = derived.after(snapshot, [given])
    done = waits if left.gangs is None else np.append(waits, gangs.granted(left, given))
    if not len(done):
        return left
    if left.gangs is not None:  # what gangs that wait keep is not for others
        left = gangs.without_collected(left, waits)
    served = ~derived.mask(done, left)
    return derived.with_gangs_among(left, served, served)


def _without_barred(snapshot: Snapshot) -> Snapshot:
    """The snapshot without clients that caps leave nothing of any agent, if these are many.

    Policies would try each of them on each agent.
    """
    counts, clients = snapshot.counts, snapshot.tree.client
    assert counts is not None
    served = np.ones(len(snapshot.leaf_of_client), np.bool_)
    if counts.full().any():
        served[clients] = servable(snapshot, clients)
    if not len(snapshot.specials.row):  # which caps on tasks might not bound
        served[counts.bounded[~counts.left().any(axis=1)]] = False
    if snapshot.gangs is not None:
        served[snapshot.gangs.client] = True
    served[_may_add(snapshot)] = True
    if 2 * np.count_nonzero(served[clients]) > len(clients):
        return snapshot
    return derived.with_gangs_among(snapshot, served, served)


def _may_add(snapshot: Snapshot) -> Ints:
    """Return the clients to whose offers of this cycle something that is left may be added."""
    earlier, specials = snapshot.earlier, snapshot.specials
    if earlier is None:
        return np.empty(0, np.int64)
    left, size = snapshot.free_by_column[earlier.agent], snapshot.demand[earlier.client]
    known = snapshot.characterised[earlier.client] & (size > 0).any(axis=1)
    enough = np.where(known, (left >= size).all(axis=1), left.any(axis=1))
    enough |= np.diff(specials.start)[earlier.agent] > 0
    return earlier.client[enough]


def within(snapshot: Snapshot, grants: Grants) -> Bools:
    """Return which grants, (G,), exceed no cap on tasks or agents; none of a gang if one does.

    Without the first grant of an offer, none of its other grants, as these might make no offer.
    """
    if snapshot.counts is None or not len(grants):
        return np.ones(len(grants), np.bool_)
    amount = derived.counted(snapshot, grants)
    kept = snapshot.counts.within(grants.client, grants.agent, amount)
    if kept.all():
        return kept
    _, first, which = np.unique(grants.pair, return_index=True, return_inverse=True)
    begun = kept[first]
    if snapshot.earlier is not None:
        begun |= is_in(snapshot.earlier.pair, grants.pair[first])
    kept &= begun[which]
    return kept & ~gangs.in_part(snapshot, grants, kept)


def without_excess(snapshot: Snapshot, grants: Grants) -> Grants:
    """Drop grants that exceed a cap on tasks or agents."""
    kept = within(snapshot, grants)
    return grants if kept.all() else grants.some(kept)
