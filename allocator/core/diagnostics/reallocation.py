"""Computes what each client would have if the whole cluster were allocated from scratch.

The real books do not change. The result shows how far current shares are from those that the policy
would give.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from allocator.core.apply import apply
from allocator.core.books.open_decisions import OpenDecisions
from allocator.core.books.state import State
from allocator.core.bounds import quoted
from allocator.core.events import AddFramework, Define, EventError, FrameworkInfo, Request


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A hypothetical framework.

    `role`: path of its role, which need not exist.
    `demand`: the size of one task, by name, in thousandths; empty: unknown.
    """

    role: str
    demand: Mapping[str, int] = field(default_factory=dict)


def add_newcomer(state: State, newcomer: Newcomer) -> int:
    """Subscribe a hypothetical framework under the lowest free handle; returns the handle.

    Raises EventError if its role is malformed, or there is no room for the role or the framework.
    """
    role = _role_of(state, newcomer.role)
    frameworks = state.frameworks
    handle = next(
        each
        for each in count(1)
        if not frameworks.is_bound(each)
        and not (each < len(frameworks.clients) and frameworks.clients[each])
    )
    # Without capabilities, as Spark subscribes.
    apply(state, AddFramework(handle, FrameworkInfo("newcomer"), (role,)))
    apply(state, Request(handle, (newcomer.demand,)))
    return handle


def _role_of(state: State, path: str) -> int:
    """Return the handle of a role; define it and its ancestors if necessary."""
    roles = state.roles
    names = path.split("/")
    if not all(names):
        message = f"{quoted(path)} is not a role; write it as 'eng' or 'eng/ads'"
        raise EventError("value", "role", message)
    for depth in range(1, len(names) + 1):
        above = "/".join(names[:depth])
        if roles.row(above) is not None:
            continue
        handle = next(each for each in count(1) if not roles.is_bound(each))
        if handle > (most := state.session_limits.roles):
            message = f"there are {most} roles already; raise limits.roles"
            raise EventError("limit", "role", message)
        apply(state, Define(roles={handle: above}))
    row = roles.row(path)
    assert row is not None
    return row


def forget_holdings(state: State) -> None:
    """Release all holdings of a copied state, and forget refusals, declines and waiting times."""
    state.ledger.drop(state.ledger.rows())
    state.open_decisions = OpenDecisions()
    clients = state.clients
    for client in np.flatnonzero(clients.framework).tolist():
        state.filters.drop_client(client)
    for column in (clients.declines, clients.waited, clients.hungry, clients.served):
        column[:] = 0
    for column in (state.frameworks.served, state.roles.served, state.roles.served_here):
        column[:] = 0
    clients.collecting.clear()
    # A pause is temporary, so it does not count.
    state.paused = False
