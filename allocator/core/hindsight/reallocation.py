"""What everybody would have if the whole cluster were given out anew, now.

It answers questions and makes no decisions: in the real books, everybody keeps what is held. The
answer shows how far the shares of now are from those that the policy would give.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from allocator.core.apply import apply
from allocator.core.books.open_decisions import OpenDecisions
from allocator.core.books.state import State
from allocator.core.events import AddFramework, FrameworkInfo, Request


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A framework that there is not.

    `role`: handle of the role that it would be in.
    `demand`, in thousandths: what one of its tasks would need; empty: unknown.
    """

    role: int
    demand: Mapping[str, int] = field(default_factory=dict)


def add_newcomer(state: State, newcomer: Newcomer) -> int:
    """Let a framework subscribe under the lowest handle that nobody has; gives the handle."""
    frameworks = state.frameworks
    handle = next(
        each
        for each in count(1)
        if not frameworks.is_bound(each)
        and not (each < len(frameworks.clients) and frameworks.clients[each])
    )
    # Without capabilities, as Spark: no agent needs to know more than Mesos's oldest.
    apply(state, AddFramework(handle, FrameworkInfo("newcomer"), (newcomer.role,)))
    apply(state, Request(handle, (newcomer.demand,)))
    return handle


def forget_holdings(state: State) -> None:
    """Take back all that anybody holds, and forget who refused, declined and waited.

    The state must be a copy that serves nobody. Demands, weights, quotas, constraints and
    what frameworks are capable of stay, and so do those who want no offers.
    """
    state.ledger.drop(state.ledger.rows())
    state.open_decisions = OpenDecisions()
    clients = state.clients
    for client in np.flatnonzero(clients.framework).tolist():
        state.filters.drop_client(client)
    for column in (clients.declines, clients.waited, clients.hungry, clients.served):
        column[:] = 0
    for column in (state.frameworks.served, state.roles.served, state.roles.served_here):
        column[:] = 0
    # What keeps all decisions back for a while is no part of an ideal.
    state.paused = False
