"""A visit to an agent: its state, and the search for the best client that the agent can serve."""

from typing import NamedTuple

import numpy as np

from allocator.core import needs
from allocator.core.numba.bit_tables import width
from allocator.core.snapshot import BitWords, Bools, Floats, Ints
from allocator.policies.filling.rules import offers, quota_precheck, quotas
from allocator.policies.filling.scene import scoring, tournament
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Effort, Places, Scene, Standing
from allocator.policies.filling.search import prefilter
from allocator.policies.filling.search.prefilter import Hopes

NOBODY = -1
_LAST = np.iinfo(np.int64).max


class Visit(NamedTuple):
    """The state of a visit to an agent; the arrays are reused for every visit.

    `score` (P,): scores on this agent, for criteria with a denominator per agent.
    `competing` (P,): number of children of each place that are not out (`Standing.out`).
    `client` (W,): bits of the clients that take part in this stage.
    `parked` (W,), `parked_count` (1,): bits of those whose leaves are out until an agent may be
        able to serve them, and their number.
    `visits` (1,): number of visits.
    `since` (P,): the visit in which the leaf was parked, or was last listed.
    `offerable` (1,): whether all free plain resources together make an offer.
    `passed_over` (P,): places that are out only during the visit.
    `hopes`: buffers for the quick test of all clients.
    `listed` (P,): leaves that the agent may be able to serve.
    `best`, `seen` (P,): the best child of each place, and the number of the search that found it.
    `looks` (1,): number of searches.
    """

    score: Floats
    competing: Ints
    client: BitWords
    parked: BitWords
    parked_count: Ints
    visits: Ints
    since: Ints
    offerable: Bools
    passed_over: Ints
    hopes: Hopes
    listed: Ints
    best: Ints
    seen: Ints
    looks: Ints
    precheck: quota_precheck.QuotaPrecheck


@allocating
def begin(scene: Scene) -> Visit:
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count = len(places.parent)
    words = width(agents.barred)
    visit = Visit(
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(words, np.uint64),
        np.zeros(words, np.uint64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(count, np.int64),
        np.zeros(1, np.bool_),
        np.zeros(count, np.int64),
        prefilter.begin(scene),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(1, np.int64),
        quota_precheck.begin_precheck(scene),
    )
    alive = np.ones(count, np.bool_)
    offers.mark_taking_part(places, scene.bounds, rule.stage, alive)
    if scene.bounds.further.shape[1] and not len(agents.special):
        _leave_out_spent(scene, alive)
    # Places that take no part in this stage are out from the start.
    for place in range(count):
        standing.spent[place] = False
        standing.out[place] = not alive[place]
        client, parent = places.client[place], places.parent[place]
        if client >= 0 and alive[place]:
            visit.client[client >> 6] |= _bit(client)
        if parent >= 0:
            visit.competing[parent] += alive[place]
        if rule.shared:
            standing.score[place] = scoring.score(places, standing, place, standing.denominator, 0)
    # With one denominator for all agents, one set of tournaments serves every visit.
    if rule.shared:
        tournament.begin(places, standing)
    return visit


@compiled
def _leave_out_spent(scene: Scene, alive: Bools) -> None:
    """Mark leaves that quotas and further bounds, such as caps, leave nothing as taking no part."""
    places = scene.places
    for place in range(len(alive)):
        client = places.client[place]
        if client >= 0 and alive[place]:
            quotas.raise_ceiling(scene.rule, scene.bounds, scene.offer, client)
            alive[place] = not offers.is_spent(scene, place)
    scoring.mark_alive(places, alive)


@hot
def _bit(client: int) -> np.uint64:
    """Return the bit of a client in its word."""
    return np.uint64(1) << np.uint64(client & 63)


@compiled
def leave(scene: Scene, visit: Visit, place: int) -> None:
    """Take a place out of the competition, and each place above without children left in it."""
    places, standing = scene.places, scene.standing
    while place >= 0:
        standing.out[place] = True
        if scene.rule.shared:
            tournament.rematch(places, standing, place)
        place = places.parent[place]
        if place >= 0:
            visit.competing[place] -= 1
            if visit.competing[place] > 0:
                break


@compiled
def join(scene: Scene, visit: Visit, place: int) -> None:
    """Return a place to the competition, and the places above it."""
    places, standing = scene.places, scene.standing
    while place >= 0 and standing.out[place]:
        standing.out[place] = False
        if scene.rule.shared:
            tournament.rematch(places, standing, place)
        place = places.parent[place]
        if place >= 0:
            visit.competing[place] += 1


@compiled
def stand_back(scene: Scene, visit: Visit, leaf: int) -> None:
    """Take a leaf out of the competition for the rest of the stage."""
    client = scene.places.client[leaf]
    word, bit = client >> 6, _bit(client)
    visit.client[word] &= ~bit
    if visit.parked[word] & bit == prefilter.NO_BITS:
        leave(scene, visit, leaf)
        return
    visit.parked[word] &= ~bit
    visit.parked_count[0] -= 1


@compiled
def park(scene: Scene, visit: Visit, leaf: int, agent: int) -> bool:
    """Take a leaf out if the quick test excludes it on this agent; return whether it does.

    The agent must have been examined by `prefilter.look_at`. A client that is barred almost
    everywhere, or demands more than most agents have, thus costs a word of bits in each visit, not
    a try.
    """
    client = scene.places.client[leaf]
    bit = _bit(client)
    if prefilter.of_word(scene, visit.hopes, agent, client >> 6, bit) != prefilter.NO_BITS:
        return False
    visit.parked[client >> 6] |= bit
    visit.parked_count[0] += 1
    visit.since[leaf] = visit.visits[0]
    leave(scene, visit, leaf)
    return True


@compiled
def list_parked(scene: Scene, effort: Effort, visit: Visit, agent: int) -> int:
    """List the parked leaves that the agent, which was examined, may be able to serve.

    Those for which such agents are frequent return to the competition instead. Returns the number
    of listed leaves.
    """
    count = 0
    for word in range(len(visit.parked)):
        bits = visit.parked[word]
        if bits != prefilter.NO_BITS:
            bits = prefilter.of_word(scene, visit.hopes, agent, word, bits)
        while bits != prefilter.NO_BITS:
            bit = bits & (~bits + np.uint64(1))
            leaf = scene.places.of_client[(word << 6) + needs.lowest_bit(bits)]
            bits ^= bit
            if visit.visits[0] - visit.since[leaf] < effort.rare:
                visit.parked[word] ^= bit
                visit.parked_count[0] -= 1
                join(scene, visit, leaf)
            else:
                visit.since[leaf] = visit.visits[0]
                visit.listed[count] = leaf
                count += 1
    return count


@compiled
def best_with_listed(scene: Scene, visit: Visit, count: int, leaf: int, agent: int) -> int:
    """Return the best of the listed leaves that the agent can serve and one other leaf, or -1.

    `leaf`: the best of the competing leaves that the agent can serve; -1: there is none.
    """
    if leaf >= 0:
        visit.listed[count] = leaf
        count += 1
    return _best_of_listed(scene, visit, count, agent)


@compiled
def best_of_all(scene: Scene, visit: Visit, agent: int) -> int:
    """Return the first client in order that the agent can serve; -1: none."""
    return _best_of_listed(scene, visit, _list_hopeful(scene, visit, agent), agent)


@compiled
def _best_of_listed(scene: Scene, visit: Visit, count: int, agent: int) -> int:
    # Listed clients can usually be served. So test the first one, and all only if that fails.
    leaf = _first(scene, visit, count, agent)
    if leaf < 0 or offers.can_serve(scene, visit.offerable[0], leaf, agent):
        return leaf
    kept = 0
    for i in range(count):
        if offers.can_serve(scene, visit.offerable[0], visit.listed[i], agent):
            visit.listed[kept] = visit.listed[i]
            kept += 1
    return _first(scene, visit, kept, agent)


@compiled
def _list_hopeful(scene: Scene, visit: Visit, agent: int) -> int:
    agents, precheck = scene.agents, visit.precheck
    if not prefilter.look_at(scene, visit.hopes, agent):
        return 0
    checked = scene.rule.bounded and agents.start[agent] == agents.start[agent + 1]
    if checked:
        quota_precheck.measure_all(scene, precheck, agent)
    count = 0
    for word in range(len(visit.client)):
        bits = visit.client[word]
        if bits != prefilter.NO_BITS:
            bits = prefilter.of_word(scene, visit.hopes, agent, word, bits)
        while bits != prefilter.NO_BITS:
            leaf = scene.places.of_client[(word << 6) + needs.lowest_bit(bits)]
            bits &= bits - np.uint64(1)
            if not checked or quota_precheck.is_hopeful(scene, precheck, leaf):
                visit.listed[count] = leaf
                count += 1
    return count


@compiled
def _first(scene: Scene, visit: Visit, count: int, agent: int) -> int:
    """Return the first of the listed leaves in order, from the root down; -1: none is listed."""
    places, standing, best, seen = scene.places, scene.standing, visit.best, visit.seen
    scores = standing.score if scene.rule.shared else visit.score
    visit.looks[0] += 1
    look, root = visit.looks[0], len(places.parent) - 1
    for i in range(count):
        place = visit.listed[i]
        # Go up from the leaf to the first ancestor that was already visited.
        while place != root:
            parent = places.parent[place]
            first_here = seen[parent] != look
            if not scene.rule.shared:
                scores[place] = scoring.score(places, standing, place, standing.denominator, agent)
            if first_here or tournament.is_before(standing, scores, place, best[parent]):
                best[parent] = place
            if not first_here:
                break
            seen[parent] = look
            place = parent
    place = root if count > 0 else NOBODY
    while place >= 0 and places.client[place] < 0:
        place = best[place]
    return place


@compiled
def _best_child(places: Places, standing: Standing, scores: Floats, parent: int) -> int:
    """Return the child with the smallest key that is not out; -1: there is none.

    Scores are compared as integers, in the same order: the compiler vectorises their minimum.
    """
    first, last = places.first[parent], places.last[parent]
    bits, out = scores.view(np.int64)[first:last], standing.out[first:last]
    least = _LAST
    for i in range(len(bits)):
        mine = _LAST if out[i] else bits[i]
        least = min(mine, least)
    if least == _LAST:
        return NOBODY
    # Of these, find the one served longest ago; on ties the lowest place wins.
    best = NOBODY
    for i in range(len(bits)):
        if (
            bits[i] == least
            and not out[i]
            and (best < 0 or standing.served[first + i] < standing.served[best])
        ):
            best = first + i
    return best


@compiled
def descend(scene: Scene, visit: Visit, agent: int) -> int:
    """Descend by scores on this agent from the root to the first leaf that is not out; -1: none."""
    places, standing = scene.places, scene.standing
    place = len(places.parent) - 1
    while place >= 0 and places.client[place] < 0:
        scoring.score_siblings(places, standing, place, agent, visit.score)
        place = _best_child(places, standing, visit.score, place)
    return place
