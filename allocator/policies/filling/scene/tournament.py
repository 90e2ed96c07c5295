"""Tournaments: find the first of each place's children, with updates in O(log children).

All tournaments are in one array. The children of a place are in ``winner[first + last : 2 *
last]``; the entries before these are the winners of pairs, up to ``winner[2 * first + 1]``, the
*champion* of all. The order is: places that take part before others, then by score, turn and place.
"""

from allocator.core.snapshot import Floats
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Places, Standing


@hot
def is_before(standing: Standing, scores: Floats, one: int, other: int) -> bool:
    """Whether one place comes before another by score, then turn, then place."""
    if scores[one] != scores[other]:
        return scores[one] < scores[other]
    if standing.served[one] != standing.served[other]:
        return standing.served[one] < standing.served[other]
    return one < other


@hot
def _beats(standing: Standing, one: int, other: int) -> bool:
    """Whether one place comes before another; never a tie."""
    if standing.out[one] != standing.out[other]:
        return standing.out[other]
    return is_before(standing, standing.score, one, other)


@compiled
def begin(places: Places, standing: Standing) -> None:
    for place in range(len(places.parent)):
        first, last = places.first[place], places.last[place]
        count = last - first
        for i in range(count):
            standing.winner[2 * first + count + i] = first + i
        for i in range(count - 1, 0, -1):
            one = standing.winner[2 * first + 2 * i]
            other = standing.winner[2 * first + 2 * i + 1]
            standing.winner[2 * first + i] = one if _beats(standing, one, other) else other


@hot
def champion(places: Places, standing: Standing, place: int) -> int:
    """Return the first child of an inner place, which is out only if all are; -1: no children."""
    first = places.first[place]
    return standing.winner[2 * first + 1] if first < places.last[place] else -1


@hot
def rematch(places: Places, standing: Standing, place: int) -> None:
    """Replay a place's matches after its score, `served` or `out` has changed."""
    parent = places.parent[place]
    if parent < 0:
        return
    first = places.first[parent]
    base = 2 * first
    # The index of the place among the leaves of the tournament.
    i = places.last[parent] - first + place - first
    while i > 1:
        # ``i ^ 1`` is the opponent, ``i >> 1`` the winner's entry.
        one, other = standing.winner[base + i], standing.winner[base + (i ^ 1)]
        i >>= 1
        standing.winner[base + i] = one if _beats(standing, one, other) else other
