"""Computes what a leaf would be offered on an agent, and whether that is allowed.

Usually the offer is all that is free, or one task. It is computed in full if resources are
reserved, revocable or indivisible, if quotas bound it, or if one task is below the minimum.

All that a client is granted on an agent in one cycle is one offer. Therefore only its first part is
tested against the minimum and filters; later parts may always be added.
"""

import numpy as np

from allocator.core.numba.bit_tables import has_bit, set_bit, word_of
from allocator.core.numba.shared_bits import shared_word
from allocator.core.openings import OPENING_MAX
from allocator.core.snapshot import UNBOUNDED, Bools, Bounds, Ints, Specials, Tier
from allocator.policies.filling.rules import quotas
from allocator.policies.filling.scene import scoring
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Agents, Offer, Places, Rule, Scene
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER, OVERDUE, USUAL

RESERVED, _OPEN, _REVOCABLE = int(Tier.RESERVED), int(Tier.OPEN), int(Tier.REVOCABLE)
_SHARED = int(Tier.SHARED)


@hot
def fits(places: Places, agents: Agents, place: int, agent: int) -> bool:
    for r in range(agents.free.shape[1]):
        if agents.free[agent, r] < places.demand[place, r]:
            return False
    return True


@hot
def is_offerable(places: Places, agents: Agents, agent: int) -> bool:
    """Whether all free plain resources together reach the usual minimum."""
    root = len(places.parent) - 1
    return reaches(places, agents, root, agents.free[agent])


@hot
def has_any(agents: Agents, agent: int) -> bool:
    for r in range(agents.free.shape[1]):
        if agents.free[agent, r] > 0:
            return True
    for e in range(agents.start[agent], agents.start[agent + 1]):
        if agents.special_free[e] > 0:
            return True
    return False


@hot
def reaches(places: Places, agents: Agents, place: int, amount: Ints) -> bool:
    """Whether an amount (R,) is an offer: not empty, and not below the minimum of the leaf."""
    if not _is_something(amount):
        return False
    # One row of the minimum is enough. Without rows, any non-empty amount is.
    first, end = places.least_row[place], places.end_row[place]
    for row in range(first, end):
        for r in range(len(amount)):
            if amount[r] < agents.minimum[row, r]:
                break
        else:
            return True
    return first == end


@hot
def _is_something(amount: Ints) -> bool:
    for r in range(len(amount)):
        if amount[r] > 0:
            return True
    return False


@hot
def _stands(scene: Scene, place: int, agent: int) -> bool:
    """Whether the leaf was granted something on the agent before, so that there is an offer."""
    if not scene.rule.joins:
        return False
    client = scene.places.client[place]
    return has_bit(scene.agents.stands, agent, client)


@hot
def barred_in_word(agents: Agents, agent: int, word: int) -> np.uint64:
    """Return the clients of one word that an agent may not serve, if it is `barring`."""
    bits = shared_word(agents.excluded, agent, word) | word_of(agents.covered, agent, word)
    return bits | word_of(agents.barred, agent, word)


@hot
def is_barred(agents: Agents, agent: int, client: int) -> bool:
    if not agents.barring[agent]:
        return False
    word = barred_in_word(agents, agent, client >> 6)
    return (word >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0)


@compiled
def _may_have(kinds: Specials, special: int, client: int) -> bool:
    word = kinds.reach[special, client >> 6]
    return (word >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0)


@compiled
def _begin(rule: Rule, bounds: Bounds, offer: Offer, client: int) -> None:
    quotas.raise_ceiling(rule, bounds, offer, client)
    offer.tasks[0] = 0
    for r in range(len(offer.plain)):
        offer.plain[r] = 0
        offer.whole[r] = 0
        offer.bounded[r] = 0
    for i in range(len(offer.special)):
        offer.special[i] = 0


@compiled
def _keep(offer: Offer) -> None:
    """Save the offer, so that adding the next task can be undone."""
    for r in range(len(offer.plain)):
        offer.before[0, r] = offer.plain[r]
        offer.before[1, r] = offer.whole[r]
        offer.before[2, r] = offer.bounded[r]
    for i in range(len(offer.special)):
        offer.special_before[i] = offer.special[i]


@compiled
def _take_special(
    agents: Agents, kinds: Specials, offer: Offer, agent: int, i: int, wanted: int
) -> int:
    """Add up to `wanted` of one of the agent's special resources; return the added amount.

    `i`: index among the agent's special resources. Indivisible ones are taken as a whole.
    """
    e = agents.start[agent] + i
    s, free = agents.special[e], agents.special_free[e] - offer.special[i]
    r = kinds.column[s]
    amount = free if kinds.whole[s] else min(free, wanted)
    # If it counts against quota, take at most up to the ceiling; nothing if it is indivisible.
    if kinds.bounded[s]:
        room = offer.ceiling[r] - offer.bounded[r]
        if amount > room:
            amount = 0 if kinds.whole[s] else room
        offer.bounded[r] += amount
    offer.special[i] += amount
    offer.whole[r] += amount
    return amount


@compiled
def _take_plain(agents: Agents, offer: Offer, agent: int, r: int, wanted: int) -> int:
    free = agents.free[agent, r] - offer.plain[r]
    amount = min(free, wanted, offer.ceiling[r] - offer.bounded[r])
    offer.plain[r] += amount
    offer.bounded[r] += amount
    offer.whole[r] += amount
    return amount


@compiled
def _take_everything(
    agents: Agents, kinds: Specials, offer: Offer, client: int, agent: int, left_over: bool
) -> None:
    """Offer all that a client may have; `left_over`: only special resources."""
    # Plain resources are granted in whole tasks, not as leftovers.
    if not left_over:
        for r in range(len(offer.plain)):
            _take_plain(agents, offer, agent, r, UNBOUNDED)
    # Resources that count against quota are granted in tasks, not as leftovers.
    start = agents.start[agent]
    for i in range(agents.start[agent + 1] - start):
        s = agents.special[start + i]
        if left_over and kinds.bounded[s]:
            continue
        if agents.special_free[start + i] > offer.special[i] and _may_have(kinds, s, client):
            _take_special(agents, kinds, offer, agent, i, UNBOUNDED)


@compiled
def _take_of_tier(
    places: Places,
    agents: Agents,
    kinds: Specials,
    offer: Offer,
    place: int,
    agent: int,
    r: int,
    tier: int,
    wanted: int,
) -> int:
    """Take a part of a task from special resources of one tier; return the missing amount."""
    client, start = places.client[place], agents.start[agent]
    for i in range(agents.start[agent + 1] - start):
        s = agents.special[start + i]
        if (
            wanted > 0
            and kinds.tier[s] == tier
            and kinds.column[s] == r
            and agents.special_free[start + i] > offer.special[i]
            and _may_have(kinds, s, client)
        ):
            wanted -= _take_special(agents, kinds, offer, agent, i, wanted)
    return wanted


@compiled
def _share(
    places: Places, agents: Agents, kinds: Specials, offer: Offer, place: int, agent: int, r: int
) -> int:
    """Add shared volumes of a column to the offer, unless the leaf has them from this cycle.

    Returns the amount that a task may use, without using it up.
    """
    client, start = places.client[place], agents.start[agent]
    found = 0
    for i in range(agents.start[agent + 1] - start):
        s, e = agents.special[start + i], start + i
        if kinds.tier[s] != _SHARED or kinds.column[s] != r:
            continue
        if agents.taker[e] == place:
            found += agents.special_whole[e]
        elif agents.special_free[e] > 0 and _may_have(kinds, s, client):
            _take_special(agents, kinds, offer, agent, i, UNBOUNDED)
            found += offer.special[i]
    return found


@compiled
def _drop_column(agents: Agents, kinds: Specials, offer: Offer, agent: int, r: int) -> None:
    """Remove the latest task's part of one column from the offer."""
    offer.plain[r], offer.whole[r] = offer.before[0, r], offer.before[1, r]
    offer.bounded[r] = offer.before[2, r]
    start = agents.start[agent]
    for i in range(agents.start[agent + 1] - start):
        if kinds.column[agents.special[start + i]] == r:
            offer.special[i] = offer.special_before[i]


@compiled
def _take_task(
    places: Places, agents: Agents, kinds: Specials, offer: Offer, place: int, agent: int
) -> bool:
    """Add one task to the offer, reserved resources first; False: there is no room for it."""
    for r in range(len(offer.plain)):
        demand = places.demand[place, r]
        if demand == 0:
            continue
        # First the client's own reservations; then plain resources; then other unreserved ones.
        rest = _take_of_tier(places, agents, kinds, offer, place, agent, r, RESERVED, demand)
        if rest > 0:
            rest -= _take_plain(agents, offer, agent, r, rest)
        if rest > 0:
            rest = _take_of_tier(places, agents, kinds, offer, place, agent, r, _OPEN, rest)
        if rest > 0 and offer.ceiling[r] < UNBOUNDED:
            # Not enough. An indivisible resource may exceed what a quota leaves after the other
            # parts, but not what it leaves alone: begin with it.
            _drop_column(agents, kinds, offer, agent, r)
            rest = _take_of_tier(places, agents, kinds, offer, place, agent, r, _OPEN, demand)
            if rest > 0:
                rest -= _take_plain(agents, offer, agent, r, rest)
            if rest > 0:
                rest = _take_of_tier(places, agents, kinds, offer, place, agent, r, RESERVED, rest)
        if rest > 0:
            # Not enough. A task must not mix revocable and other resources in one column, so look
            # for the whole demand among revocable ones.
            _drop_column(agents, kinds, offer, agent, r)
            rest = _take_of_tier(places, agents, kinds, offer, place, agent, r, _REVOCABLE, demand)
        if rest > 0:
            # Not enough. A shared volume may do, because tasks do not use it up.
            _drop_column(agents, kinds, offer, agent, r)
            rest = demand - _share(places, agents, kinds, offer, place, agent, r)
        if rest > 0:
            return False
    return True


@compiled
def _take_plain_tasks(
    places: Places, agents: Agents, offer: Offer, place: int, agent: int, tasks: int
) -> bool:
    """Offer tasks if nothing is special; False: there is no room for all of them."""
    for r in range(len(offer.plain)):
        wanted = places.demand[place, r] * tasks
        if _take_plain(agents, offer, agent, r, wanted) < wanted:
            return False
    offer.tasks[0] = tasks
    return tasks > 0


@compiled
def _may_reach(
    places: Places, agents: Agents, kinds: Specials, offer: Offer, place: int, agent: int
) -> bool:
    """Whether all that a leaf may have reaches its minimum; the offer must be empty before."""
    client = places.client[place]
    for r in range(len(offer.whole)):
        offer.whole[r] = agents.free[agent, r]
    for e in range(agents.start[agent], agents.start[agent + 1]):
        if agents.special_free[e] > 0 and _may_have(kinds, agents.special[e], client):
            offer.whole[kinds.column[agents.special[e]]] += agents.special_free[e]
    found = reaches(places, agents, place, offer.whole)
    for r in range(len(offer.whole)):
        offer.whole[r] = 0
    return found


@compiled
def _take_tasks(scene: Scene, place: int, agent: int, joined: bool) -> bool:
    """Offer one task, or as many as the first offer needs; False: that makes no offer.

    `joined`: whether there is already an offer on the agent to add to.
    """
    places, agents, kinds, offer = scene.places, scene.agents, scene.kinds, scene.offer
    if agents.start[agent] == agents.start[agent + 1]:
        tasks = 1 if joined else places.opening[place]
        return _take_plain_tasks(places, agents, offer, place, agent, tasks)
    # Tasks may be made of different resources, so add them one by one.
    begins = not joined and places.opening[place] != 1
    if begins and not _may_reach(places, agents, kinds, offer, place, agent):
        return False
    enough = joined
    while offer.tasks[0] == 0 or (not enough and offer.tasks[0] < OPENING_MAX):
        _keep(offer)
        if not _take_task(places, agents, kinds, offer, place, agent):
            for r in range(len(offer.plain)):
                _drop_column(agents, kinds, offer, agent, r)
            break
        offer.tasks[0] += 1
        enough = joined or reaches(places, agents, place, offer.whole)
    if offer.tasks[0] == 0:
        return False
    client = places.client[place]
    if joined:
        return _is_something(offer.whole)
    if enough and not is_refused(agents, kinds, offer, client, agent):
        return True
    # With special leftovers it may be an offer.
    _take_everything(agents, kinds, offer, client, agent, True)
    return reaches(places, agents, place, offer.whole)


@compiled
def _covers(agents: Agents, kinds: Specials, offer: Offer, agent: int, refusal: int) -> bool:
    """Whether a filter covers the offer: it has at least as much of every kind."""
    for r in range(len(offer.plain)):
        kind = agents.plain_kind[r]
        refused = agents.amount[kind, refusal] if kind >= 0 else 0
        if refused < offer.plain[r]:
            return False
    start = agents.start[agent]
    for i in range(agents.start[agent + 1] - start):
        kind = kinds.kind[agents.special[start + i]]
        if agents.amount[kind, refusal] < offer.special[i]:
            return False
    return True


@compiled
def is_refused(agents: Agents, kinds: Specials, offer: Offer, client: int, agent: int) -> bool:
    # More than the largest filter amount on the agent is covered by no filter.
    for r in range(len(offer.plain)):
        kind = agents.plain_kind[r]
        if kind >= 0 and offer.plain[r] > agents.largest[kind, agent]:
            return False
    refusal = agents.head[agent]
    while refusal >= 0:
        if agents.client[refusal] == client and _covers(agents, kinds, offer, agent, refusal):
            return True
        refusal = agents.next[refusal]
    return False


@compiled
def work_out(scene: Scene, place: int, agent: int) -> bool:
    """Compute what a leaf would be offered; return whether the offer is allowed."""
    places, agents, kinds, bounds = scene.places, scene.agents, scene.kinds, scene.bounds
    rule, offer, stage = scene.rule, scene.offer, scene.rule.stage
    client, joined = places.client[place], _stands(scene, place, agent)
    _begin(rule, bounds, offer, client)
    if places.known[place] and stage != LEFT_OVER:
        enough = _take_tasks(scene, place, agent, joined)
    else:
        _take_everything(agents, kinds, offer, client, agent, stage == LEFT_OVER)
        enough = reaches(places, agents, place, offer.whole)
        if joined:
            enough = _is_something(offer.whole)
    if not enough or (stage == GUARANTEED and not quotas.makes_progress(bounds, offer, client)):
        return False
    return joined or not is_refused(agents, kinds, offer, client, agent)


@hot
def is_simple(places: Places, agents: Agents, rule: Rule, place: int, agent: int) -> bool:
    """Whether an offer is just all that is free, or one task."""
    if rule.simple:
        return True
    if rule.bounded or rule.adds or rule.stage == LEFT_OVER or not places.usual[place]:
        return False
    return agents.start[agent] == agents.start[agent + 1]


@hot
def can_serve(scene: Scene, offerable: bool, place: int, agent: int) -> bool:
    """Whether the agent can serve a leaf; `offerable`: the result of `is_offerable`."""
    places, agents, spent = scene.places, scene.agents, scene.standing.spent
    # From the cheapest test to the most expensive.
    if spent[place] and agents.start[agent] == agents.start[agent + 1]:
        return False
    if is_barred(agents, agent, places.client[place]):
        return False
    if is_simple(places, agents, scene.rule, place, agent):
        return fits(places, agents, place, agent) if places.known[place] else offerable
    if work_out(scene, place, agent):
        return True
    # If quotas are the reason, mark the leaf, so that other agents are not tried.
    if scene.rule.bounded:
        spent[place] = is_spent(scene, place)
    return False


@compiled
def is_spent(scene: Scene, place: int) -> bool:
    """Whether quotas leave a leaf too little for any offer.

    `scene.offer.ceiling`: what they leave it, as by `work_out`.
    """
    places, ceiling = scene.places, scene.offer.ceiling
    if scene.rule.stage == GUARANTEED and not quotas.is_owed(scene.bounds, places.client[place]):
        return True
    # Too little means that all that quotas allow makes neither an offer nor a task.
    if not places.known[place] and scene.rule.adds:
        return not _is_something(ceiling)
    if not places.known[place]:
        return not reaches(places, scene.agents, place, ceiling)
    for r in range(len(ceiling)):
        if places.demand[place, r] > ceiling[r]:
            return True
    return False


@compiled
def bar_refused(scene: Scene, agent: int) -> None:
    """Bar the clients whose filters cover all that is left on an agent after a grant.

    Only for simple offers; other offers are tested against filters when they are computed.
    """
    places, agents, kinds = scene.places, scene.agents, scene.kinds
    rule, offer = scene.rule, scene.offer
    refusal = agents.head[agent]
    # There are no filters, or there are special resources.
    if refusal < 0 or not (rule.simple or agents.start[agent] == agents.start[agent + 1]):
        return
    while refusal >= 0:
        client = agents.client[refusal]
        place = places.of_client[client]
        if place >= 0 and not places.known[place] and not _stands(scene, place, agent):
            # A filter that covers all that is left also covers what is left later in the cycle.
            # Clients with a known demand would be offered less; this is checked when they are
            # tried.
            for r in range(len(offer.plain)):
                offer.plain[r] = agents.free[agent, r]
            if _covers(agents, kinds, offer, agent, refusal):
                set_bit(agents.barred, agent, client)
        refusal = agents.next[refusal]


@compiled
def mark_taking_part(places: Places, bounds: Bounds, stage: int, alive: Bools) -> None:
    """Mark the leaves that take part in a stage, and all places above them."""
    for place in range(len(alive)):
        client = places.client[place]
        if client >= 0 and stage == GUARANTEED:
            alive[place] = quotas.is_owed(bounds, client)
        elif client >= 0 and stage == OVERDUE:
            alive[place] = places.overdue[place]
        elif client >= 0:
            alive[place] = stage == USUAL or places.known[place]
    scoring.mark_alive(places, alive)
