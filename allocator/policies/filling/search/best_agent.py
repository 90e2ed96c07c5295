"""Where a place does best: the agent with its smallest score.

Where few denominators occur, agents of equal denominators form a group, in which the lowest that
can serve somebody is the best; it only moves upwards, so a cursor for each place and group finds
it. Otherwise all agents are scored at once, and the best few are kept: as long as the best of them
is better than the others can have become since, it is the best of all.
"""

import numpy as np

from allocator.policies.filling.scene import scoring
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Places, Scene, Standing
from allocator.policies.filling.search.agent_index import AgentIndex, can_serve, is_spent

_ROUNDED_DOWN = 1 - 1e-12
"""Makes a lower bound a little lower, so that rounding errors cannot make it too high."""


@compiled
def smallest(scene: Scene, field: AgentIndex, place: int) -> tuple[int, float]:
    """Return the slot with the smallest score of a place, the lowest on ties, and the score.

    Only agents that can serve somebody below the place count; -1 where there is none.
    """
    places, standing, agents, rule = scene.places, scene.standing, scene.agents, scene.rule
    # No groups: use the best few that were kept, and score all agents only where these do not
    # decide.
    if len(field.start) == 1:
        slot, score = _best_of_few(scene, field, place)
        if slot < 0:
            _score_all(places, standing, field, place)
            slot = _keep_few(scene, field, place)
            score = field.value[slot]
        return slot, score
    # Groups: all agents of a group give the same score, so each group is scored once, and its
    # lowest agent that can serve somebody stands for it.
    best, slot = 0.0, -1
    for group in range(len(field.start) - 1):
        row = 0 if rule.shared else agents.row[field.member[field.start[group]]]
        score = scoring.score(places, standing, place, standing.denominator, row)
        if slot >= 0 and score > best:
            # Worse than the best group so far; its agents need not be looked at.
            continue
        # Go on from where the last search in this group ended, for this place or for the one above
        # it: before that nobody can serve.
        at, end = field.cursor[place, group], field.start[group + 1]
        if places.parent[place] >= 0:
            at = max(at, field.cursor[places.parent[place], group])
        at = _skip_empty(field, at)
        while at < end and not can_serve(scene, field, place, field.member[at]):
            if is_spent(scene, place):
                return -1, 0.0
            at = _skip_empty(field, at + 1)
        field.cursor[place, group] = min(at, end)
        # Between groups of equal score the lowest slot wins.
        if at < end and (slot < 0 or score < best or field.member[at] < slot):
            best, slot = score, field.member[at]
    return slot, best


@hot
def _skip_empty(field: AgentIndex, at: int) -> int:
    """Return the first position from here on whose agent is not empty, maybe in another group."""
    end = len(field.member)
    while at < end and field.empty[field.member[at]]:
        # The entry still points at itself, but its agent is empty: point it to the next one.
        if field.skip[at] == at:
            field.skip[at] = at + 1
        # Halve the path on the way, so that later searches jump over empty agents (as in
        # union-find).
        following = field.skip[at]
        field.skip[at] = field.skip[following]
        at = following
    return at


@compiled
def _score_all(places: Places, standing: Standing, field: AgentIndex, place: int) -> None:
    """Score a place on every agent; gives what `scoring.score` gives."""
    value, weight = field.value, places.weight[place]
    value[:] = 0.0
    for k in range(places.first_column[place], places.end_column[place]):
        # A measure of 0 adds nothing, whatever the denominator.
        measure, against = standing.measure[k, place], field.against[k]
        if measure == 0.0:
            continue
        if places.additive[place]:
            for slot in range(len(value)):
                value[slot] += measure / (against[slot] * weight)
        else:
            for slot in range(len(value)):
                part = measure / (against[slot] * weight)
                value[slot] = max(value[slot], part)


@compiled
def _keep_few(scene: Scene, field: AgentIndex, place: int) -> int:
    """Keep the slots of the smallest values that can serve below a place; returns the best, or -1.

    Lower slots come first on ties.
    """
    standing = scene.standing
    few, value, size = field.few[place], field.value, field.few.shape[1]
    count, last = 0, 0.0
    # A short sorted list of the best. Slots come in ascending order, so only a smaller value may
    # displace one that is in the list; ties stay with the lower slot.
    for slot in range(len(value)):
        if count == size and value[slot] >= last:
            continue
        if not can_serve(scene, field, place, slot):
            continue
        # Insert: move the worse ones one position to the back. The last falls out of a full list.
        at = min(count, size - 1)
        while at > 0 and value[few[at - 1]] > value[slot]:
            few[at] = few[at - 1]
            at -= 1
        few[at] = slot
        count = min(count + 1, size)
        last = value[few[count - 1]]
    # Remember how good the worst of them is, and the measures at this time. `_best_of_few` needs
    # both to say whether anybody outside the list can be better.
    field.few_count[place], field.few_last[place] = count, last
    for k in range(len(standing.measure)):
        field.few_measure[k, place] = standing.measure[k, place]
    return few[0] if count else -1


@compiled
def _best_of_few(scene: Scene, field: AgentIndex, place: int) -> tuple[int, float]:
    """Return the best of those kept, if it must be the best of all, and its score; -1 if not.

    The others had a score of at least `few_last`. It can only have grown, and has grown as much as
    the column of the measure that grew least, whatever column decides it.
    """
    places, standing = scene.places, scene.standing
    count, size = field.few_count[place], field.few.shape[1]
    best, slot = 0.0, -1
    # The best of the list by the scores of this moment.
    for i in range(count):
        other = field.few[place, i]
        if can_serve(scene, field, place, other):
            row = scene.agents.row[other]
            score = scoring.score(places, standing, place, standing.denominator, row)
            if slot < 0 or score < best or (score == best and other < slot):
                best, slot = score, other
    # A list that is not full holds all that could serve, so its best is the best of all.
    if slot < 0 or count < size:
        return slot, best
    # How much every score outside the list has grown at least.
    growth = np.inf
    for k in range(places.first_column[place], places.end_column[place]):
        if field.few_measure[k, place] > 0.0:
            growth = min(growth, standing.measure[k, place] / field.few_measure[k, place])
    last = field.few_last[place]
    # Nothing grew: the bound is exact, and on a tie the lower slot wins. A bound that grew is a
    # computed number, so only a clear lead counts.
    if growth <= 1.0 or growth == np.inf:
        if best < last or (best == last and slot <= field.few[place, size - 1]):
            return slot, best
    elif best < last * growth * _ROUNDED_DOWN:
        return slot, best
    return -1, 0.0
