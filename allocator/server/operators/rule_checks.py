"""Checks rules against the present cluster: what they match, and probable mistakes.

The core's thread only copies lists; the rest is computed on the caller's thread.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple, assert_never

import numpy as np

from allocator.core import (
    AgentColumns,
    AgentTraits,
    Allocator,
    Clause,
    FrameworkInfo,
    OperatorChange,
    PolicySpec,
    Rule,
    SetBudget,
    SetCap,
    SetClaim,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPause,
    SetPolicy,
    SetShadow,
    Settings,
    SortedRule,
    Subtree,
    attributes_of,
    format_quantities,
    harmless,
    matches,
    parse_constraint,
    quoted,
    read_words,
)
from allocator.near import suggestion
from allocator.plain import how_many
from allocator.rule_kinds import Doubt, Scope, Value, without_counts
from allocator.server.operators.unknown_names import (
    unknown_attributes,
    unknown_names,
    unknown_resources,
)
from allocator.server.reports.report import frameworks_below
from allocator.v1 import settings_pb2 as pb


class Client(NamedTuple):
    """A framework in a role.

    `framework`: its handle, which is the same for all its roles.
    `request`: whether its REQUEST call states a demand.
    `sized`: whether its demand is known, stated or learnt.
    """

    role: str
    framework: int
    info: FrameworkInfo
    request: bool
    sized: bool


class Cluster:
    """The state of the cluster that rules are checked against.

    `capacity` (A, R), in thousandths.
    `consumed`: when a limit is checked, consumption of its role and descendants.
    `minimum`: the master's min_allocatable_resources; an offer must reach one of them.
    """

    def __init__(self, allocator: Allocator, change: OperatorChange | None = None) -> None:
        """Copy the state against which rules, and this change, are checked; on its thread."""
        state = allocator.state
        agents = np.flatnonzero(state.agents.bound)
        clients = np.flatnonzero(state.clients.subscribed)
        paths, info = state.roles.path, state.frameworks.info
        rows = zip(
            state.clients.role[clients].tolist(),
            state.clients.framework[clients].tolist(),
            np.asarray(state.clients.demand[clients].any(axis=1)).tolist(),
            strict=True,
        )
        request = state.frameworks.request
        self.agents = [each for agent in agents.tolist() if (each := state.agents.info[agent])]
        self.capacity = state.space.by_column(state.agents.capacity, agents)
        self.resources = tuple(state.space.names)
        self.clients = [
            Client(paths[role], framework, each, framework in request, sized)
            for role, framework, sized in rows
            if (each := info[framework]) is not None
        ]
        self.roles = [path for role, path in enumerate(paths) if role and state.roles.bound[role]]
        self.settings = allocator.settings.copied()
        self.consumed: Mapping[str, int] = {}
        if isinstance(change, SetLimit):
            self.consumed = allocator.consumed_in(change.role)
        self.quotas = list(state.quotas.values())
        self.minimum = state.options.minimum
        self._left: dict[tuple[Clause, ...], int] = {}

    @cached_property
    def there(self) -> list[str]:
        return [self.resources[each] for each in np.flatnonzero(self.capacity.any(axis=0)).tolist()]

    @cached_property
    def frameworks(self) -> int:
        return len({each.framework for each in self.clients})

    @cached_property
    def below(self) -> Mapping[str, set[int]]:
        return frameworks_below((each.role, each.framework) for each in self.clients)

    @cached_property
    def attributes(self) -> list[dict[str, str]]:
        return [attributes_of(info) for info in self.agents]

    @cached_property
    def known(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for attributes in self.attributes:
            for name, value in attributes.items():
                found.setdefault(name, set()).add(value)
        return found

    def holding(self, clauses: tuple[Clause, ...]) -> int:
        """Number of agents that satisfy all clauses."""
        bars = self._columns.barred_by(SortedRule.of(Rule(clauses)))
        return len(self.agents) - (0 if bars is None else int(np.count_nonzero(bars)))

    @cached_property
    def _columns(self) -> AgentColumns:
        """Agents by attribute, so that clauses are evaluated once per value."""
        flags = {"gpus": False, "remote": False, "many_roles": True, "nested_roles": True}
        return AgentColumns([AgentTraits(each, **flags) for each in self.attributes])

    def agents_left(self, clauses: tuple[Clause, ...]) -> int:
        if clauses not in self._left:
            self._left[clauses] = self.holding(clauses)
        return self._left[clauses]


def match_of(cluster: Cluster, rule: OperatorChange, after: Settings) -> pb.RuleMatch:
    """Compute what a rule matches; `after`: the settings including the rule."""
    found = pb.RuleMatch(agents_total=len(cluster.agents), frameworks_total=cluster.frameworks)
    match rule.kind.scope:
        case Scope.FRAMEWORKS:
            _match_frameworks(cluster, rule, after, found)
        case Scope.ROLE | Scope.HOLDERS:
            path = rule.key[1]
            found.frameworks = len(cluster.below.get(path, ()))
        case Scope.AGENT:
            _, agent = rule.key
            found.agents = sum(agent in (each.agent_id, each.hostname) for each in cluster.agents)
        case Scope.CLUSTER:
            pass
        case _:
            assert_never(rule.kind.scope)
    return found


def _match_frameworks(
    cluster: Cluster, rule: OperatorChange, after: Settings, found: pb.RuleMatch
) -> None:
    if isinstance(rule, SetConstraint):
        found.agents = cluster.holding(parse_constraint(rule.expression or ""))
    matched = list(_matched(cluster, *rule.key[1:]))
    found.frameworks = len({each.framework for each in matched})
    if isinstance(rule, SetConstraint):
        without = {each.framework for each in matched if not _agents_left(cluster, after, each)}
        found.frameworks_without_agents = len(without)
    if isinstance(rule, SetDemand):
        served = {each.framework for each in matched if _counts(rule, after, each)}
        found.frameworks_served_by = len(served)


def rules_with_unknown_names(cluster: Cluster) -> Iterator[str]:
    """Yield rules in force, and quotas of the master, that name something no agent has."""
    if not cluster.agents:
        return
    # Gathering attributes takes a while, and only constraints name any.
    attributes = cluster.known if cluster.settings.constraints else {}
    for rule in cluster.settings.rules():
        for text in unknown_names(rule, cluster.there, attributes):
            yield f"the {rule.kind.name} of {rule.kind.scope_in_words(rule.key[1:])}: {text}"
    for quota in cluster.quotas:
        for what, amounts in (("guarantee", quota.guarantees), ("limit", quota.limits)):
            for text in unknown_resources(amounts, cluster.there):
                yield f"the master's quota ({what}) of role {harmless(quota.role, 80)}: {text}"
    unreached = [unknown_resources(each, cluster.there) for each in cluster.minimum]
    if all(unreached):  # one that can be reached is enough
        for text in chain.from_iterable(unreached):
            yield f"the master's min_allocatable_resources: {text}"


def _matched(cluster: Cluster, role_pattern: str, name_pattern: str) -> Iterator[Client]:
    for each in cluster.clients:
        if matches(role_pattern, each.role) and matches(name_pattern, each.info.name):
            yield each


def _agents_left(cluster: Cluster, settings: Settings, client: Client) -> int:
    return cluster.agents_left(_all_clauses(settings, client.role, client.info))


def _counts(rule: SetDemand, settings: Settings, client: Client) -> bool:
    """Whether this rule determines the client's demand, rather than another or the framework."""
    if settings.demand_rule(client.role, client.info.name) != rule:
        return False
    return rule.override or not (client.request or read_words(client.info).demand)


def _all_clauses(settings: Settings, role: str, info: FrameworkInfo) -> tuple[Clause, ...]:
    """Return all clauses that an agent must satisfy to be offered to a framework."""
    clauses = read_words(info).clauses
    for expression in settings.constraint_rules(role, info.name):
        clauses += parse_constraint(expression)
    return clauses


class Doubted(NamedTuple):
    """A warning about a rule: it looks like a mistake, or has no effect.

    `why`: the reason if the rule is certainly a mistake; such a rule may be rejected.
    """

    text: str
    why: Doubt | None = None


def doubts_of(
    cluster: Cluster, rule: OperatorChange, after: Settings, match: pb.RuleMatch
) -> Iterator[Doubted]:
    """Yield probable mistakes in a change, and parts without effect; `after`: settings with it."""
    kind = rule.kind
    value = getattr(rule, kind.field)
    if kind.scope is Scope.FRAMEWORKS:
        yield from _about_patterns(cluster, rule.key[1], match)
    if kind.scope in {Scope.ROLE, Scope.HOLDERS}:
        yield from _about_role(cluster, rule.key[1], f"the {kind.name} is on")
    match rule:
        case SetDemand():
            yield from _about_amounts(cluster, value, match)
            yield from _about_own_demands(rule, match)
        case SetDrain():
            yield from _about_drained(cluster, rule.agent, after, match)
        case SetPause():
            yield from _about_paused(cluster, rule.role, after)
        case SetPolicy():
            yield from _about_subtrees(cluster, rule.spec)
        case SetShadow():
            if value == replace(cluster.settings.policy, flat=False, subtrees={}):
                yield Doubted("that is the policy in force: both would decide the same")
        case SetLimit():
            yield from _about_resources(cluster, value, "it would have no effect")
            yield from _about_nothing(rule.role, value)
            yield from _about_what_is_left(cluster, rule, match)
        case SetCap():
            yield from _about_resources(cluster, without_counts(value), "it would have no effect")
            yield from _about_nothing(rule.role, value)
            yield from _about_counted_tasks(cluster, rule, match)
        case SetClaim():
            yield from _about_resources(cluster, value, "it would have no effect")
        case SetBudget():
            yield from _about_resources(cluster, value, "it would have no effect")
            yield from _about_guarantees(cluster, rule)
        case _ if kind.value is Value.EXPRESSION:
            yield from _about_agents(cluster, rule, after, match)


def _about_patterns(cluster: Cluster, role: str, match: pb.RuleMatch) -> Iterator[Doubted]:
    if cluster.clients and not match.frameworks:
        near = suggestion(role, cluster.roles) if role else ""
        yield Doubted(f"no framework matches now{near}")


def _about_agents(
    cluster: Cluster, rule: OperatorChange, after: Settings, match: pb.RuleMatch
) -> Iterator[Doubted]:
    if not cluster.agents:
        return
    clauses = parse_constraint(getattr(rule, rule.kind.field))
    yield from map(Doubted, unknown_attributes(clauses, cluster.known))
    without, of = match.frameworks_without_agents, match.frameworks
    if not match.agents:
        text = f"no agent satisfies it: {_frameworks_in(match)} would be offered nothing"
        yield Doubted(text, Doubt.NO_AGENT_LEFT)
    elif without:
        matched = _matched(cluster, *rule.key[1:])
        some = any(_agents_left(cluster, after, each) for each in matched)
        text = f"with their other rules, {without} of {of} frameworks would have no agent left"
        if some and without == of:  # in other roles they have
            text += " in one of their roles"
        yield Doubted(text, None if some else Doubt.NO_AGENT_LEFT)


def _frameworks_in(match: pb.RuleMatch) -> str:
    count = match.frameworks
    return how_many(count, count) if count else "its frameworks"


NAMES_TOLD = 3


def _about_resources(cluster: Cluster, amounts: Mapping[str, int], then: str) -> Iterator[Doubted]:
    """Name resources that do not exist; `then`: the consequence."""
    if not cluster.agents:
        return
    wrong = unknown_resources(amounts, cluster.there, then)
    for text in wrong[:NAMES_TOLD]:
        yield Doubted(text, Doubt.NO_SUCH_RESOURCE)
    if more := len(wrong[NAMES_TOLD:]):
        yield Doubted(f"and {more:,} more", Doubt.NO_SUCH_RESOURCE)


def _about_nothing(role: str, limit: Mapping[str, int]) -> Iterator[Doubted]:
    if none := [name for name, amount in limit.items() if not amount]:
        text = f"no {' and no '.join(none)} would be granted in {role!r} and below it"
        yield Doubted(text, Doubt.NOTHING_GRANTED)


def _about_what_is_left(cluster: Cluster, rule: SetLimit, match: pb.RuleMatch) -> Iterator[Doubted]:
    limit = rule.limit or {}
    over = {name: cluster.consumed.get(name, 0) - amount for name, amount in limit.items()}
    over = {name: amount for name, amount in over.items() if amount > 0}
    if over:
        yield Doubted(
            f"that is less than is held there now: {_frameworks_in(match)}"
            f" {'is' if match.frameworks == 1 else 'are'} offered no"
            f" {' and no '.join(over)} until they give back {format_quantities(over)}"
        )


def _about_guarantees(cluster: Cluster, rule: SetBudget) -> Iterator[Doubted]:
    for quota in cluster.quotas if rule.hard else ():
        if quota.guarantees and f"{quota.role}/".startswith(f"{rule.role}/"):
            text = f"over it, {quota.role!r} is not offered its guarantee either, which stays free"
            yield Doubted(f"{text}: {format_quantities(quota.guarantees)}")


def _about_amounts(
    cluster: Cluster, demand: Mapping[str, int], match: pb.RuleMatch
) -> Iterator[Doubted]:
    then = f"{_frameworks_in(match)} would be offered nothing"
    lacking = list(_about_resources(cluster, demand, then))
    yield from lacking
    if lacking or not cluster.agents or not demand:
        return
    columns = [cluster.resources.index(name) for name, amount in demand.items() if amount]
    needed = np.array([amount for amount in demand.values() if amount], np.int64)
    if not (cluster.capacity[:, columns] >= needed).all(axis=1).any():
        text = f"no agent is large enough for {format_quantities(demand)}, {then}"
        yield Doubted(text, Doubt.TOO_LARGE)


def _about_own_demands(rule: SetDemand, match: pb.RuleMatch) -> Iterator[Doubted]:
    others = match.frameworks - match.frameworks_served_by
    if others and not rule.override:
        yield Doubted(
            f"{others} of {how_many(match.frameworks, match.frameworks)} state their own demand"
            " (REQUEST call or label), or a later rule counts; --override lets this rule count"
            " before what they state"
        )


def _about_counted_tasks(cluster: Cluster, rule: SetCap, match: pb.RuleMatch) -> Iterator[Doubted]:
    if "tasks" not in (rule.cap or {}):
        return
    inside = cluster.below.get(rule.role, set())
    unknown = {each.framework for each in cluster.clients if not each.sized} & inside
    if unknown:
        yield Doubted(
            f"the demand of {len(unknown)} of {how_many(match.frameworks, match.frameworks)} is not"
            " known yet: until then, no number of tasks bounds them (mesos-allocator demand set)"
        )


def _about_role(cluster: Cluster, role: str, what: str) -> Iterator[Doubted]:
    if cluster.roles and role not in cluster.roles:
        near = suggestion(role, cluster.roles)
        yield Doubted(f"{what} a role {quoted(role)} without frameworks now{near}")


def _about_drained(
    cluster: Cluster, agent: str, after: Settings, match: pb.RuleMatch
) -> Iterator[Doubted]:
    if not cluster.agents:
        return
    if not match.agents:
        known = (name for each in cluster.agents for name in (each.agent_id, each.hostname))
        near = "; blanks stand between agents" if "," in agent else suggestion(agent, known)
        text = f"no agent has the id or host name {agent!r} now{near}"
        yield Doubted(text, Doubt.NO_SUCH_AGENT)
        return
    drained = {name for name, from_ms in after.drains.items() if not from_ms}
    if all(drained & {each.agent_id, each.hostname} for each in cluster.agents):
        text = "every agent would be drained: no framework would be offered anything"
        yield Doubted(text, Doubt.NO_AGENT_LEFT)


def _about_paused(cluster: Cluster, role: str, after: Settings) -> Iterator[Doubted]:
    owed = [each for each in cluster.quotas if each.role == role and any(each.guarantees.values())]
    for each in owed:
        kept = format_quantities(each.guarantees)
        yield Doubted(f"what the master guarantees to it stays kept for it meanwhile: {kept}")
    roles = (f"{each.role}/" for each in cluster.clients)
    paused = tuple(f"{each}/" for each in after.pauses)
    if cluster.clients and all(each.startswith(paused) for each in roles):
        yield Doubted("every role with frameworks would be paused: nothing would be offered")


def _about_subtrees(cluster: Cluster, spec: PolicySpec) -> Iterator[Doubted]:
    for role, text in spec.subtrees.items():
        yield from _about_role(cluster, role, f"{Subtree.read(text).name} decides below")
