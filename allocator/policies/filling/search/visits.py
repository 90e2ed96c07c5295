"""A visit to an agent: what it finds out, and the look at all clients for the best it can serve."""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Floats, Ints, Words
from allocator.policies.filling.rules import offers, quota_precheck
from allocator.policies.filling.scene import scoring, tournament
from allocator.policies.filling.scene.compiled import allocating, compiled
from allocator.policies.filling.scene.loop_arrays import Agents, Places, Scene, Standing

NOBODY = -1
_LAST = np.iinfo(np.int64).max


class Visit(NamedTuple):
    """What a visit to an agent finds out; the same arrays are used for every visit.

    `score` (P,): scores on this agent, for criteria with a denominator for each.
    `alive` (P,): places below which there is a leaf that takes part in this stage.
    `able` (P,): places below which there is a leaf that the agent can serve.
    `client` (W,): bits of the clients that have a leaf.
    `offerable` (1,): all that is plain and free makes an offer.
    `passed_over` (P,): places taken out of their tournaments for the time of the visit.
    `demand` (R, P), in thousandths: turned round (resource first), so that loops over places read
        neighbouring memory.
    `turned` (1,): whether `demand` is filled in; most visits never look at it.
    `precheck`: what quotas leave, for the look at all.
    """

    score: Floats
    alive: Bools
    able: Bools
    client: Words
    offerable: Bools
    passed_over: Ints
    demand: Ints
    turned: Bools
    precheck: quota_precheck.QuotaPrecheck


@allocating
def begin(scene: Scene) -> Visit:
    """Prepare scores, tournaments and the room for the visits' findings."""
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count = len(places.parent)
    words = agents.barred.shape[1]
    # Room that all visits of this stage share.
    visit = Visit(
        np.zeros(count),
        np.ones(count, np.bool_),
        np.zeros(count, np.bool_),
        np.zeros(words, np.uint64),
        np.zeros(1, np.bool_),
        np.zeros(count, np.int64),
        np.empty((places.demand.shape[1], count), np.int64),
        np.zeros(1, np.bool_),
        quota_precheck.begin_precheck(scene),
    )
    offers.mark_taking_part(places, scene.bounds, rule.stage, visit.alive)
    # Whoever takes no part in this stage is out of its tournament from the start.
    for place in range(count):
        standing.spent[place] = False
        client = places.client[place]
        if client >= 0 and visit.alive[place]:
            visit.client[client >> 6] |= np.uint64(1) << np.uint64(client & 63)
        standing.out[place] = not visit.alive[place]
        if rule.shared:
            standing.score[place] = scoring.score(places, standing, place, standing.denominator, 0)
    # One denominator for all agents: scores do not depend on the agent, so one set of tournaments
    # serves every visit.
    if rule.shared:
        tournament.begin(places, standing)
    return visit


@compiled
def is_barred_to_all(agents: Agents, visit: Visit, agent: int) -> bool:
    """Say whether exclusions and filters leave nobody."""
    if not agents.barring[agent]:
        return False
    # One client that has a leaf and no bar is enough.
    for word in range(len(visit.client)):
        if visit.client[word] & ~agents.barred[agent, word]:
            return False
    return True


@compiled
def best_of_all(scene: Scene, visit: Visit, agent: int) -> int:
    """Look through everybody for the first in order whom the agent can serve; -1: nobody."""
    places, able = scene.places, visit.able
    if scene.rule.simple:
        _find_able_simply(places, scene.agents, visit, agent)
    else:
        # Whoever is left out by a quick look cannot be served, the others mostly can. So the best
        # of these is asked first; if it cannot, all of them are.
        quota_precheck.mark_hopeful(scene, visit.precheck, visit.alive, agent, able)
        scoring.mark_alive(places, able)
        leaf = descend(scene, visit, able, agent)
        if leaf < 0 or offers.can_serve(scene, visit.offerable[0], leaf, agent):
            return leaf
        for place in range(len(able)):
            if able[place]:
                able[place] = places.client[place] >= 0 and offers.can_serve(
                    scene, visit.offerable[0], place, agent
                )
    scoring.mark_alive(places, able)
    return descend(scene, visit, able, agent)


@compiled
def _find_able_simply(places: Places, agents: Agents, visit: Visit, agent: int) -> None:
    """Mark the leaves that the agent can serve, in loops that the compiler vectorises."""
    able = visit.able
    if not visit.turned[0]:
        visit.turned[0] = True
        for place in range(len(able)):
            for r in range(len(visit.demand)):
                visit.demand[r, place] = places.demand[place, r]
    # Who takes part: with a known demand, or where all that is free makes an offer.
    for place in range(len(able)):
        able[place] = visit.alive[place] and (places.known[place] or visit.offerable[0])
    # Of these, those whose demand is free. Unknown demands are zeros, so they pass.
    for r in range(len(visit.demand)):
        free = agents.free[agent, r]
        for place in range(len(able)):
            able[place] &= visit.demand[r, place] <= free
    # Bars are looked up only for the few that are left. Inner places have no client and are
    # marked by the caller.
    for place in range(len(able)):
        if able[place]:
            client = places.client[place]
            able[place] = client >= 0 and not offers.is_barred(agents, agent, client)


@compiled
def _best_child(
    places: Places, standing: Standing, scores: Floats, among: Bools, parent: int
) -> int:
    """Return the child with the smallest key among the marked ones; -1 where none is marked.

    Scores are compared as integers, which order non-negative floats as they are, and whose minimum
    over a slice the compiler vectorises.
    """
    first, last = places.first[parent], places.last[parent]
    bits, marked = scores.view(np.int64)[first:last], among[first:last]
    # First the smallest score among the marked children.
    least = _LAST
    for i in range(len(bits)):
        mine = bits[i] if marked[i] else _LAST
        least = min(mine, least)
    if least == _LAST:
        return NOBODY
    # Then, among those with exactly this score, the one whose turn was longest ago. The lowest
    # place wins ties, for it is met first.
    best = NOBODY
    for i in range(len(bits)):
        if (
            bits[i] == least
            and marked[i]
            and (best < 0 or standing.served[first + i] < standing.served[best])
        ):
            best = first + i
    return best


@compiled
def descend(scene: Scene, visit: Visit, among: Bools, agent: int) -> int:
    """Go from the root to the leaf that comes first among the marked ones; -1: there is none."""
    places, standing, rule = scene.places, scene.standing, scene.rule
    place = len(places.parent) - 1
    while place >= 0 and places.client[place] < 0:
        # Shared scores are up to date already. Others depend on the agent, so this family is
        # scored against it first.
        if rule.shared:
            place = _best_child(places, standing, standing.score, among, place)
        else:
            scoring.score_siblings(places, standing, place, agent, visit.score)
            place = _best_child(places, standing, visit.score, among, place)
    return place
