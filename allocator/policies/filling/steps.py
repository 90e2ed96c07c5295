"""The steps that both loops are made of: chance, score, may it, grant it.

References
----------
.. [1] Steele, Lea, Flood. "Fast Splittable Pseudorandom Number Generators." OOPSLA 2014, fig. 17
   (splitmix64).
"""

import numpy as np

from allocator.core.snapshot import Floats, Words
from allocator.policies.filling import tournament
from allocator.policies.filling.arrays import Agents, Log, Places, Rule, Standing
from allocator.policies.filling.compiled import allocating, compiled

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@compiled
def next_word(state: Words) -> np.uint64:
    """Draw 64 random bits by splitmix64 [1]_; the state is one word, and moves on."""
    state[0] += _GAMMA
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@compiled
def draw(state: Words, bound: int) -> int:
    """Draw a number below `bound` (< 2**32): the upper half of its product with 32 random bits."""
    high = next_word(state) >> np.uint64(32)
    return int(np.int64((high * np.uint64(bound)) >> np.uint64(32)))


@compiled
def score(
    standing: Standing, weight: float, place: int, denominator: Floats, row: int, additive: bool
) -> float:
    """Score of a place against one row of denominators (any, K)."""
    result = 0.0
    for k in range(denominator.shape[1]):
        measure = standing.measure[k, place]
        if measure > 0.0:
            part = measure / (denominator[row, k] * weight)
            if additive:
                result += part
            elif part > result:
                result = part
    return result


@compiled
def fits(places: Places, agents: Agents, place: int, agent: int) -> bool:
    """Say whether the demand of a place is free on an agent."""
    for r in range(agents.free.shape[1]):
        if agents.free[agent, r] < places.demand[place, r]:
            return False
    return True


@compiled
def is_offerable(agents: Agents, agent: int) -> bool:
    """Say whether all that is free on an agent makes an offer: not empty, and not below minimum."""
    resources = agents.free.shape[1]
    for r in range(resources):
        if agents.free[agent, r] > 0:
            break
    else:
        return False
    for row in range(len(agents.minimum)):
        for r in range(resources):
            if agents.free[agent, r] < agents.minimum[row, r]:
                break
        else:
            return True
    return len(agents.minimum) == 0


@compiled
def is_excluded(agents: Agents, agent: int, client: int) -> bool:
    """Look up the pair's bit."""
    word = agents.excluded[agent, client >> 6]
    return (word >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0)


@compiled
def is_refused(agents: Agents, places: Places, agent: int, place: int, refusal: int) -> bool:
    """Say whether a filter covers what the leaf would be offered on the agent."""
    known = places.known[place]
    for r in range(agents.free.shape[1]):
        offered = places.demand[place, r] if known else agents.free[agent, r]
        if agents.amount[refusal, r] < offered:
            return False
    return True


@compiled
def _holds_already(agents: Agents, log: Log, client: int, place: int, agent: int) -> bool:
    """Say whether the client holds something on the agent, from before or from this cycle."""
    key = (agent << 32) + client
    at = np.searchsorted(agents.holder, key)
    if at < len(agents.holder) and agents.holder[at] == key:
        return True
    grant = log.last_on_agent[agent]
    while grant >= 0:
        if log.place[grant] == place:
            return True
        grant = log.previous[grant]
    return False


@compiled
def grant(
    places: Places, standing: Standing, agents: Agents, rule: Rule, log: Log, place: int, agent: int
) -> bool:
    """Give a task, or all that is free; returns whether the agent may have something left.

    The measures and `served` of the leaf and of all above it grow; scores and tournaments are left
    to the caller. The log has room.
    """
    known = places.known[place]
    count = places.task_gain[place] if known else 0.0
    if rule.counts_agents and not _holds_already(agents, log, places.client[place], place, agent):
        count += places.agent_gain[place]

    number = log.length[0]
    log.place[number] = place
    log.agent[number] = agent
    log.tasks[number] = 1 if known else 0
    log.previous[number] = log.last_on_agent[agent]
    log.last_on_agent[agent] = number
    log.length[0] = number + 1

    resources = agents.free.shape[1]
    gain = places.amount_gain[place]
    for r in range(resources):
        amount = places.demand[place, r] if known else agents.free[agent, r]
        log.amount[number, r] = amount
        agents.free[agent, r] -= amount
        if rule.residual:
            standing.denominator[agent, r] -= amount
        above = place
        while above >= 0:
            standing.measure[r, above] += gain * amount
            above = places.parent[above]
    above = place
    while above >= 0:
        standing.measure[resources, above] += count
        standing.served[above] += 1
        above = places.parent[above]
    return known


@allocating
def doubled(log: Log) -> Log:
    """Return a copy of the log with twice the room."""
    size = len(log.place)
    longer = Log(
        log.length,
        np.empty(2 * size, np.int64),
        np.empty(2 * size, np.int64),
        np.empty(2 * size, np.int64),
        np.empty((2 * size, log.amount.shape[1]), np.int64),
        log.last_on_agent,
        np.empty(2 * size, np.int64),
    )
    for grant in range(size):  # assigned one by one, for that compiles in no time
        longer.place[grant] = log.place[grant]
        longer.agent[grant] = log.agent[grant]
        longer.tasks[grant] = log.tasks[grant]
        longer.previous[grant] = log.previous[grant]
        for r in range(log.amount.shape[1]):
            longer.amount[grant, r] = log.amount[grant, r]
    return longer


@compiled
def mark_alive(places: Places, alive: np.ndarray) -> None:
    """Given which leaves live, mark the inner places that have a living leaf below them."""
    for place in range(len(alive)):
        if places.client[place] < 0:
            alive[place] = False
    for place in range(len(alive) - 1):  # children come before parents
        if alive[place]:
            alive[places.parent[place]] = True


@compiled
def score_siblings(
    places: Places, standing: Standing, parent: int, row: int, additive: bool, scores: Floats
) -> None:
    """Score all children of a place against one row of the denominators.

    Gives what `score` gives, in loops over slices, which the compiler vectorises.
    """
    first, last = places.first[parent], places.last[parent]
    result, weight = scores[first:last], places.weight[first:last]
    result[:] = 0.0
    for k in range(len(standing.measure)):
        against = standing.denominator[row, k]
        if against < np.inf:
            add_parts(standing.measure[k, first:last], weight, against, additive, result)


@compiled
def add_parts(
    measure: Floats, weight: Floats, against: float, additive: bool, result: Floats
) -> None:
    """Combine one column's parts into scores."""
    if additive:
        for i in range(len(result)):
            part = measure[i] / (against * weight[i])
            result[i] += part if measure[i] > 0.0 else 0.0
    else:
        for i in range(len(result)):
            part = measure[i] / (against * weight[i])  # 0 / 0 is not larger than anything
            result[i] = max(result[i], part)


@compiled
def replay_upwards(places: Places, standing: Standing, rule: Rule, place: int) -> None:
    """Score a place and all above it anew, for criteria with one denominator for all agents."""
    while places.parent[place] >= 0:
        standing.score[place] = score(
            standing, places.weight[place], place, standing.denominator, 0, rule.additive
        )
        tournament.replay(places, standing, place)
        place = places.parent[place]
