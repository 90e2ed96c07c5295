"""Snapshots derived from the snapshot of a cycle: after some grants, or for some clients only.

A cycle may ask the policy several times, each time on what the earlier grants leave.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from allocator.core.filters.coverage import covering
from allocator.core.numba.array_structures import distinct, is_in, pack, pair, read_only
from allocator.core.numba.bit_tables import in_blocks, pair_bits, set_pairs
from allocator.core.numba.shared_bits import (
    SharedBits,
    shared_pairs,
    shared_width,
    with_bits,
    without_pairs,
)
from allocator.core.numba.wide_tables import copied
from allocator.core.snapshot import (
    UNBOUNDED,
    Bools,
    Bounds,
    Floats,
    Grants,
    Ints,
    Snapshot,
    Tree,
)

FILTERS_MAX = 100_000
"""Maximum number of filters that are examined again after each charge. If its agents have more,
some offers there may be covered by filters, and the module does not make them."""


def after(snapshot: Snapshot, given: Sequence[Grants]) -> Snapshot:
    """Return the snapshot as a cycle after these grants would take it."""
    grants = joined(snapshot, given)
    if not len(grants):
        return snapshot
    charged = charge(_with_earlier(snapshot, grants), grants)
    clients = distinct(grants.client)
    tree = snapshot.tree._replace(served=read_only(_behind(snapshot, clients)))
    overdue = snapshot.overdue & ~mask(clients, snapshot)  # one grant before others, and no more
    return replace(charged, tree=tree, overdue=read_only(overdue))


def _with_earlier(snapshot: Snapshot, grants: Grants) -> Snapshot:
    new, before = snapshot.new_pairs(grants), snapshot.earlier
    if before is not None:
        new = new[~is_in(before.pair, new)]
        grants = joined(snapshot, [before, grants])
    more = np.bincount(new & (2**32 - 1), minlength=len(snapshot.agents_held))
    agents_held: Ints | Floats = snapshot.agents_held + more
    agents_held.flags.writeable = False
    return replace(snapshot, earlier=grants, agents_held=agents_held)


def joined(snapshot: Snapshot, several: Sequence[Grants]) -> Grants:
    if not several:
        return Grants.none(len(snapshot.resources))
    columns = {
        each.name: np.concatenate([getattr(grants, each.name) for grants in several])
        for each in fields(Grants)
    }
    firsts = np.cumsum([0, *map(len, several)])[:-1]
    columns["special_grant"] = np.concatenate(
        [grants.special_grant + first for grants, first in zip(several, firsts, strict=True)]
    )
    return Grants(**columns)


def among(snapshot: Snapshot, taking_part: Bools) -> Snapshot:
    """Return the snapshot in which only the clients `taking_part` (C,) are served."""
    tree = snapshot.tree
    leaves, nodes = len(tree.client), len(tree.parent)
    kept = np.zeros(nodes, np.bool_)
    kept[:leaves] = taking_part[tree.client]
    node = np.append(np.flatnonzero(kept), nodes - 1)
    while len(node):
        kept[node] = True
        above = tree.parent[node]
        node = np.unique(above[above >= 0])
    number = np.cumsum(kept) - 1
    # Holdings of clients that are not served count for the nearest remaining role above them.
    nearest = np.arange(nodes)
    while (gone := ~kept[nearest]).any():
        nearest[gone] = tree.parent[nearest[gone]]
    parent = tree.parent[kept]
    parent = np.where(parent >= 0, number[parent], -1)
    child_start = np.zeros(len(parent) + 1, np.int64)
    np.cumsum(np.bincount(parent[:-1], minlength=len(parent)), out=child_start[1:])
    client = tree.client[kept[:leaves]]
    leaf_of_client = np.full(len(snapshot.leaf_of_client), -1, np.int64)
    leaf_of_client[client] = np.arange(len(client))
    fewer = Tree(
        client=read_only(client),
        parent=read_only(parent),
        child_start=read_only(child_start),
        child=read_only(np.argsort(parent[:-1], kind="stable")),
        weight=read_only(tree.weight[kept]),
        served=read_only(tree.served[kept]),
        scheme=read_only(tree.scheme[kept]),
    )
    return replace(
        snapshot,
        tree=fewer,
        leaf_of_client=read_only(leaf_of_client),
        parent_of_client=read_only(number[nearest[snapshot.parent_of_client]]),
    )


def with_gangs_among(snapshot: Snapshot, taking_part: Bools, may_collect: Bools) -> Snapshot:
    """Return the snapshot in which only some of the clients are served, with their gangs.

    `taking_part` (C,): these clients; `may_collect` (C,): whose gangs may go on collecting.
    """
    fewer, every = among(snapshot, taking_part), snapshot.gangs
    if every is None:
        return fewer
    mine = taking_part[every.client]
    if not mine.any():
        return replace(fewer, gangs=None)
    collects = every.collects[(taking_part & may_collect)[every.collects]]
    its = every._replace(
        client=every.client[mine], tasks=every.tasks[mine], collects=collects, guests=None
    )
    return replace(fewer, gangs=its)


def mask(clients: Ints, snapshot: Snapshot) -> Bools:
    found = np.zeros(len(snapshot.leaf_of_client), np.bool_)
    found[clients] = True
    return found


def charge(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """Return the snapshot with these grants held, but without a turn of their clients."""
    free, held, specials = snapshot.free.copy(), snapshot.held.copy(), snapshot.specials
    np.subtract.at(free, grants.agent, grants.amount)
    # Grants may overlap: those before a gang's turn do not consider gangs placed earlier.
    np.maximum(free, 0, out=free)
    np.add.at(held, grants.client, grants.amount)
    special_free = specials.free.copy()
    if len(grants.special):
        agent, client = grants.agent[grants.special_grant], grants.client[grants.special_grant]
        place = specials.entries(agent, grants.special)
        np.subtract.at(special_free, place, grants.special_amount)
        np.maximum(special_free, 0, out=special_free)
        column = specials.column[grants.special]
        np.add.at(held, (client, column), grants.special_amount)
    charged = replace(
        snapshot,
        free=read_only(free),
        held=read_only(held),
        specials=specials._replace(free=read_only(special_free)),
    )
    charged = with_counts(_with_bounds_charged(charged, grants), grants)
    return _with_more_covered(charged, distinct(grants.agent))


def counted(snapshot: Snapshot, grants: Grants) -> Ints:
    """Return what counts against quota, (G, R): plain amounts, and special bounded ones."""
    amount = grants.amount.copy()
    part = np.flatnonzero(snapshot.specials.bounded[grants.special])
    at = grants.special_grant[part], snapshot.specials.column[grants.special[part]]
    np.add.at(amount, at, grants.special_amount[part])
    return amount


def _with_bounds_charged(snapshot: Snapshot, grants: Grants) -> Snapshot:
    bounds, claimed = snapshot.bounds, snapshot.claimed
    if not len(bounds.above):
        return snapshot
    amount = counted(snapshot, grants)
    left = _subtracted(bounds.left, bounds, grants, amount)
    owed = np.maximum(_subtracted(bounds.owed, bounds, grants, amount), 0)
    if claimed is not None:
        rest = np.maximum(_subtracted(claimed, bounds, grants, amount), 0)
        claimed = read_only(np.where(claimed >= 0, rest, claimed))
    for own in bounds.further[grants.client].T:
        inside = np.flatnonzero(own >= 0)
        np.subtract.at(left, own[inside], amount[inside])
    available = np.where(
        bounds.available < UNBOUNDED, bounds.available - amount.sum(axis=0), UNBOUNDED
    )
    charged = bounds._replace(
        left=read_only(np.where(bounds.left < UNBOUNDED, left, UNBOUNDED)),
        owed=read_only(owed),
        available=read_only(available),
        required=read_only(owed.sum(axis=0)),
    )
    return replace(snapshot, bounds=charged, claimed=claimed)


def _subtracted(table: Ints, bounds: Bounds, grants: Grants, amount: Ints) -> Ints:
    """Return the first rows of a table of bounds less the amounts (G, R) of grants below them."""
    left, row = table.copy(), bounds.of_client[grants.client]
    while (inside := np.flatnonzero(row >= 0)).size:
        here = inside[row[inside] < len(left)]
        np.subtract.at(left, row[here], amount[here])
        row = np.where(row >= 0, bounds.above[row], -1)
    return left


def _behind(snapshot: Snapshot, clients: Ints) -> Ints:
    tree = snapshot.tree
    served = tree.served.copy()
    turn, node = served[-1] + 1, snapshot.leaf_of_client[clients]
    while len(node):
        served[node] = turn
        above = tree.parent[node]
        node = np.unique(above[above >= 0])
    return served


def _with_more_covered(snapshot: Snapshot, agents: Ints) -> Snapshot:
    """Return the snapshot with the bits of filters that cover what is left on agents (n,)."""
    filters = snapshot.filters
    agent, client = covering(snapshot, agents, snapshot.characterised, FILTERS_MAX)
    more = ~pair_bits(filters.covered, agent, client)
    if snapshot.earlier is not None:  # filters do not bar what joins an offer
        more &= ~is_in(snapshot.earlier.pair, pair(agent, client))
    if not more.any():
        return snapshot
    covered = copied(filters.covered)
    set_pairs(covered, agent[more], client[more])
    return replace(snapshot, filters=filters._replace(covered=covered))


def with_counts(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """Return a snapshot charged with grants, with what they leave of caps on tasks and agents."""
    before = snapshot.counts
    if before is None:
        return snapshot
    counts = before.charged(grants.client, grants.agent, counted(snapshot, grants))
    left = snapshot.bounds.left.copy()
    # Of a started task, what is missing was not in the bound before.
    mine = left[counts.first : counts.first + len(counts.bounded)]
    np.minimum(mine, counts.left(), out=mine)
    bounds = snapshot.bounds._replace(left=read_only(left))
    charged = replace(snapshot, bounds=bounds, counts=counts)
    return barred(charged, counts.newly_full(before))


def barred(snapshot: Snapshot, clients: Bools) -> Snapshot:
    """Return the snapshot in which clients (C,) are kept from agents that full caps do not allow.

    Others are as in the snapshot. What is open to a client changes only when one of its caps
    becomes full.
    """
    counts = snapshot.counts
    if counts is None or not clients.any():
        return snapshot
    agent, client = counts.open_to(clients)
    stays = ~shared_pairs(snapshot.excluded, agent, client)
    more = in_blocks(pack(clients, shared_width(snapshot.excluded))[None])
    excluded = with_bits(snapshot.excluded, snapshot.agents, more)
    excluded = without_pairs(excluded, agent[stays], client[stays])
    excluding = snapshot.excluding.copy()
    excluding[snapshot.agents] = True
    return replace(
        snapshot,
        excluded=SharedBits(read_only(excluded.row), read_only(excluded.bits)),
        excluding=read_only(excluding),
    )
