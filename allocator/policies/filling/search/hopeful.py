"""Whom an agent may be able to serve, 64 clients at a time: a quick look that leaves out nobody.

It is quick for many clients that cannot be served, whyever. Somebody may be in a thousand roles,
and want there what no agent has, or be barred nearly everywhere.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import wants
from allocator.core.snapshot import Ints, Words
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Scene
from allocator.policies.filling.scene.scoring import LEFT_OVER

NO_BITS, ALL_BITS = np.uint64(0), ~np.uint64(0)


class Hopes(NamedTuple):
    """What is free on the agent that is looked at; the same arrays are used for every agent.

    `amount` (2, R), in thousandths: all that is free, whoever may have it, as `wants` takes it.
    `step` (2, D): how high that reaches on each ladder.
    """

    amount: Ints
    step: Ints


@allocating
def begin(scene: Scene) -> Hopes:
    """Make room for the looks."""
    return Hopes(
        np.zeros((2, scene.agents.free.shape[1]), np.int64),
        np.zeros((2, len(scene.ladders.column)), np.int64),
    )


@compiled
def look_at(scene: Scene, hopes: Hopes, agent: int) -> bool:
    """Look at an agent; says whether somebody could do with what is free there."""
    agents, amount = scene.agents, hopes.amount
    for r in range(amount.shape[1]):
        amount[wants.ALL, r] = agents.free[agent, r]
    for e in range(agents.start[agent], agents.start[agent + 1]):
        amount[wants.ALL, scene.kinds.column[agents.special[e]]] += agents.special_free[e]
    for r in range(amount.shape[1]):
        amount[wants.TASKS, r] = amount[wants.ALL, r]
    # Left over are special resources that make no task: there wants tell nothing.
    return scene.rule.stage == LEFT_OVER or wants.climb(scene.ladders, amount, hopes.step)


@hot
def of_word(scene: Scene, hopes: Hopes, agent: int, word: int, bits: np.uint64) -> np.uint64:
    """Which of some clients (bits of a word) the agent of the last look may be able to serve."""
    if scene.agents.barring[agent]:
        bits &= ~scene.agents.barred[agent, word]
    if bits == NO_BITS or scene.rule.stage == LEFT_OVER:
        return bits
    return wants.could_do(scene.ladders, hopes.step, word, bits)


@compiled
def turn(square: Words) -> None:
    """Turn 64 words of 64 bits round: bit i of word j becomes bit j of word i."""
    # Swap halves of halves: the upper right with the lower left quarter, then within the quarters.
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
