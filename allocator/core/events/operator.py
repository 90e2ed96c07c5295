"""Events that operators cause.

They outlive a session: they name things by text, not by handle.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from allocator.core.policy import PolicySpec


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Decide by this policy from the next cycle on."""

    spec: PolicySpec


@dataclass(frozen=True, slots=True)
class SetDemand:
    """The demand vector of frameworks by shell patterns; an empty pattern matches all.

    None takes the rule back; an empty mapping says that the demand is unknown. The rule counts
    before what frameworks state themselves where it overrides that, else after it.
    """

    role: str
    framework_name: str
    demand: Mapping[str, int] | None
    override: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraint:
    """Which agents the frameworks that match may use; None takes the rule back."""

    role: str
    framework_name: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class SetLimit:
    """What is granted in a role and below it at most; None takes that back."""

    role: str
    limit: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetDrain:
    """Offer nothing of an agent, by its id or host name; or offer it again."""

    agent: str
    drained: bool = True


@dataclass(frozen=True, slots=True)
class SetWeight:
    """The weight of frameworks by shell patterns, beside those of their roles; None: none."""

    role: str
    framework_name: str
    weight: float | None


@dataclass(frozen=True, slots=True)
class SetShadow:
    """Have a policy look on: it decides what was decided, and nothing comes of it; None: none."""

    spec: PolicySpec | None
