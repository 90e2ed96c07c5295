"""Budgets that concern a role, and those that it exceeds."""

from collections.abc import Iterable, Iterator

from allocator.core import BudgetRow, over_in_words


def concerning(rows: Iterable[BudgetRow], paths: Iterable[str]) -> Iterator[BudgetRow]:
    inside = [f"{path}/" for path in paths]
    for row in rows:
        if any(each.startswith(f"{row.rule.role}/") for each in inside):
            yield row


def over(rows: Iterable[BudgetRow], path: str, *, hard: bool) -> Iterator[tuple[str, int]]:
    """Yield each budget that a role or its ancestor exceeds, as text, and when that ends."""
    for row in concerning(rows, [path]):
        rule, spent = row.rule, row.spent
        if rule.hard == hard and spent.used_up(rule):
            text = f"the role {rule.role} is over its budget of {over_in_words(rule, spent)}"
            yield text, spent.end_ms
