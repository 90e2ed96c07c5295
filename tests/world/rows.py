"""Rows of amounts as in events: holdings, outcomes of decisions, releases."""

import numpy as np

from allocator.core import Decisions, Holdings, Outcomes, Release


def holdings(*rows: tuple[int, ...], kinds: tuple[int, ...] = (0, 1)) -> Holdings:
    """Make rows of (framework, role, agent, thousandths of each kind)."""
    table = np.array(rows, np.int64).reshape(-1, 3 + len(kinds))
    columns = np.array(kinds, np.int64)
    return Holdings(table[:, 0], table[:, 1], table[:, 2], columns, table[:, 3:])


def holdings_of(made: Decisions) -> Holdings:
    """The rows of all decisions."""
    return Holdings(made.framework, made.role, made.agent, made.kind, made.amount)


def settled(made: Decisions, *, offered: bool = True) -> Outcomes:
    """Outcomes that say that every decision became an offer in full, or that none did."""
    return Outcomes.all_or_nothing(made.first_decision, np.full(len(made), offered))


def given_back(rows: Holdings, refuse_ms: int = -1, *, used: bool = False) -> Release:
    """Release rows because an offer was declined, or because the tasks that used them ended.

    `refuse_ms`: duration of the filter that the decline sets; -1: none.
    `used`: tasks ended.
    """
    count = len(rows.framework)
    return Release(rows, np.full(count, refuse_ms), np.full(count, used))
