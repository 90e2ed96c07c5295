"""A quick test which clients an agent may be able to serve, 64 at a time; no false negatives.

It helps if many clients cannot be served: a framework may demand more than any agent has in a
thousand roles, or be barred almost everywhere.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import needs
from allocator.core.numba.bit_tables import word_of
from allocator.core.snapshot import BitWords, Bools, Ints, Tier
from allocator.policies.filling.rules import offers
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Scene
from allocator.policies.filling.scene.scoring import LEFT_OVER

_SHARED = int(Tier.SHARED)
NO_BITS, ALL_BITS = np.uint64(0), ~np.uint64(0)


class Hopes(NamedTuple):
    """What is free on the agent under test; the arrays are reused for every agent.

    `plain`, `whole` (2, R), in thousandths: what any client may have, without and with all special
        resources (whether or not a client may have these); rows as for `needs.steps_reached`.
    `plain_step`, `whole_step` (2, D): the steps that these reach on each scale.
    `some` (2,): whether `plain` and `whole` may be enough for any client.
    """

    plain: Ints
    whole: Ints
    plain_step: Ints
    whole_step: Ints
    some: Bools


@allocating
def begin(scene: Scene) -> Hopes:
    resources, thresholds = scene.agents.free.shape[1], len(scene.thresholds.column)
    return Hopes(
        np.zeros((2, resources), np.int64),
        np.zeros((2, resources), np.int64),
        np.zeros((2, thresholds), np.int64),
        np.zeros((2, thresholds), np.int64),
        np.zeros(2, np.bool_),
    )


@compiled
def look_at(scene: Scene, hopes: Hopes, agent: int) -> bool:
    """Examine an agent; return whether some client may be able to use its free resources."""
    agents, thresholds, special = scene.agents, scene.thresholds, False
    for each in range(2):
        for r in range(hopes.plain.shape[1]):
            hopes.plain[each, r] = agents.free[agent, r]
            hopes.whole[each, r] = agents.free[agent, r]
        for e in range(agents.start[agent], agents.start[agent + 1]):
            amount = _of_use(scene, e)
            hopes.whole[each, scene.kinds.column[agents.special[e]]] += amount
            special |= amount > 0
    if scene.rule.stage == LEFT_OVER:
        return special
    # An empty amount is no offer, even to a client that accepts any.
    plain = False
    for r in range(hopes.plain.shape[1]):
        plain |= hopes.plain[0, r] > 0
    if not len(thresholds.members):
        return plain or special
    hopes.some[0] = plain and needs.steps_reached(thresholds, hopes.plain, hopes.plain_step)
    hopes.some[1] = special and needs.steps_reached(thresholds, hopes.whole, hopes.whole_step)
    if scene.rule.several:
        return plain or special  # a client with an offer there may be granted another task
    return hopes.some[0] or hopes.some[1]


@hot
def _of_use(scene: Scene, e: int) -> int:
    """Return how much of a special resource is useful; a shared volume also is to its taker."""
    agents = scene.agents
    if scene.kinds.tier[agents.special[e]] == _SHARED and scene.rule.stage != LEFT_OVER:
        return int(agents.special_whole[e])
    return int(agents.special_free[e])


@hot
def of_word(scene: Scene, hopes: Hopes, agent: int, word: int, bits: np.uint64) -> np.uint64:
    """Return which of the clients (bits of one word) the examined agent may be able to serve."""
    thresholds, found = scene.thresholds, NO_BITS
    if scene.agents.barring[agent]:
        bits &= ~offers.barred_in_word(scene.agents, agent, word)
    if not len(thresholds.members):
        return bits
    if scene.rule.stage == LEFT_OVER:
        # Needs do not matter to leftovers, which make no task.
        return bits & _may_have_special(scene, agent, word)
    if scene.rule.several:
        found = bits & word_of(scene.agents.stands, agent, word)
        bits &= ~found
    if bits != NO_BITS and hopes.some[0]:
        those = needs.could_do(thresholds, hopes.plain_step, word, bits)
        bits &= ~those
        found |= those
    # Special resources may make it enough for clients that may have some.
    if bits != NO_BITS and hopes.some[1]:
        bits &= _may_have_special(scene, agent, word)
        found |= needs.could_do(thresholds, hopes.whole_step, word, bits)
    return found


@compiled
def _may_have_special(scene: Scene, agent: int, word: int) -> np.uint64:
    """Return the clients (bits of one word) that may have special resources free on an agent."""
    agents, found = scene.agents, NO_BITS
    for e in range(agents.start[agent], agents.start[agent + 1]):
        if _of_use(scene, e) > 0:
            found |= scene.kinds.reach[agents.special[e], word]
    return found


@compiled
def turn(square: BitWords) -> None:
    """Transpose 64 words of 64 bits: bit i of word j becomes bit j of word i."""
    # Swap the upper right with the lower left quarter, and repeat within the quarters.
    width, mask = 32, np.uint64(0xFFFFFFFF)
    while width:
        shift = np.uint64(width)
        row = 0
        while row < 64:
            swapped = ((square[row] >> shift) ^ square[row + width]) & mask
            square[row] ^= swapped << shift
            square[row + width] ^= swapped
            row = (row + width + 1) & ~width
        width >>= 1
        mask ^= mask << np.uint64(width)
