"""The loop that takes an agent first, then the best client for it: random, round_robin, listed.

From the root down goes the child with the smallest key among those below which the agent can serve
somebody. Mostly the smallest of all can be served, and is found at once; else the best that can be
is looked for among the next in order, and at last among all.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from allocator.core import by_reference
from allocator.core.by_reference import keep, lend
from allocator.core.compiled import entry
from allocator.core.snapshot import Bools, Floats, Ints, Words
from allocator.policies.filling import (
    charging,
    cycle_stages,
    loop_arrays,
    offers,
    scoring,
    tournament,
)
from allocator.policies.filling.compiled import allocating, compiled, fingerprint, hot
from allocator.policies.filling.cycle_stages import OVERDUE
from allocator.policies.filling.loop_arrays import (
    Agents,
    Effort,
    Log,
    Places,
    Rule,
    Scene,
    Standing,
)

RANDOM, ROUND_ROBIN, LISTED = range(3)

_NOBODY = -1
_UNDECIDED = -2
_LAST = np.iinfo(np.int64).max


class Visit(NamedTuple):
    """What a visit to an agent finds out; the same arrays are used for every visit.

    Attributes
    ----------
    score : (P,) float64
        Scores on this agent, for criteria with a denominator for each.
    alive : (P,) bool
        Places below which there is a leaf that takes part in this stage.
    able : (P,) bool
        Places below which there is a leaf that the agent can serve.
    client : (W,) uint64
        Bits of the clients that have a leaf.
    offerable : (1,) bool
        All that is plain and free makes an offer.
    passed_over : (P,) int64
        Places taken out of their tournaments for the time of the visit.
    demand : (R, P) int64, thousandths
        Turned round (resource first), so that loops over places read neighbouring memory.
    turned : (1,) bool
        Whether `demand` is filled in; most visits never look at it.
    """

    score: Floats
    alive: Bools
    able: Bools
    client: Words
    offerable: Bools
    passed_over: Ints
    demand: Ints
    turned: Bools


@allocating
def _begin(scene: Scene) -> Visit:
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
def _is_barred_to_all(agents: Agents, visit: Visit, agent: int) -> bool:
    """Say whether exclusions and filters leave nobody."""
    # One client that has a leaf and no bar is enough.
    for word in range(len(visit.client)):
        if visit.client[word] & ~agents.barred[agent, word]:
            return False
    return True


@compiled
def _find_able(scene: Scene, visit: Visit, agent: int) -> None:
    """Mark all places below which the agent can serve somebody."""
    places, agents, able = scene.places, scene.agents, visit.able
    if scene.rule.simple:
        _find_able_simply(places, agents, visit, agent)
    else:
        for place in range(len(able)):
            able[place] = (
                places.client[place] >= 0
                and visit.alive[place]
                and offers.can_serve(scene, visit.offerable[0], place, agent)
            )
    scoring.mark_alive(places, able)


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
        return _NOBODY
    # Then, among those with exactly this score, the one served least often. The lowest place wins
    # ties, for it is met first.
    best = _NOBODY
    for i in range(len(bits)):
        if (
            bits[i] == least
            and marked[i]
            and (best < 0 or standing.served[first + i] < standing.served[best])
        ):
            best = first + i
    return best


@compiled
def _descend(
    places: Places, standing: Standing, rule: Rule, visit: Visit, among: Bools, agent: int
) -> int:
    """Go from the root to the leaf that comes first among the marked ones; -1: there is none."""
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


@compiled
def _stand_back(scene: Scene, visit: Visit, leaf: int) -> None:
    """Take a leaf out of this stage."""
    places, client = scene.places, scene.places.client[leaf]
    # The leaf, and every place that has no other leaf below it, is no longer alive.
    visit.alive[leaf] = False
    visit.client[client >> 6] &= ~(np.uint64(1) << np.uint64(client & 63))
    scoring.mark_alive(places, visit.alive)
    # On the way up to the root, the tournaments learn who is out.
    place = leaf
    while place >= 0:
        scene.standing.out[place] = not visit.alive[place]
        if scene.rule.shared:
            tournament.replay(places, scene.standing, place)
        place = places.parent[place]


@hot
def _try_in_order(scene: Scene, visit: Visit, agent: int, tries: int) -> int:
    """Try the leaves in their order, by taking those that cannot be served out of the tournaments.

    Returns the leaf, or that there is none, or that it is undecided after so many tries.
    """
    places, standing = scene.places, scene.standing
    root = len(places.parent) - 1
    result = _UNDECIDED
    place = root
    passed = 0
    # Walk down the champions. A place that is of no use is taken out of its tournament, and the
    # walk goes on from its parent with the next best.
    while passed < tries:
        child = tournament.champion(places, standing, place)
        if child < 0 or standing.out[child]:
            # No child is left here. Below the root that means this place is of no use either; at
            # the root, that nobody is.
            if place == root:
                result = _NOBODY
                break
            child = place
        elif places.client[child] < 0:
            # An inner place: go further down.
            place = child
            continue
        elif offers.can_serve(scene, visit.offerable[0], child, agent):
            result = child
            break
        elif standing.spent[child] and not len(scene.agents.special):
            # Quotas leave it nothing, and no agent has special resources. So it leaves the stage
            # for good, and the walk starts again. That does not count as a try.
            _stand_back(scene, visit, child)
            place = root
            continue
        elif passed == 0 and _is_barred_to_all(scene.agents, visit, agent):
            # All clients are barred here. That is asked only once, after the first failure.
            result = _NOBODY
            break
        # Out for the rest of this visit.
        standing.out[child] = True
        tournament.replay(places, standing, child)
        visit.passed_over[passed] = child
        passed += 1
        place = places.parent[child]
    # The next agent may serve those who were passed over here: put them back.
    for i in range(passed):
        standing.out[visit.passed_over[i]] = False
        tournament.replay(places, standing, visit.passed_over[i])
    return result


@hot
def _choose(scene: Scene, effort: Effort, visit: Visit, agent: int) -> int:
    """Return the leaf that the agent serves next; -1 where it can serve nobody."""
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    visit.offerable[0] = offers.is_offerable(places, agents, agent)
    # The cheap way first: the best in order can mostly be served.
    if rule.shared:
        tries = effort.tries + len(places.parent) // 128  # takes about as long as the look at all
        leaf = _try_in_order(scene, visit, agent, tries)
        if leaf != _UNDECIDED:
            return leaf
    else:
        # Only the first in order is tried; a second try would score every family again.
        leaf = _descend(places, standing, rule, visit, visit.alive, agent)
        if leaf >= 0 and offers.can_serve(scene, visit.offerable[0], leaf, agent):
            return leaf
        if leaf < 0 or _is_barred_to_all(agents, visit, agent):
            return _NOBODY
    # The full look: find everybody whom the agent can serve, then the best of them.
    _find_able(scene, visit, agent)
    return _descend(places, standing, rule, visit, visit.able, agent)


@hot
def _serve(scene: Scene, effort: Effort, visit: Visit, log: Log, agent: int) -> bool:
    """Give one grant on an agent; returns whether it may have something left to give."""
    leaf = _choose(scene, effort, visit, agent)
    if leaf < 0:
        return False
    more = charging.grant(scene, log, leaf, agent)
    # The leaf and all above it hold more, so their scores and tournaments are renewed.
    if scene.rule.shared:
        scoring.replay_upwards(scene.places, scene.standing, leaf)
    if scene.rule.stage == OVERDUE:
        # Who waited too long gets one grant before the others, and no more in this stage.
        _stand_back(scene, visit, leaf)
    return more


def _compile(sources: int) -> Callable[..., tuple[Log, int]]:
    """Make the loop; it captures the fingerprint of its sources.

    It gives the interpreter's lock free, so that however long it takes, other threads answer.
    """

    @entry(error_model="numpy")
    def fill(scene: Scene, effort: Effort, log: Log, order: int, state: Words) -> tuple[Log, int]:
        # `lend` makes pointers of the tuples; `keep` at the end makes sure that the arrays live
        # as long as the pointers are used.
        lent = lend(scene)
        own = _begin(lent)
        visit, book = lend(own), lend(log)
        # Agents that may still serve somebody are ``live[:count]``.
        live = scene.agents.row.copy()
        count = len(live)
        kept = 0  # how many of this round's agents, the first ones, go on to the next
        at = 0
        while count > 0:
            # The log doubles when it is full. The pointer must then lead to the longer one.
            if not charging.has_room(book, lent.offer):
                log = charging.doubled(log, scene.offer)
                book = lend(log)
            # Which agent comes next. A round of round_robin starts with a shuffle (Fisher and
            # Yates).
            if order == RANDOM:
                at = scoring.draw(state, count)
            elif order == ROUND_ROBIN and at == 0:
                for i in range(count - 1, 0, -1):
                    j = scoring.draw(state, i + 1)
                    live[i], live[j] = live[j], live[i]
            more = _serve(lent, effort, visit, book, live[at])
            # What follows for the agent: one that can serve nobody is dropped.
            if order == RANDOM:
                if not more:
                    # The last one takes its position, for the order does not matter.
                    count -= 1
                    live[at] = live[count]
            elif order == ROUND_ROBIN:
                # Those that go on move to the front; at the end of the round only they are left.
                if more:
                    live[kept] = live[at]
                    kept += 1
                at += 1
                if at == count:
                    count, kept, at = kept, 0, 0
            elif not more:
                # listed: stay on one agent until it can serve nobody.
                at += 1
                if at == count:
                    count = 0
        keep(scene)
        keep(own)
        return log, sources

    return fill


fill = _compile(
    fingerprint(by_reference, loop_arrays, cycle_stages, scoring, tournament, offers, charging)
)
