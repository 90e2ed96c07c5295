"""Derives from a framework's information what holds for each of its clients, and stores it.

`derive` changes nothing, so the books stay intact if it fails on untrusted input; `take` stores the
result. Each function that refreshes recomputes only what depends on one kind of operators' rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from allocator.core.books.agent_rules import Rule
from allocator.core.books.state import State
from allocator.core.books.tables import REFINED, REVOCABLE, SHARED
from allocator.core.constraints import parse_constraint
from allocator.core.demand.own_words import Minimum, OwnWords, Requested, fits_nowhere, is_gang
from allocator.core.demand.sources import Stated, declared_demand, own_demand, unstated_source
from allocator.core.demand.topics import name_topic, wide_topics
from allocator.core.events import TOO_MANY, FrameworkInfo, SetAside, bounded

_parsed = lru_cache(maxsize=256)(parse_constraint)
"""Cached for operators' expressions only: one of them may apply to thousands of frameworks."""


class Derived(NamedTuple):
    """What a framework's information and operators' rules mean for one client.

    `stated`: the stated demand, (source, amounts by name).
    `takes`: as in `ClientTable`.
    `minimum`: alternatives, each amounts by name; None: the default minimum of an offer.
    `gang`: number of tasks that start together; 0: no gang.
    `unlike`: these tasks, if they differ or are for certain agents.
    """

    stated: Stated
    takes: int
    weight: float
    minimum: Minimum | None
    rule: Rule
    gang: int
    unlike: Requested


def derive(
    state: State,
    info: FrameworkInfo,
    words: OwnWords,
    request: Requested,
    roles: Iterable[int],
) -> dict[int, Derived]:
    """Combine a framework's information with operators' rules, by role (handle)."""
    own, settings, found = own_demand(words.demand, request), state.settings, {}
    # Capabilities determine which special resources the client may get.
    takes = (
        REVOCABLE * ("REVOCABLE_RESOURCES" in info.capabilities)
        + SHARED * ("SHARED_RESOURCES" in info.capabilities)
        + REFINED * ("RESERVATION_REFINEMENT" in info.capabilities)
    )
    for role in roles:
        path = state.roles.path[role]
        stated = declared_demand(settings, own, info.name, path)
        gang, unlike = _gang(state, info.name, words, request, stated, path)
        found[role] = Derived(
            stated=stated,
            takes=takes,
            weight=settings.framework_weight(path, info.name),
            minimum=words.minimum.get(role),
            rule=_rule(state, info, words, path),
            gang=gang,
            unlike=unlike,
        )
    return found


def _rule(state: State, info: FrameworkInfo, words: OwnWords, path: str) -> Rule:
    clauses = words.clauses
    for expression in state.settings.constraint_rules(path, info.name):
        clauses += _parsed(expression)
    return Rule(
        clauses=clauses,
        gpus="GPU_RESOURCES" in info.capabilities or not state.options.filter_gpus,
        any_region="REGION_AWARE" in info.capabilities,
        many_roles="MULTI_ROLE" in info.capabilities,
        nested_role="/" in path,
    )


def _gang(
    state: State, name: str, words: OwnWords, request: Requested, stated: Stated, path: str
) -> tuple[int, Requested]:
    """Return the gang of a framework in a role (path), as in `Derived`.

    A gang of one task is one that collects if no agent has room for it (see `_to_place` in
    `snapshot_builder`). An operators' rule about the demand replaces the sizes of requested tasks,
    but not their number.
    """
    rule = state.settings.gang_rule(path, name)
    unlike: Requested = ()
    if rule is not None:
        return rule, ()
    if is_gang(request):
        tasks = sum(each.number for each in request)
        alike = len(request) == 1 and not request[0].agent
        if not alike and stated is not None and stated[0] == "request":
            unlike = request
        return (tasks if tasks > 1 or unlike else 0), unlike
    return words.gang, ()


def take(state: State, derived: Mapping[int, Derived]) -> None:
    clients = state.clients
    for client, its in derived.items():
        if clients.takes[client] != its.takes:
            clients.takes[client] = its.takes
            clients.version += 1
        clients.weight[client] = its.weight
        _take_gang(state, client, its.gang, its.unlike)
        _take_minimum(state, client, its.minimum)
    _take_demands(state, {client: its.stated for client, its in derived.items()})
    state.eligibility.set_rules({client: its.rule for client, its in derived.items()})


def refresh_demands(state: State, clients: Sequence[int]) -> None:
    """Recompute stated demands, and gangs that the framework requested, of clients (rows).

    Clients of unknown frameworks are skipped, as in the functions below.
    """
    table, settings, demands = state.frameworks, state.settings, {}
    requested = []
    for client, framework, info, path in _known(state, clients):
        request = table.request.get(framework, ())
        own = own_demand(table.words[framework].demand, request)
        demands[client] = declared_demand(settings, own, info.name, path)
        if request:
            requested.append(client)
    if requested:
        refresh_gangs(state, requested)
    _take_demands(state, demands)


def refresh_weights(state: State, clients: Sequence[int]) -> None:
    for client, _, info, path in _known(state, clients):
        state.clients.weight[client] = state.settings.framework_weight(path, info.name)


def refresh_gangs(state: State, clients: Sequence[int]) -> None:
    table, settings = state.frameworks, state.settings
    for client, framework, info, path in _known(state, clients):
        words, request = table.words[framework], table.request.get(framework, ())
        stated = declared_demand(settings, own_demand(words.demand, request), info.name, path)
        _take_gang(state, client, *_gang(state, info.name, words, request, stated, path))


def refresh_rules(state: State, clients: Sequence[int]) -> None:
    words, rules = state.frameworks.words, {}
    for client, framework, info, path in _known(state, clients):
        rules[client] = _rule(state, info, words[framework], path)
    state.eligibility.set_rules(rules)


def _known(state: State, clients: Sequence[int]) -> Iterator[tuple[int, int, FrameworkInfo, str]]:
    """Yield (client, framework, its information, role's path); skip unknown frameworks."""
    frameworks, roles = state.clients.framework[clients], state.clients.role[clients]
    every = zip(clients, frameworks.tolist(), roles.tolist(), strict=True)
    for client, framework, role in every:
        if (info := state.frameworks.info[framework]) is not None:
            yield client, framework, info, state.roles.path[role]


def _take_demands(state: State, demands: Mapping[int, Stated]) -> None:
    """Store stated demands; `demand.sources` defines which of several demands is in force."""
    clients, space, unlike = state.clients, state.space, state.clients.unlike
    # An unknown resource may add a column, so find all of them before making rows of amounts.
    for client, stated in demands.items():
        unknown = frozenset[str]() if stated is None else space.unknown(stated[1])
        unknown = unknown.union(*(space.unknown(each.amounts) for each in unlike.get(client, ())))
        if client in clients.minimum:
            unknown = unknown.union(*map(space.unknown, clients.minimum[client]))
        _note_unfit(state, client, unknown)
    for client, stated in demands.items():
        if stated is not None:
            source, amounts = stated
            clients.demand[client] = space.demanded(amounts)
            source = source if any(amounts.values()) else ""
        else:
            source = unstated_source(
                state.settings,
                accepts=int(clients.accepts[client]),
                has_prior=any(clients.prior[client].tolist()),
                mixed=bool(clients.mixed[client]),
            )
            known = {"learned": clients.learned, "prior": clients.prior}.get(source)
            clients.demand[client] = 0 if known is None else known[client]
        clients.demand_source[client] = source
        clients.by_prior[client] = source == "prior"
        guessed = clients.guessed[client] = source in {"prior", "learned"}
        if not guessed:
            clients.hungry[client] = 0


def _note_unfit(state: State, client: int, unknown: frozenset[str]) -> None:
    if unknown:
        state.space.make_nowhere()
        state.reserve()
        state.clients.unfit[client] = unknown
    else:
        state.clients.unfit.pop(client, None)


def _take_minimum(state: State, client: int, minimum: Minimum | None) -> None:
    if minimum == state.clients.minimum.get(client):
        return
    state.clients.minimum_version += 1
    if minimum is None:
        del state.clients.minimum[client]
        return
    state.clients.minimum[client] = minimum


def _take_gang(state: State, client: int, tasks: int, unlike: Requested) -> None:
    clients = state.clients
    if not tasks:
        clients.forget_gang(client)
        return
    if clients.gangs.get(client) != tasks:
        clients.too_large.discard(client)  # until its next turn
        if client in clients.collecting:  # what it lent may be more than it needs now
            clients.collecting[client] = clients.collecting[client]._replace(lent=())
    clients.gangs[client] = tasks
    if clients.unlike.get(client, ()) == unlike:
        return
    clients.unlike.pop(client, None)
    if unlike:
        clients.unlike[client] = unlike
    # The time of the collection continues, but its agents were chosen for other tasks.
    if client in clients.collecting:
        its = clients.collecting[client]
        clients.collecting[client] = its._replace(agent=(), line=(), tasks=(), lent=())


def begin_with_prior(state: State, client: int, info: FrameworkInfo) -> bool:
    """Look up a prior for a new client; returns whether there is one.

    A prior for a resource that no agent has is not used until `refit` looks it up again.
    """
    if not state.settings.learn_demand or not state.memory.entries:
        return False
    role = state.roles.path[int(state.clients.role[client])]
    topics = [name_topic(role, info), *wide_topics(role, info)]
    remembered = state.memory.recall(state.settings, topics)
    if remembered is None or state.space.unknown(remembered):
        return False
    prior = state.space.quantities(remembered)
    state.reserve()
    state.clients.prior[client] = prior
    return True


def refit(state: State, names: set[str]) -> None:
    """Recompute the demands that name resources which agents now have for the first time."""
    if not names:
        return
    clients = state.clients
    found = {row for row, asked in clients.unfit.items() if not asked.isdisjoint(names)}
    if state.settings.learn_demand and state.memory.entries:
        # The remembered demands of similar frameworks may include these resources.
        new = clients.subscribed & (clients.accepts == 0) & ~clients.prior.any(axis=1)
        for client in np.flatnonzero(new).tolist():
            info = state.frameworks.info[int(clients.framework[client])]
            if info is not None and begin_with_prior(state, client, info):
                found.add(client)
    refresh_demands(state, sorted(found))
    for framework in sorted({int(clients.framework[client]) for client in found}):
        note_aside(state, framework)


def note_aside(state: State, framework: int) -> None:
    """Collect the ignored parts of a framework's input, with the reasons."""
    table = state.frameworks
    info, words = table.info[framework], table.words.get(framework)
    rows: list[SetAside] = []
    if unserved := table.unserved.get(framework):
        count = len(unserved)
        text = f"there is no room for {count} of its roles; it is not served in them"
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
    """Yield the demands and minimums of a framework that name a resource that no agent has."""
    request, unknown = state.frameworks.request.get(framework, ()), state.space.unknown
    stated = own_demand(words.demand, request)
    amounts = [each.amounts for each in request] or ([stated[1]] if stated else [])
    if stated and (names := frozenset[str]().union(*map(unknown, amounts))):
        yield fits_nowhere({"label": "labels"}.get(stated[0], stated[0]), names)
    for any_of in words.minimum.values():
        if names := frozenset[str]().union(*map(unknown, any_of)):
            yield fits_nowhere("offer_filters", names)
            return
