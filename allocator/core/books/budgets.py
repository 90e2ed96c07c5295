"""Budgets of roles: counts what roles hold over time, and which roles are over budget."""

from typing import NamedTuple

import numpy as np

from allocator.core.books.state import State
from allocator.core.demand.budget_memory import GAP_MS, Spent
from allocator.core.settings import SetBudget


def count_until(state: State, now_ms: int) -> None:
    """Count the holdings until `now_ms`; call this before they change."""
    rules = state.settings.budgets.values()
    if not rules:
        return
    since_ms = state.memory.clock_ms
    if since_ms < 0 or now_ms - since_ms > GAP_MS:
        since_ms = now_ms
    held = _held(state) if since_ms < now_ms else {}
    state.memory.budgets.pass_time(rules, since_ms, now_ms, held)


def refresh(state: State, change: SetBudget | None) -> None:
    """Begin to count for budgets that are set, and forget those that are not.

    `change`: the only changed budget; None: any may have changed.
    """
    memory = state.memory.budgets
    if change is None:
        memory.keep(state.settings.budgets, state.now_ms)
    else:
        memory.change(change, state.now_ms)


def _held(state: State) -> dict[str, list[int]]:
    """Return the holdings of each role with a budget and its descendants, in thousandths.

    By role, in the order of the budget's resources. Holdings count whether offered or used,
    reserved or not. Roles that hold nothing may be absent.
    """
    space, roles, clients, books = state.space, state.roles, state.clients, state.ledger.books
    paths = [path for (path,) in state.settings.budgets]
    below = roles.inherit(dict.fromkeys(paths, 1), 0) > 0
    rows = np.flatnonzero((books.agents_held > 0) & below[clients.role])
    if not len(rows):
        return {}
    if space.shared_kind.any():
        held = state.held_by_column()[rows]
    else:
        held = space.by_column(books.client_held, rows)
    column = {name: index for index, name in enumerate(space.names)}
    by_role = np.zeros((len(roles.parent), held.shape[1]), np.int64)
    np.add.at(by_role, clients.role[rows], held)
    found = {}
    for path, amounts in roles.added_up(by_role, paths):
        rule = state.settings.budgets[(path,)]
        found[path] = [
            int(amounts[column[name]]) if name in column else 0 for name in rule.budget or ()
        ]
    return found


class BudgetRow(NamedTuple):
    """A budget, and how much of it was used in its period.

    `held`: current holdings of the budget's resources, in thousandths.
    """

    rule: SetBudget
    spent: Spent
    held: dict[str, int]

    @property
    def runs_out_ms(self) -> int:
        """Time until the first resource is used up at the current holdings, rounded up.

        0: one is used up; -1: never.
        """
        times = [
            -(-max(granted - self.spent.used.get(name, 0), 0) // held)
            for name, granted in self.spent.granted(self.rule).items()
            if (held := self.held.get(name, 0))
        ]
        return 0 if self.spent.used_up(self.rule) else min(times, default=-1)


def budget_rows(state: State) -> list[BudgetRow]:
    """Copy all budgets whose use is counted."""
    held, spent = _held(state), state.memory.budgets.spent
    return [
        BudgetRow(
            rule,
            Spent(its.per, its.begin_ms, its.end_ms, dict(its.used), dict(its.carried)),
            dict(zip(rule.budget or (), held.get(rule.role, ()), strict=False)),
        )
        for rule in state.settings.budgets.values()
        if (its := spent.get(rule.role)) is not None
    ]
