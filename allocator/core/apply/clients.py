"""What follows from a framework's information for each of its clients: derived, then taken over.

`derive` changes nothing, so that whatever a framework's own words come to, even to an error, the
books stay as they were.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from allocator.core.apply.priors import begin_with_prior, unstated_source
from allocator.core.books.agent_rules import Rule
from allocator.core.books.state import State
from allocator.core.books.tables import REFINED, REVOCABLE, SHARED
from allocator.core.constraints import Clause, parse_constraint
from allocator.core.demand.demand_memory import declared_demand, own_demand
from allocator.core.demand.own_words import Minimum, OwnWords, fits_nowhere
from allocator.core.events import TOO_MANY, FrameworkInfo, SetAside, bounded
from allocator.core.snapshot import Ints

Stated = tuple[str, Mapping[str, int]] | None


class Derived(NamedTuple):
    """What a client's framework and the operators' rules come to.

    `stated` (source, amounts): the demand that somebody stated.
    `takes`: as in `ClientTable`.
    `minimum` (amounts by name): None: what everybody must be offered at least.
    """

    stated: Stated
    takes: int
    weight: float
    minimum: Minimum | None
    rule: Rule


def derive(
    state: State,
    info: FrameworkInfo,
    words: OwnWords,
    request: Mapping[str, int] | None,
    roles: Iterable[int],
) -> dict[int, Derived]:
    """Derive what a framework's information comes to in some roles (handles)."""
    own, name = own_demand(words.demand, request), info.name
    several_roles = "MULTI_ROLE" in info.capabilities
    # Capabilities say which resources the client may have, and where it may go.
    gpus = "GPU_RESOURCES" in info.capabilities or not state.options.filter_gpus
    takes = (
        REVOCABLE * ("REVOCABLE_RESOURCES" in info.capabilities)
        + SHARED * ("SHARED_RESOURCES" in info.capabilities)
        + REFINED * ("RESERVATION_REFINEMENT" in info.capabilities)
    )
    found = {}
    for role in roles:
        path = state.roles.path[role]
        rule = Rule(
            clauses=words.clauses + _of_operators(state, path, name),
            gpus=gpus,
            any_region="REGION_AWARE" in info.capabilities,
            many_roles=several_roles,
            nested_role="/" in path,
        )
        found[role] = Derived(
            stated=declared_demand(state.settings, own, name, path),
            takes=takes,
            weight=state.settings.framework_weight(path, name),
            minimum=words.minimum.get(role),
            rule=rule,
        )
    return found


def _of_operators(state: State, path: str, name: str) -> tuple[Clause, ...]:
    clauses: tuple[Clause, ...] = ()
    for expression in state.settings.constraint_rules(path, name):
        clauses += parse_constraint(expression)
    return clauses


def refresh_clients(state: State, clients: Ints) -> None:
    """Derive anew what depends on frameworks' information: demands, and where clients may go."""
    table, derived = state.frameworks, {}
    pairs = state.clients.framework[clients].tolist(), state.clients.role[clients].tolist()
    for client, framework, role in zip(clients.tolist(), *pairs, strict=True):
        info = table.info[framework]
        if info is not None:
            words, request = table.words[framework], table.request.get(framework)
            derived[client] = derive(state, info, words, request, (role,))[role]
    take(state, derived)


def take(state: State, derived: Mapping[int, Derived]) -> None:
    """Take over what was derived for each client."""
    _take_demands(state, derived)
    clients = state.clients
    for client, its in derived.items():
        clients.takes[client] = its.takes
        clients.weight[client] = its.weight
        _take_minimum(state, client, its.minimum)
    state.eligibility.set_rules({client: its.rule for client, its in derived.items()})


def _take_demands(state: State, derived: Mapping[int, Derived]) -> None:
    """Take over demands, and note what of them nobody has.

    What is stated comes first. Otherwise the learned demand counts, after enough acceptances, or
    the first that agrees with the prior. Before that, the prior counts.
    """
    clients, space = state.clients, state.space
    # What nobody has makes a column when it is met first, so all is looked through before.
    for client, its in derived.items():
        unknown = frozenset[str]() if its.stated is None else space.unknown(its.stated[1])
        if its.minimum:
            unknown = unknown.union(*map(space.unknown, its.minimum))
        _note_unfit(state, client, unknown)
    state.reserve()
    for client, its in derived.items():
        if its.stated is not None:
            source, amounts = its.stated
            clients.demand[client] = space.demanded(amounts)
            source = source if any(amounts.values()) else ""
        else:
            source = unstated_source(state, client)
            known = {"learned": clients.learned, "prior": clients.prior}.get(source)
            clients.demand[client] = 0 if known is None else known[client]
        clients.demand_source[client] = source
        clients.by_prior[client] = source == "prior"
        guessed = clients.guessed[client] = source in {"prior", "learned"}
        if not guessed:
            clients.hungry[client] = 0


def _note_unfit(state: State, client: int, unknown: frozenset[str]) -> None:
    """Note what a client asks for that nobody has: it may come."""
    if unknown:
        state.space.make_nowhere()
        state.clients.unfit[client] = unknown
    else:
        state.clients.unfit.pop(client, None)


def _take_minimum(state: State, client: int, minimum: Minimum | None) -> None:
    """Note what a client must be offered at least; None: what everybody must."""
    if minimum == state.clients.minimum.get(client):
        return
    state.clients.version += 1
    if minimum is None:
        del state.clients.minimum[client]
        return
    state.clients.minimum[client] = minimum


def refit(state: State, names: set[str]) -> None:
    """Resources of these names have come: look again at the clients that they may concern."""
    if not names:
        return
    clients = state.clients
    found = {row for row, asked in clients.unfit.items() if not asked.isdisjoint(names)}
    if state.settings.learn_demand and state.memory.entries:
        # What is remembered of their sort may be of these resources.
        new = clients.subscribed & (clients.accepts == 0) & ~clients.prior.any(axis=1)
        for client in np.flatnonzero(new).tolist():
            info = state.frameworks.info[int(clients.framework[client])]
            if info is not None and begin_with_prior(state, client, info):
                found.add(client)
    refresh_clients(state, np.array(sorted(found), np.int64))
    for framework in sorted({int(clients.framework[client]) for client in found}):
        note_aside(state, framework)


def note_aside(state: State, framework: int) -> None:
    """Gather what of a framework's words is set aside."""
    table = state.frameworks
    info, words = table.info[framework], table.words.get(framework)
    rows: list[SetAside] = []
    if unserved := table.unserved.get(framework):
        count = len(unserved)
        text = f"{count} roles are more than there is room for; it is not served in them"
        rows.append(SetAside("roles", TOO_MANY, text))
    if words is not None:
        rows += words.aside
        if words.demand or words.minimum or framework in table.request:
            rows += _nowhere(state, framework, words)
    rows += table.request_aside.get(framework, ())
    if info is not None:
        rows += info.set_aside
    if rows:
        table.aside[framework] = bounded(rows)
    else:
        table.aside.pop(framework, None)


def _nowhere(state: State, framework: int, words: OwnWords) -> Iterable[SetAside]:
    """What a framework asks for, and no agent has."""
    request, unknown = state.frameworks.request.get(framework), state.space.unknown
    stated = own_demand(words.demand, request)
    if stated is not None and (names := unknown(stated[1])):
        yield fits_nowhere({"label": "labels"}.get(stated[0], stated[0]), names)
    for any_of in words.minimum.values():
        if names := frozenset[str]().union(*map(unknown, any_of)):
            yield fits_nowhere("offer_filters", names)
            return
