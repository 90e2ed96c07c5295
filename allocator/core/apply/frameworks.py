"""Applies events about roles, quotas and frameworks to the state."""

from collections.abc import Collection, Iterable

import numpy as np

from allocator.core.apply.agents import close_client_if_idle, holds_nothing
from allocator.core.apply.clients import begin_with_prior, derive, note_aside, refit, take
from allocator.core.apply.learning import teach_others
from allocator.core.books import usage_over_time
from allocator.core.books.roles import check_depth
from allocator.core.books.state import State
from allocator.core.books.turns import last_turn
from allocator.core.bounds import ROLES_OF_FRAMEWORK_MAX
from allocator.core.demand.own_words import read_request, read_words
from allocator.core.events import (
    ActivateFramework,
    AddFramework,
    Define,
    EventError,
    RemoveFramework,
    Request,
    Revive,
    SetQuota,
    SetWeights,
    Suppress,
    UpdateFramework,
    bounded,
)
from allocator.core.plans.reclaims import forget_asked


def define(state: State, event: Define) -> None:
    for handle, kind in event.kinds.items():
        state.space.check_kind(handle, kind, "kinds")
    # Any framework may create roles, so those beyond the limit are ignored and not served.
    most = state.session_limits.roles
    roles = {handle: path for handle, path in event.roles.items() if handle <= most}
    state.roles.check_define(roles, state.session_limits.role_depth, "roles")
    state.beyond["roles"] = max(state.beyond["roles"], *(h for h in event.roles if h > most), 0)
    known = {kind.name for kind in state.space.kinds if kind}
    for handle, kind in event.kinds.items():
        state.space.bind(handle, kind)
    for handle, path in roles.items():
        state.roles.define(handle, path)
    state.clients.version += 1
    state.reserve()
    refit(state, {kind.name for kind in event.kinds.values()} - known)


def check_framework(state: State, framework: int, field: str = "framework") -> None:
    if not state.frameworks.is_bound(framework):
        message = f"framework {framework} is not bound; add it before it is used"
        raise EventError("handle", field, message)


def check_roles(state: State, roles: Iterable[int], field: str = "roles") -> None:
    """Raise an `EventError` if a handle is not bound to a role; ignore those beyond the limit."""
    for role in roles:
        if not state.roles.is_bound(role) and role <= state.session_limits.roles:
            message = f"role {role} is not bound; define it before it is used"
            raise EventError("handle", field, message)


def check_framework_handle(state: State, framework: int, field: str = "framework") -> None:
    limit = state.session_limits.frameworks
    if not 1 <= framework <= limit:
        message = f"framework {framework} is out of range; handles of frameworks are 1 to {limit}"
        raise EventError("limit", field, message)


def open_client(state: State, framework: int, role: int) -> int:
    """Return the row of a client, which is created if necessary; the handles must be valid."""
    client = state.clients.row(framework, role)
    if client:
        return client
    state.frameworks.reserve(framework + 1)
    client = state.clients.open(framework, role)
    state.frameworks.clients[framework].add(client)
    state.reserve(clients=client + 1)
    return client


def room_for(
    state: State, pairs: Iterable[tuple[int, int]], *, leaving: int = 0
) -> set[tuple[int, int]]:
    """Choose the clients, as (framework, role), that have a row or can get one, in order.

    `leaving`: the number of rows that will be freed first.
    """
    room = state.session_limits.clients - len(state.clients) + leaving
    found = set[tuple[int, int]]()
    for pair in pairs:
        if pair in found:
            continue
        known = bool(state.clients.row(*pair))
        if known or room > 0:
            found.add(pair)
            room -= not known
    return found


def add_framework(state: State, event: AddFramework) -> None:
    """Bind a framework; it keeps the resources that were recorded for it before."""
    framework = event.framework
    check_framework_handle(state, framework)
    if state.frameworks.is_bound(framework):
        message = f"framework {framework} is bound already; remove it, or take a free handle"
        raise EventError("handle", "framework", message)
    _subscribe(state, event, active=event.active)


def update_framework(state: State, event: UpdateFramework) -> None:
    check_framework(state, event.framework)
    if not _says_the_same(state, event):
        _subscribe(state, event, active=None)


def _says_the_same(state: State, event: UpdateFramework) -> bool:
    """Whether an update changes nothing, as after a framework resubscribes."""
    table, clients, framework = state.frameworks, state.clients, event.framework
    if table.info[framework] != event.info or table.unserved.get(framework):
        return False
    rows = np.array(sorted(table.clients[framework]), dtype=np.int64)
    rows = rows[clients.subscribed[rows]]
    roles = set(clients.role[rows].tolist())
    suppressed = set(clients.role[rows[clients.suppressed[rows]]].tolist())
    return roles == set(event.roles) and suppressed == set(event.suppressed_roles)


def _served(state: State, event: AddFramework | UpdateFramework) -> tuple[int, ...]:
    """Check the roles of a framework, and return those in which it is served, up to the limits."""
    roles, framework = set(event.roles), event.framework
    check_roles(state, event.roles)
    check_roles(state, event.info.minimum, "minimum")
    for role in event.suppressed_roles:
        if role not in roles:
            message = f"role {role} is not one of the framework's roles {event.roles[:9]}"
            raise EventError("value", "suppressed_roles", message)
    bound = [role for role in event.roles if role <= state.session_limits.roles]
    if len(bound) <= min(ROLES_OF_FRAMEWORK_MAX, state.session_limits.clients - len(state.clients)):
        return tuple(bound)  # there is room even if each role needs a new row
    # New clients may reuse rows of clients that leave and hold nothing.
    clients = state.clients
    left = [row for row in _clients_of(state, framework) if int(clients.role[row]) not in roles]
    leaving = sum(holds_nothing(state, client) for client in left)
    pairs = [(framework, role) for role in bound[:ROLES_OF_FRAMEWORK_MAX]]
    found = room_for(state, pairs, leaving=leaving)
    return tuple(role for _, role in pairs if (framework, role) in found)


def _clients_of(state: State, framework: int) -> list[int]:
    table = state.frameworks
    return sorted(table.clients[framework]) if framework < len(table.clients) else []


def _subscribe(state: State, event: AddFramework | UpdateFramework, *, active: bool | None) -> None:
    """Store a framework's roles and information; `active` is None for a known framework."""
    framework, clients, table = event.framework, state.clients, state.frameworks
    # Everything that may fail comes first.
    served = _served(state, event)
    words = read_words(event.info)
    others = {int(clients.role[client]) for client in _clients_of(state, framework)}
    request = table.request.get(framework, ())
    derived = derive(state, event.info, words, request, others.union(served))
    table.reserve(framework + 1)
    if active is not None:
        table.bound[framework] = True
        table.active[framework] = active
        table.changed_ms[framework] = state.now_ms
        table.served[framework] = last_turn(state)
    table.info[framework], table.words[framework] = event.info, words
    table.unserved[framework] = frozenset(event.roles).difference(served)
    _leave_roles(state, framework, set(served))
    # Where it stays, offers resume unless suppressed, and old filters are dropped.
    suppressed_roles = set(event.suppressed_roles)
    for role in served:
        client = open_client(state, framework, role)
        if not clients.subscribed[client]:
            usage_over_time.come(state, client)
            begin_with_prior(state, client, event.info)
            clients.changed_ms[client] = state.now_ms
        clients.subscribed[client] = True
        suppressed = role in suppressed_roles
        if clients.suppressed[client] != suppressed:
            clients.changed_ms[client] = state.now_ms
        if suppressed:
            clients.waited[client] = 0
        if clients.suppressed[client] and not suppressed:
            state.filters.drop_client(client)
        clients.suppressed[client] = suppressed
    clients.version += 1
    its = sorted(table.clients[framework])
    take(state, {client: derived[int(clients.role[client])] for client in its})
    note_aside(state, framework)


def _leave_roles(state: State, framework: int, served: Collection[int]) -> None:
    """Unsubscribe a framework from all roles but `served`; keep rows of clients with holdings."""
    clients = state.clients
    left = [
        client
        for client in sorted(state.frameworks.clients[framework])
        if clients.subscribed[client] and int(clients.role[client]) not in served
    ]
    # Forget all clients at once, because each call passes over all agents.
    state.eligibility.forget(left)
    for client in left:
        clients.subscribed[client] = False
        clients.suppressed[client] = False
        clients.waited[client] = 0
        state.filters.drop_client(client)
        close_client_if_idle(state, client)


def remove_framework(state: State, event: RemoveFramework) -> None:
    framework = event.framework
    check_framework(state, framework)
    state.eligibility.forget(state.frameworks.clients[framework])
    for client in sorted(state.frameworks.clients[framework]):
        teach_others(state, client)
        # Drop the client's holdings first: only an empty row can be closed.
        state.ledger.drop(state.ledger.rows_of_client(client))
        state.open_decisions.void_client(client)
        state.clients.subscribed[client] = False
        close_client_if_idle(state, client)
    state.frameworks.forget(framework)
    forget_asked(state, framework=framework)


def activate_framework(state: State, event: ActivateFramework) -> None:
    check_framework(state, event.framework)
    if state.frameworks.active[event.framework] != event.active:
        state.frameworks.changed_ms[event.framework] = state.now_ms
    state.frameworks.active[event.framework] = event.active
    state.clients.version += 1
    if not event.active:
        for client in sorted(state.frameworks.clients[event.framework]):
            state.filters.drop_client(client)
            state.clients.waited[client] = 0


def suppress(state: State, event: Suppress) -> None:
    """Suppress offers in some roles; none given: in all roles of the framework."""
    for client in _clients_in(state, event.framework, event.roles):
        if not state.clients.suppressed[client]:
            state.clients.changed_ms[client] = state.now_ms
        state.clients.suppressed[client] = True
        state.clients.waited[client] = 0
    state.clients.version += 1


def revive(state: State, event: Revive) -> None:
    """Resume offers in some roles, and drop the filters there; none given: in all roles."""
    for client in _clients_in(state, event.framework, event.roles):
        if state.clients.suppressed[client]:
            state.clients.changed_ms[client] = state.now_ms
        state.clients.suppressed[client] = False
        state.clients.declines[client] = 0
        state.filters.drop_client(client)
    state.clients.version += 1


def _clients_in(state: State, framework: int, roles: tuple[int, ...]) -> list[int]:
    check_framework(state, framework)
    own = sorted(state.frameworks.clients[framework])
    if not roles:
        return [client for client in own if state.clients.subscribed[client]]
    unserved = state.frameworks.unserved.get(framework, frozenset())
    roles = tuple(role for role in roles if role not in unserved)
    rows = [state.clients.row(framework, role) for role in roles]
    for role, client in zip(roles, rows, strict=True):
        if not client or not state.clients.subscribed[client]:
            message = f"framework {framework} is not subscribed to role {role}"
            raise EventError("handle", "roles", message)
    return rows


def request(state: State, event: Request) -> None:
    framework, table = event.framework, state.frameworks
    check_framework(state, framework)
    stated, aside = read_request(event)
    info, words = table.info[framework], table.words[framework]
    assert info is not None
    rows = sorted(table.clients[framework])
    roles = [int(state.clients.role[client]) for client in rows]
    derived = derive(state, info, words, stated, roles)
    table.request.pop(framework, None)
    if stated:
        table.request[framework] = stated
    table.request_aside[framework] = bounded([*aside, *event.set_aside])
    take(state, {client: derived[role] for client, role in zip(rows, roles, strict=True)})
    note_aside(state, framework)


def set_weights(state: State, event: SetWeights) -> None:
    state.roles.set_weights(event.weights)


def set_quota(state: State, event: SetQuota) -> None:
    """Set a role's quota; a quota without guarantees and limits is removed."""
    check_quota(event, state.session_limits.role_depth)
    if event.guarantees or event.limits:
        state.space.quantities({**event.guarantees, **event.limits})
        state.reserve()
        state.quotas[event.role] = event
    else:
        state.quotas.pop(event.role, None)
    state.quota_version += 1


def check_quota(event: SetQuota, depth_max: int) -> None:
    check_depth(event.role, depth_max, "role")
    if any(event.guarantees.values()) and "/" in event.role:
        message = f"{event.role!r} is below another role; guarantee to {event.role.split('/')[0]!r}"
        raise EventError("value", "guarantees", message)
    for name, amount in event.guarantees.items():
        if amount > event.limits.get(name, amount):
            message = f"{amount} of {name!r} is more than the limit; guarantee at most the limit"
            raise EventError("value", "guarantees", message)
