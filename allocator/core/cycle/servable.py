"""Which clients some agent could serve at the start of a cycle, whoever else is there.

Only such a client counts as waiting for its turn: one that no agent suits does not. Quotas are
ignored here, so a client that a limit keeps back counts as waiting, too.
"""

import numpy as np

from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.snapshot import Bools, Ints, Snapshot, Specials, Tier, Words

_REVOCABLE, _SHARED = int(Tier.REVOCABLE), int(Tier.SHARED)


def servable(snapshot: Snapshot, clients: Ints) -> Bools:
    """Say of some clients whether a candidate agent could serve them.

    It can where it is not excluded, no filter covers all that it could offer, and what is free
    there makes one task, or reaches the client's minimum where its demand is unknown.

    `snapshot`: as it was taken: its arrays say what is free before the cycle.
    `clients` (n,).
    Returns (n,).
    """
    if not len(clients) or not len(snapshot.agents):
        return np.zeros(len(clients), np.bool_)
    # The most that any agent has of each resource: enough to turn most hopeless clients down.
    most = snapshot.free_by_column[snapshot.agents].max(axis=0)
    specials = snapshot.specials
    return _look(
        loop_view(clients),
        loop_view(snapshot.agents),
        loop_view(snapshot.free),
        loop_view(most),
        loop_view(snapshot.excluded),
        loop_view(snapshot.filters.covered),
        loop_view(snapshot.demand),
        loop_view(snapshot.characterised & snapshot.demand.any(axis=1)),
        loop_view(snapshot.minimum),
        loop_view(snapshot.minimum_rows),
        Specials(*map(loop_view, specials)),
    )


@part()
def _bit(words: Words, row: int, client: int) -> bool:
    return (words[row, client >> 6] >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0)


@part()
def _gather(
    free: Ints, specials: Specials, agent: int, client: int, task: bool, amount: Ints
) -> None:
    """Add up by column what a client may have on an agent, into (2, R).

    The second row is what is revocable, for no task mixes that with the others; where no task is
    looked for, what is shared and what is of the rest kinds, too.
    """
    for r in range(free.shape[1]):
        amount[0, r] = free[agent, r]
        amount[1, r] = 0
    # Add the special resources that the client may have. What is shared or rest makes no task.
    for e in range(specials.start[agent], specials.start[agent + 1]):
        special = specials.row[e]
        if _bit(specials.reach, special, client):
            tier, r = specials.tier[special], specials.column[special]
            if tier == _REVOCABLE or (tier >= _SHARED and not task):
                amount[1, r] += specials.free[e]
            elif tier < _SHARED:
                amount[0, r] += specials.free[e]


@part()
def _makes_task(demand: Ints, amount: Ints) -> bool:
    """Say whether each resource of a task is there: without what is revocable, or all of it so."""
    for r in range(len(demand)):
        if demand[r] > amount[0, r] and demand[r] > amount[1, r]:
            return False
    return True


@part()
def _reaches(amount: Ints, minimum: Ints, first: int, end: int) -> bool:
    """Say whether amounts (2, R) together make an offer: not empty, and not below the minimum."""
    # An empty amount is no offer. Without a minimum, anything else is.
    some = False
    for r in range(amount.shape[1]):
        some |= amount[0, r] + amount[1, r] > 0
    if not some or first == end:
        return some
    for row in range(first, end):
        enough = True
        for r in range(amount.shape[1]):
            enough &= amount[0, r] + amount[1, r] >= minimum[row, r]
        if enough:
            return True
    return False


@loop
def _look(
    clients: Ints,
    agents: Ints,
    free: Ints,
    most: Ints,
    excluded: Words,
    covered: Words,
    demand: Ints,
    known: Bools,
    minimum: Ints,
    minimum_rows: Ints,
    specials: Specials,
) -> Bools:
    """Look for an agent for each client, beginning with the one that suited the client before."""
    able = np.zeros(len(clients), np.bool_)
    amount = np.zeros((2, free.shape[1]), np.int64)
    at = 0
    for i in range(len(clients)):
        client = clients[i]
        first, end = minimum_rows[client, 0], minimum_rows[client, 1]
        # Nobody has more of anything than `most`: that spares the look at every agent.
        for r in range(free.shape[1]):
            amount[0, r], amount[1, r] = most[r], 0
        if known[client]:
            if not _makes_task(demand[client], amount):
                continue
        elif not _reaches(amount, minimum, first, end):
            continue
        # Go once round the agents. `at` stays where the last client was served, for the next
        # client can often be served there, too.
        for _ in range(len(agents)):
            agent = agents[at]
            # Mostly all is plain, and a task that is too large is seen at once.
            fits = True
            if known[client] and specials.start[agent] == specials.start[agent + 1]:
                for r in range(free.shape[1]):
                    if free[agent, r] < demand[client, r]:
                        fits = False
                        break
            if fits and not _bit(excluded, agent, client) and not _bit(covered, agent, client):
                _gather(free, specials, agent, client, known[client], amount)
                if known[client]:
                    able[i] = _makes_task(demand[client], amount)
                else:
                    able[i] = _reaches(amount, minimum, first, end)
                if able[i]:
                    break
            at = at + 1 if at + 1 < len(agents) else 0
    return able
