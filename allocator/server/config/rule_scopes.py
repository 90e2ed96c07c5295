"""Scopes of rules: frameworks by patterns, a role or an agent."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from allocator.core import SetBudget, check_credit, parse_hours
from allocator.rule_kinds import PER
from allocator.server.config.checks import non_blank, reject_at, role_path, short
from allocator.server.config.schema import Section


class RoleRule(Section):
    """Which role a rule is for."""

    live = True

    role: Annotated[str, AfterValidator(role_path)] = Field(
        description="Path of the role.", examples=["eng/ads"]
    )


class HoldersRule(RoleRule):
    """A rule about each framework, principal or user in a role."""

    per: Literal[PER] = Field(  # type: ignore[valid-type]
        PER[0],
        description="What it bounds: each framework, or all frameworks of each principal or user"
        " together.",
    )


class BudgetRule(RoleRule):
    """Of which role a budget is."""

    @model_validator(mode="after")
    def check_credit(self) -> "BudgetRule":
        rule: Any = self
        hours, credit = parse_hours(rule.resources), (rule.credit, rule.credit_from)
        try:
            check_credit(SetBudget(self.role, hours, rule.per, False, False, *credit))
        except ValueError as error:
            reject_at("credit", str(error))
        return self


class FrameworksRule(Section):
    """Which frameworks a rule is for."""

    live = True

    role: Annotated[str, AfterValidator(short)] = Field(
        "",
        description='Shell pattern of roles, such as "eng/*"; empty: all.',
        examples=["eng/*"],
    )
    framework_name: Annotated[str, AfterValidator(short)] = Field(
        "", description="Shell pattern of framework names; empty: all."
    )
    all: bool = Field(
        False, description="true: for all frameworks. Required if both patterns are empty."
    )

    @model_validator(mode="after")
    def check_patterns(self) -> "FrameworksRule":
        named = bool(self.role or self.framework_name)
        if named and self.all:
            reject_at("all", "does not go with role or framework_name; leave it out, or them")
        if not named and not self.all:
            text = "the rule would be for every framework; give role or framework_name, or all ="
            reject_at("all", f"{text} true")
        return self


class AgentRule(Section):
    """Which agent a rule is for."""

    live = True

    agent: Annotated[str, AfterValidator(non_blank), AfterValidator(short)] = Field(
        description="Its id or its host name.", examples=["node-17"]
    )
