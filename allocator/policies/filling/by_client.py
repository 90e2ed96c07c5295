"""The loop that chooses a client, then the agent for it: joint, best_fit.

The search descends from the root. At each node it takes the child with the smallest score on any
agent that can serve a client below it. Within a cycle these smallest scores only grow: measures
grow, free amounts shrink, and a client that cannot be served on an agent never can be later.
Therefore the tournaments use the scores last found as lower bounds, and examine only the champion
again, until it remains the champion.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from allocator.core import needs
from allocator.core.numba import pointers
from allocator.core.numba.compiled import entry
from allocator.core.numba.pointers import as_pointer, keep_alive
from allocator.core.snapshot import Ints
from allocator.policies.filling.rules import charging, offers, quota_precheck, quota_recheck, quotas
from allocator.policies.filling.rules.quota_recheck import QuotaRecheck
from allocator.policies.filling.scene import loop_arrays, scoring, tournament
from allocator.policies.filling.scene.compiled import allocating, compiled, fingerprint, hot
from allocator.policies.filling.scene.loop_arrays import Effort, Log, Scene
from allocator.policies.filling.scene.scoring import GUARANTEED, OVERDUE
from allocator.policies.filling.search import agent_index, fit_index, prefilter
from allocator.policies.filling.search.agent_index import AgentIndex, can_serve
from allocator.policies.filling.search.fit_index import FitIndex


class SearchFindings(NamedTuple):
    """What the search knows about each place, and since when. Times are numbers of grants.

    `slot` (P,): the agent where its score is smallest.
    `found` (P,): when that was found; -1: never.
    `grown` (P,): when its measure last grew.
    `changed` (J,): when each agent's free amounts last changed.
    """

    slot: Ints
    found: Ints
    grown: Ints
    changed: Ints


@allocating
def _begin(scene: Scene, index: AgentIndex) -> SearchFindings:
    """Give every place its score on an imaginary agent with the most of everything."""
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    count = len(places.parent)
    # The largest denominator of each column gives a lower bound of scores on all agents.
    most = np.zeros((1, standing.denominator.shape[1]))
    for agent in agents.row:
        row = 0 if rule.shared else agent
        for k in range(most.shape[1]):
            most[0, k] = max(most[0, k], standing.denominator[row, k])
    for place in range(count):
        standing.spent[place] = False
        standing.out[place] = not index.alive[place]
        standing.score[place] = scoring.score(places, standing, place, most, 0)
    tournament.begin(places, standing)
    return SearchFindings(
        np.zeros(count, np.int64),
        np.full(count, -1),
        np.zeros(count, np.int64),
        np.zeros(len(agents.row), np.int64),
    )


@hot
def _is_current(scene: Scene, index: AgentIndex, findings: SearchFindings, place: int) -> bool:
    """Whether the smallest score and agent found for a place are still valid.

    Grants to others on other agents can only have increased its score there, or used up its quota.
    """
    found, slot = findings.found[place], findings.slot[place]
    if findings.grown[place] > found or findings.changed[slot] > found:
        return False
    # Without quotas, grants elsewhere do not affect whether the agent can serve it.
    return not scene.rule.bounded or can_serve(scene, index, place, slot)


@compiled
def _examine(
    scene: Scene, index: AgentIndex, findings: SearchFindings, log: Log, place: int
) -> None:
    """Find a place's smallest score and its agent again; without an agent the place is out."""
    standing = scene.standing
    slot, score = agent_index.smallest(scene, index, place)
    if slot < 0:
        standing.out[place] = True
    else:
        standing.score[place] = score
        findings.slot[place] = slot
        findings.found[place] = log.length[0]
    # Its score may have grown, so another child may be the champion.
    tournament.rematch(scene.places, standing, place)


@hot
def _choose(scene: Scene, index: AgentIndex, findings: SearchFindings, log: Log) -> int:
    """Return the leaf that is served next; -1 if none can be."""
    places, standing = scene.places, scene.standing
    root = len(places.parent) - 1
    place = root
    # Descend to the champion of each tournament if its score is up to date; otherwise find the
    # score and replay the match.
    while places.client[place] < 0:
        child = tournament.champion(places, standing, place)
        if child < 0 or standing.out[child]:
            # No child can be served. At the root this ends the stage; elsewhere this place is out,
            # too.
            if place == root:
                return -1
            standing.out[place] = True
            tournament.rematch(places, standing, place)
            place = places.parent[place]
        elif _is_current(scene, index, findings, child):
            place = child
        else:
            _examine(scene, index, findings, log, child)
    return place


@compiled
def _readmit(
    scene: Scene, index: AgentIndex, fit: FitIndex, findings: SearchFindings, slot: int
) -> None:
    """After a grant on an agent, examine clients that the grant may have made servable there.

    A client's filter may not cover what the grant left over, or what is left may serve a guarantee
    of the client.
    """
    agents = scene.agents
    agent = agents.row[slot]
    # If all is plain, a filter that covered a task covers it for the whole cycle.
    if index.empty[slot] or agents.start[agent] == agents.start[agent + 1]:
        return
    refusal = agents.head[agent]
    while refusal >= 0:
        leaf = scene.places.of_client[agents.client[refusal]]
        _readmit_leaf(scene, index, fit, findings, leaf, slot)
        refusal = agents.next[refusal]
    if scene.rule.stage == GUARANTEED or scene.rule.several:
        _readmit_reserved(scene, index, fit, findings, slot)


@compiled
def _readmit_reserved(
    scene: Scene, index: AgentIndex, fit: FitIndex, findings: SearchFindings, slot: int
) -> None:
    """Examine clients again that may use the reserved resources which the latest grant used up.

    Without them, a task is made of resources that count towards guarantees, or of a whole disk that
    lets an offer reach the minimum.
    """
    places, agents, kinds, offer = scene.places, scene.agents, scene.kinds, scene.offer
    first, end = agents.start[agents.row[slot]], agents.start[agents.row[slot] + 1]
    for i in range(end - first):
        special = agents.special[first + i]
        if offer.special[i] == 0 or kinds.tier[special] != offers.RESERVED:
            continue
        for word in range(kinds.reach.shape[1]):
            bits = kinds.reach[special, word]
            while bits != prefilter.NO_BITS:
                leaf = places.of_client[(word << 6) + needs.lowest_bit(bits)]
                bits &= bits - np.uint64(1)
                if leaf < 0 or not places.known[leaf]:
                    continue
                if scene.rule.stage == GUARANTEED or places.opening[leaf] != 1:
                    _readmit_leaf(scene, index, fit, findings, leaf, slot)


@compiled
def _readmit_leaf(
    scene: Scene, index: AgentIndex, fit: FitIndex, findings: SearchFindings, leaf: int, slot: int
) -> None:
    """Let the search examine a leaf and its ancestors again on an agent."""
    places, standing = scene.places, scene.standing
    row = 0 if scene.rule.shared else scene.agents.row[slot]
    place = leaf
    while place >= 0 and index.alive[place]:
        agent_index.look_again(index, place, slot)
        fit_index.look_again(fit, place, slot)
        # The smaller of its score here and its previous score is a lower bound.
        here = scoring.score(places, standing, place, standing.denominator, row)
        standing.score[place] = min(standing.score[place], here)
        standing.out[place] = False
        findings.found[place] = -1
        tournament.rematch(places, standing, place)
        place = places.parent[place]


@compiled
def _heed_quotas(
    scene: Scene, index: AgentIndex, fit: FitIndex, findings: SearchFindings, recheck: QuotaRecheck
) -> None:
    """Examine leaves again whose quota a grant has reduced, see `QuotaRecheck`."""
    for i in range(len(recheck.leaf)):
        if quota_recheck.has_less(scene, recheck, i):
            for n in range(recheck.start[i], recheck.start[i + 1]):
                slot = recheck.slot[n]
                if not index.empty[slot]:
                    _readmit_leaf(scene, index, fit, findings, recheck.leaf[i], slot)


@hot
def _serve(
    scene: Scene,
    index: AgentIndex,
    fit: FitIndex,
    findings: SearchFindings,
    recheck: QuotaRecheck,
    log: Log,
    leaf: int,
    slot: int,
) -> None:
    # First update the cycle's books, then what the search knows about the agent.
    more = charging.grant(scene, log, leaf, scene.agents.row[slot])
    agent_index.note_grant(scene, index, leaf, slot, more)
    fit_index.note_grant(scene, index, fit, slot)
    now = log.length[0]
    findings.changed[slot] = now
    # The scores found for the leaf and its ancestors remain lower bounds, but `served`, which
    # breaks ties, has changed.
    place = leaf
    while place >= 0:
        findings.grown[place] = now
        tournament.rematch(scene.places, scene.standing, place)
        place = scene.places.parent[place]
    _readmit(scene, index, fit, findings, slot)
    _heed_quotas(scene, index, fit, findings, recheck)
    if scene.rule.stage == OVERDUE:
        # An overdue client gets one grant in this stage.
        index.alive[leaf] = False
        scene.standing.out[leaf] = True
        tournament.rematch(scene.places, scene.standing, leaf)


def _compile(sources: int) -> Callable[..., tuple[Log, int]]:
    """Make the loop, as in `by_agent`."""

    @entry(error_model="numpy")
    def fill(scene: Scene, effort: Effort, log: Log, held: Ints, best_fit: bool) -> tuple[Log, int]:
        # `keep_alive` at the end keeps the arrays alive while pointers to them are in use.
        scene_ptr, log_ptr = as_pointer(scene), as_pointer(log)
        own_index = agent_index.begin(scene_ptr, held, effort)
        index = as_pointer(own_index)
        own_fit = fit_index.begin(scene_ptr, effort.block, best_fit)
        fit = as_pointer(own_fit)
        own_findings = _begin(scene_ptr, index)
        own_recheck = quota_recheck.begin_recheck(scene_ptr, index.alive)
        recheck = as_pointer(own_recheck)
        findings = as_pointer(own_findings)
        while charging.may_go_on(log_ptr):
            # The log doubles when full, at another address.
            if not charging.has_room(log_ptr, scene_ptr.offer):
                log = charging.doubled(log, scene.offer)
                log_ptr = as_pointer(log)
            leaf = _choose(scene_ptr, index, findings, log_ptr)
            if leaf < 0:
                break
            # The agent where its score is smallest (joint), or that fits it best (best_fit).
            slot = findings.slot[leaf]
            if best_fit:
                # A client that needs nothing yet can use any unit.
                unit = fit_index.first_needed(index, leaf) % len(fit.changes)
                if fit_index.is_out_of_order(fit, unit):
                    fit_index.sort_agents(scene_ptr, index, fit, unit)
                slot = fit_index.nearest(scene_ptr, index, fit, unit, leaf)
            _serve(scene_ptr, index, fit, findings, recheck, log_ptr, leaf, slot)
        keep_alive(scene)
        keep_alive(own_index)
        keep_alive(own_fit)
        keep_alive(own_findings)
        keep_alive(own_recheck)
        return log, sources

    return fill


fill = _compile(
    fingerprint(
        pointers,
        loop_arrays,
        scoring,
        tournament,
        offers,
        quotas,
        quota_precheck,
        quota_recheck,
        charging,
        agent_index,
        fit_index,
        prefilter,
        needs,
    )
)
