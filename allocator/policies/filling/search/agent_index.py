"""The agents as the search for the best one sees them, and which of them can serve whom.

Agents are looked at by *slot*, their rank among the cycle's candidates, so that the lowest slot is
the lowest row. Whoever cannot be served on an agent never can be again within a cycle, for what is
free only shrinks: so what was found out is remembered in bits. There is one exception, see
`look_again`.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Floats, Ints, Words
from allocator.policies.filling.rules import offers, quota_room
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import (
    Agents,
    Effort,
    Places,
    Rule,
    Scene,
    Standing,
)


class AgentIndex(NamedTuple):
    """The agents as the search sees them.

    `start` (G + 1,): group g holds ``member[start[g]:start[g + 1]]``; no groups: all agents are
        scored at once.
    `member` (J,): slots, ascending in a group.
    `position` (J,): where each slot stands in `member`; empty without groups.
    `skip` (J + 1,): a position in `member` at or before the next one that is not empty.
    `cursor` (P, G): position in `member` before which nobody can serve below the place.
    `value` (J,): scores, for one look.
    `against` (K, J): denominators by slot, where all agents are scored at once.
    `few` (P, S): then, for each place, the slots that were best when all were scored, best first.
    `few_count` (P,): how many there are; fewer than S: nobody else could serve below the place. -1:
        none yet.
    `few_last` (P,): score of the last of them at that time.
    `few_measure` (K, P): measure of the place at that time.
    `held` (C, R), in thousandths: for the best fit: what everybody holds; changes with every grant.
    `direction` (P, R), in thousandths: for the best fit: the demand, or what is held where it is
        unknown.
    `offerable` (J,): all that is plain and free makes an offer.
    `empty` (J,): nothing is free.
    `alive` (P,): places below which there is a leaf that takes part in this stage.
    `unable` (P, ceil(J / 64)): bit of each slot that can serve nobody below the place; not all are
        known.
    `below` (L,): leaves, those below each place side by side.
    `low`, `high` (P,): the leaves below a place are ``below[low:high]``.
    `least` (P, R), in thousandths: in each resource the smallest demand below the place.
    `room`: what quotas leave.
    """

    start: Ints
    member: Ints
    position: Ints
    skip: Ints
    cursor: np.ndarray
    value: Floats
    against: Floats
    few: Ints
    few_count: Ints
    few_last: Floats
    few_measure: Floats
    held: Ints
    direction: Ints
    offerable: Bools
    empty: Bools
    alive: Bools
    unable: Words
    below: Ints
    low: Ints
    high: Ints
    least: Ints
    room: quota_room.Room


@allocating
def begin(scene: Scene, held: Ints, effort: Effort) -> AgentIndex:
    """Prepare the search."""
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count, slots, resources = len(places.parent), len(agents.row), agents.free.shape[1]
    # With groups there is a cursor for each place and group; without, the lists of the best few.
    # What is not used has no rows, and costs nothing.
    start, member = _groups(standing, agents, rule, effort.groups)
    groups = len(start) - 1
    columns = standing.denominator.shape[1]
    position = np.empty(len(member), np.int64)
    for at in range(len(member)):
        position[member[at]] = at
    cursor = np.empty((count, groups), np.int32)
    for place in range(count):
        for group in range(groups):
            cursor[place, group] = start[group]
    below, low, high, least = _leaves_below(places)
    field = AgentIndex(
        start,
        member,
        position,
        np.arange(slots + 1),
        cursor,
        np.empty(slots),
        np.empty((columns, 0 if groups else slots)),
        np.zeros((0 if groups else count, effort.few), np.int64),
        np.full(0 if groups else count, -1),
        np.zeros(0 if groups else count),
        np.zeros((columns, 0 if groups else count)),
        held,
        places.demand.copy(),
        np.empty(slots, np.bool_),
        np.zeros(slots, np.bool_),
        np.ones(count, np.bool_),
        np.zeros((count, (slots + 63) // 64), np.uint64),
        below,
        low,
        high,
        least,
        quota_room.begin(scene),
    )
    offers.mark_taking_part(places, scene.bounds, rule.stage, field.alive)
    # The demand is unknown: best fit goes by what the client holds instead.
    for place in range(count):
        if places.client[place] >= 0 and not places.known[place]:
            for r in range(resources):
                field.direction[place, r] = held[places.client[place], r]
    # Fill in what is known about each agent at the start.
    for slot in range(slots):
        _look_at(places, standing, agents, field, slot)
    return field


@allocating
def _groups(standing: Standing, agents: Agents, rule: Rule, groups_max: int) -> tuple[Ints, Ints]:
    """Group slots by their denominators; no groups where these change or there are too many."""
    slots = len(agents.row)
    group = np.zeros(slots, np.int64)
    representative = np.zeros(max(groups_max, 1), np.int64)
    groups = 1 if rule.shared else 0
    # Denominators that follow what is free change with each grant: no groups.
    if rule.residual:
        return np.zeros(1, np.int64), np.zeros(0, np.int64)
    # Compare each agent with one of each group found so far. There are few groups, or we give up.
    if not rule.shared:
        for slot in range(slots):
            g = 0
            while g < groups and not _are_equal(standing, representative[g], agents.row[slot]):
                g += 1
            if g == groups_max:
                return np.zeros(1, np.int64), np.zeros(0, np.int64)
            if g == groups:
                representative[g] = agents.row[slot]
                groups += 1
            group[slot] = g
    # A counting sort: count the members, add up to starting positions, then put each slot in. The
    # slots come in ascending order, and stay so in each group.
    start = np.zeros(groups + 1, np.int64)
    for slot in range(slots):
        start[group[slot] + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    member = np.empty(slots, np.int64)
    following = start.copy()
    for slot in range(slots):
        member[following[group[slot]]] = slot
        following[group[slot]] += 1
    return start, member


@compiled
def _are_equal(standing: Standing, one: int, other: int) -> bool:
    """Compare two agents' denominators."""
    for k in range(standing.denominator.shape[1]):
        if standing.denominator[one, k] != standing.denominator[other, k]:
            return False
    return True


@allocating
def _leaves_below(places: Places) -> tuple[Ints, Ints, Ints, Ints]:
    """List the leaves so that those below each place are neighbours; with the smallest demands."""
    count = len(places.parent)
    size = np.zeros(count, np.int64)
    least = places.demand.copy()
    # Children come before parents: add up leaves and smallest demands from the bottom.
    for place in range(count):
        if places.client[place] >= 0:
            size[place] = 1
        for child in range(places.first[place], places.last[place]):
            size[place] += size[child]
            for r in range(least.shape[1]):
                if child == places.first[place] or least[child, r] < least[place, r]:
                    least[place, r] = least[child, r]
    low = np.zeros(count, np.int64)
    below = np.empty(size[count - 1], np.int64)
    # From the root down, each place shares its range of `below` out among its children.
    for place in range(count - 1, -1, -1):
        if places.client[place] >= 0:
            below[low[place]] = place
        following = low[place]
        for child in range(places.first[place], places.last[place]):
            low[child] = following
            following += size[child]
    # `size` becomes the end of each range.
    for place in range(count):
        size[place] += low[place]
    return below, low, size, least


@compiled
def _look_at(
    places: Places, standing: Standing, agents: Agents, field: AgentIndex, slot: int
) -> None:
    """Find out about an agent after its free amounts changed."""
    agent = agents.row[slot]
    field.offerable[slot] = offers.is_offerable(places, agents, agent)
    if field.against.shape[1]:
        for k in range(len(field.against)):
            field.against[k, slot] = standing.denominator[agent, k]


@compiled
def note_grant(scene: Scene, field: AgentIndex, leaf: int, slot: int, more: bool) -> None:
    """Note what the latest grant changed."""
    offer, client = scene.offer, scene.places.client[leaf]
    # Best fit follows what is held where the demand is unknown.
    for r in range(field.direction.shape[1]):
        field.held[client, r] += offer.whole[r]
        if not scene.places.known[leaf]:
            field.direction[leaf, r] = field.held[client, r]
    # With less free on it, the agent has to be looked at again.
    field.empty[slot] = not more
    _look_at(scene.places, scene.standing, scene.agents, field, slot)


@compiled
def look_again(field: AgentIndex, place: int, slot: int) -> None:
    """Forget that an agent can serve nobody below a place.

    A filter may cover a task in one kind of resource and not in another. Once the first kind is
    gone, the task would be offered in the second.
    """
    field.unable[place, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
    # The search in the agent's group goes back to it. The best few have to be found anew.
    for group in range(len(field.start) - 1):
        at = field.position[slot]
        if field.start[group] <= at < field.start[group + 1]:
            field.cursor[place, group] = min(field.cursor[place, group], at)
    if len(field.few_count):
        field.few_count[place] = -1


@hot
def _set_unable(field: AgentIndex, place: int, slot: int) -> None:
    field.unable[place, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@hot
def _is_unable(field: AgentIndex, place: int, slot: int) -> bool:
    word = field.unable[place, slot >> 6]
    return (word >> np.uint64(slot & 63)) & np.uint64(1) != np.uint64(0)


@hot
def _can_serve_leaf(scene: Scene, field: AgentIndex, place: int, slot: int) -> bool:
    if not field.alive[place] or _is_unable(field, place, slot):
        return False
    return offers.can_serve(scene, field.offerable[slot], place, scene.agents.row[slot])


@hot
def is_spent(scene: Scene, place: int) -> bool:
    """Say whether quotas leave nobody below a place anything more, on any agent."""
    return scene.standing.spent[place] and not len(scene.agents.special)


@hot
def can_serve(scene: Scene, field: AgentIndex, place: int, slot: int) -> bool:
    """Say whether an agent can serve somebody below a place, and remember where it cannot."""
    if field.empty[slot] or not field.alive[place] or _is_unable(field, place, slot):
        return False
    agents = scene.agents
    agent = agents.row[slot]
    enough = True
    # A quick test, where all that is free is plain: not even the smallest demand below the place
    # fits. It spares the look at every leaf.
    if agents.start[agent] == agents.start[agent + 1]:
        for r in range(agents.free.shape[1]):
            enough &= agents.free[agent, r] >= field.least[place, r]
    # Nor can anybody below an inner place whose role's quota leaves nothing that is free here.
    if enough and scene.rule.bounded and scene.places.client[place] < 0:
        enough = quota_room.may_serve(scene, field.room, place, agent)
    if enough:
        spent = scene.standing.spent
        all_spent = True
        for i in range(field.low[place], field.high[place]):
            leaf = field.below[i]
            if _can_serve_leaf(scene, field, leaf, slot):
                return True
            all_spent &= spent[leaf] or not field.alive[leaf]
        spent[place] |= all_spent
    # What is free only shrinks, so the answer stays the same for the rest of the cycle.
    _set_unable(field, place, slot)
    return False
