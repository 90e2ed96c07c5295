"""Operators' settings: the events that change them, and the settings in force.

Operators' events outlive a session, so they use names, not handles. Each has a kind, see
`allocator.rule_kinds`, so that code for all kinds is written once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, get_args

from allocator import rule_kinds
from allocator.core.policy import PolicySpec
from allocator.rule_kinds import SettingKind, Value

Key: TypeAlias = tuple[str, ...]
"""What a change is about: the name of its kind, and its patterns, role or agent."""


class _Change:
    """The base of operators' changes."""

    __slots__ = ()

    kind = rule_kinds.POLICY  # Each class has its own.

    @property
    def key(self) -> Key:
        """The subject of the change: of two changes with one key the later one applies."""
        return self.kind.name, *(getattr(self, name) for name in self.kind.scope.fields)

    @property
    def takes_back(self) -> bool:
        """Whether it removes a setting."""
        value = getattr(self, self.kind.field)
        return value is None or value is False


@dataclass(frozen=True, slots=True)
class SetPolicy(_Change):
    """Decide by this policy from the next cycle on."""

    kind = rule_kinds.POLICY
    spec: PolicySpec


@dataclass(frozen=True, slots=True)
class SetDemand(_Change):
    """The demand vector of frameworks by shell patterns; an empty pattern matches all.

    None removes the rule; an empty mapping means that the demand is unknown. The rule applies
    before frameworks' own statements if it overrides them, otherwise after them.
    """

    kind = rule_kinds.DEMAND
    role: str
    framework_name: str
    demand: Mapping[str, int] | None
    override: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraint(_Change):
    """Which agents the frameworks that match may use; None removes the rule."""

    kind = rule_kinds.CONSTRAINT
    role: str
    framework_name: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class SetLimit(_Change):
    """The most that is granted in a role and below it; None removes the limit."""

    kind = rule_kinds.LIMIT
    role: str
    limit: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetDrain(_Change):
    """Stop offers of an agent, by its id or host name; or resume them."""

    kind = rule_kinds.DRAIN
    agent: str
    drained: bool = True


@dataclass(frozen=True, slots=True)
class SetWeight(_Change):
    """The weight of frameworks by shell patterns, beside those of their roles; None: none."""

    kind = rule_kinds.WEIGHT
    role: str
    framework_name: str
    weight: float | None


@dataclass(frozen=True, slots=True)
class SetGang(_Change):
    """How many tasks of the frameworks that match must start together; None: no rule."""

    kind = rule_kinds.GANG
    role: str
    framework_name: str
    tasks: int | None


@dataclass(frozen=True, slots=True)
class SetPause(_Change):
    """Stop new offers to a role and its descendants; or resume them."""

    kind = rule_kinds.PAUSE
    role: str
    paused: bool = True


@dataclass(frozen=True, slots=True)
class SetShadow(_Change):
    """Set the shadow policy, which decides the same cycles without effect. None: stop it."""

    kind = rule_kinds.SHADOW
    spec: PolicySpec | None


OperatorChange: TypeAlias = (
    SetPolicy
    | SetDemand
    | SetConstraint
    | SetLimit
    | SetDrain
    | SetWeight
    | SetGang
    | SetPause
    | SetShadow
)
"""One thing that an operator sets, or takes back."""


def taken_back(change: OperatorChange) -> OperatorChange:
    """Return the change that removes what this one sets; not for a policy, which is always set."""
    nothing: Any = None if change.kind.value is not Value.NOTHING else False
    made: OperatorChange = replace(change, **{change.kind.field: nothing})
    return made


EVENT_OF_KIND: Mapping[str, Any] = MappingProxyType(
    {change.kind.name: change for change in get_args(OperatorChange)}
)
"""The events by the names of their kinds."""

assert EVENT_OF_KIND.keys() == rule_kinds.KINDS.keys(), "a kind without an event"


@dataclass(slots=True)
class Settings:
    """What operators set. Outlives sessions."""

    policy: PolicySpec = field(default_factory=PolicySpec)
    seed: int = 0
    """The seed of all random choices."""
    learn_demand: bool = True
    """Whether what a framework accepted tells its demand."""
    learn_after: int = 3
    """Acceptances before that counts."""
    probe_after: int = 3
    """A characterised client that uses nothing and declined this often in a row is served with all
    that is free, until it accepts: its demand may be larger than assumed."""
    priors_max: int = 1000
    """Demands that are remembered for later frameworks of the same sort. 0: none."""
    prior_half_life_ms: int = 7 * 24 * 3_600_000
    """After that time a demand that is remembered is half as certain."""
    learn_patience_cycles: int = 30
    """A client whose demand is learnt or remembered is offered all that is free once after this
    many full cycles without an offer or a decline; after twice as many again, and so on."""
    patience_cycles: int = 60
    """A client that could be served, but was not for this many full cycles, comes first in the
    next, with one grant. 0: never."""
    collect_ms: int = 300_000
    """How long a gang that waited for `patience_cycles` keeps what becomes free, until it fits. 0:
    no gang does."""
    outstanding_max: float = 1.0
    """Part of the cluster, of any resource, that a framework may have on offer without using it, in
    all its roles together; then it is offered no more of what is neither reserved nor revocable. 1:
    no bound."""
    half_life_ms: int = 0
    """Of averages of what is held: after that time use counts half. 0: none are kept."""
    usage_weight: float = 0.5
    """How much averages count for shares, beside what is held: from 0 to 1."""
    limits: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """By path of the role: the most that is granted in it and below it, besides the limits of the
    master's quotas.
    """
    demands: dict[tuple[str, str], SetDemand] = field(default_factory=dict)
    """By patterns of roles and of frameworks' names, as all that follow; of several rules that
    match, the one that was set last counts."""
    constraints: dict[tuple[str, str], SetConstraint] = field(default_factory=dict)
    """All that match count."""
    weights: dict[tuple[str, str], SetWeight] = field(default_factory=dict)
    """The last one counts."""
    gangs: dict[tuple[str, str], SetGang] = field(default_factory=dict)
    """The last one counts, before the framework's label."""
    drains: frozenset[str] = frozenset()
    """Ids or host names of agents that are not offered."""
    pauses: frozenset[str] = frozenset()
    """Paths of roles that are offered nothing new, nor are their descendants."""
    shadow: PolicySpec | None = None
    """The shadow policy, see `allocator.core.diagnostics.shadow_comparison`."""

    def copied(self) -> "Settings":
        """Copy them; later changes do not affect the copy."""
        held: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        rules: dict[str, Any] = {
            name: dict(value) for name, value in held.items() if isinstance(value, dict)
        }
        return replace(self, **rules)

    def put(self, change: OperatorChange) -> None:
        """Set or remove something, without validation.

        The latest rule is last, and applies if several match.
        """
        match change:
            case SetPolicy():
                self.policy = change.spec
            case SetShadow():
                self.shadow = change.spec
            case SetLimit():
                self.limits.pop(change.role, None)
                if change.limit is not None:
                    self.limits[change.role] = change.limit
            case SetDrain() | SetPause():
                _, name = change.key
                named = getattr(self, change.kind.plural) - {name}
                setattr(self, change.kind.plural, named if change.takes_back else named | {name})
            case _:
                rules = getattr(self, change.kind.plural)
                rules.pop(change.key[1:], None)
                if not change.takes_back:
                    rules[change.key[1:]] = change

    def standing(self, kind: SettingKind) -> list[OperatorChange]:
        """Yield the settings of a kind, each as the change that sets it, in order."""
        if kind is rule_kinds.POLICY:
            return [SetPolicy(self.policy)]
        if kind is rule_kinds.SHADOW:
            return [SetShadow(self.shadow)] if self.shadow else []
        if kind is rule_kinds.LIMIT:
            return [SetLimit(role, limit) for role, limit in self.limits.items()]
        if kind.value is Value.NOTHING:
            return list(map(EVENT_OF_KIND[kind.name], sorted(getattr(self, kind.plural))))
        return list(getattr(self, kind.plural).values())

    def rules(self) -> Iterator[OperatorChange]:
        """Yield all rules, kind by kind."""
        for kind in rule_kinds.RULES:
            yield from self.standing(kind)

    def before(self, change: OperatorChange) -> OperatorChange | None:
        """Find the setting that a change would replace."""
        kind, (_, *parts) = change.kind, change.key
        if not kind.is_rule:
            return next(iter(self.standing(kind)), None)
        # By its key: scanning thousands of rules for each change would be quadratic.
        if kind is rule_kinds.LIMIT:
            limit = self.limits.get(parts[0])
            return None if limit is None else SetLimit(parts[0], limit)
        if kind.value is Value.NOTHING:
            there = parts[0] in getattr(self, kind.plural)
            return EVENT_OF_KIND[kind.name](parts[0]) if there else None
        found: OperatorChange | None = getattr(self, kind.plural).get(tuple(parts))
        return found

    def demand_rule(self, role: str, framework_name: str) -> SetDemand | None:
        """Find the operator's rule for a client."""
        return next(reversed(_matching(self.demands, role, framework_name)), None)

    def framework_weight(self, role: str, framework_name: str) -> float:
        """Find the weight of a client besides that of its role; 1 without a rule."""
        rule = next(reversed(_matching(self.weights, role, framework_name)), None)
        return 1.0 if rule is None or rule.weight is None else rule.weight

    def gang_rule(self, role: str, framework_name: str) -> int | None:
        """Find the operator's size of a client's gang; None without a rule."""
        rule = next(reversed(_matching(self.gangs, role, framework_name)), None)
        return None if rule is None else rule.tasks

    def constraint_rules(self, role: str, framework_name: str) -> list[str]:
        """Find the operator's expressions for a client."""
        found = _matching(self.constraints, role, framework_name)
        return [rule.expression for rule in found if rule.expression is not None]


_Rule = TypeVar("_Rule")


def _matching(
    rules: Mapping[tuple[str, str], _Rule], role: str, framework_name: str
) -> list[_Rule]:
    """The rules for a client, the latest ones last."""
    return [
        rule
        for (role_pattern, name_pattern), rule in rules.items()
        if matches(role_pattern, role) and matches(name_pattern, framework_name)
    ]


def matches(pattern: str, text: str) -> bool:
    """Whether a shell pattern matches; an empty one matches everything."""
    return not pattern or fnmatchcase(text, pattern)
