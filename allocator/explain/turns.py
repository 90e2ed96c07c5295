"""How much room others get before a client's turn, by weighted dominant shares.

Clients compete along the tree. The client's *way* leads from the root to its leaf; its *rivals* are
the clients and whole roles beside each node of the way. A rival is served first while its share is
smaller. As tasks end, shares fall, the client's own too, so turns change with time.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import UNBOUNDED, Bools, Floats, Ints, Snapshot, shared_pairs

RIVALS_MAX = 256
"""Maximum number of rivals whose shares change: those that get the most before the client. Others
get what they would get now."""

_SAMPLE = 1000
"""Maximum number of agents on which exclusions are counted."""

_SAME = 1e-9


class Turns(NamedTuple):
    """A client's rivals (U), and the nodes (L) of its way, from its leaf up to below the root.

    `rival` (C,): the rival whose holdings include those of each client; -1: none.
    `level` (C,): the lowest node of the way whose holdings include them; L: none.
    `way` (U,): the node of the way that each rival competes with.
    `behind` (U,): by how much the rival's score is smaller than the node's now.
    `first` (U,): whether the rival is served first if scores are equal.
    `weight` (U,), `way_weight` (L,).
    `share` (U,): dominant share of one task of the rival.
    `ratio` (U,): maximum number of the client's tasks that fit in the room of one of the rival's.
    `limit` (U,): number of tasks that the rival's limits allow.
    `overdue` (U,): number of overdue clients, each of which is served first, once.
    `is_overdue`: whether the client itself is overdue; then only overdue rivals are served before
        it.
    """

    rival: Ints
    level: Ints
    way: Ints
    behind: Floats
    first: Bools
    weight: Floats
    way_weight: Floats
    share: Floats
    ratio: Floats
    limit: Floats
    overdue: Ints
    is_overdue: bool

    def limited(self) -> tuple["Turns", float]:
        """Reduce these to few rivals; also return the room that the others get."""
        if len(self.way) <= RIVALS_MAX:
            return self, 0.0
        still = np.zeros(len(self.way))
        all_of_them = float(self.room(np.zeros(len(self.way_weight)), still))
        kept = np.sort(np.argsort(-self.behind * self.weight, kind="stable")[:RIVALS_MAX])
        number = np.full(len(self.way) + 1, -1)
        number[kept] = np.arange(len(kept))
        few = self._replace(
            rival=number[self.rival],
            **{
                name: getattr(self, name)[kept]
                for name in (
                    "way",
                    "behind",
                    "first",
                    "weight",
                    "share",
                    "ratio",
                    "limit",
                    "overdue",
                )
            },
        )
        room = float(few.room(np.zeros(len(self.way_weight)), np.zeros(len(kept))))
        return few, max(all_of_them - room, 0.0)

    def room(self, mine: Floats, its: Floats) -> Floats:
        """Room that rivals get before the client, in tasks of the client, (...).

        `mine` (..., L), `its` (..., U): by how much the shares of the way's nodes, and of the
        rivals, have fallen.
        """
        found = np.zeros(mine.shape[:-1])
        gained = np.zeros(mine.shape[:-1])  # by the node of the way, from rivals below it
        for level in range(len(self.way_weight)):
            at = np.flatnonzero(self.way == level)
            if not len(at):
                continue
            rises = (gained - mine[..., level]) / self.way_weight[level]
            tasks = self._tasks(at, its[..., at] / self.weight[at] + rises[..., None])
            found += (tasks * self.ratio[at]).sum(axis=-1)
            gained += (tasks * self.share[at]).sum(axis=-1)
        return found

    def _tasks(self, at: Ints, change: Floats) -> Floats:
        """Number of tasks that some rivals (n,) get before the client, (..., n).

        `change` (..., n): by how much the rivals' scores have fallen behind since now.
        """
        behind = self.behind[at] + change
        lacks = np.maximum(behind, 0.0) * self.weight[at] / np.maximum(self.share[at], _SAME)
        equal = (np.abs(behind) <= _SAME) & self.first[at]
        tasks = np.where(behind > _SAME, np.floor(lacks + _SAME) + 1, equal)
        overdue = self.overdue[at]
        tasks = np.minimum(tasks, overdue) if self.is_overdue else np.maximum(tasks, overdue)
        found: Floats = np.minimum(tasks, self.limit[at])
        return found


def turns_of(snapshot: Snapshot, agents: Ints, client: int, needed: Ints) -> Turns:
    """Find a client's rivals.

    `agents` (n,): handles of agents that it may use; `needed` (R,), in thousandths: one task.
    """
    tree, leaf = snapshot.tree, int(snapshot.leaf_of_client[client])
    nodes, clients = len(tree.parent), len(snapshot.leaf_of_client)
    columns = snapshot.counted & (snapshot.total > 0)
    sums = snapshot.held_over_tree(np.ones(clients), np.zeros(clients))[:, :-1]
    score = (sums[:, columns] / snapshot.total[columns]).max(axis=1, initial=0.0) / tree.weight
    way = [leaf]
    while tree.parent[int(tree.parent[way[-1]])] >= 0:
        way.append(int(tree.parent[way[-1]]))
    level = np.full(nodes, -1)  # for each parent on the way: its child on the way
    level[tree.parent[way]] = np.arange(len(way))
    on_way = np.full(nodes, -1)
    on_way[way] = np.arange(len(way))
    beside = np.arange(nodes)  # for each node: its ancestor, or itself, beside the way
    for each in range(nodes - 2, -1, -1):
        if level[tree.parent[each]] < 0:
            beside[each] = beside[tree.parent[each]]
    leaves = np.flatnonzero(np.arange(len(tree.client)) != leaf)
    if snapshot.gangs is not None:  # they wait until all of their tasks fit
        leaves = leaves[~np.isin(tree.client[leaves], snapshot.gangs.client)]
    others = tree.client[leaves]
    rivals, which = np.unique(beside[leaves], return_inverse=True)
    its_way = level[tree.parent[rivals]]
    against = np.array(way)[its_way]

    def mean(values: Floats) -> Floats:
        count = np.maximum(np.bincount(which, minlength=len(rivals)), 1)
        return np.bincount(which, values, len(rivals)) / count

    demand = snapshot.demand[others]
    share = (demand[:, columns] / snapshot.total[columns]).max(axis=1, initial=0.0)
    ratio = -(-np.maximum(demand, 1)[:, needed > 0] // needed[needed > 0])
    ratio = ratio.max(axis=1, initial=1) * _overlap(snapshot, agents, others)
    number = np.full(nodes, -1)
    number[rivals] = np.arange(len(rivals))
    # The lowest node of the way that includes each node: itself, or the one above the rival.
    above = np.where(tree.parent[beside] >= 0, on_way[tree.parent[beside]], -1)
    lowest = np.where(on_way >= 0, on_way, np.where(above >= 0, above, len(way)))
    node = np.where(
        snapshot.leaf_of_client >= 0, snapshot.leaf_of_client, snapshot.parent_of_client
    )
    return Turns(
        rival=np.where(node >= 0, number[beside[node]], -1),
        level=np.where(node >= 0, lowest[node], len(way)),
        way=its_way,
        behind=score[against] - score[rivals],
        first=np.where(
            tree.served[rivals] == tree.served[against],
            rivals < against,
            tree.served[rivals] < tree.served[against],
        ),
        weight=tree.weight[rivals],
        way_weight=tree.weight[way],
        share=mean(share),
        ratio=mean(ratio),
        limit=np.bincount(which, _within_limits(snapshot, others), len(rivals)).astype(np.float64),
        overdue=np.bincount(which[snapshot.overdue[others]], minlength=len(rivals)),
        is_overdue=bool(snapshot.overdue[client]),
    )


def _overlap(snapshot: Snapshot, agents: Ints, others: Ints) -> Floats:
    """Return on which fraction of some agents (handles) each of other clients may be served."""
    row = np.minimum(np.searchsorted(snapshot.handle, agents), len(snapshot.handle) - 1)
    row = row[(snapshot.handle[row] == agents) & snapshot.excluding[row]]
    if not len(row) or not len(others):
        return np.ones(len(others))
    step = -(-len(row) // _SAMPLE)
    barred = np.zeros(len(others), np.int64)
    for each in row[::step].tolist():
        barred += shared_pairs(snapshot.excluded, np.full(len(others), each), others)
    found: Floats = np.maximum(1.0 - barred * step / len(agents), 0.0)
    return found


def _within_limits(snapshot: Snapshot, clients: Ints) -> Floats:
    """Number of tasks of each client, (n,), that its limits allow."""
    bounds, demand = snapshot.bounds, np.maximum(snapshot.demand[clients], 1)
    found = np.full(len(clients), float(UNBOUNDED))
    for row in (*bounds.further[clients].T, bounds.of_client[clients]):
        while len(at := np.flatnonzero(row >= 0)):
            left = np.maximum(bounds.left[row[at]] // demand[at], 0)
            left = np.where(snapshot.demand[clients[at]] > 0, left, UNBOUNDED)
            found[at] = np.minimum(found[at], left.min(axis=1, initial=UNBOUNDED))
            above = np.full(len(row), -1)
            above[at] = bounds.above[row[at]]
            row = above  # noqa: PLW2901 - up the tree
    return found
