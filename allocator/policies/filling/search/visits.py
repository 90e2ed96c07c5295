"""A visit to an agent: its state, and the search for the best client that the agent can serve."""

from typing import NamedTuple

import numpy as np

from allocator.core import needs
from allocator.core.snapshot import BitWords, Bools, Floats, Ints
from allocator.policies.filling.rules import offers, quota_precheck, quotas
from allocator.policies.filling.scene import scoring, tournament
from allocator.policies.filling.scene.compiled import allocating, compiled
from allocator.policies.filling.scene.loop_arrays import Agents, Places, Scene, Standing
from allocator.policies.filling.search import prefilter
from allocator.policies.filling.search.prefilter import Hopes

NOBODY = -1
_LAST = np.iinfo(np.int64).max

_RARE = 32
"""A client is aside if at most one in this many agents of the sample is open to it."""


class Visit(NamedTuple):
    """The state of a visit to an agent; the arrays are reused for every visit.

    `score` (P,): scores on this agent, for criteria with a denominator per agent.
    `alive` (P,): places with a leaf below that takes part in this stage.
    `live` (P,): number of children of each place that are alive.
    `client` (W,): bits of the clients that have a leaf.
    `aside` (W,): those of them that are barred from almost all agents of a sample. They are not
        alive, so that searches do not try them on every agent; `or_aside` examines them.
    `some_aside` (1,): whether there are any.
    `offerable` (1,): whether all free plain resources together make an offer.
    `passed_over` (P,): places removed from their tournaments during the visit.
    `hopes`: buffers for the quick test of all clients.
    `listed` (P,): leaves that the agent may be able to serve.
    `best`, `seen` (P,): the best child of each place, and the number of the search that found it.
    `looks` (1,): number of searches.
    """

    score: Floats
    alive: Bools
    live: Ints
    client: BitWords
    aside: BitWords
    some_aside: Bools
    offerable: Bools
    passed_over: Ints
    hopes: Hopes
    listed: Ints
    best: Ints
    seen: Ints
    looks: Ints
    precheck: quota_precheck.QuotaPrecheck


@allocating
def begin(scene: Scene, sample: int) -> Visit:
    """Begin the visits of a stage; `sample`: as in `Effort`."""
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count = len(places.parent)
    words = agents.barred.shape[1]
    visit = Visit(
        np.zeros(count),
        np.ones(count, np.bool_),
        np.zeros(count, np.int64),
        np.zeros(words, np.uint64),
        np.zeros(words, np.uint64),
        np.zeros(1, np.bool_),
        np.zeros(1, np.bool_),
        np.zeros(count, np.int64),
        prefilter.begin(scene),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(1, np.int64),
        quota_precheck.begin_precheck(scene),
    )
    offers.mark_taking_part(places, scene.bounds, rule.stage, visit.alive)
    if scene.bounds.further.shape[1] and not len(agents.special):
        _leave_out_spent(scene, visit.alive)
    for place in range(count - 1):
        visit.live[places.parent[place]] += visit.alive[place]
        client = places.client[place]
        if client >= 0 and visit.alive[place]:
            visit.client[client >> 6] |= np.uint64(1) << np.uint64(client & 63)
    if len(agents.row) and agents.barring[agents.row[0]]:
        _set_aside(scene, visit, sample)
    # Leaves that take no part in this stage are out from the start.
    for place in range(count):
        standing.spent[place] = False
        standing.out[place] = not visit.alive[place]
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


@allocating
def _set_aside(scene: Scene, visit: Visit, sample: int) -> None:
    """Find the clients that are barred from almost all of some agents."""
    agents, places, words = scene.agents, scene.places, len(visit.client)
    count = min(len(agents.row), sample)
    for i in range(count):
        if not agents.barring[agents.row[i * len(agents.row) // count]]:
            return
    open_at = np.zeros(words << 6, np.int64)  # number of these agents, by client
    for i in range(count):
        agent = agents.row[i * len(agents.row) // count]
        for word in range(words):
            bits = visit.client[word] & ~agents.barred[agent, word]
            while bits != prefilter.NO_BITS:
                open_at[(word << 6) + needs.lowest_bit(bits)] += 1
                bits &= bits - np.uint64(1)
    for place in range(len(visit.alive)):
        client = places.client[place]
        if client >= 0 and visit.alive[place] and open_at[client] * _RARE <= count:
            visit.aside[client >> 6] |= np.uint64(1) << np.uint64(client & 63)
            visit.alive[place] = False
            visit.some_aside[0] = True
    if visit.some_aside[0]:
        scoring.mark_alive(places, visit.alive)
        visit.live[:] = 0
        for place in range(len(visit.alive) - 1):
            visit.live[places.parent[place]] += visit.alive[place]


@compiled
def or_aside(scene: Scene, visit: Visit, leaf: int, agent: int) -> int:
    """Return the best of a leaf (-1: none) and those aside that the agent can serve; -1: none.

    `leaf`: the first in order that is alive and can be served.
    """
    count = _list_aside(scene, visit, agent)
    if count == 0:
        return leaf
    if leaf >= 0:
        visit.listed[count] = leaf
        count += 1
    return _first(scene, visit, count, agent)


@compiled
def _list_aside(scene: Scene, visit: Visit, agent: int) -> int:
    agents, count, looked = scene.agents, 0, False
    for word in range(len(visit.client)):
        bits = visit.aside[word] & visit.client[word]
        if agents.barring[agent]:
            bits &= ~agents.barred[agent, word]
        if bits == prefilter.NO_BITS:
            continue
        if not looked and not prefilter.look_at(scene, visit.hopes, agent):
            return 0
        looked = True
        bits = prefilter.of_word(scene, visit.hopes, agent, word, bits)
        while bits != prefilter.NO_BITS:
            leaf = scene.places.of_client[(word << 6) + needs.lowest_bit(bits)]
            bits &= bits - np.uint64(1)
            if offers.can_serve(scene, visit.offerable[0], leaf, agent):
                visit.listed[count] = leaf
                count += 1
    return count


@compiled
def is_barred_to_all(agents: Agents, visit: Visit, agent: int) -> bool:
    if not agents.barring[agent]:
        return False
    for word in range(len(visit.client)):
        if visit.client[word] & ~agents.barred[agent, word]:
            return False
    return True


@compiled
def best_of_all(scene: Scene, visit: Visit, agent: int) -> int:
    """Return the first client in order that the agent can serve; -1: none."""
    count = _list_hopeful(scene, visit, agent)
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
def _best_child(
    places: Places, standing: Standing, scores: Floats, among: Bools, parent: int
) -> int:
    """Return the marked child with the smallest key; -1: none is marked.

    Scores are compared as integers, in the same order: the compiler vectorises their minimum.
    """
    first, last = places.first[parent], places.last[parent]
    bits, marked = scores.view(np.int64)[first:last], among[first:last]
    least = _LAST
    for i in range(len(bits)):
        mine = bits[i] if marked[i] else _LAST
        least = min(mine, least)
    if least == _LAST:
        return NOBODY
    # Of these, find the one served longest ago; on ties the lowest place wins.
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
    """Descend from the root to the first leaf among the marked ones; -1: none."""
    places, standing, rule = scene.places, scene.standing, scene.rule
    place = len(places.parent) - 1
    while place >= 0 and places.client[place] < 0:
        # Shared scores are up to date; others depend on the agent.
        if rule.shared:
            place = _best_child(places, standing, standing.score, among, place)
        else:
            scoring.score_siblings(places, standing, place, agent, visit.score)
            place = _best_child(places, standing, visit.score, among, place)
    return place
