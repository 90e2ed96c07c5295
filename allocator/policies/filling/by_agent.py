"""The loop that chooses an agent, then the best client for it: random, round_robin, listed.

The search for a client descends from the root. At each node it takes the child with the smallest
key (score, turn, number) among those with a client below that the agent can serve. Usually that is
the child with the smallest key of all. Otherwise the next ones are tried in order, and finally all.
Clients that few agents can serve are parked: they are compared with the others only on the agents
that may be able to serve them.
"""

from collections.abc import Callable

from allocator.core import needs
from allocator.core.numba import pointers
from allocator.core.numba.compiled import entry
from allocator.core.numba.pointers import as_pointer, keep_alive
from allocator.core.snapshot import BitWords
from allocator.policies.filling.rules import charging, offers, quota_precheck, quotas
from allocator.policies.filling.scene import loop_arrays, scoring, tournament
from allocator.policies.filling.scene.compiled import fingerprint, hot
from allocator.policies.filling.scene.loop_arrays import Effort, Log, Scene
from allocator.policies.filling.scene.scoring import OVERDUE
from allocator.policies.filling.search import prefilter, visits
from allocator.policies.filling.search.visits import NOBODY, Visit

RANDOM, ROUND_ROBIN, LISTED = range(3)

_UNDECIDED = -2


@hot
def _try_in_order(scene: Scene, visit: Visit, agent: int, tries: int, examined: bool) -> int:
    """Try leaves in order.

    Leaves that the quick test excludes are parked. Other places that cannot be served are out until
    the end of the visit. `examined`: whether `prefilter.look_at` has examined the agent.

    Returns the leaf, `NOBODY`, or `_UNDECIDED` after this many tries.
    """
    places, standing = scene.places, scene.standing
    root = len(places.parent) - 1
    result, place = _UNDECIDED, root
    tried = passed = 0
    # Descend to the champion of each tournament. Take a place that cannot be served out of its
    # tournament, and continue with the next best.
    while tried < tries:
        if standing.out[place]:
            result = NOBODY
            break
        child = tournament.champion(places, standing, place)
        if places.client[child] < 0:
            # An inner place: descend, unless what quotas leave its clients is not free here.
            if not scene.rule.bounded or quota_precheck.may_serve(
                scene, visit.precheck, child, agent
            ):
                place = child
                continue
        elif offers.can_serve(scene, visit.offerable[0], child, agent):
            result = child
            break
        elif standing.spent[child] and not len(scene.agents.special):
            # Quotas leave it nothing, and no agent has special resources: remove it from the stage,
            # and begin again at the root. This is not a try.
            visits.stand_back(scene, visit, child)
            place = root
            continue
        elif not examined:
            if not prefilter.look_at(scene, visit.hopes, agent):
                result = NOBODY
                break
            examined = True
        if places.client[child] < 0 or not visits.park(scene, visit, child, agent):
            visits.leave(scene, visit, child)
            visit.passed_over[passed] = child
            passed += 1
        tried += 1
        # Continue at the nearest place above that is not out; at the root if all are.
        place = places.parent[child]
        while standing.out[place] and place != root:
            place = places.parent[place]
    # The next agent may be able to serve the places that were passed over.
    for i in range(passed):
        visits.join(scene, visit, visit.passed_over[i])
    return result


@hot
def _choose(scene: Scene, effort: Effort, visit: Visit, agent: int) -> int:
    places, agents = scene.places, scene.agents
    visit.offerable[0] = offers.is_offerable(places, agents, agent)
    if not visit.offerable[0] and not offers.has_any(agents, agent):
        return NOBODY
    # Detect early that limits are used up, although much is free.
    root = len(places.parent) - 1
    if scene.rule.bounded and not quota_precheck.may_serve(scene, visit.precheck, root, agent):
        return NOBODY
    leaf = _look_for(scene, effort, visit, agent)
    if leaf < 0 and scene.rule.bounded:
        quota_precheck.renew(scene, visit.precheck)
    return leaf


@hot
def _look_for(scene: Scene, effort: Effort, visit: Visit, agent: int) -> int:
    """Return the leaf that the agent serves next; -1: it can serve none."""
    visit.visits[0] += 1
    parked, examined = 0, visit.parked_count[0] > 0
    if examined:
        if not prefilter.look_at(scene, visit.hopes, agent):
            return NOBODY
        parked = visits.list_parked(scene, effort, visit, agent)
    leaf = _UNDECIDED
    if scene.rule.shared:
        leaf = _try_in_order(scene, visit, agent, effort.tries, examined)
    else:
        # Try only the best leaf; another try would score every family again.
        best = visits.descend(scene, visit, agent)
        if best < 0 or offers.can_serve(scene, visit.offerable[0], best, agent):
            leaf = best
        elif not examined and not prefilter.look_at(scene, visit.hopes, agent):
            leaf = NOBODY
        else:
            visits.park(scene, visit, best, agent)
    if leaf != _UNDECIDED:
        return visits.best_with_listed(scene, visit, parked, leaf, agent) if parked else leaf
    return visits.best_of_all(scene, visit, agent)


@hot
def _serve(scene: Scene, effort: Effort, visit: Visit, log: Log, agent: int) -> bool:
    leaf = _choose(scene, effort, visit, agent)
    if leaf < 0:
        return False
    more = charging.grant(scene, log, leaf, agent)
    visit.precheck.charged[0] = True
    if scene.rule.shared:
        scoring.rescore_upwards(scene.places, scene.standing, leaf)
    if scene.rule.stage == OVERDUE:
        # An overdue client gets one grant in this stage.
        visits.stand_back(scene, visit, leaf)
    return more


def _compile(sources: int) -> Callable[..., tuple[Log, int]]:
    """Make the loop; it captures the fingerprint of its sources, so that changes recompile it.

    The loop releases the GIL, so that other threads can respond while it runs.
    """

    @entry(error_model="numpy")
    def fill(
        scene: Scene, effort: Effort, log: Log, order: int, state: BitWords
    ) -> tuple[Log, int]:
        # `keep_alive` at the end keeps the arrays alive while pointers to them are in use.
        scene_ptr = as_pointer(scene)
        own = visits.begin(scene_ptr)
        visit, log_ptr = as_pointer(own), as_pointer(log)
        # ``live[:count]`` may still serve a client.
        live = scene.agents.row.copy()
        count = len(live)
        kept = 0  # number of agents of this round that continue in the next; they are at the front
        at = 0
        while count > 0 and charging.may_go_on(log_ptr):
            # The log doubles when full, at another address.
            if not charging.has_room(log_ptr, scene_ptr.offer):
                log = charging.doubled(log, scene.offer)
                log_ptr = as_pointer(log)
            # Choose the next agent. A round of round_robin starts with a shuffle (Fisher-Yates).
            if order == RANDOM:
                at = scoring.draw(state, count)
            elif order == ROUND_ROBIN and at == 0:
                for i in range(count - 1, 0, -1):
                    j = scoring.draw(state, i + 1)
                    live[i], live[j] = live[j], live[i]
            more = _serve(scene_ptr, effort, visit, log_ptr, live[at])
            if order == RANDOM:
                if not more:
                    # The last agent takes its position; the order does not matter.
                    count -= 1
                    live[at] = live[count]
            elif order == ROUND_ROBIN:
                # Agents that continue move to the front; only these are left after the round.
                if more:
                    live[kept] = live[at]
                    kept += 1
                at += 1
                if at == count:
                    count, kept, at = kept, 0, 0
            elif not more:
                # listed: stay on one agent until it can serve no client.
                at += 1
                if at == count:
                    count = 0
        keep_alive(scene)
        keep_alive(own)
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
        charging,
        prefilter,
        visits,
        needs,
    )
)
