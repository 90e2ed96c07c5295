"""Best fit: finds the agent whose free amounts are nearest in proportion to a client's demand.

Agents are sorted by the proportions of their free amounts, and cut into blocks, the leaves of a
binary tree. Each node has bounds of the proportions below it, so the search skips most of the tree.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import BitWords, Bools, Floats, Ints
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Agents, Scene
from allocator.policies.filling.search.agent_index import AgentIndex, can_serve

_DEPTH = 64
"""Capacity of the search's stack; no tree is that deep."""
_SORTS = 4
"""Sort again after one grant per this many agents."""
_NOBODY = -1


class FitIndex(NamedTuple):
    """The sorted agents, and the tree over their B blocks, for each unit.

    A *unit* is the resource that proportions are relative to: the first one that a client needs.
    Agents are sorted by a unit on first use. The nodes of a tree are 1 (the root) to 2 B - 1; the
    children of ``i`` are ``2 * i`` and ``2 * i + 1``, and block b is node ``B + b``.

    `size` (1,): agents per block.
    `changes` (R,): number of grants since the agents were sorted by that unit; -1: never sorted.
    `order` (R, J): slots, sorted by proportions.
    `block` (R, J): the block of each slot.
    `low`, `high` (R, 2 B, R): bounds of the proportions below a node.
    `most` (R, 2 B, R), in thousandths: the most that is free on an agent below a node; infinite if
        one has special resources.
    `lowest` (R, 2 B): the lowest slot below a node that is not empty; J if there is none.
    `useless` (R, P, ceil(2 B / 64)): bits of nodes known to have no agent that can serve a leaf.
    `waiting`, `bound` (D,): in one search: nodes to visit, and lower bounds of the distances below
        them.
    `wanted` (R,): in one search: the proportions of what is needed; NaN if nothing is.
    """

    size: Ints
    changes: Ints
    order: Ints
    block: Ints
    low: Floats
    high: Floats
    most: Floats
    lowest: Ints
    useless: BitWords
    waiting: Ints
    bound: Floats
    wanted: Floats


@allocating
def begin(scene: Scene, size: int, wanted: bool) -> FitIndex:
    """Allocate the index, in blocks of `size` agents; without agents unless `wanted`."""
    slots, resources = len(scene.agents.row) if wanted else 0, scene.agents.free.shape[1]
    nodes = 2 * ((slots + size - 1) // size)
    return FitIndex(
        np.full(1, size),
        np.full(resources, -1),
        np.empty((resources, slots), np.int64),
        np.empty((resources, slots), np.int64),
        np.empty((resources, nodes, resources)),
        np.empty((resources, nodes, resources)),
        np.empty((resources, nodes, resources)),
        np.empty((resources, nodes), np.int64),
        np.zeros((resources, len(scene.places.parent), (nodes + 63) // 64), np.uint64),
        np.empty(_DEPTH, np.int64),
        np.empty(_DEPTH),
        np.zeros(resources),
    )


@hot
def first_needed(index: AgentIndex, leaf: int) -> int:
    """Return the first resource that a leaf needs; R: it needs nothing yet."""
    need = index.direction[leaf]
    first = 0
    while first < len(need) and need[first] <= 0:
        first += 1
    return first


@hot
def is_out_of_order(fit: FitIndex, unit: int) -> bool:
    return fit.changes[unit] < 0 or fit.changes[unit] * _SORTS > fit.order.shape[1]


@allocating
def sort_agents(scene: Scene, index: AgentIndex, fit: FitIndex, unit: int) -> None:
    """Sort the agents by what is free now, and recompute all bounds."""
    slots, blocks = fit.order.shape[1], fit.lowest.shape[1] // 2
    fit.order[unit] = _sorted(scene.agents, slots, unit)
    for at in range(slots):
        fit.block[unit, fit.order[unit, at]] = at // fit.size[0]
    for block in range(blocks):
        _look_into(scene.agents, index.empty, fit, unit, block)
    for node in range(blocks - 1, 0, -1):
        _sum_up(fit, unit, node)
    # The nodes have other agents now.
    fit.useless[unit] = np.uint64(0)
    fit.changes[unit] = 0


@allocating
def _sorted(agents: Agents, slots: int, unit: int) -> Ints:
    """Return the slots sorted by proportions, the first resource as the most significant key."""
    order = np.arange(slots)
    for r in range(agents.free.shape[1] - 1, -1, -1):
        if r != unit:
            key = np.empty(slots)
            for at in range(slots):
                key[at] = _proportion(agents, agents.row[order[at]], r, unit)
            order = order[np.argsort(key, kind="mergesort")]
    return order


@hot
def _proportion(agents: Agents, agent: int, r: int, unit: int) -> float:
    """Return how much is free relative to the unit; infinite if none of the unit is free."""
    against = agents.free[agent, unit]
    return agents.free[agent, r] / against if against > 0 else np.inf


@compiled
def _look_into(agents: Agents, empty: Bools, fit: FitIndex, unit: int, block: int) -> None:
    slots, node = fit.order.shape[1], fit.lowest.shape[1] // 2 + block
    low, high, most = fit.low[unit, node], fit.high[unit, node], fit.most[unit, node]
    lowest = slots
    low[:] = np.inf
    high[:] = 0.0
    most[:] = 0.0
    first = block * fit.size[0]
    for at in range(first, min(first + fit.size[0], slots)):
        slot = fit.order[unit, at]
        if empty[slot]:
            continue
        lowest = min(lowest, slot)
        agent = agents.row[slot]
        plain = agents.start[agent] == agents.start[agent + 1]
        for r in range(len(low)):
            mine = _proportion(agents, agent, r, unit)
            low[r] = min(low[r], mine)
            high[r] = max(high[r], mine)
            most[r] = max(most[r], agents.free[agent, r] if plain else np.inf)
    fit.lowest[unit, node] = lowest


@hot
def _sum_up(fit: FitIndex, unit: int, node: int) -> bool:
    one, other = 2 * node, 2 * node + 1
    lowest = min(fit.lowest[unit, one], fit.lowest[unit, other])
    changed = lowest != fit.lowest[unit, node]
    fit.lowest[unit, node] = lowest
    low, high, most = fit.low[unit], fit.high[unit], fit.most[unit]
    for r in range(low.shape[1]):
        least, greatest = min(low[one, r], low[other, r]), max(high[one, r], high[other, r])
        free = max(most[one, r], most[other, r])
        changed |= least != low[node, r] or greatest != high[node, r] or free != most[node, r]
        low[node, r], high[node, r], most[node, r] = least, greatest, free
    return changed


@compiled
def note_grant(scene: Scene, index: AgentIndex, fit: FitIndex, slot: int) -> None:
    """Update the bounds above an agent whose free amounts have decreased."""
    for unit in range(len(fit.changes)):
        if fit.changes[unit] < 0:
            continue
        _look_into(scene.agents, index.empty, fit, unit, fit.block[unit, slot])
        node = _leaf_node(fit, unit, slot) >> 1
        while node > 0 and _sum_up(fit, unit, node):
            node >>= 1
        # The search skips empty agents, so they do not disturb the order.
        fit.changes[unit] += not index.empty[slot]


@hot
def _leaf_node(fit: FitIndex, unit: int, slot: int) -> int:
    return fit.lowest.shape[1] // 2 + fit.block[unit, slot]


@compiled
def look_again(fit: FitIndex, place: int, slot: int) -> None:
    """Forget that the agent cannot serve a leaf, see `agent_index.look_again`."""
    for unit in range(len(fit.changes)):
        if fit.changes[unit] >= 0:
            node = _leaf_node(fit, unit, slot)
            while node > 0:
                fit.useless[unit, place, node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
                node >>= 1


@compiled
def _set_useless(useless: BitWords, node: int) -> None:
    """Mark a node as useless, and its ancestors whose children are both useless."""
    while True:
        useless[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
        if node == 1 or not _has_bit(useless, node ^ 1):
            return
        node >>= 1


@hot
def _has_bit(words: BitWords, bit: int) -> bool:
    return (words[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


@compiled
def nearest(scene: Scene, index: AgentIndex, fit: FitIndex, unit: int, leaf: int) -> int:
    """Return the slot whose free amounts are nearest in proportion to what the leaf needs.

    The distance is the L1 distance of the two vectors, each divided by its component of the unit.
    An agent with none of the unit free is the last choice. The lowest slot wins ties. -1: no agent
    can serve the leaf.
    """
    lowest, blocks = fit.lowest[unit], fit.lowest.shape[1] // 2
    best, found = np.inf, _NOBODY
    need = index.direction[leaf]
    for r in range(len(need)):
        fit.wanted[r] = need[r] / need[unit] if need[unit] > 0 else np.nan
    fit.waiting[0], fit.bound[0] = 1, 0.0
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = fit.waiting[waiting]
        # A nearer agent may have been found since the node was pushed.
        if not _may_be_nearer(lowest[node], fit.bound[waiting], best, found):
            continue
        if node >= blocks:
            best, found = _search(scene, index, fit, unit, leaf, node - blocks, best, found)
            continue
        # The more promising child is visited first.
        near, far = 2 * node, 2 * node + 1
        near_bound = _bound(fit, unit, near)
        far_bound = _bound(fit, unit, far)
        if _may_be_nearer(lowest[far], far_bound, near_bound, lowest[near]):
            near, far, near_bound, far_bound = far, near, far_bound, near_bound
        for child, bound in ((far, far_bound), (near, near_bound)):
            if _may_be_nearer(lowest[child], bound, best, found) and _is_of_use(
                scene, fit, unit, leaf, child
            ):
                fit.waiting[waiting], fit.bound[waiting] = child, bound
                waiting += 1
    return found


@hot
def _bound(fit: FitIndex, unit: int, node: int) -> float:
    """Return a lower bound of the distances below a node.

    Summed in the order of `_distance`, so that rounding cannot make it exceed one of them.
    """
    low, high, wanted = fit.low[unit, node], fit.high[unit, node], fit.wanted
    bound = 0.0
    if np.isnan(wanted[unit]):
        return bound
    for r in range(len(wanted)):
        if r != unit:
            bound += max(0.0, low[r] - wanted[r], wanted[r] - high[r])
    return bound


@hot
def _may_be_nearer(lowest: int, bound: float, best: float, found: int) -> bool:
    """Whether a node with this bound and lowest slot may have a better agent than the best."""
    return found < 0 or bound < best or (bound == best and lowest < found)


@hot
def _is_of_use(scene: Scene, fit: FitIndex, unit: int, leaf: int, node: int) -> bool:
    if fit.lowest[unit, node] == fit.order.shape[1] or _has_bit(fit.useless[unit, leaf], node):
        return False
    # An unknown demand is zeros, which always fit.
    for r in range(fit.most.shape[2]):
        if scene.places.demand[leaf, r] > fit.most[unit, node, r]:
            return False
    return True


@compiled
def _search(
    scene: Scene,
    index: AgentIndex,
    fit: FitIndex,
    unit: int,
    leaf: int,
    block: int,
    best: float,
    found: int,
) -> tuple[float, int]:
    useless = True
    first = block * fit.size[0]
    for at in range(first, min(first + fit.size[0], fit.order.shape[1])):
        slot = fit.order[unit, at]
        if index.empty[slot]:
            continue
        value = _distance(scene.agents, fit.wanted, unit, scene.agents.row[slot])
        if not _may_be_nearer(slot, value, best, found):
            useless = False  # as far as known
        elif can_serve(scene, index, leaf, slot):
            best, found = value, slot
            useless = False
    if useless:
        _set_useless(fit.useless[unit, leaf], fit.lowest.shape[1] // 2 + block)
    return best, found


@hot
def _distance(agents: Agents, wanted: Floats, unit: int, agent: int) -> float:
    """Return the distance of an agent from what is wanted; 0 if nothing is wanted."""
    if np.isnan(wanted[unit]):
        return 0.0
    against = agents.free[agent, unit]
    if against == 0:
        return np.inf
    value = 0.0
    for r in range(len(wanted)):
        if r != unit:
            value += abs(agents.free[agent, r] / against - wanted[r])
    return value
