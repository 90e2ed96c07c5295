"""When a client is served with all that is free, although its demand is known.

The demand may be wrong: a framework's own word, an operator's rule or what was learnt may be of
another time, and a prior is of other frameworks.
"""

import numpy as np

from allocator.core.books.state import State
from allocator.core.numba.array_structures import some
from allocator.core.snapshot import Bools, Ints, Snapshot

_DOUBLINGS_MAX = 32


def probed(state: State) -> Bools:
    """Which clients are served with all that is free, to find out what they need, (C,).

    Those that use nothing and declined many times; and those that were offered nothing for long,
    for what was learnt or remembered may fit nowhere, and be too much.
    """
    found, books = _starving(state), state.ledger.books
    declining = np.flatnonzero(state.clients.declines >= state.settings.probe_after)
    if not len(declining):
        return found
    idle = ~some(books.client_held[declining] != books.client_offered[declining])
    found[declining[idle]] = True
    return found


def _starving(state: State) -> Bools:
    clients = state.clients
    if not clients.hungry.any():  # as mostly
        return np.zeros(len(clients.hungry), np.bool_)
    patience = state.settings.learn_patience_cycles << np.minimum(clients.probes, _DOUBLINGS_MAX)
    return clients.hungry >= np.maximum(patience, 1)


def note_hunger(state: State, snapshot: Snapshot, served_before: Ints, *, full: bool) -> None:
    """Count, after a cycle, who of those with a guessed demand was offered nothing.

    `snapshot`: the cycle's.
    `served_before` (L,): the last turn of each client of the snapshot's tree before it.
    `full`: whether the cycle was about all agents; another one says nothing of who was left out.
    """
    clients = state.clients
    if not clients.guessed.any():  # the usual case if demands are stated
        return
    row = snapshot.tree.client
    guessed = clients.guessed[row]
    row, served_before = row[guessed], served_before[guessed]
    fed = row[clients.served[row] != served_before]
    # A starved client was offered all that is free this time. The next time it waits twice as long.
    probed_now = fed[_starving(state)[fed]]
    clients.probes[probed_now] += 1
    state.memory.probes += len(probed_now)
    clients.hungry[fed] = 0
    if full:
        # A client that declined its own demand has enough, as Spark at its maximum.
        left_out = clients.served[row] == served_before
        left_out &= clients.by_prior[row] | (clients.declines[row] == 0)
        clients.hungry[row[left_out]] += 1
