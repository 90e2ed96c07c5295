"""Budgets of roles: which concern a role, and which it is over."""

from collections.abc import Iterable, Iterator

from allocator.core import BudgetRow, over_in_words


def concerning(rows: Iterable[BudgetRow], paths: Iterable[str]) -> Iterator[BudgetRow]:
    """The budgets of some roles and of roles above them."""
    inside = [f"{path}/" for path in paths]
    for row in rows:
        if any(each.startswith(f"{row.rule.role}/") for each in inside):
            yield row


def over(rows: Iterable[BudgetRow], path: str, *, hard: bool) -> Iterator[tuple[str, int]]:
    """Why a role is over a budget, its own or one above, and until when."""
    for row in concerning(rows, [path]):
        rule, spent = row.rule, row.spent
        if rule.hard == hard and spent.used_up(rule):
            text = f"the role {rule.role} is over its budget of {over_in_words(rule, spent)}"
            yield text, spent.end_ms
