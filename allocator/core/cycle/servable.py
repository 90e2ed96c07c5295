"""Determines which clients some agent could serve at the start of a cycle, each on its own.

Only such clients count as waiting, even if a limit holds them back: quotas are ignored.
"""

import numpy as np

from allocator.core.needs import (
    ALL,
    BESIDE,
    OPEN,
    RESERVED,
    REVOCABLE,
    ROWS,
    SHARED,
    TASKS,
    Needs,
    ThresholdIndex,
    could_do,
    lowest_bit,
    needs_of,
    opens,
    steps_reached,
    suffices,
    threshold_index,
)
from allocator.core.numba.bit_tables import has_bit, word_of
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.numba.shared_bits import SharedBits, for_loops, has_shared_bit, shared_word
from allocator.core.openings import OPENING_MAX
from allocator.core.snapshot import BitTable, BitWords, Bools, Ints, Snapshot, Specials, Tier

_RESERVED, _REVOCABLE, _SHARED = int(Tier.RESERVED), int(Tier.REVOCABLE), int(Tier.SHARED)

_NEARBY = 16
"""Number of agents that are tried for each client separately; usually one of them can serve it."""


def servable(snapshot: Snapshot, clients: Ints, nearby: int = _NEARBY) -> Bools:
    """Return whether a candidate agent could serve each of some clients, (n,).

    An agent can serve a client if the client is not excluded from it, no filter covers all that it
    could offer, and enough is free: as many tasks as reach the client's minimum, or, if the demand
    is unknown, the minimum itself.

    `snapshot`: as it was at the start of the cycle.
    `nearby`: number of agents tried for each client separately, before all are searched together.
    """
    if not len(clients) or not len(snapshot.agents):
        return np.zeros(len(clients), np.bool_)
    agents, specials = loop_view(snapshot.agents), Specials(*map(loop_view, snapshot.specials))
    whole = snapshot.free_by_column
    known = snapshot.characterised & snapshot.has_demand
    needs = Needs(
        *map(loop_view, needs_of(known, snapshot.demand, snapshot.minimum, snapshot.minimum_rows))
    )
    bars = for_loops(snapshot.excluded), loop_view(snapshot.filters.covered)
    # Rule out clients that need more of a resource than any agent has.
    most = loop_view(whole[snapshot.agents].max(axis=0))
    free, nearby = loop_view(snapshot.free), min(nearby, len(agents))
    able, open_ = _look_nearby(
        loop_view(clients), nearby, agents, free, most, *bars, needs, specials
    )
    rest = np.flatnonzero(open_)
    if not len(rest) or nearby == len(agents):
        return able
    # Search for the others together: a client that no agent can serve would be tried on every
    # agent.
    left = clients[rest]
    words = np.unique(left >> 6)
    thresholds = ThresholdIndex(*map(loop_view, threshold_index(needs, left, words)))
    lost = thresholds.members[0].copy()  # all of these clients are in the first row
    whole, words = loop_view(whole), loop_view(words)
    _look_everywhere(lost, words, agents, free, whole, *bars, needs, specials, thresholds)
    at = np.searchsorted(words, left >> 6)
    able[rest] = lost[at] >> (left & 63).astype(np.uint64) & np.uint64(1) == 0
    return able


@part()
def _bit(words: BitWords, row: int, client: int) -> bool:
    return (words[row, client >> 6] >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0)


@part()
def _gather(free: Ints, specials: Specials, agent: int, client: int, amount: Ints) -> None:
    """Sum what a client may get on an agent by column, into `amount` (ROWS, R), see `suffices`."""
    for r in range(free.shape[1]):
        amount[TASKS, r] = amount[ALL, r] = free[agent, r]
    first, end = specials.start[agent], specials.start[agent + 1]
    if first == end:
        return  # the agent has only plain resources, as usual
    # A task does not mix revocable resources with others, does not use up shared ones, and gets no
    # rest kinds.
    revocable, shared = np.zeros(free.shape[1], np.int64), np.zeros(free.shape[1], np.int64)
    for e in range(first, end):
        special = specials.row[e]
        if _bit(specials.reach, special, client):
            tier, r = specials.tier[special], specials.column[special]
            amount[ALL, r] += specials.free[e]
            if tier == _REVOCABLE:
                revocable[r] += specials.free[e]
            elif tier == _SHARED:
                shared[r] += specials.free[e]
            elif tier < _SHARED:
                amount[TASKS, r] += specials.free[e]
    for r in range(free.shape[1]):
        amount[TASKS, r] = max(amount[TASKS, r], revocable[r], shared[r])


@part()
def _does(
    needs: Needs, free: Ints, specials: Specials, agent: int, client: int, amount: Ints
) -> bool:
    """Whether an agent could serve a client; `amount`: as `_gather` left it."""
    if not suffices(needs, client, amount):
        return False
    if not needs.several[client]:
        return True
    # The offer must begin with several tasks, so determine how each of them can be composed.
    for r in range(free.shape[1]):
        amount[OPEN, r] = free[agent, r]
        for row in range(REVOCABLE, ROWS):
            amount[row, r] = 0
    for e in range(specials.start[agent], specials.start[agent + 1]):
        special, more = specials.row[e], specials.free[e]
        if _bit(specials.reach, special, client):
            tier, r = specials.tier[special], specials.column[special]
            if tier == _REVOCABLE:
                amount[REVOCABLE, r] += more
            elif tier == _SHARED:
                amount[SHARED, r] += more
            elif tier < _SHARED:
                amount[OPEN, r] += more
            if tier == _RESERVED:
                amount[RESERVED, r] += more
            if specials.whole[special] or not specials.bounded[special]:
                amount[BESIDE, r] += more
    return opens(needs, client, amount, OPENING_MAX)


@loop
def _look_nearby(
    clients: Ints,
    nearby: int,
    agents: Ints,
    free: Ints,
    most: Ints,
    excluded: SharedBits,
    covered: BitTable,
    needs: Needs,
    specials: Specials,
) -> tuple[Bools, Bools]:
    """Search for an agent for each client, starting with the agent that served the previous one.

    Returns (n,): the clients with an agent; (n,): those that other agents may be able to serve.
    """
    able, open_ = np.zeros(len(clients), np.bool_), np.zeros(len(clients), np.bool_)
    amount = np.zeros((ROWS, free.shape[1]), np.int64)
    at = 0
    for i in range(len(clients)):
        client = clients[i]
        amount[TASKS], amount[ALL] = most, most
        open_[i] = suffices(needs, client, amount)
        if not open_[i]:
            continue
        # `at` stays at the agent that served the last client: it can often serve the next one, too.
        for _ in range(nearby):
            agent = agents[at]
            if not has_shared_bit(excluded, agent, client) and not has_bit(covered, agent, client):
                _gather(free, specials, agent, client, amount)
                able[i] = _does(needs, free, specials, agent, client, amount)
                if able[i]:
                    open_[i] = False
                    break
            at = at + 1 if at + 1 < len(agents) else 0
    return able, open_


@part()
def _alike(specials: Specials, agent: int, word: int, has: Bools, bits: np.uint64) -> np.uint64:
    """Return which clients (bits of a word) may get exactly these specials of an agent."""
    first = specials.start[agent]
    for e in range(first, specials.start[agent + 1]):
        reach = specials.reach[specials.row[e], word]
        bits &= reach if has[e - first] else ~reach
    return bits


@part()
def _note_has(specials: Specials, agent: int, client: int, has: Bools) -> None:
    first = specials.start[agent]
    for e in range(first, specials.start[agent + 1]):
        has[e - first] = _bit(specials.reach, specials.row[e], client)


@part()
def _without_served(
    needs: Needs,
    free: Ints,
    specials: Specials,
    agent: int,
    word: int,
    bits: np.uint64,
    amount: Ints,
    lost: np.uint64,
) -> np.uint64:
    """Remove from a word of bits the clients that the agent could serve; `amount` (ROWS, R)."""
    while bits != np.uint64(0):
        place = lowest_bit(bits)
        bit = np.uint64(1) << np.uint64(place)
        bits &= ~bit
        if _does(needs, free, specials, agent, (word << 6) + place, amount):
            lost &= ~bit
    return lost


@loop
def _look_everywhere(
    lost: BitWords,
    words: Ints,
    agents: Ints,
    free: Ints,
    whole: Ints,
    excluded: SharedBits,
    covered: BitTable,
    needs: Needs,
    specials: Specials,
    thresholds: ThresholdIndex,
) -> None:
    """Find the clients that each agent could serve, many clients at once.

    `lost` (W,): bits of the clients; those for which an agent is found are cleared.
    `words` (W,): the index of each word in a row of bits.
    `whole` (A, R), in thousandths: what is free, for any client.
    """
    specials_max = 0
    for agent in agents:
        specials_max = max(specials_max, specials.start[agent + 1] - specials.start[agent])
    has = np.zeros(specials_max, np.bool_)
    amount = np.zeros((ROWS, free.shape[1]), np.int64)
    at = np.zeros((2, len(thresholds.column)), np.int64)
    left = len(words)
    for agent in agents:
        amount[TASKS], amount[ALL] = whole[agent], whole[agent]
        if not steps_reached(thresholds, amount, at):
            continue  # too little for any client
        begun = False
        for i in range(len(words)):
            word = words[i]
            bits = lost[i]
            if bits != np.uint64(0):
                bits &= ~(shared_word(excluded, agent, word) | word_of(covered, agent, word))
            # Usually all clients may have the same specials; otherwise handle equal clients
            # together.
            while bits != np.uint64(0):
                same = _alike(specials, agent, word, has, bits) if begun else np.uint64(0)
                if same == np.uint64(0):
                    client = (word << 6) + lowest_bit(bits)
                    _note_has(specials, agent, client, has)
                    _gather(free, specials, agent, client, amount)
                    steps_reached(thresholds, amount, at)
                    begun = True
                    same = _alike(specials, agent, word, has, bits)
                bits &= ~same
                those = could_do(thresholds, at, i, same)
                lost[i] = _without_served(
                    needs, free, specials, agent, word, those, amount, lost[i]
                )
                if those != np.uint64(0) and lost[i] == np.uint64(0):
                    left -= 1
        if left == 0:
            return
