"""What quotas leave to a client, and how a grant lessens it.

Before offers are worked out in full, a quick look says whom an agent may serve at all. What quotas
leave is the same for all clients of a role, so it is worked out once for each role, and not for
each client. The look marks nobody too few: whoever is left out cannot be served.

Once quotas leave less of the plain kinds, others are looked at again. A filter may cover a task of
plain resources, and not the same task where a part of it is taken from kinds that count against no
quota. So who was of no use on an agent for a filter's sake may be served there after grants
elsewhere that used a quota up.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import UNBOUNDED, Bools, Bounds, Ints
from allocator.policies.filling.rules import offers
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Offer, Rule, Scene
from allocator.policies.filling.scene.scoring import GUARANTEED


@hot
def ceiling_below(rule: Rule, bounds: Bounds, bound: int, r: int) -> int:
    """Return the most of a resource that quotas let be given below a bound; -1: below none."""
    if not rule.bounded:
        return UNBOUNDED
    # The smallest limit on the way up bounds it; the largest unmet guarantee there says how much is
    # kept back on behalf of those below.
    ceiling = UNBOUNDED
    owed = 0
    while bound >= 0:
        ceiling = min(ceiling, bounds.left[bound, r])
        owed = max(owed, bounds.owed[bound, r])
        bound = bounds.above[bound]
    # What may be given without touching what is kept back for others. Who is owed something may
    # use what is kept back for it as well.
    if keeps_back(bounds):
        surplus = max(bounds.available[r] - bounds.required[r], 0)
        ceiling = min(ceiling, surplus + owed if rule.stage == GUARANTEED else surplus)
    return max(ceiling, 0)


@hot
def keeps_back(bounds: Bounds) -> bool:
    """Say whether anything has to stay free for guarantees."""
    for r in range(len(bounds.required)):
        if bounds.required[r] > 0:
            return True
    return False


@compiled
def raise_ceiling(rule: Rule, bounds: Bounds, offer: Offer, client: int) -> None:
    """Work out the most that a client may be given of what counts against quota."""
    own = bounds.of_framework[client]
    for r in range(len(offer.ceiling)):
        offer.ceiling[r] = ceiling_below(rule, bounds, bounds.of_client[client], r)
        if own >= 0:
            offer.ceiling[r] = max(min(offer.ceiling[r], bounds.left[own, r]), 0)


@compiled
def makes_progress(bounds: Bounds, offer: Offer, client: int) -> bool:
    """Say whether the offer brings anybody above the client nearer to a guarantee."""
    # The client's role, then every role above it.
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(len(offer.bounded)):
            if offer.bounded[r] > 0 and bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def is_owed(bounds: Bounds, client: int) -> bool:
    """Say whether a guarantee above the client is not reached yet."""
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(bounds.owed.shape[1]):
            if bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def charge(bounds: Bounds, offer: Offer, stage: int, client: int) -> None:
    """Lessen what quotas leave to the client, and what they keep back."""
    for r in range(len(offer.bounded)):
        amount = offer.bounded[r]
        # The client counts against its own role and every role above it. `owed` is the largest
        # guarantee along the way that is not reached yet.
        owed = 0
        bound = bounds.of_client[client]
        while bound >= 0:
            bounds.left[bound, r] -= amount
            owed = max(owed, bounds.owed[bound, r])
            bounds.owed[bound, r] = max(bounds.owed[bound, r] - amount, 0)
            bound = bounds.above[bound]
        # A framework may have a bound of its own, beside those of the roles.
        own = bounds.of_framework[client]
        if own >= 0:
            bounds.left[own, r] -= amount
        bounds.available[r] -= amount
        # What goes to a guarantee need not be kept free for it any more. In other stages grants
        # come out of the surplus, and what is kept back stays as it is.
        if stage == GUARANTEED:
            bounds.required[r] -= min(owed, amount)


class Room(NamedTuple):
    """What an agent could give below each bound, and what is asked for below each place.

    `amount` (Q + 1, R), in thousandths: the most of each resource: what is free, as far as quotas
        leave it. The last row is for clients under no bound.
    `enough` (Q + 1,): that makes an offer, by the usual minimum.
    `row` (P,): the innermost bound that a place is under, as a row.
    `takes_all` (P,): everybody below a place is under that bound, and is offered all there is, by
        the usual minimum.
    """

    amount: Ints
    enough: Bools
    row: Ints
    takes_all: Bools


@allocating
def begin_room(scene: Scene) -> Room:
    """Make room for the looks of a stage."""
    places, bounds = scene.places, scene.bounds
    count, last = len(places.parent), len(bounds.above)
    row, takes_all = np.full(count, -1), np.ones(count, np.bool_)
    for place in range(count):
        client = places.client[place]
        if client >= 0:
            row[place] = bounds.of_client[client] if bounds.of_client[client] >= 0 else last
            takes_all[place] = places.usual[place] and not places.known[place]
        # Children come before parents, so what is said of a place is complete by now.
        above = places.parent[place]
        if above >= 0:
            # Of a family under different bounds nothing is said.
            alike = row[above] == -1 or row[above] == row[place]
            takes_all[above] &= takes_all[place] and alike
            row[above] = row[place]
    amount = np.zeros((last + 1, scene.agents.free.shape[1]), np.int64)
    return Room(amount, np.zeros(last + 1, np.bool_), row, takes_all)


@hot
def may_serve(scene: Scene, room: Room, place: int, agent: int) -> bool:
    """Say whether the agent may be able to serve somebody below an inner place."""
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
        for row in range(len(room.enough)):
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
    """Fill in what the agent could give below a bound."""
    bound = row if row < len(room.enough) - 1 else -1
    for r in range(room.amount.shape[1]):
        ceiling = ceiling_below(scene.rule, scene.bounds, bound, r)
        room.amount[row, r] = min(scene.agents.free[agent, r], ceiling)
    root = len(scene.places.parent) - 1
    room.enough[row] = offers.reaches(scene.places, scene.agents, root, room.amount[row])


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
    raise_ceiling(scene.rule, scene.bounds, scene.offer, places.client[leaf])
    changed = False
    for r in range(len(ceiling)):
        left = min(ceiling[r], places.demand[leaf, r])
        changed |= left != recheck.left[i, r]
        recheck.left[i, r] = left
    return changed
