"""Quick looks at what quotas leave, before and after grants.

Before offers are worked out in full, a look says whom an agent may serve at all. What quotas
leave is the same for all clients of a role, so it is worked out once for each role, and not for
each client. The look marks nobody too few: whoever is left out cannot be served.

Once quotas leave less of the plain kinds, others are looked at again. A filter may cover a task of
plain resources, and not the same task where a part of it is taken from kinds that count against no
quota. So who was of no use on an agent for a filter's sake may be served there after grants
elsewhere that used a quota up.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Ints
from allocator.policies.filling.rules import offers, quotas
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Scene


class Room(NamedTuple):
    """What an agent could give below each bound, and what is asked for below each place.

    `amount` (Q + 2, R), in thousandths: the most of each resource: what is free, as far as quotas
        leave it. The last row but one is for clients under no bound, the last one for anybody.
    `enough` (Q + 2,): that makes an offer, by the usual minimum.
    `row` (P,): the innermost bound that a place is under, as a row; of a place with several bounds
        below it the last row.
    `takes_all` (P,): everybody below a place is offered all there is, by the usual minimum.
    `in_use` (Q + 1,): rows that somebody is under.
    `most` (R,), in thousandths: the most that quotas left to anybody, when that was last worked
        out. They leave less and less, so what it allows may not be, and what it forbids is not.
    `charged` (1,): there were grants since then.
    """

    amount: Ints
    enough: Bools
    row: Ints
    takes_all: Bools
    in_use: Bools
    most: Ints
    charged: Bools


@allocating
def begin_room(scene: Scene) -> Room:
    """Make room for the looks of a stage."""
    places, bounds = scene.places, scene.bounds
    count, last = len(places.parent), len(bounds.above)
    row, takes_all = np.full(count, -1), np.ones(count, np.bool_)
    in_use = np.zeros(last + 1, np.bool_)
    for place in range(count):
        client = places.client[place]
        if client >= 0:
            row[place] = bounds.of_client[client] if bounds.of_client[client] >= 0 else last
            takes_all[place] = places.usual[place] and not places.known[place]
            in_use[row[place]] = True
        # Children come before parents, so what is said of a place is complete by now.
        above = places.parent[place]
        if above >= 0:
            # A family under different bounds has what anybody has.
            alike = row[above] == -1 or row[above] == row[place]
            takes_all[above] &= takes_all[place]
            row[above] = row[place] if alike else last + 1
    resources = scene.agents.free.shape[1]
    amount, enough = np.zeros((last + 2, resources), np.int64), np.zeros(last + 2, np.bool_)
    most, charged = np.empty(resources, np.int64), np.ones(1, np.bool_)
    room = Room(amount, enough, row, takes_all, in_use, most, charged)
    renew(scene, room)
    return room


@hot
def renew(scene: Scene, room: Room) -> None:
    """Work out anew what quotas leave to anybody, where there were grants since."""
    if not room.charged[0]:
        return
    room.charged[0] = False
    for r in range(len(room.most)):
        room.most[r] = 0
        for row in range(len(room.in_use)):
            if room.in_use[row]:
                room.most[r] = max(room.most[r], _ceiling(scene, room, row, r))


@hot
def may_serve(scene: Scene, room: Room, place: int, agent: int) -> bool:
    """Say whether the agent may be able to serve somebody below a place."""
    agents = scene.agents
    if not room.takes_all[place] or agents.start[agent] < agents.start[agent + 1]:
        return True
    _measure(scene, room, room.row[place], agent)
    return room.enough[room.row[place]]


@compiled
def mark_hopeful(scene: Scene, room: Room, alive: Bools, agent: int, hopeful: Bools) -> None:
    """Mark the leaves that the agent may be able to serve, of those that take part."""
    places, agents = scene.places, scene.agents
    # Special resources may reach a client beside the plain ones, which are all that is looked at.
    plain = agents.start[agent] == agents.start[agent + 1]
    if plain:
        for row in range(len(room.in_use)):
            if room.in_use[row]:
                _measure(scene, room, row, agent)
    for place in range(len(hopeful)):
        client, row = places.client[place], room.row[place]
        hopeful[place] = (
            client >= 0 and alive[place] and not offers.is_barred(agents, agent, client)
        )
        if hopeful[place] and plain and places.known[place]:
            for r in range(room.amount.shape[1]):
                hopeful[place] &= places.demand[place, r] <= room.amount[row, r]
        elif hopeful[place] and plain and places.usual[place]:
            hopeful[place] = room.enough[row]


@hot
def _measure(scene: Scene, room: Room, row: int, agent: int) -> None:
    """Fill in what the agent could give below a bound, or to anybody."""
    anybody = row == len(room.in_use)
    for r in range(room.amount.shape[1]):
        ceiling = room.most[r] if anybody else _ceiling(scene, room, row, r)
        room.amount[row, r] = min(scene.agents.free[agent, r], ceiling)
    root = len(scene.places.parent) - 1
    room.enough[row] = offers.reaches(scene.places, scene.agents, root, room.amount[row])


@hot
def _ceiling(scene: Scene, room: Room, row: int, r: int) -> int:
    """Return the most that quotas let be given of a resource below the bound of a row."""
    unbounded = len(room.in_use) - 1
    return quotas.ceiling_below(scene.rule, scene.bounds, row if row < unbounded else -1, r)


class QuotaRecheck(NamedTuple):
    """The leaves that this may happen to, L of them, and where.

    `leaf` (L,).
    `start` (L + 1,): leaf i has filters on ``slot[start[i]:start[i + 1]]``.
    `slot` (N,): agents with special resources.
    `left` (L, R), in thousandths: what quotas left of each demand when it was last looked at.
    """

    leaf: Ints
    start: Ints
    slot: Ints
    left: Ints


@allocating
def begin_recheck(scene: Scene, alive: Bools) -> QuotaRecheck:
    """Find them among the leaves that take part; mostly there are none."""
    places, resources = scene.places, scene.agents.free.shape[1]
    # A counting sort of the pairs of leaf and agent: count, add up, and put each in its place.
    start = np.zeros(len(places.parent) + 1, np.int64)
    _list_pairs(scene, alive, start[1:], np.empty(0, np.int64))
    for place in range(len(places.parent)):
        start[place + 1] += start[place]
    slot = np.empty(start[-1], np.int64)
    _list_pairs(scene, alive, start[:-1].copy(), slot)
    leaf = np.flatnonzero(start[1:] > start[:-1])
    first = np.empty(len(leaf) + 1, np.int64)
    first[:-1] = start[leaf]
    first[-1] = start[-1]
    recheck = QuotaRecheck(leaf, first, slot, np.empty((len(leaf), resources), np.int64))
    for i in range(len(leaf)):
        has_less(scene, recheck, i)
    return recheck


@compiled
def _list_pairs(scene: Scene, alive: Bools, following: Ints, slots: Ints) -> None:
    """Count the pairs of each leaf; or, where there is room for them, write their agents down."""
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
    """Say whether quotas leave less of a leaf's demand than when it was last looked at."""
    places, ceiling, leaf = scene.places, scene.offer.ceiling, recheck.leaf[i]
    quotas.raise_ceiling(scene.rule, scene.bounds, scene.offer, places.client[leaf])
    changed = False
    for r in range(len(ceiling)):
        left = min(ceiling[r], places.demand[leaf, r])
        changed |= left != recheck.left[i, r]
        recheck.left[i, r] = left
    return changed
