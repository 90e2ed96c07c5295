"""Operators' settings: the settings in force, and the events that change them.

Operators' events outlive a session, so they use names, not handles. Each has a kind, see
`allocator.rule_kinds`.
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
"""The subject of a change: the name of its kind, and its patterns, role or agent."""


class _Change:
    """The base of operators' changes."""

    __slots__ = ()

    kind = rule_kinds.POLICY  # each class defines its own

    @property
    def key(self) -> Key:
        """The subject of the change; of two changes with the same key, the later one applies."""
        return self.kind.name, *(getattr(self, name) for name in self.kind.scope.fields)

    @property
    def takes_back(self) -> bool:
        value = getattr(self, self.kind.field)
        return value is None or value is False


@dataclass(frozen=True, slots=True)
class SetPolicy(_Change):
    """Decide by this policy from the next cycle on."""

    kind = rule_kinds.POLICY
    spec: PolicySpec


@dataclass(frozen=True, slots=True)
class SetDemand(_Change):
    """The demand of frameworks whose role and name match shell patterns (empty: all match).

    A demand of None removes the rule; an empty mapping makes the demand unknown. With `override`,
    the rule takes precedence over what frameworks state; otherwise it applies only to frameworks
    that state nothing.
    """

    kind = rule_kinds.DEMAND
    role: str
    framework_name: str
    demand: Mapping[str, int] | None
    override: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraint(_Change):
    """Which agents matching frameworks may use; None removes the rule."""

    kind = rule_kinds.CONSTRAINT
    role: str
    framework_name: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class SetLimit(_Change):
    """The most that is granted in a role and its descendants; None removes the limit."""

    kind = rule_kinds.LIMIT
    role: str
    limit: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetDrain(_Change):
    """Stop or resume offers of an agent, given by its id or host name.

    `from_ms`: when the drain begins, in ms since 1970; 0: now. Only the calendar sets it.
    """

    kind = rule_kinds.DRAIN
    agent: str
    drained: bool = True
    from_ms: int = 0


@dataclass(frozen=True, slots=True)
class SetWeight(_Change):
    """A factor for the weights of matching frameworks; None removes the rule."""

    kind = rule_kinds.WEIGHT
    role: str
    framework_name: str
    weight: float | None


@dataclass(frozen=True, slots=True)
class SetGang(_Change):
    """How many tasks of matching frameworks must start together; None removes the rule."""

    kind = rule_kinds.GANG
    role: str
    framework_name: str
    tasks: int | None


@dataclass(frozen=True, slots=True)
class SetBudget(_Change):
    """What a role and its descendants may hold over a period; None removes the budget.

    `budget`, in thousandths of resource-hours.
    `per`: the period, one of `periods.PERIODS`.
    `carry_over`: whether what is left is added to the next period.
    `hard`: whether the role is offered nothing once a resource is used up.
    `credit`, `credit_from`: resource-hours to add, as a text, in the period that begins on this
        day.
    """

    kind = rule_kinds.BUDGET
    role: str
    budget: Mapping[str, int] | None
    per: str = "month"
    carry_over: bool = False
    hard: bool = False
    credit: str = ""
    credit_from: str = ""


@dataclass(frozen=True, slots=True)
class SetPause(_Change):
    """Stop new offers to a role and its descendants; or resume them."""

    kind = rule_kinds.PAUSE
    role: str
    paused: bool = True


@dataclass(frozen=True, slots=True)
class SetClaim(_Change):
    """What a role and its descendants get first, beyond the guarantee; None: nothing.

    Nothing is kept free for it.
    """

    kind = rule_kinds.CLAIM
    role: str
    claim: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetCap(_Change):
    """The most that each holder has in a role and its descendants; None removes the cap.

    Besides amounts it may name `tasks` and `agents`, numbers in thousandths.

    `per`: what counts as a holder, one of `rule_kinds.PER`.
    """

    kind = rule_kinds.CAP
    role: str
    per: str
    cap: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetShadow(_Change):
    """The shadow policy, which decides the same cycles without effect; None stops it."""

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
    | SetBudget
    | SetPause
    | SetClaim
    | SetCap
    | SetShadow
)
"""A change of one setting by an operator."""


def taken_back(change: OperatorChange) -> OperatorChange:
    """Return the change that removes what this change sets; a policy cannot be removed."""
    nothing: Any = None if change.kind.value is not Value.NOTHING else False
    made: OperatorChange = replace(change, **{change.kind.field: nothing})
    return made


EVENT_OF_KIND: Mapping[str, Any] = MappingProxyType(
    {change.kind.name: change for change in get_args(OperatorChange)}
)
"""The class of changes of each kind, by the kind's name."""

assert EVENT_OF_KIND.keys() == rule_kinds.KINDS.keys(), "a kind without an event"


@dataclass(slots=True)
class Settings:
    """All settings of operators in force; they outlive sessions."""

    policy: PolicySpec = field(default_factory=PolicySpec)
    seed: int = 0
    """The seed of all random choices."""
    learn_demand: bool = True
    """Whether to learn demands from what frameworks accept."""
    learn_after: int = 3
    """Number of acceptances after which a learnt demand is used."""
    probe_after: int = 3
    """A characterised client that uses nothing and has declined this many consecutive offers is
    served with all that is free, until it accepts: its demand may be larger than assumed."""
    priors_max: int = 1000
    """Maximum number of demands that are remembered for later similar frameworks. 0: none."""
    prior_half_life_ms: int = 7 * 24 * 3_600_000
    """Time after which the weight of a remembered demand is halved."""
    learn_patience_cycles: int = 30
    """A client whose demand is learnt or remembered is offered all that is free once, after this
    many full cycles without an offer or a decline; the number doubles each time."""
    patience_cycles: int = 60
    """A client that could have been served but was not, for this many full cycles, is served first
    in the next one, with one grant. 0: never."""
    collect_ms: int = 300_000
    """How long a gang that waited for `patience_cycles` collects, that is, keeps what becomes free
    until it fits. 0: gangs do not collect."""
    outstanding_max: float = 1.0
    """The fraction of the cluster, of any resource, that a framework may have on offer without
    using it, in all its roles together. Beyond it, no more unreserved, non-revocable resources are
    offered. 1: no bound."""
    drain_ahead_ms: int = 4 * 3_600_000
    """Time before a drain of the calendar during which the agent is offered only to clients whose
    tasks end before the drain begins. 0: none."""
    half_life_ms: int = 0
    """Half-life of averages of what is held. 0: no averages are kept."""
    usage_weight: float = 0.5
    """Weight of averages in shares, from 0 to 1; the rest is the weight of what is held now."""
    limits: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """By path of the role: the most that is granted in it and its descendants, besides the limits
    of the master's quotas.
    """
    demands: dict[tuple[str, str], SetDemand] = field(default_factory=dict)
    """By patterns of roles and of frameworks' names, as in the next three; of several matching
    rules, the one that was set last applies."""
    constraints: dict[tuple[str, str], SetConstraint] = field(default_factory=dict)
    """All matching rules apply."""
    weights: dict[tuple[str, str], SetWeight] = field(default_factory=dict)
    gangs: dict[tuple[str, str], SetGang] = field(default_factory=dict)
    """Overrides the label."""
    budgets: dict[tuple[str], SetBudget] = field(default_factory=dict)
    """By path of the role."""
    claims: dict[tuple[str], SetClaim] = field(default_factory=dict)
    """By path of the role."""
    caps: dict[tuple[str, str], SetCap] = field(default_factory=dict)
    """By path of the role, and what each cap is for; all that apply to a client hold."""
    drains: dict[str, int] = field(default_factory=dict)
    """By id or host name of the agent: `SetDrain.from_ms`."""
    pauses: frozenset[str] = frozenset()
    """Paths of roles that are offered nothing new, nor are their descendants."""
    shadow: PolicySpec | None = None
    """The shadow policy, see `allocator.core.diagnostics.shadow_comparison`."""

    def copied(self) -> "Settings":
        held: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        rules: dict[str, Any] = {
            name: dict(value) for name, value in held.items() if isinstance(value, dict)
        }
        return replace(self, **rules)

    def put(self, change: OperatorChange) -> None:
        """Set or remove a setting, without validation.

        The rule that was set last is last in its dictionary, and applies if several match. Of
        several drains of an agent the earliest applies.
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
            case SetPause():
                others = self.pauses - {change.role}
                self.pauses = others if change.takes_back else others | {change.role}
            case SetDrain():
                earliest = min(change.from_ms, self.drains.get(change.agent, change.from_ms))
                self.drains.pop(change.agent, None)
                if not change.takes_back:
                    self.drains[change.agent] = earliest
            case _:
                rules = getattr(self, change.kind.plural)
                rules.pop(change.key[1:], None)
                if not change.takes_back:
                    rules[change.key[1:]] = change

    def standing(self, kind: SettingKind) -> list[OperatorChange]:
        """Return the settings of a kind, each as the change that sets it, in order."""
        if kind is rule_kinds.POLICY:
            return [SetPolicy(self.policy)]
        if kind is rule_kinds.SHADOW:
            return [SetShadow(self.shadow)] if self.shadow else []
        if kind is rule_kinds.LIMIT:
            return [SetLimit(role, limit) for role, limit in self.limits.items()]
        if kind is rule_kinds.DRAIN:
            return [SetDrain(name, from_ms=at_ms) for name, at_ms in sorted(self.drains.items())]
        if kind is rule_kinds.PAUSE:
            return list(map(SetPause, sorted(self.pauses)))
        return list(getattr(self, kind.plural).values())

    def rules(self) -> Iterator[OperatorChange]:
        """Yield all rules, by kind, each as the change that sets it."""
        for kind in rule_kinds.RULES:
            yield from self.standing(kind)

    def before(self, change: OperatorChange) -> OperatorChange | None:
        """Return the setting that a change would replace; None: there is none."""
        kind, (_, *parts) = change.kind, change.key
        if not kind.is_rule:
            return next(iter(self.standing(kind)), None)
        # Look it up by its key: thousands of changes must not scan thousands of rules each.
        if kind is rule_kinds.LIMIT:
            limit = self.limits.get(parts[0])
            return None if limit is None else SetLimit(parts[0], limit)
        if kind is rule_kinds.DRAIN:
            from_ms = self.drains.get(parts[0])
            return None if from_ms is None else SetDrain(parts[0], from_ms=from_ms)
        if kind is rule_kinds.PAUSE:
            return SetPause(parts[0]) if parts[0] in self.pauses else None
        found: OperatorChange | None = getattr(self, kind.plural).get(tuple(parts))
        return found

    def demand_rule(self, role: str, framework_name: str) -> SetDemand | None:
        """Return the demand rule that applies to a client; None: none."""
        return next(reversed(_matching(self.demands, role, framework_name)), None)

    def framework_weight(self, role: str, framework_name: str) -> float:
        """Return a client's own weight, besides its role's; 1 without a rule."""
        rule = next(reversed(_matching(self.weights, role, framework_name)), None)
        return 1.0 if rule is None or rule.weight is None else rule.weight

    def gang_rule(self, role: str, framework_name: str) -> int | None:
        """Return the size of a client's gang by operators' rules; None: no rule."""
        rule = next(reversed(_matching(self.gangs, role, framework_name)), None)
        return None if rule is None else rule.tasks

    def constraint_rules(self, role: str, framework_name: str) -> list[str]:
        found = _matching(self.constraints, role, framework_name)
        return [rule.expression for rule in found if rule.expression is not None]


_Rule = TypeVar("_Rule")


def _matching(
    rules: Mapping[tuple[str, str], _Rule], role: str, framework_name: str
) -> list[_Rule]:
    """Return the matching rules for a client, the latest last."""
    return [
        rule
        for (role_pattern, name_pattern), rule in rules.items()
        if matches(role_pattern, role) and matches(name_pattern, framework_name)
    ]


def matches(pattern: str, text: str) -> bool:
    """Whether a shell pattern matches; an empty one matches everything."""
    return not pattern or fnmatchcase(text, pattern)
