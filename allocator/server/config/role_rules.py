"""Sections of rules that are for a role."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from allocator.core import SetBudget, check_credit, parse_hours
from allocator.server.config.checks import reject_at, role_path
from allocator.server.config.schema import Section


class RoleRule(Section):
    """Which role a rule is for."""

    live = True

    role: Annotated[str, AfterValidator(role_path)] = Field(
        description="Path of the role.", examples=["eng/ads"]
    )


class BudgetRule(RoleRule):
    """Of which role a budget is."""

    @model_validator(mode="after")
    def check_credit(self) -> "BudgetRule":
        """A credit is of the same resources, for a period that there is."""
        rule: Any = self
        hours, credit = parse_hours(rule.resources), (rule.credit, rule.credit_from)
        try:
            check_credit(SetBudget(self.role, hours, rule.per, False, False, *credit))
        except ValueError as error:
            reject_at("credit", str(error))
        return self
