"""What events about roles and frameworks do to the state.

Each function validates the whole event before it changes anything.
"""

from collections.abc import Iterable, Mapping

from allocator.core.apply.agents import close_client_if_idle, holds_nothing
from allocator.core.apply.priors import begin_with_prior, teach_others, unstated_source
from allocator.core.constraints import Clause, parse_constraint
from allocator.core.demand import CONSTRAINT_LABEL, declared_demand
from allocator.core.eligibility import Rule
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
)
from allocator.core.roles import check_depth
from allocator.core.state import State
from allocator.core.tables import REFINED, REVOCABLE, SHARED


def define(state: State, event: Define) -> None:
    """Bind kinds and roles."""
    # Check everything.
    for handle, kind in event.kinds.items():
        state.space.check_kind(handle, kind, "kinds")
    state.roles.check_define(event.roles, state.limits.roles, state.limits.role_depth, "roles")
    # Then change everything.
    for handle, kind in event.kinds.items():
        state.space.bind(handle, kind)
    for handle, path in event.roles.items():
        state.roles.define(handle, path)
    state.clients.version += 1
    state.reserve()


def check_framework(state: State, framework: int, field: str = "framework") -> None:
    """Raise an `EventError` where the handle names no framework that was added."""
    if not state.frameworks.is_bound(framework):
        message = f"framework {framework} is not bound; add it before it is used"
        raise EventError("handle", field, message)


def check_roles(state: State, roles: Iterable[int], field: str = "roles") -> None:
    """Raise an `EventError` where one of the handles names no role."""
    for role in roles:
        if not state.roles.is_bound(role):
            message = f"role {role} is not bound; define it before it is used"
            raise EventError("handle", field, message)


def check_framework_handle(state: State, framework: int, field: str = "framework") -> None:
    """Raise an `EventError` where the handle can never name a framework."""
    limit = state.limits.frameworks
    if not 1 <= framework <= limit:
        message = f"framework {framework} is out of range; handles of frameworks are 1 to {limit}"
        raise EventError("limit", field, message)


def open_client(state: State, framework: int, role: int) -> int:
    """Row of a client, made where there is none; the handles are checked."""
    client = state.clients.row(framework, role)
    if client:
        return client
    state.frameworks.reserve(framework + 1)
    client = state.clients.open(framework, role)
    state.frameworks.clients[framework].add(client)
    state.reserve(clients=client + 1)
    return client


def check_client_limit(
    state: State, pairs: set[tuple[int, int]], field: str = "roles", *, leaving: int = 0
) -> None:
    """Raise an `EventError` where there is no room for the clients that have no row yet.

    Parameters
    ----------
    state : State
    pairs : set of (framework, role)
        Clients that the event names; those that have a row already take no more room.
    field : str
    leaving : int
        Rows that the event sets free before.
    """
    new = sum(not state.clients.row(*pair) for pair in pairs)
    count = len(state.clients) - leaving + new
    if new and count > state.limits.clients:
        most = state.limits.clients
        message = f"there would be {count} clients; at most {most} are kept, raise limits.clients"
        raise EventError("limit", field, message)


def add_framework(state: State, event: AddFramework) -> None:
    """Bind a framework; it keeps what it was known to hold before it subscribed."""
    framework = event.framework
    check_framework_handle(state, framework)
    if state.frameworks.is_bound(framework):
        message = f"framework {framework} is bound already; remove it, or take a free handle"
        raise EventError("handle", "framework", message)
    _check_subscription(state, event)
    state.frameworks.reserve(framework + 1)
    state.frameworks.bound[framework] = True
    state.frameworks.active[framework] = event.active
    state.frameworks.changed_ms[framework] = state.now_ms
    _subscribe(state, event)


def update_framework(state: State, event: UpdateFramework) -> None:
    """A framework changes its roles or information."""
    check_framework(state, event.framework)
    _check_subscription(state, event)
    _subscribe(state, event)


def _check_subscription(state: State, event: AddFramework | UpdateFramework) -> None:
    check_roles(state, event.roles)
    clients, framework = state.clients, event.framework
    known = state.frameworks.clients[framework] if framework < len(state.frameworks.bound) else ()
    # Clients that leave and hold nothing make room for those that come.
    left = [client for client in known if int(clients.role[client]) not in event.roles]
    leaving = sum(holds_nothing(state, client) for client in left)
    check_client_limit(state, {(framework, role) for role in event.roles}, leaving=leaving)
    check_roles(state, event.info.minimum, "minimum")
    for role in event.suppressed_roles:
        if role not in event.roles:
            message = f"role {role} is not one of the framework's roles {event.roles}"
            raise EventError("value", "suppressed_roles", message)


def _subscribe(state: State, event: AddFramework | UpdateFramework) -> None:
    framework, clients = event.framework, state.clients
    state.frameworks.info[framework] = event.info
    # Roles that the framework left: no offers and filters any more. What it holds there stays,
    # and so does the row as long as it holds something.
    for client in sorted(state.frameworks.clients[framework]):
        if clients.subscribed[client] and int(clients.role[client]) not in event.roles:
            clients.subscribed[client] = False
            clients.suppressed[client] = False
            state.filters.drop_client(client)
            state.eligibility.forget(client)
            close_client_if_idle(state, client)
    # Roles that it has: offers begin again where they were suppressed, without the old filters.
    for role in event.roles:
        client = open_client(state, framework, role)
        if not clients.subscribed[client]:
            begin_with_prior(state, client, event.info)
            clients.changed_ms[client] = state.now_ms
        clients.subscribed[client] = True
        suppressed = role in event.suppressed_roles
        if clients.suppressed[client] != suppressed:
            clients.changed_ms[client] = state.now_ms
        if clients.suppressed[client] and not suppressed:
            state.filters.drop_client(client)
        clients.suppressed[client] = suppressed
    clients.version += 1
    # Demand, capabilities and rules follow from the framework's information.
    for client in sorted(state.frameworks.clients[framework]):
        refresh_client(state, client)


def remove_framework(state: State, event: RemoveFramework) -> None:
    """Unbind a framework; what it held is free."""
    framework = event.framework
    check_framework(state, framework)
    for client in sorted(state.frameworks.clients[framework]):
        teach_others(state, client)
        # Drop what the client holds first: only an empty row can be closed.
        state.ledger.drop(state.ledger.rows_of_client(client))
        state.tentative.void_client(client)
        state.clients.subscribed[client] = False
        close_client_if_idle(state, client)
    state.frameworks.info[framework] = None
    state.frameworks.bound[framework] = False
    state.frameworks.active[framework] = False
    state.frameworks.request.pop(framework, None)


def activate_framework(state: State, event: ActivateFramework) -> None:
    """Let a framework be served, or not; where it may not, its filters are dropped."""
    check_framework(state, event.framework)
    if state.frameworks.active[event.framework] != event.active:
        state.frameworks.changed_ms[event.framework] = state.now_ms
    state.frameworks.active[event.framework] = event.active
    state.clients.version += 1
    if not event.active:
        for client in sorted(state.frameworks.clients[event.framework]):
            state.filters.drop_client(client)


def suppress(state: State, event: Suppress) -> None:
    """Stop offers in some roles."""
    for client in _clients_in(state, event.framework, event.roles):
        if not state.clients.suppressed[client]:
            state.clients.changed_ms[client] = state.now_ms
        state.clients.suppressed[client] = True
    state.clients.version += 1


def revive(state: State, event: Revive) -> None:
    """Begin offers again in some roles, and forget what was refused in them."""
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
    # All roles are checked before the caller changes anything.
    rows = [state.clients.row(framework, role) for role in roles]
    for role, client in zip(roles, rows, strict=True):
        if not client or not state.clients.subscribed[client]:
            message = f"framework {framework} is not subscribed to role {role}"
            raise EventError("handle", "roles", message)
    return rows


def request(state: State, event: Request) -> None:
    """Note what a framework needs."""
    check_framework(state, event.framework)
    # The first request that asks for something counts.
    stated = next((each for each in event.requests if any(each.values())), None)
    if stated is None:
        state.frameworks.request.pop(event.framework, None)
    else:
        state.frameworks.request[event.framework] = stated
    for client in sorted(state.frameworks.clients[event.framework]):
        refresh_client(state, client)


def set_weights(state: State, event: SetWeights) -> None:
    """Change the weights of roles."""
    state.roles.set_weights(event.weights)


def set_quota(state: State, event: SetQuota) -> None:
    """Note a role's quota; without guarantees and limits the role has none any more."""
    check_quota(event, state.limits.role_depth)
    if event.guarantees or event.limits:
        state.space.quantities({**event.guarantees, **event.limits})
        state.reserve()
        state.quotas[event.role] = event
    else:
        state.quotas.pop(event.role, None)
    state.quota_version += 1


def check_quota(event: SetQuota, depth_max: int) -> None:
    """Raise an `EventError` where a quota is not possible."""
    check_depth(event.role, depth_max, "role")
    if any(event.guarantees.values()) and "/" in event.role:
        message = f"{event.role!r} is below another role; guarantee to {event.role.split('/')[0]!r}"
        raise EventError("value", "guarantees", message)
    for name, amount in event.guarantees.items():
        if amount > event.limits.get(name, amount):
            message = f"{amount} of {name!r} is more than the limit; guarantee at most the limit"
            raise EventError("value", "guarantees", message)


def refresh_client(state: State, client: int) -> None:
    """Derive what depends on a framework's information: its demand, and where it may go."""
    clients = state.clients
    framework, role = int(clients.framework[client]), int(clients.role[client])
    info = state.frameworks.info[framework]
    if info is None:
        return
    # What is stated comes first. Otherwise the learned demand counts, after enough acceptances, or
    # the first that agrees with the prior. Before that, the prior counts.
    path = state.roles.path[role]
    stated = declared_demand(state.settings, info, state.frameworks.request.get(framework), path)
    if stated is not None:
        row = state.space.quantities(stated[1])
        state.reserve()
        clients.demand[client] = row
        clients.demand_source[client] = stated[0] if row.any() else ""
    else:
        source = unstated_source(state, client)
        known = {"learned": clients.learned, "prior": clients.prior}.get(source)
        clients.demand[client] = 0 if known is None else known[client]
        clients.demand_source[client] = source
    clients.by_prior[client] = clients.demand_source[client] == "prior"
    clients.guessed[client] = clients.demand_source[client] in {"prior", "learned"}
    if not clients.guessed[client]:
        clients.hungry[client] = 0
    # Capabilities say which resources the client may have, and where it may go.
    clients.takes[client] = (
        REVOCABLE * ("REVOCABLE_RESOURCES" in info.capabilities)
        + SHARED * ("SHARED_RESOURCES" in info.capabilities)
        + REFINED * ("RESERVATION_REFINEMENT" in info.capabilities)
    )
    clients.weight[client] = state.settings.framework_weight(path, info.name)
    _take_minimum(state, client, info.minimum.get(role))
    several_roles = "MULTI_ROLE" in info.capabilities
    state.eligibility.set_rule(
        client,
        Rule(
            clauses=_clauses(state, info.labels.get(CONSTRAINT_LABEL, ""), path, info.name),
            gpus="GPU_RESOURCES" in info.capabilities or not state.options.filter_gpus,
            any_region="REGION_AWARE" in info.capabilities,
            many_roles=several_roles,
            nested_role="/" in path,
        ),
    )


def _take_minimum(state: State, client: int, minimum: tuple[Mapping[str, int], ...] | None) -> None:
    """Note what a client must be offered at least; None: what everybody must."""
    if minimum == state.clients.minimum.get(client):
        return
    state.clients.version += 1
    if minimum is None:
        del state.clients.minimum[client]
        return
    for row in minimum:
        state.space.quantities(row)
    state.reserve()
    state.clients.minimum[client] = minimum


def _clauses(state: State, label: str, role: str, name: str) -> tuple[Clause, ...]:
    """All clauses for a client; a label that does not parse is passed over, as for demands."""
    try:
        clauses = parse_constraint(label) if label else ()
    except ValueError:
        clauses = ()
    for expression in state.settings.constraint_rules(role, name):
        clauses += parse_constraint(expression)
    return clauses
