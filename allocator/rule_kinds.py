"""What operators can set: one row per kind, from which every layer derives what it needs.

A kind combines a scope (what a setting applies to) and a value (what it says). The layers work on
scopes and values rather than on kinds by name: the wire reads and writes them, the configuration
has a section for each, the command line has commands for each. The effect of a kind is in the core:
`allocator.core.settings` defines its event and where it is stored.

Import nothing slow here: the command line loads this module before it parses its arguments.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any


class Scope(Enum):
    """What a setting applies to; the value names the event fields that identify it.

    The value is a space-separated string, not a tuple: before Python 3.11.4 an empty tuple cannot
    be the value of an enum member.
    """

    CLUSTER = ""
    """A single setting, not a rule."""
    FRAMEWORKS = "role framework_name"
    """Shell patterns; an empty one matches everything."""
    ROLE = "role"
    """A role's path: the role and its descendants."""
    HOLDERS = "role per"
    """Each of those that hold something in a role or its descendants: one of `PER`."""
    AGENT = "agent"
    """An agent's id or host name."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of these event fields."""
        return tuple(self.value.split())


PER = ("framework", "principal", "user")
"""Holders of resources: each framework by itself, or all of a principal or user together."""

COUNTS = ("tasks", "agents")
"""What a cap may name beside resources: numbers of tasks and of agents."""


def without_counts(cap: Mapping[str, int]) -> dict[str, int]:
    """Return the resources of a cap.

    >>> without_counts({"cpus": 1000, "tasks": 5000})
    {'cpus': 1000}
    """
    return {name: amount for name, amount in cap.items() if name not in COUNTS}


class Value(Enum):
    """What a setting says about its scope."""

    POLICY = "policy"
    AMOUNTS = "amounts"
    HOURS = "hours"
    """Amounts of resource-hours."""
    EXPRESSION = "expression"
    """Clauses about agents' attributes."""
    NUMBER = "number"
    COUNT = "count"
    """A whole number."""
    NOTHING = "nothing"
    """The setting has no value beyond its existence; the event's field is true."""


class Doubt(Enum):
    """Why a rule is probably a mistake in the current cluster."""

    NO_SUCH_RESOURCE = auto()
    TOO_LARGE = auto()
    """No agent is large enough for one task."""
    NO_SUCH_AGENT = auto()
    NOTHING_GRANTED = auto()
    """It limits a resource to nothing."""
    NO_AGENT_LEFT = auto()
    """The frameworks it applies to would be offered nothing."""


@dataclass(frozen=True)
class Flag:
    """A boolean field of an event, in words.

    `meaning` documents it in the configuration, `hint` on the command line; `words` follow the
    value if it is true.
    """

    name: str
    meaning: str
    hint: str
    words: str


@dataclass(frozen=True)
class Text:
    """A field of an event that is a text.

    `meaning` documents it in the configuration, `hint` on the command line, where `set` has no
    option for it if there is none. `values`: those it may have; empty: any. In words, it follows
    the value as `words` says; an empty text is left out.
    """

    name: str
    meaning: str
    words: str
    hint: str = ""
    values: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        """What it is if it is not given."""
        return next(iter(self.values), "")


@dataclass(frozen=True)
class SettingKind:
    """A kind of setting.

    `field` is the event's field with the value; None (or false) there removes the setting. The
    configuration and the command line call it `called`; `meaning` documents it in the former,
    `hint` in the latter. `empty` says what an empty value means; it is empty if a value is
    required.
    """

    name: str
    scope: Scope
    value: Value
    field: str
    _: KW_ONLY
    what: str = ""
    """One sentence for the configuration."""
    group: str = ""
    """One sentence for the command line."""
    commands: tuple[str, str, str] = ("", "", "")
    """Help of the commands that list, set and remove."""
    removes: str = "remove"
    """The name of the last one."""
    examples: tuple[str, str] = ("", "")
    """Example arguments of `set` and `remove`."""
    called: str = ""
    meaning: str = ""
    hint: str = ""
    example: str | float = ""
    empty: str = ""
    bounds: tuple[float, float] = (0.0, 0.0)
    """Bounds of a number or count."""
    flags: tuple[Flag, ...] = ()
    texts: tuple[Text, ...] = ()
    moments: tuple[str, ...] = ()
    """Fields of the event with a time in ms since 1970, which only the calendar sets; 0: none."""
    scheduled: bool = False
    """Whether its rules can be scheduled."""
    refused: frozenset[Doubt] = frozenset()
    """A rule with any of these doubts is refused unless forced."""
    beside: tuple[str, ...] = ()
    """Further fields of `ListRulesResponse` that concern the kind."""
    column: str = ""
    """Heading of the value's table column; a leading > right-aligns it."""
    none: str = "no rules"
    """Shown for a table without rows."""

    @property
    def plural(self) -> str:
        """The name of a collection of them."""
        return f"{self.name}s"

    @property
    def title(self) -> str:
        """The name as used in classes."""
        return self.name.capitalize()

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the event's fields beside its scope and its value."""
        return *(text.name for text in self.texts), *(flag.name for flag in self.flags)

    @property
    def is_rule(self) -> bool:
        """Whether there can be more than one."""
        return self.scope is not Scope.CLUSTER

    def scope_in_words(self, parts: tuple[str, ...]) -> str:
        """Describe what a rule applies to.

        >>> DEMAND.scope_in_words(("eng/*", "")), DEMAND.scope_in_words(("", ""))
        ('role eng/*', 'all')
        """
        names = (name.removesuffix("_name") for name in self.scope.fields)
        said = ", ".join(f"{name} {part}" for name, part in zip(names, parts, strict=True) if part)
        return said or ("all" if self.is_rule else "")

    def match_in_words(self, found: Any) -> str:  # noqa: ANN401 - any object with these fields
        """Describe a `RuleMatch`: what a rule matches in the current cluster."""
        frameworks = f"{found.frameworks} of {found.frameworks_total} frameworks"
        agents = f"{found.agents} of {found.agents_total} agents"
        if self.scope is Scope.AGENT:
            return agents
        if self.value is Value.EXPRESSION:
            without = found.frameworks_without_agents
            return f"{agents}, {frameworks}" + (f", {without} WITHOUT AN AGENT" if without else "")
        if self is DEMAND:
            return f"{frameworks}, counts for {found.frameworks_served_by}"
        return frameworks


_OF_PATTERNS = "Remove the rule with these patterns."

POLICY = SettingKind("policy", Scope.CLUSTER, Value.POLICY, "spec")

DEMAND = SettingKind(
    "demand",
    Scope.FRAMEWORKS,
    Value.AMOUNTS,
    "demand",
    what="The demand (one task's needs) of the frameworks that match both patterns.",
    group="Rules that set what one task of a framework needs.",
    commands=(
        "List the rules.",
        (
            "Set what one task of the matching frameworks needs. Replaces the rule with the same"
            " patterns."
        ),
        _OF_PATTERNS,
    ),
    examples=("'cpus:2;mem:2048' --framework-name 'spark*'", "--framework-name 'spark*'"),
    called="resources",
    meaning="What one task needs.",
    hint="One task's needs, as in 'cpus:2;mem:2048' (MiB) or 'cpus:2;mem:2Gi'; empty: unknown.",
    example="cpus:2;mem:2048",
    empty="unknown",
    flags=(
        Flag(
            "override",
            "true: takes precedence over what the framework states itself (REQUEST call,"
            " label). false: applies only if it states nothing.",
            "Take precedence over what frameworks state themselves (REQUEST call, label).",
            "overrides what frameworks state",
        ),
    ),
    refused=frozenset({Doubt.NO_SUCH_RESOURCE, Doubt.TOO_LARGE}),
    column="one task needs",
)

CONSTRAINT = SettingKind(
    "constraint",
    Scope.FRAMEWORKS,
    Value.EXPRESSION,
    "expression",
    what="Which agents the frameworks that match both patterns may use.",
    group="Rules that set which agents a framework may use.",
    scheduled=True,
    commands=(
        "List the rules.",
        (
            "Set which agents the matching frameworks may use. Replaces the rule with the same"
            " patterns."
        ),
        _OF_PATTERNS,
    ),
    examples=("'zone=a|b; ssd' --role 'eng/*'", "--role 'eng/*'"),
    called="agents",
    meaning="Clauses about agents' attributes, joined by ;, all of which must hold. hostname,"
    " region and zone count as attributes.",
    hint="Clauses about agents' attributes, as in 'zone=a|b; gpu_model!=K80; ssd'.",
    example="zone=a|b; gpu_model!=K80; ssd",
    refused=frozenset({Doubt.NO_AGENT_LEFT}),
    column="agents",
)

LIMIT = SettingKind(
    "limit",
    Scope.ROLE,
    Value.AMOUNTS,
    "limit",
    what="The most that a role and its descendants are granted, in addition to the limits of the"
    " master's quotas.",
    group="Limits of roles, in addition to the master's quotas.",
    scheduled=True,
    commands=(
        "List the limits.",
        "Limit what a role and its descendants are granted.",
        "Remove a role's limit.",
    ),
    examples=("eng/ads 'cpus:20;mem:65536'", "eng/ads"),
    called="resources",
    meaning="The limit.",
    hint="The limit, as in 'cpus:20;mem:65536' (MiB) or 'cpus:20;mem:64Gi'.",
    example="cpus:20;mem:65536",
    refused=frozenset({Doubt.NO_SUCH_RESOURCE, Doubt.NOTHING_GRANTED}),
    column="at most",
    none="no limits",
)

DRAIN = SettingKind(
    "drain",
    Scope.AGENT,
    Value.NOTHING,
    "drained",
    what="An agent that is no longer offered; its running tasks continue.",
    group="Agents that are no longer offered.",
    moments=("from_ms",),
    scheduled=True,
    commands=(
        "List drained agents.",
        "Stop offering these agents; their running tasks continue.",
        "Offer these agents again.",
    ),
    examples=("10.0.0.7 10.0.0.8", "10.0.0.7"),
    refused=frozenset({Doubt.NO_SUCH_AGENT, Doubt.NO_AGENT_LEFT}),
    beside=("agents", "left_out"),
    none="no agent is drained",
)

WEIGHT = SettingKind(
    "weight",
    Scope.FRAMEWORKS,
    Value.NUMBER,
    "weight",
    what="The weight of each framework that matches both patterns, on top of its role's weight.",
    group="Weights of frameworks, on top of their roles' weights.",
    scheduled=True,
    commands=(
        "List the rules.",
        "Set the weight of the matching frameworks. Replaces the rule with the same patterns.",
        _OF_PATTERNS,
    ),
    examples=("2 --framework-name 'spark-etl'", "--framework-name 'spark-etl'"),
    called="weight",
    meaning="Shares are divided by it; 1 has no effect.",
    hint="Weight, more than 0. A framework with weight 2 is entitled to twice the share of a"
    " framework with weight 1.",
    example=2.0,
    # Shares are divided by weights: beyond these bounds rounding errors would decide.
    bounds=(1e-6, 1e6),
    column=">weight",
)

GANG = SettingKind(
    "gang",
    Scope.FRAMEWORKS,
    Value.COUNT,
    "tasks",
    what="Gangs: how many tasks the frameworks that match both patterns start together or not"
    " at all.",
    group="Rules for gangs: how many tasks of a framework start together or not at all.",
    commands=(
        "List the rules.",
        (
            "Set the size of gangs of the matching frameworks. Replaces the rule with the same"
            " patterns."
        ),
        _OF_PATTERNS,
    ),
    examples=("8 --framework-name 'mpi*'", "--framework-name 'mpi*'"),
    called="tasks",
    meaning="The framework is offered room for this many tasks of its demand at once, or nothing."
    " 1: its tasks are served one by one, whatever its label says; if no agent has room for one,"
    " the framework collects.",
    hint="Number of tasks that start together; 1: none do, but the framework collects room for a"
    " task that fits on no agent.",
    example=8,
    bounds=(1, 100_000),
    column=">tasks",
)

BUDGET = SettingKind(
    "budget",
    Scope.ROLE,
    Value.HOURS,
    "budget",
    what="What a role and its descendants may hold over a period, in resource-hours. Over it, their"
    " frameworks are served after all others.",
    group="Budgets of roles: resource-hours per month, week or day.",
    scheduled=True,
    commands=(
        "List the budgets, and what is left of them.",
        "Set the budget of a role and its descendants, replacing the present one and its credit.",
        "Remove a role's budget, and forget what it has used.",
    ),
    removes="clear",
    examples=("eng/ads 'gpus:500h;cpus:20000h' --per month", "eng/ads"),
    called="resources",
    meaning="The resource-hours of a period.",
    hint="Resource-hours, as in 'gpus:500h;cpus:20000h' or 'mem:64Gih'.",
    example="gpus:500h;cpus:20000h",
    flags=(
        Flag(
            "carry_over",
            "true: what is left at the end of a period is added to the next one, up to one"
            " period's budget.",
            "Add what is left to the next period, up to one period's budget.",
            "carried over",
        ),
        Flag(
            "hard",
            "true: over budget, the role is offered nothing until the period ends, also no"
            " guarantee.",
            "Over budget, offer the role nothing until the period ends, also no guarantee.",
            "hard",
        ),
    ),
    texts=(
        Text(
            "per",
            "The period: month, week (from Monday) or day of the calendar, in UTC.",
            "per {}",
            "The period: month, week (from Monday) or day, in UTC.",
            ("month", "week", "day"),
        ),
        Text(
            "credit",
            "Resource-hours that are added in one period, as in 'gpus:20h'; empty: none.",
            "credit {}",
        ),
        Text(
            "credit_from",
            "First day of that period, as in 2026-11-01.",
            "from {}",
        ),
    ),
    refused=frozenset({Doubt.NO_SUCH_RESOURCE}),
    column="budget",
    beside=("uses",),
    none="no budgets",
)

PAUSE = SettingKind(
    "pause",
    Scope.ROLE,
    Value.NOTHING,
    "paused",
    what="A role that, like all its descendants, gets no new offers; they keep what they hold.",
    group="Roles that are offered nothing new; `pause ROLE` is short for `pause set ROLE`.",
    scheduled=True,
    commands=(
        "List paused roles.",
        "Offer a role and its descendants nothing new; what they hold stays.",
        "Resume offers to a role.",
    ),
    examples=("eng/ads", "eng/ads"),
    none="no role is paused",
)

CLAIM = SettingKind(
    "claim",
    Scope.ROLE,
    Value.AMOUNTS,
    "claim",
    what="Amounts, beyond the guarantee of the master's quotas, up to which a role and its"
    " descendants are served before others. Others are offered what the role does not use.",
    group="Claims of roles: they are served first up to it, and lend what they do not use.",
    scheduled=True,
    commands=(
        "List the claims.",
        "Serve a role first until it has its guarantee and this; others may use it meanwhile.",
        "Remove a role's claim.",
    ),
    examples=("eng 'cpus:100;mem:256Gi'", "eng"),
    called="resources",
    meaning="The claim.",
    hint="The claim, as in 'cpus:20;mem:65536' (MiB) or 'cpus:20;mem:64Gi'.",
    example="cpus:20;mem:65536",
    refused=frozenset({Doubt.NO_SUCH_RESOURCE}),
    column="claims",
    none="no claims",
)

CAP = SettingKind(
    "cap",
    Scope.HOLDERS,
    Value.AMOUNTS,
    "cap",
    what="The most that each framework, or all frameworks of each principal or user together, may"
    " hold in a role and its descendants.",
    group="Caps inside roles: the most that each framework, principal or user may hold.",
    scheduled=True,
    commands=(
        "List the caps.",
        "Limit what each framework, principal or user may hold in a role and its descendants.",
        "Remove a cap.",
    ),
    examples=("eng 'cpus:100;mem:64Gi' --per user", "eng --per user"),
    called="resources",
    meaning="The cap of each of them: amounts, and the numbers of tasks (of their demand) and of"
    " agents.",
    hint="The cap of each: amounts, as in 'cpus:20;mem:64Gi', and numbers of tasks and of agents,"
    " as in 'tasks:50;agents:10'.",
    example="cpus:20;mem:65536;tasks:50",
    refused=frozenset({Doubt.NO_SUCH_RESOURCE, Doubt.NOTHING_GRANTED}),
    column="at most",
    none="no caps",
)

SHADOW = SettingKind("shadow", Scope.CLUSTER, Value.POLICY, "spec")

KINDS: Mapping[str, SettingKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            *(POLICY, DEMAND, CONSTRAINT, LIMIT, DRAIN, WEIGHT, GANG, BUDGET, PAUSE, CLAIM),
            *(CAP, SHADOW),
        )
    }
)
"""All kinds by name."""

RULES = tuple(kind for kind in KINDS.values() if kind.is_rule)
"""Kinds that can have more than one setting."""


def policy_in_words(policy: Any) -> str:  # noqa: ANN401 - a specification, or a message of one
    """Write a policy in one line."""
    parts = [policy.selection or "its own selection", policy.mode]
    parts.append("flat" if policy.flat else "hierarchical")
    parts += [f"{key}={value}" for key, value in policy.parameters.items()]
    subtrees = "".join(f"; {name} below {role}" for role, name in policy.subtrees.items())
    return f"{policy.name} ({', '.join(parts)}){subtrees}"
