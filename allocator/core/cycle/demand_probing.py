"""Probing: offers a client all that is free, because its known demand may be wrong.

A stated or learnt demand or an operator's rule may be outdated, and a prior comes from other
frameworks.
"""

import numpy as np

from allocator.core.books.state import State
from allocator.core.snapshot import Bools, Ints, Snapshot

_DOUBLINGS_MAX = 32


def probed(state: State) -> Bools:
    """Return which clients are offered all that is free, to find out what they need, (C,).

    These are clients that use nothing and declined many times; and clients that got no offer for
    long, because a learnt or remembered demand may be too large to fit anywhere.
    """
    found, books = _starving(state), state.ledger.books
    declining = np.flatnonzero(state.clients.declines >= state.settings.probe_after)
    if not len(declining):
        return found
    used = books.client_held[:, declining] != books.client_offered[:, declining]
    idle = ~used.any(axis=0)
    found[declining[idle]] = True
    return found


def _starving(state: State) -> Bools:
    clients = state.clients
    if not clients.hungry.any():  # the usual case
        return np.zeros(len(clients.hungry), np.bool_)
    patience = state.settings.learn_patience_cycles << np.minimum(clients.probes, _DOUBLINGS_MAX)
    return clients.hungry >= np.maximum(patience, 1)


def note_hunger(state: State, snapshot: Snapshot, served_before: Ints, *, full: bool) -> None:
    """After a cycle, count for how many full cycles clients with a guessed demand got no offer.

    `served_before` (L,): the last turn of each client in the snapshot's tree, before the cycle.
    `full`: whether the cycle covered all agents; a partial cycle adds nothing to the counts.
    """
    clients = state.clients
    if not clients.guessed.any():  # the usual case if demands are stated
        return
    row = snapshot.tree.client
    guessed = clients.guessed[row]
    row, served_before = row[guessed], served_before[guessed]
    fed = row[clients.served[row] != served_before]
    # These clients were offered all that is free on an agent. They wait twice as long until they
    # are offered that again.
    probed_now = fed[_starving(state)[fed]]
    clients.probes[probed_now] += 1
    state.memory.probes += len(probed_now)
    clients.hungry[fed] = 0
    if full:
        # A client that declines offers of its own demand needs nothing more, such as a Spark job
        # with its maximum number of executors.
        left_out = clients.served[row] == served_before
        left_out &= clients.by_prior[row] | (clients.declines[row] == 0)
        clients.hungry[row[left_out]] += 1
