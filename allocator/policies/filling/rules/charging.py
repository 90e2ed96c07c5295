"""Applies a grant to measures, free amounts and quotas."""

import numpy as np

from allocator.core.numba.bit_tables import set_bit
from allocator.policies.filling.rules import offers, quotas
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Agents, Log, Offer, Places, Scene
from allocator.policies.filling.scene.scoring import LEFT_OVER


@compiled
def _holds_already(agents: Agents, log: Log, client: int, place: int, agent: int) -> bool:
    # From before the cycle: look up the sorted keys.
    key = (agent << 32) + client
    at = np.searchsorted(agents.holder, key)
    if at < len(agents.holder) and agents.holder[at] == key:
        return True
    # From this cycle: follow the chain of the agent's grants.
    grant = log.last_on_agent[agent]
    while grant >= 0:
        if log.place[grant] == place:
            return True
        grant = log.previous[grant]
    return False


@hot
def _offer_simply(places: Places, agents: Agents, offer: Offer, place: int, agent: int) -> None:
    known = places.known[place]
    for r in range(len(offer.plain)):
        amount = places.demand[place, r] if known else agents.free[agent, r]
        offer.plain[r] = amount
        offer.whole[r] = amount
    offer.tasks[0] = 1 if known else 0


@hot
def _note(agents: Agents, offer: Offer, log: Log, place: int, agent: int) -> None:
    number = log.length[0]
    # Grants on one agent are chained: `last_on_agent` is the latest, `previous` the one before.
    log.place[number] = place
    log.agent[number] = agent
    log.tasks[number] = offer.tasks[0]
    log.previous[number] = log.last_on_agent[agent]
    log.last_on_agent[agent] = number
    log.length[0] = number + 1
    for r in range(len(offer.plain)):
        log.amount[number, r] = offer.plain[r]
    # Special resources are rare, so a separate list has them.
    start = agents.start[agent]
    for i in range(agents.start[agent + 1] - start):
        if offer.special[i] > 0:
            part = log.length[1]
            log.part_of[part] = number
            log.part[part] = start + i
            log.part_amount[part] = offer.special[i]
            log.length[1] = part + 1


@hot
def _take_away(agents: Agents, offer: Offer, simple: bool, place: int, agent: int) -> bool:
    left = False
    for r in range(len(offer.plain)):
        agents.free[agent, r] -= offer.plain[r]
        left |= agents.free[agent, r] > 0
    if not simple:
        # A simple offer has no special part.
        start = agents.start[agent]
        for i in range(agents.start[agent + 1] - start):
            if offer.special[i] > 0:
                agents.taker[start + i] = place
            agents.special_free[start + i] -= offer.special[i]
            left |= agents.special_free[start + i] > 0
    return left


@hot
def _add_up(scene: Scene, new: bool, place: int, agent: int) -> None:
    """Add the offer to the measures of the leaf and its ancestors, and record its turn."""
    places, standing = scene.places, scene.standing
    columns = len(scene.offer.whole) + 1
    for g in range(len(places.amount_gain)):
        # The count column grows by tasks, by the first use of an agent, or not at all.
        count = places.task_gain[g, place] * scene.offer.tasks[0]
        if new:
            count += places.agent_gain[g, place]
        _add_up_one(scene, g * columns, places.amount_gain[g, place], count, place, agent)
    # At each level, the place now comes after all siblings with the same score.
    turn = standing.served[len(places.parent) - 1] + 1
    above = place
    while above >= 0:
        standing.served[above] = turn
        above = places.parent[above]


@hot
def _add_up_one(
    scene: Scene, first: int, gain: float, count: float, place: int, agent: int
) -> None:
    places, standing, offer = scene.places, scene.standing, scene.offer
    resources = len(offer.whole)
    for r in range(resources):
        amount = offer.whole[r]
        # The denominator is what is free on this agent, which has just decreased.
        if places.residual[first + r]:
            standing.denominator[agent, first + r] -= amount
        # Measures are additive over the tree: all ancestors grow by the same amount.
        above = place
        while above >= 0:
            standing.measure[first + r, above] += gain * amount
            above = places.parent[above]
    above = place
    while above >= 0:
        standing.measure[first + resources, above] += count
        above = places.parent[above]


@hot
def grant(scene: Scene, log: Log, place: int, agent: int) -> bool:
    """Grant a leaf what it can be served with; return whether the agent may have something left.

    Updates the measures and `served` of the leaf and its ancestors, but not scores and
    tournaments. The log must have room.
    """
    places, agents, rule, offer = scene.places, scene.agents, scene.rule, scene.offer
    # Leftovers are granted as a whole, even to clients whose demand is known.
    known = places.known[place] and rule.stage != LEFT_OVER
    client = places.client[place]
    # Evaluate this before the grant is logged.
    new = rule.counts_agents and not _holds_already(agents, log, client, place, agent)
    simple = offers.is_simple(places, agents, rule, place, agent)
    if simple:
        _offer_simply(places, agents, offer, place, agent)
    else:
        offers.work_out(scene, place, agent)
        if rule.bounded:
            quotas.charge(scene.bounds, offer, rule.stage, client)
    _note(agents, offer, log, place, agent)
    left = _take_away(agents, offer, simple, place, agent)
    _add_up(scene, new, place, agent)
    if rule.joins and places.known[place]:
        set_bit(agents.stands, agent, client)
    # Bar clients whose filters cover all that is left, so that they are not tried again.
    if left:
        offers.bar_refused(scene, agent)
    # After a task, the next search finds out whether the agent can serve others.
    return known or left


GRANTS_MAX = 2**18
"""Maximum number of grants per cycle; the next cycle continues.

As separate decisions, as from tenants with tiny tasks, they take about a second and 100 MB.
"""


@hot
def may_go_on(log: Log) -> bool:
    return log.length[0] < GRANTS_MAX


@hot
def has_room(log: Log, offer: Offer) -> bool:
    return log.length[0] < len(log.place) and log.length[1] + len(offer.special) <= len(log.part)


@allocating
def doubled(log: Log, offer: Offer) -> Log:
    """Return a copy of the log with room for twice as many grants."""
    size, parts = len(log.place), len(log.part)
    # At least one more grant must fit, even if it takes every special row of its agent.
    more = parts + len(offer.special)
    longer = Log(
        log.length,
        np.empty(2 * size, np.int64),
        np.empty(2 * size, np.int64),
        np.empty(2 * size, np.int64),
        np.empty((2 * size, log.amount.shape[1]), np.int64),
        log.last_on_agent,
        np.empty(2 * size, np.int64),
        np.empty(2 * more, np.int64),
        np.empty(2 * more, np.int64),
        np.empty(2 * more, np.int64),
    )
    for grant in range(log.length[0]):  # element by element: this compiles fast
        longer.place[grant] = log.place[grant]
        longer.agent[grant] = log.agent[grant]
        longer.tasks[grant] = log.tasks[grant]
        longer.previous[grant] = log.previous[grant]
        for r in range(log.amount.shape[1]):
            longer.amount[grant, r] = log.amount[grant, r]
    for part in range(log.length[1]):
        longer.part_of[part] = log.part_of[part]
        longer.part[part] = log.part[part]
        longer.part_amount[part] = log.part_amount[part]
    return longer
