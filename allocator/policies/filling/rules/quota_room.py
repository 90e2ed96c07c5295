"""Whom an agent may serve by what quotas leave: a quick look before offers are worked out in full.

What quotas leave is the same for all clients of a role, so it is worked out once for each role, and
not for each client. The look marks nobody too few: whoever is left out cannot be served.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Ints
from allocator.policies.filling.rules import offers, quotas
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Scene


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
def begin(scene: Scene) -> Room:
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
        ceiling = quotas.ceiling_below(scene.rule, scene.bounds, bound, r)
        room.amount[row, r] = min(scene.agents.free[agent, r], ceiling)
    root = len(scene.places.parent) - 1
    room.enough[row] = offers.reaches(scene.places, scene.agents, root, room.amount[row])
