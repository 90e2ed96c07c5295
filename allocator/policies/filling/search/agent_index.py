"""An index of the cycle's agents: which clients each can serve, and where a place scores best.

Agents are addressed by *slot*, their rank among the cycle's candidates. Within a cycle, a client
that cannot be served on an agent never can be later, because free amounts only decrease; failures
are therefore stored as bits. For the one exception see `look_again`.

The best agent for a place is the one with its smallest score. If there are few distinct
denominators, agents with equal ones form a group. The best agent of a group is the lowest one that
can serve a client. It only moves upwards, so a cursor per place and group finds it. Otherwise all
agents are scored at once, and the best few are kept, as long as the best of these must be better
than any other agent.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.numba.bit_tables import width
from allocator.core.snapshot import BitWords, Bools, Floats, Ints
from allocator.policies.filling.rules import offers, quota_precheck
from allocator.policies.filling.scene import scoring
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import (
    Agents,
    Effort,
    Places,
    Rule,
    Scene,
    Standing,
)
from allocator.policies.filling.search import prefilter
from allocator.policies.filling.search.prefilter import Hopes


class AgentIndex(NamedTuple):
    """The agents as the search sees them.

    `start` (G + 1,): group g holds ``member[start[g]:start[g + 1]]``; without groups, all agents
        are scored at once.
    `member` (J,): slots, ascending in a group.
    `position` (J,): the index of each slot in `member`; empty without groups.
    `skip` (2, J + 1): an index in `member` at or before the next one that is not empty; row 1 is
        for `plain_only` places, for which `bare` agents count as empty.
    `cursor` (P, G): index in `member` before which no agent can serve below the place.
    `value` (J,): scores, for one search.
    `against` (K, J): denominators by slot, if all agents are scored at once.
    `few` (P, S): in that case, for each place, the slots that were best then, best first.
    `few_count` (P,): number of these; fewer than S: no other agent could serve below the place. -1:
        not computed yet.
    `few_last` (P,): score of the last of these when they were computed.
    `few_measure` (K, P): measure of the place at that time.
    `held` (C, R), in thousandths: for best fit: each client's holdings; changes with every grant.
    `direction` (P, R), in thousandths: for best fit: the demand, or the holdings if it is unknown.
    `offerable` (J,): all free plain resources together make an offer.
    `empty` (J,): nothing is free, or nothing that quotas leave to any client.
    `bare` (J,): nothing plain is free.
    `plain_only` (P,): places without a client below that may have special resources.
    `alive` (P,): places with a leaf below that takes part in this stage.
    `unable` (P, ceil(J / 64)): bits of the slots known to be unable to serve below the place.
    `below` (L,): leaves, ordered so that those below each place are adjacent.
    `low`, `high` (P,): the leaves below a place are ``below[low:high]``.
    `least` (P, R), in thousandths: per resource, the smallest demand below the place.
    `precheck`: what quotas leave.
    `hopes`, `hopeful` (64, W), `square` (64,): buffers for testing all pairs together.
    `looks` (2,): failed tests since all pairs were last tested, and their maximum number.
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
    bare: Bools
    plain_only: Bools
    alive: Bools
    unable: BitWords
    below: Ints
    low: Ints
    high: Ints
    least: Ints
    precheck: quota_precheck.QuotaPrecheck
    hopes: Hopes
    hopeful: BitWords
    square: BitWords
    looks: Ints


@allocating
def begin(scene: Scene, held: Ints, effort: Effort) -> AgentIndex:
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count, slots, resources = len(places.parent), len(agents.row), agents.free.shape[1]
    # Groups need a cursor per place and group; otherwise there is a list of the best few per place.
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
    skip = np.empty((2, slots + 1), np.int64)
    for at in range(slots + 1):
        skip[0, at] = skip[1, at] = at
    below, low, high, least = _leaves_below(places)
    index = AgentIndex(
        start,
        member,
        position,
        skip,
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
        np.zeros(slots, np.bool_),
        _plain_only(scene),
        np.ones(count, np.bool_),
        np.zeros((count, (slots + 63) // 64), np.uint64),
        below,
        low,
        high,
        least,
        quota_precheck.begin_precheck(scene),
        prefilter.begin(scene),
        np.zeros((64, width(agents.barred)), np.uint64),
        np.zeros(64, np.uint64),
        np.array([0, effort.looks * width(agents.barred) * slots]),
    )
    offers.mark_taking_part(places, scene.bounds, rule.stage, index.alive)
    for place in range(count):
        if places.client[place] >= 0 and not places.known[place]:
            for r in range(resources):
                index.direction[place, r] = held[places.client[place], r]
    for slot in range(slots):
        _look_at(places, standing, agents, index, slot)
        if rule.bounded:
            agent = agents.row[slot]
            index.empty[slot] = not quota_precheck.may_serve(
                scene, index.precheck, count - 1, agent
            )
    return index


@allocating
def _plain_only(scene: Scene) -> Bools:
    """Return the places without a client below that may have special resources, (P,)."""
    places, reach = scene.places, scene.kinds.reach
    anything = np.zeros(reach.shape[1], np.uint64)
    for special in range(len(reach)):
        anything |= reach[special]
    marked = np.ones(len(places.parent), np.bool_)
    for place in range(len(marked)):
        client, parent = places.client[place], places.parent[place]
        if client >= 0:
            bit = anything[client >> 6] >> np.uint64(client & 63)
            marked[place] = bit & np.uint64(1) == prefilter.NO_BITS
        if parent >= 0:  # children come before parents
            marked[parent] &= marked[place]
    return marked


@allocating
def _groups(standing: Standing, agents: Agents, rule: Rule, groups_max: int) -> tuple[Ints, Ints]:
    """Group slots by denominators; no groups if these change or there are too many groups."""
    slots = len(agents.row)
    group = np.zeros(slots, np.int64)
    representative = np.zeros(max(groups_max, 1), np.int64)
    groups = 1 if rule.shared else 0
    # Denominators that are what is free change with each grant.
    if rule.residual:
        return np.zeros(1, np.int64), np.zeros(0, np.int64)
    # Compare each agent with one agent of each group found so far.
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
    # Sort by counting, which keeps the slots of a group in ascending order.
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
    """Order the leaves so that those below each place are adjacent; find the smallest demands."""
    count = len(places.parent)
    size = np.zeros(count, np.int64)
    least = places.demand.copy()
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
    # From the root down, each place divides its range of `below` among its children.
    for place in range(count - 1, -1, -1):
        if places.client[place] >= 0:
            below[low[place]] = place
        following = low[place]
        for child in range(places.first[place], places.last[place]):
            low[child] = following
            following += size[child]
    # Turn `size` into the end of each range.
    for place in range(count):
        size[place] += low[place]
    return below, low, size, least


@compiled
def _look_at(
    places: Places, standing: Standing, agents: Agents, index: AgentIndex, slot: int
) -> None:
    """Evaluate an agent again after its free amounts changed."""
    agent = agents.row[slot]
    index.offerable[slot] = offers.is_offerable(places, agents, agent)
    index.bare[slot] = True
    for r in range(agents.free.shape[1]):
        index.bare[slot] &= agents.free[agent, r] <= 0
    if index.against.shape[1]:
        for k in range(len(index.against)):
            index.against[k, slot] = standing.denominator[agent, k]


@compiled
def note_grant(scene: Scene, index: AgentIndex, leaf: int, slot: int, more: bool) -> None:
    offer, client = scene.offer, scene.places.client[leaf]
    # The direction of a client with unknown demand is its holdings.
    for r in range(index.direction.shape[1]):
        index.held[client, r] += offer.whole[r]
        if not scene.places.known[leaf]:
            index.direction[leaf, r] = index.held[client, r]
    index.empty[slot] = not more
    _look_at(scene.places, scene.standing, scene.agents, index, slot)


@compiled
def look_again(index: AgentIndex, place: int, slot: int) -> None:
    """Forget that an agent cannot serve below a place.

    When one kind of a resource is used up, a task would be offered in another, which a filter may
    not cover.
    """
    index.unable[place, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
    # Also reset the group's cursor and the best few.
    for group in range(len(index.start) - 1):
        at = index.position[slot]
        if index.start[group] <= at < index.start[group + 1]:
            index.cursor[place, group] = min(index.cursor[place, group], at)
    if len(index.few_count):
        index.few_count[place] = -1


@hot
def _has_nothing_for(index: AgentIndex, place: int, slot: int) -> bool:
    return index.empty[slot] or (index.bare[slot] and index.plain_only[place])


@hot
def _set_unable(index: AgentIndex, place: int, slot: int) -> None:
    index.unable[place, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@hot
def _is_unable(index: AgentIndex, place: int, slot: int) -> bool:
    word = index.unable[place, slot >> 6]
    return (word >> np.uint64(slot & 63)) & np.uint64(1) != np.uint64(0)


@hot
def _can_serve_leaf(scene: Scene, index: AgentIndex, place: int, slot: int) -> bool:
    if not index.alive[place] or _is_unable(index, place, slot):
        return False
    able = offers.can_serve(scene, index.offerable[slot], place, scene.agents.row[slot])
    index.looks[0] += not able
    return able


@hot
def is_spent(scene: Scene, place: int) -> bool:
    """Whether quotas leave the clients below a place nothing more, on any agent."""
    return scene.standing.spent[place] and not len(scene.agents.special)


@hot
def can_serve(scene: Scene, index: AgentIndex, place: int, slot: int) -> bool:
    """Whether an agent can serve a client below a place; failures are stored."""
    if _has_nothing_for(index, place, slot):
        return False
    if not index.alive[place] or _is_unable(index, place, slot):
        return False
    agents = scene.agents
    agent = agents.row[slot]
    enough = True
    # If only plain resources are free, the smallest demand below the place must fit.
    if agents.start[agent] == agents.start[agent + 1]:
        for r in range(agents.free.shape[1]):
            enough &= agents.free[agent, r] >= index.least[place, r]
    # Quotas must leave the clients of an inner place something that is free here.
    if enough and scene.rule.bounded and scene.places.client[place] < 0:
        enough = quota_precheck.may_serve(scene, index.precheck, place, agent)
    if enough and index.looks[0] > index.looks[1]:
        _look_at_all(scene, index)
        enough = not _is_unable(index, place, slot)
    if enough:
        spent = scene.standing.spent
        all_spent = True
        for i in range(index.low[place], index.high[place]):
            leaf = index.below[i]
            if _can_serve_leaf(scene, index, leaf, slot):
                return True
            all_spent &= spent[leaf] or not index.alive[leaf]
        spent[place] |= all_spent
    # Free amounts only decrease, so the answer is valid for the rest of the cycle.
    _set_unable(index, place, slot)
    return False


@compiled
def _look_at_all(scene: Scene, index: AgentIndex) -> None:
    """Mark all pairs that cannot be served, testing 64 clients and 64 agents at a time."""
    places = scene.places
    index.looks[0] = 0
    for block in range(index.unable.shape[1]):
        _look_at_block(scene, index, block)
        for word in range(index.hopeful.shape[1]):
            for i in range(64):
                index.square[i] = index.hopeful[i, word]
            prefilter.turn(index.square)
            for bit in range(min(64, len(places.of_client) - (word << 6))):
                leaf = places.of_client[(word << 6) + bit]
                if leaf >= 0:
                    index.unable[leaf, block] |= ~index.square[bit]
        # An agent that can serve no child of a place cannot serve the place.
        for place in range(len(places.parent)):
            if places.client[place] < 0:
                nobody = prefilter.ALL_BITS
                for child in range(places.first[place], places.last[place]):
                    if index.alive[child]:
                        nobody &= index.unable[child, block]
                index.unable[place, block] |= nobody


@compiled
def _look_at_block(scene: Scene, index: AgentIndex, block: int) -> None:
    """Compute which clients each of 64 agents may be able to serve."""
    index.hopeful[:] = prefilter.NO_BITS
    for i in range(min(64, len(scene.agents.row) - (block << 6))):
        slot = (block << 6) + i
        agent = scene.agents.row[slot]
        if not index.empty[slot] and prefilter.look_at(scene, index.hopes, agent):
            for word in range(index.hopeful.shape[1]):
                index.hopeful[i, word] = prefilter.of_word(
                    scene, index.hopes, agent, word, prefilter.ALL_BITS
                )


_ROUNDED_DOWN = 1 - 1e-12
"""Factor that lowers a lower bound, so that rounding errors cannot make it too high."""


@compiled
def smallest(scene: Scene, index: AgentIndex, place: int) -> tuple[int, float]:
    """Return the slot with a place's smallest score, the lowest on ties, and the score.

    Only agents that can serve a client below the place count; -1: there are none.
    """
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    # Without groups, score all agents only if the best few do not decide.
    if len(index.start) == 1:
        slot, score = _best_of_few(scene, index, place)
        if slot < 0:
            _score_all(places, standing, index, place)
            slot = _keep_few(scene, index, place)
            score = index.value[slot]
        return slot, score
    # All agents of a group have the same score, and its lowest agent that can serve the place
    # represents it.
    best, slot = 0.0, -1
    for group in range(len(index.start) - 1):
        row = 0 if rule.shared else agents.row[index.member[index.start[group]]]
        score = scoring.score(places, standing, place, standing.denominator, row)
        if slot >= 0 and score > best:
            continue
        # No agent before the cursor of the place or of its parent can serve the place.
        at, end = index.cursor[place, group], index.start[group + 1]
        if places.parent[place] >= 0:
            at = max(at, index.cursor[places.parent[place], group])
        at = _skip_empty(index, place, at)
        while at < end and not can_serve(scene, index, place, index.member[at]):
            if is_spent(scene, place):
                return -1, 0.0
            at = _skip_empty(index, place, _skip_unable(index, place, at + 1, end))
        index.cursor[place, group] = min(at, end)
        if at < end and (slot < 0 or score < best or index.member[at] < slot):
            best, slot = score, index.member[at]
    return slot, best


@hot
def _skip_unable(index: AgentIndex, place: int, at: int, end: int) -> int:
    """Return the first index in ``at .. end`` whose agent is not known to be unable."""
    while at < end:
        slot = index.member[at]
        unable = index.unable[place, slot >> 6] >> np.uint64(slot & 63)
        if unable & np.uint64(1) == prefilter.NO_BITS:
            break
        # With a single group, slots equal indices, so a whole word can be skipped at once.
        whole = len(index.start) == 2 and index.unable[place, slot >> 6] == prefilter.ALL_BITS
        at = min((at | 63) + 1, end) if whole else at + 1
    return at


@hot
def _skip_empty(index: AgentIndex, place: int, at: int) -> int:
    """Return the first index from `at` whose agent is not empty, maybe in another group."""
    end, skip = len(index.member), int(index.plain_only[place])
    while at < end and _has_nothing_for(index, place, index.member[at]):
        # This entry's own agent has become empty: point it to the next one.
        if index.skip[skip, at] == at:
            index.skip[skip, at] = at + 1
        # Halve the path, so that later searches are faster (as in union-find).
        following = index.skip[skip, at]
        index.skip[skip, at] = index.skip[skip, following]
        at = following
    return at


@compiled
def _score_all(places: Places, standing: Standing, index: AgentIndex, place: int) -> None:
    """Score a place on every agent; the result is that of `scoring.score`."""
    value, weight = index.value, places.weight[place]
    value[:] = 0.0
    for k in range(places.first_column[place], places.end_column[place]):
        # A measure of 0 adds nothing, whatever the denominator.
        measure, against = standing.measure[k, place], index.against[k]
        if measure == 0.0:
            continue
        if places.additive[place]:
            for slot in range(len(value)):
                value[slot] += measure / (against[slot] * weight)
        else:
            for slot in range(len(value)):
                part = measure / (against[slot] * weight)
                value[slot] = max(value[slot], part)


@compiled
def _keep_few(scene: Scene, index: AgentIndex, place: int) -> int:
    """Keep the slots with the smallest values that can serve below a place; return the best.

    Lower slots come first on ties. -1: none.
    """
    standing = scene.standing
    few, value, size = index.few[place], index.value, index.few.shape[1]
    count, last = 0, 0.0
    # Slots come in ascending order, so only a smaller value displaces a listed one.
    for slot in range(len(value)):
        if count == size and value[slot] >= last:
            continue
        if not can_serve(scene, index, place, slot):
            continue
        # A full list loses its last.
        at = min(count, size - 1)
        while at > 0 and value[few[at - 1]] > value[slot]:
            few[at] = few[at - 1]
            at -= 1
        few[at] = slot
        count = min(count + 1, size)
        last = value[few[count - 1]]
    # `_best_of_few` uses these to tell whether an agent outside the list can be better.
    index.few_count[place], index.few_last[place] = count, last
    for k in range(len(standing.measure)):
        index.few_measure[k, place] = standing.measure[k, place]
    return few[0] if count else -1


@compiled
def _best_of_few(scene: Scene, index: AgentIndex, place: int) -> tuple[int, float]:
    """Return the best of the kept slots and its score, if it must be the best of all, else -1.

    The score of any other agent was at least `few_last`, and has grown at least by the smallest
    factor by which a column of the measure has grown.
    """
    places, standing = scene.places, scene.standing
    count, size = index.few_count[place], index.few.shape[1]
    best, slot = 0.0, -1
    for i in range(count):
        other = index.few[place, i]
        if can_serve(scene, index, place, other):
            row = scene.agents.row[other]
            score = scoring.score(places, standing, place, standing.denominator, row)
            if slot < 0 or score < best or (score == best and other < slot):
                best, slot = score, other
    # A list that is not full has all able agents.
    if slot < 0 or count < size:
        return slot, best
    growth = np.inf
    for k in range(places.first_column[place], places.end_column[place]):
        if index.few_measure[k, place] > 0.0:
            growth = min(growth, standing.measure[k, place] / index.few_measure[k, place])
    last = index.few_last[place]
    # Without growth the bound is exact, and the lower slot wins ties. Otherwise the bound is
    # rounded, so only a clear difference counts.
    if growth <= 1.0 or growth == np.inf:
        if best < last or (best == last and slot <= index.few[place, size - 1]):
            return slot, best
    elif best < last * growth * _ROUNDED_DOWN:
        return slot, best
    return -1, 0.0
