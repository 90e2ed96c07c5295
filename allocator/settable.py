"""What operators can set, a row for each kind: every layer takes from here what it must know.

A kind is made of a scope (what a setting is for) and a value (what it says). The layers know
scopes and values, and hardly a kind by its name: the wire reads and writes it, the configuration
has a section of it, the command line has commands of it. What a kind does stands in the core:
`allocator.core.settings` has its event and where it is held.

Nothing is imported here that is slow: the command line needs this before it knows what is asked.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any


class Scope(Enum):
    """What a setting is for; the value names the fields of its event that say so.

    It is one text with blanks, not a tuple: before Python 3.11.4 an empty tuple cannot be the value
    of an enum's member.
    """

    CLUSTER = ""
    """There is one: a setting, and no rule."""
    FRAMEWORKS = "role framework_name"
    """Shell patterns; an empty one matches all."""
    ROLE = "role"
    """The path of a role: it and those below."""
    AGENT = "agent"
    """An agent's id, or its host name."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of these fields."""
        return tuple(self.value.split())


class Value(Enum):
    """What a setting says of whom it is for."""

    POLICY = "policy"
    AMOUNTS = "amounts"
    EXPRESSION = "expression"
    """Clauses about agents' attributes."""
    NUMBER = "number"
    NOTHING = "nothing"
    """That it is there says all; the event's field is true."""


class Doubt(Enum):
    """Why a rule can't be meant, in the cluster as it is."""

    NO_SUCH_RESOURCE = auto()
    TOO_LARGE = auto()
    """No agent would be enough for one task."""
    NO_SUCH_AGENT = auto()
    NOTHING_GRANTED = auto()
    """It bounds a resource to nothing."""
    NO_AGENT_LEFT = auto()
    """Whoever it is for would be offered nothing."""


@dataclass(frozen=True)
class Flag:
    """A field of an event that is true or false, in words.

    `meaning` is said by the configuration and `hint` by the command line; `words` stand behind the
    value where it is true, `mark` in a table's column.
    """

    name: str
    meaning: str
    hint: str
    words: str
    mark: str


@dataclass(frozen=True)
class SettingKind:
    """A kind of thing that operators set.

    `field` is the event's field with the value; None there (or false) takes the setting back. The
    configuration and the command line call it `called`; `meaning` is said by the first, `hint` by
    the second. `empty` says what an empty value means, and is empty where there must be one.
    """

    name: str
    scope: Scope
    value: Value
    field: str
    _: KW_ONLY
    what: str = ""
    """In one sentence, for the configuration."""
    group: str = ""
    """The same for the command line."""
    commands: tuple[str, str, str] = ("", "", "")
    """What listing, setting and removing does."""
    examples: tuple[str, str] = ("", "")
    """What stands behind `set` and `remove`."""
    called: str = ""
    meaning: str = ""
    hint: str = ""
    example: str | float = ""
    empty: str = ""
    bounds: tuple[float, float] = (0.0, 0.0)
    """Of a number."""
    flags: tuple[Flag, ...] = ()
    refused: frozenset[Doubt] = frozenset()
    """Whatever of these is found in it, it is refused, unless it is forced."""
    column: str = ""
    """Heading of the value in a table; > aligns it to the right."""
    none: str = "no rules"
    """A table without rows."""

    @property
    def plural(self) -> str:
        """Where many of them are held or listed."""
        return f"{self.name}s"

    @property
    def title(self) -> str:
        """As in the names of calls and messages."""
        return self.name.capitalize()

    @property
    def is_rule(self) -> bool:
        """Whether there may be many of them."""
        return self.scope is not Scope.CLUSTER

    def scope_in_words(self, parts: tuple[str, ...]) -> str:
        """Say what a rule is for.

        >>> DEMAND.scope_in_words(("eng/*", "")), DEMAND.scope_in_words(("", ""))
        ('role eng/*', 'all')
        """
        names = (name.removesuffix("_name") for name in self.scope.fields)
        said = ", ".join(f"{name} {part}" for name, part in zip(names, parts, strict=True) if part)
        return said or ("all" if self.is_rule else "")

    def match_in_words(self, found: Any) -> str:  # noqa: ANN401 - whatever has its fields
        """Say what a rule is about in the cluster as it is: a `RuleMatch` in words."""
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


_OF_PATTERNS = "Take the rule with these patterns back."

POLICY = SettingKind("policy", Scope.CLUSTER, Value.POLICY, "spec")

DEMAND = SettingKind(
    "demand",
    Scope.FRAMEWORKS,
    Value.AMOUNTS,
    "demand",
    what="The demand vector (one task's needs) of the frameworks that both patterns match.",
    group="Rules that say what one task of a framework needs.",
    commands=(
        "List the rules.",
        "Say what one task needs, replacing the rule with the same patterns.",
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
            "true: counts before what the framework states itself (REQUEST call, label). false:"
            " after it.",
            "Count before what frameworks state themselves (REQUEST call, label); else after.",
            "overrides what frameworks state",
            "overrides",
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
    what="Which agents the frameworks that both patterns match may use.",
    group="Rules that say which agents a framework may use.",
    commands=(
        "List the rules.",
        "Say which agents may be used, replacing the rule with the same patterns.",
        _OF_PATTERNS,
    ),
    examples=("'zone=a|b; ssd' --role 'eng/*'", "--role 'eng/*'"),
    called="agents",
    meaning="Clauses about agents' attributes, joined by ;, all of which must hold. hostname,"
    " region and zone count as attributes.",
    hint="About agents' attributes, as in 'zone=a|b; gpu_model!=K80; ssd'.",
    example="zone=a|b; gpu_model!=K80; ssd",
    refused=frozenset({Doubt.NO_AGENT_LEFT}),
    column="agents",
)

LIMIT = SettingKind(
    "limit",
    Scope.ROLE,
    Value.AMOUNTS,
    "limit",
    what="What is granted in a role and below it at most, beside the limits of the master's"
    " quotas.",
    group="What roles are granted at most, beside the master's quotas.",
    commands=(
        "List the limits.",
        "Grant a role, and those below it, at most so much.",
        "Take the limit of a role back.",
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
    what="An agent of which nobody is offered anything; what runs there runs on.",
    group="Agents of which nobody is offered anything any more.",
    commands=(
        "List the agents that are drained.",
        "Offer nothing of these agents any more; what runs there runs on.",
        "Offer these agents again.",
    ),
    examples=("10.0.0.7 10.0.0.8", "10.0.0.7"),
    refused=frozenset({Doubt.NO_SUCH_AGENT, Doubt.NO_AGENT_LEFT}),
    none="no agent is drained",
)

WEIGHT = SettingKind(
    "weight",
    Scope.FRAMEWORKS,
    Value.NUMBER,
    "weight",
    what="The weight of each framework that both patterns match, beside that of its role.",
    group="Weights of frameworks, beside those of their roles.",
    commands=(
        "List the rules.",
        "Give frameworks a weight, replacing the rule with the same patterns.",
        _OF_PATTERNS,
    ),
    examples=("2 --framework-name 'spark-etl'", "--framework-name 'spark-etl'"),
    called="weight",
    meaning="Shares are divided by it; 1: as without the rule.",
    hint="More than 0; 2: twice the share of others.",
    example=2.0,
    # Shares are divided by weights: beyond these bounds nothing but rounding would decide.
    bounds=(1e-6, 1e6),
    column=">weight",
)

SHADOW = SettingKind("shadow", Scope.CLUSTER, Value.POLICY, "spec")

KINDS: Mapping[str, SettingKind] = MappingProxyType(
    {kind.name: kind for kind in (POLICY, DEMAND, CONSTRAINT, LIMIT, DRAIN, WEIGHT, SHADOW)}
)
"""All kinds by their names."""

RULES = tuple(kind for kind in KINDS.values() if kind.is_rule)
"""Those of which there may be many."""


def policy_in_words(policy: Any) -> str:  # noqa: ANN401 - a specification, or a message of one
    """Write a policy in one line."""
    parts = [policy.selection or "its own selection", policy.mode]
    parts.append("flat" if policy.flat else "hierarchical")
    parts += [f"{key}={value}" for key, value in policy.parameters.items()]
    subtrees = "".join(f"; {name} below {role}" for role, name in policy.subtrees.items())
    return f"{policy.name} ({', '.join(parts)}){subtrees}"
