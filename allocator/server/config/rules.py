"""The rules of the configuration: about demands, agents and limits."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, model_validator

from allocator.core import (
    WEIGHT_MAX,
    WEIGHT_MIN,
    SetConstraint,
    SetDemand,
    SetWeight,
    parse_quantities,
)
from allocator.server.config.base import Section
from allocator.server.config.checks import (
    constraint_expression,
    non_blank,
    non_empty_quantities,
    refuse_at,
    role_path,
)


class LimitRule(Section):
    """What is granted in a role and below it at most, beside the limits of the master's quotas."""

    live = True

    role: Annotated[str, AfterValidator(role_path)] = Field(
        description="Path of the role.", examples=["eng/ads"]
    )
    resources: Annotated[str, AfterValidator(non_empty_quantities)] = Field(
        description="The limit.", examples=["cpus:20;mem:65536"]
    )


class DrainRule(Section):
    """An agent of which nobody is offered anything; what runs there runs on."""

    live = True

    agent: Annotated[str, AfterValidator(non_blank)] = Field(
        description="Its id or its host name.", examples=["node-17"]
    )


class FrameworksRule(Section):
    """Which frameworks a rule is for."""

    live = True

    role: str = Field(
        "",
        description='Shell pattern of roles, such as "eng/*"; empty: all.',
        examples=["eng/*"],
    )
    framework_name: str = Field("", description="Shell pattern of framework names; empty: all.")
    all: bool = Field(
        False, description="true: for every framework. Needed where both patterns are empty."
    )

    @model_validator(mode="after")
    def check_patterns(self) -> "FrameworksRule":
        """A rule for everybody is meant to be one."""
        named = bool(self.role or self.framework_name)
        if named and self.all:
            refuse_at("all", "does not go with role or framework_name; leave it out, or them")
        if not named and not self.all:
            text = "the rule would be for every framework; give role or framework_name, or all ="
            refuse_at("all", f"{text} true")
        return self


class DemandRule(FrameworksRule):
    """The demand vector (one task's needs) of the frameworks that both patterns match."""

    resources: Annotated[str, AfterValidator(non_empty_quantities)] = Field(
        description="What one task needs.", examples=["cpus:2;mem:2048"]
    )
    override: bool = Field(
        False,
        description=(
            "true: counts before what the framework states itself (REQUEST call, label). false:"
            " after it."
        ),
    )

    def event(self) -> SetDemand:
        """The rule as the core takes it."""
        amounts = parse_quantities(self.resources)
        return SetDemand(self.role, self.framework_name, amounts, self.override)


class ConstraintRule(FrameworksRule):
    """Which agents the frameworks that both patterns match may use."""

    agents: Annotated[str, AfterValidator(constraint_expression)] = Field(
        description=(
            "Clauses about agents' attributes, joined by ;, all of which must hold. hostname,"
            " region and zone count as attributes."
        ),
        examples=["zone=a|b; gpu_model!=K80; ssd"],
    )

    def event(self) -> SetConstraint:
        """The rule as the core takes it."""
        return SetConstraint(self.role, self.framework_name, self.agents)


class WeightRule(FrameworksRule):
    """The weight of each framework that both patterns match, beside that of its role."""

    weight: Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX)] = Field(
        description="Shares are divided by it; 1: as without the rule.", examples=[2.0]
    )

    def event(self) -> SetWeight:
        """The rule as the core takes it."""
        return SetWeight(self.role, self.framework_name, self.weight)


Rules = TypeVar("Rules", tuple[DemandRule, ...], tuple[ConstraintRule, ...], tuple[WeightRule, ...])


def distinct_patterns(rules: Rules) -> Rules:
    """Refuse two rules with the same patterns: one would be lost."""
    seen: set[tuple[str, str]] = set()
    for index, rule in enumerate(rules):
        if (rule.role, rule.framework_name) in seen:
            refuse_at(index, "has the patterns of an earlier rule; keep one of the two")
        seen.add((rule.role, rule.framework_name))
    return rules


def distinct_roles(rules: tuple[LimitRule, ...]) -> tuple[LimitRule, ...]:
    """Refuse two limits of one role: one would be lost."""
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.role in seen:
            refuse_at(index, "has the role of an earlier limit; keep one of the two")
        seen.add(rule.role)
    return rules


def distinct_agents(rules: tuple[DrainRule, ...]) -> tuple[DrainRule, ...]:
    """Refuse to drain an agent twice: one of the two may be meant for another."""
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.agent in seen:
            refuse_at(index, "has the agent of an earlier one; keep one of the two")
        seen.add(rule.agent)
    return rules
