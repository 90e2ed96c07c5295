"""The steps that both loops share: stages, random numbers, scores, live places.

The stages of a cycle: first clients with an unmet guarantee, as far as grants bring them nearer to
it; then overdue clients, one grant each; then all clients; last, special resources that are too
little for a task are offered to clients that may have them.

References
----------
.. [1] Steele, Lea, Flood. "Fast Splittable Pseudorandom Number Generators." OOPSLA 2014, fig. 17
   (splitmix64).
"""

import numpy as np

from allocator.core.snapshot import BitWords, Floats
from allocator.policies.filling.scene import tournament
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Places, Standing

GUARANTEED, OVERDUE, USUAL, LEFT_OVER = range(4)


_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@hot
def next_word(state: BitWords) -> np.uint64:
    """Draw 64 random bits by splitmix64 [1]_, advancing the one-word state."""
    state[0] += _GAMMA
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@hot
def draw(state: BitWords, bound: int) -> int:
    """Draw a number below `bound` (< 2**32): the upper half of its product with 32 random bits."""
    high = next_word(state) >> np.uint64(32)
    return int(np.int64((high * np.uint64(bound)) >> np.uint64(32)))


@hot
def score(places: Places, standing: Standing, place: int, denominator: Floats, row: int) -> float:
    """Score a place against one row of denominators (any, K)."""
    weight, additive = places.weight[place], places.additive[place]
    result = 0.0
    # A measure of 0 contributes 0 even if the denominator is 0.
    for k in range(places.first_column[place], places.end_column[place]):
        measure = standing.measure[k, place]
        if measure > 0.0:
            part = measure / (denominator[row, k] * weight)
            if additive:
                result += part
            elif part > result:
                result = part
    return result


@compiled
def mark_alive(places: Places, alive: np.ndarray) -> None:
    for place in range(len(alive)):
        if places.client[place] < 0:
            alive[place] = False
    for place in range(len(alive) - 1):  # children come before parents
        if alive[place]:
            alive[places.parent[place]] = True


@compiled
def score_siblings(
    places: Places, standing: Standing, parent: int, row: int, scores: Floats
) -> None:
    """Score all children of a place, as `score` does, in loops that the compiler vectorises."""
    first, last = places.first[parent], places.last[parent]
    result, weight = scores[first:last], places.weight[first:last]
    result[:] = 0.0
    additive = places.additive[first]
    for k in range(places.first_column[first], places.end_column[first]):
        against = standing.denominator[row, k]
        if against < np.inf:
            add_parts(standing.measure[k, first:last], weight, against, additive, result)


@compiled
def add_parts(
    measure: Floats, weight: Floats, against: float, additive: bool, result: Floats
) -> None:
    if additive:
        # A loop without branches can be vectorised.
        for i in range(len(result)):
            part = measure[i] / (against * weight[i])
            result[i] += part if measure[i] > 0.0 else 0.0
    else:
        for i in range(len(result)):
            part = measure[i] / (against * weight[i])  # 0 / 0 is not larger than anything
            result[i] = max(result[i], part)


@hot
def rescore_upwards(places: Places, standing: Standing, place: int) -> None:
    """Rescore a place and its ancestors, for criteria with one denominator for all agents."""
    while places.parent[place] >= 0:
        standing.score[place] = score(places, standing, place, standing.denominator, 0)
        tournament.rematch(places, standing, place)
        place = places.parent[place]
