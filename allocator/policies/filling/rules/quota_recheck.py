"""Clients to examine again after a grant has reduced what quotas leave of plain resources.

A filter may cover a task made of plain resources, but not the same task with a part from kinds that
do not count against quota. Therefore a client that a filter barred on an agent may become servable
there when grants elsewhere use up a quota.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Ints
from allocator.policies.filling.rules import quotas
from allocator.policies.filling.scene.compiled import allocating, compiled
from allocator.policies.filling.scene.loop_arrays import Scene


class QuotaRecheck(NamedTuple):
    """The L leaves whose clients may become servable as described above, and on which agents.

    `leaf` (L,): places of the leaves.
    `start` (L + 1,): ``leaf[i]`` has filters on the agents ``slot[start[i]:start[i + 1]]``.
    `slot` (N,): agents with special resources, by leaf.
    `left` (L, R), in thousandths: what quotas left for the leaf's demand at the last check.
    """

    leaf: Ints
    start: Ints
    slot: Ints
    left: Ints


@allocating
def begin_recheck(scene: Scene, alive: Bools) -> QuotaRecheck:
    """Find the leaves to recheck among those that take part (`alive`); usually none."""
    places, resources = scene.places, scene.agents.free.shape[1]
    # Sort the pairs of leaf and agent by counting.
    start = np.zeros(len(places.parent) + 1, np.int64)
    _list_pairs(scene, alive, start[1:], np.empty(0, np.int64))
    for place in range(len(places.parent)):
        start[place + 1] += start[place]
    slot = np.empty(start[-1], np.int64)
    _list_pairs(scene, alive, start[:-1].copy(), slot)
    leaves = 0
    for place in range(len(places.parent)):
        leaves += start[place + 1] > start[place]
    leaf, first = np.empty(leaves, np.int64), np.empty(leaves + 1, np.int64)
    listed = 0
    for place in range(len(places.parent)):
        if start[place + 1] > start[place]:
            leaf[listed], first[listed] = place, start[place]
            listed += 1
    first[leaves] = start[-1]
    recheck = QuotaRecheck(leaf, first, slot, np.empty((len(leaf), resources), np.int64))
    for i in range(len(leaf)):
        has_less(scene, recheck, i)
    return recheck


@compiled
def _list_pairs(scene: Scene, alive: Bools, following: Ints, slots: Ints) -> None:
    """Count the pairs of each leaf, or write their agents into `slots` if it has room."""
    places, agents = scene.places, scene.agents
    if not scene.rule.bounded or not len(agents.special):
        return
    for slot in range(len(agents.row)):
        agent = agents.row[slot]
        if agents.start[agent] == agents.start[agent + 1]:
            continue
        refusal = agents.head[agent]
        while refusal >= 0:
            place = places.of_client[agents.client[refusal]]
            if place >= 0 and places.known[place] and alive[place]:
                if len(slots):
                    slots[following[place]] = slot
                following[place] += 1
            refusal = agents.next[refusal]


@compiled
def has_less(scene: Scene, recheck: QuotaRecheck, i: int) -> bool:
    """Whether quotas leave less of a leaf's demand than at the last check."""
    places, ceiling, leaf = scene.places, scene.offer.ceiling, recheck.leaf[i]
    quotas.raise_ceiling(scene.rule, scene.bounds, scene.offer, places.client[leaf])
    changed = False
    for r in range(len(ceiling)):
        left = min(ceiling[r], places.demand[leaf, r])
        changed |= left != recheck.left[i, r]
        recheck.left[i, r] = left
    return changed
