"""What roles have used of their budgets: integers that outlive sessions.

A budget is for periods of the calendar, in UTC. Time is counted on the session's clock. A period
that has begun is not left before its end: if a clock is behind that of the session before, time
until the end of the period counts in that period. So no time is counted twice or lost, and no
period begins again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from allocator.core.bounds import quoted
from allocator.core.demand.periods import DAY_MS, HOUR_MS, period_of, read_day, write_day
from allocator.core.resources import format_amount, parse_hours
from allocator.core.settings import SetBudget

GAP_MS = HOUR_MS
"""A longer step between two messages of a session counts as unknown: the master was not running, or
its clock was set. A module sends a message at least once in each allocation interval."""


@dataclass(slots=True)
class Spent:
    """What a role has used in its current period; amounts in thousandths x milliseconds.

    `carried`: what was left of the previous period.
    """

    per: str
    begin_ms: int
    end_ms: int
    used: dict[str, int]
    carried: dict[str, int]

    def granted(self, rule: SetBudget) -> dict[str, int]:
        added = credit_of(rule, self.begin_ms)
        return {
            name: (amount + added.get(name, 0)) * HOUR_MS + self.carried.get(name, 0)
            for name, amount in (rule.budget or {}).items()
        }

    def used_up(self, rule: SetBudget) -> list[str]:
        granted = self.granted(rule).items()
        return [name for name, amount in granted if self.used.get(name, 0) >= amount]

    def left_over(self, rule: SetBudget) -> dict[str, int]:
        """What this period leaves to the next: credit is used first, and not carried over."""
        if not rule.carry_over:
            return {}
        added = credit_of(rule, self.begin_ms)
        left = {}
        for name, hours in (rule.budget or {}).items():
            used = max(self.used.get(name, 0) - added.get(name, 0) * HOUR_MS, 0)
            budget = hours * HOUR_MS
            left[name] = min(max(budget + self.carried.get(name, 0) - used, 0), budget)
        return left


def check_credit(rule: SetBudget) -> None:
    """Raise a ValueError if a credit is invalid; `per` is a valid period."""
    if bool(rule.credit) != bool(rule.credit_from):
        raise ValueError("credit and credit_from belong together; give both, or neither")
    if not rule.credit:
        return
    unknown = parse_hours(rule.credit).keys() - (rule.budget or {}).keys()
    if unknown:
        names = ", ".join(sorted(map(quoted, unknown)))
        raise ValueError(f"{names} is not in the budget; give credit of its resources")
    try:
        begins_ms = read_day(rule.credit_from) * DAY_MS
    except ValueError:
        text = f"credit_from = {quoted(rule.credit_from)} is not a date; write it as 2026-11-01"
        raise ValueError(text) from None
    begin_ms, _ = period_of(rule.per, begins_ms)
    if begin_ms != begins_ms:
        first = write_day(begin_ms // DAY_MS)
        text = f"credit_from = {rule.credit_from} is not the first day of a {rule.per}"
        raise ValueError(f"{text}; give {first}")


def credit_of(rule: SetBudget, begin_ms: int) -> Mapping[str, int]:
    """Return the credit of the period that begins then, in thousandths of resource-hours."""
    if not rule.credit or read_day(rule.credit_from) * DAY_MS != begin_ms:
        return {}
    return parse_hours(rule.credit)


class BudgetMemory:
    """What was used, by role.

    `over`: roles (paths) that have used up some resource, and whether their budget is hard.
    `version`: grows whenever `over` changes.
    """

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = {}
        self.over: dict[str, bool] = {}
        self.version = 0

    def pass_time(
        self, rules: Iterable[SetBudget], since_ms: int, now_ms: int, held: Mapping[str, list[int]]
    ) -> None:
        """Count what was held from one time to another, at most `GAP_MS` later.

        `held` (dict of path to amounts): of the resources of the role's budget, in its order, in
            thousandths; a role that is missing held nothing.
        """
        for rule in rules:
            its, amounts = self._at(rule, since_ms), held.get(rule.role)
            end_ms = its.end_ms
            if amounts is not None:
                _add(its, rule, amounts, min(now_ms, end_ms) - since_ms)
            if now_ms >= end_ms:
                its = self._at(rule, now_ms)
                if amounts is not None:
                    _add(its, rule, amounts, now_ms - end_ms)
        self.note(rules)

    def note(self, rules: Iterable[SetBudget]) -> None:
        over = {
            rule.role: rule.hard
            for rule in rules
            if (its := self.spent.get(rule.role)) is not None and its.used_up(rule)
        }
        if over != self.over:
            self.over = over
            self.version += 1

    def change(self, rule: SetBudget, now_ms: int) -> None:
        over = self.over.pop(rule.role, None)
        if rule.takes_back:
            self.spent.pop(rule.role, None)
        elif self._at(rule, now_ms).used_up(rule):
            self.over[rule.role] = rule.hard
        self.version += over != self.over.get(rule.role)

    def keep(self, rules: Mapping[tuple[str], SetBudget], now_ms: int) -> None:
        """Count for these budgets, and forget all others."""
        for role in [role for role in self.spent if (role,) not in rules]:
            del self.spent[role]
        for rule in rules.values():
            self._at(rule, now_ms)
        self.note(rules.values())

    def _at(self, rule: SetBudget, now_ms: int) -> Spent:
        """Return a role's use in the period that contains a time, or in a later one."""
        its = self.spent.get(rule.role)
        if its is None or its.per != rule.per:
            its = self.spent[rule.role] = Spent(rule.per, *period_of(rule.per, now_ms), {}, {})
        if now_ms >= its.end_ms:
            next_ms, (begin_ms, end_ms) = its.end_ms, period_of(rule.per, now_ms)
            its.carried, its.used, its.begin_ms = its.left_over(rule), {}, next_ms
            if begin_ms > next_ms:  # nothing was used in the periods between
                its.carried, its.begin_ms = its.left_over(rule), begin_ms
            its.end_ms = end_ms
        return its


def _add(its: Spent, rule: SetBudget, amounts: list[int], time_ms: int) -> None:
    for name, amount in zip(rule.budget or (), amounts, strict=True):
        if amount:
            its.used[name] = its.used.get(name, 0) + amount * time_ms


def over_in_words(rule: SetBudget, its: Spent) -> str:
    granted = its.granted(rule)
    used = ", ".join(
        f"{name}: {format_amount(its.used.get(name, 0) // HOUR_MS)} of"
        f" {format_amount(granted[name] // HOUR_MS)} hours"
        for name in its.used_up(rule)
    )
    begins = write_day(its.end_ms // DAY_MS)
    this = "today" if its.per == "day" else f"this {its.per}"
    return f"{used} {this}; the next period begins on {begins} (UTC)"
