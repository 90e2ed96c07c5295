"""What everybody would have if the whole cluster were given out anew, now.

It is for questions, never for decisions: what is held stays where it is, and an ideal tells by how
much it is another than what the policy would give.
"""

import numpy as np

from allocator.core.open_decisions import Tentative
from allocator.core.state import State


def forget_holdings(state: State) -> None:
    """Take back all that anybody holds, and forget who refused, declined and waited.

    The state must be a copy that serves nobody. Demands, weights, quotas, constraints and
    what frameworks are capable of stay, and so do those who want no offers.
    """
    state.ledger.drop(state.ledger.rows())
    state.tentative = Tentative()
    clients = state.clients
    for client in np.flatnonzero(clients.framework).tolist():
        state.filters.drop_client(client)
    for column in (clients.declines, clients.waited, clients.hungry, clients.served):
        column[:] = 0
    # What keeps all decisions back for a while is no part of an ideal.
    state.paused = False
