"""The allocator's answer: a cycle's decisions; if there are none, whether that is intended.

The module sees what is free and who takes offers. It does not see operators' rules, known demands
or plans. So an answer without decisions says whether one of these is the reason (`holds_back`). If
not, the sidecar may be faulty, and after a while the module decides once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from allocator.core.books.quota import is_owed
from allocator.core.events import Holdings
from allocator.core.plans.reclaims import NO_RECLAIMS, Reclaims
from allocator.core.snapshot import Bools, Ints, Snapshot


@dataclass(frozen=True)
class Decisions:
    """Offers to make, one row for each (framework, role, agent).

    `cycle`: number of the cycle, from 1; 0 if none was run.
    `first_decision`: row i, counted through the groups in their order, is decision
        ``first_decision + i``.
    `groups`: decisions that name the same kinds stand in one group; none is empty.
    `reclaims`: which frameworks are asked to leave agents.
    `holds_back`: rules, demands or a plan explain why there are no decisions, see this file's head.
    `gangs`: first row and number of rows of decisions that are offered together or not at all.
    """

    cycle: int
    first_decision: int
    groups: tuple[Holdings, ...] = ()
    reclaims: Reclaims = NO_RECLAIMS
    holds_back: bool = False
    gangs: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return sum(len(group.framework) for group in self.groups)

    @cached_property
    def together(self) -> Holdings:
        """All groups in one table, for when kinds are few."""
        return one_table(self.groups)

    @property
    def framework(self) -> Ints:
        """Of each decision, (N,)."""
        return self.together.framework

    @property
    def role(self) -> Ints:
        """Of each decision, (N,)."""
        return self.together.role

    @property
    def agent(self) -> Ints:
        """Of each decision, (N,)."""
        return self.together.agent

    @property
    def kind(self) -> Ints:
        """All kinds that some decision names, (K,), ascending."""
        return self.together.kind

    @property
    def amount(self) -> Ints:
        """Of each decision and each of these kinds, (N, K), thousandths."""
        return self.together.amount


def one_table(groups: Iterable[Holdings]) -> Holdings:
    """Concatenate groups of rows, over all kinds that occur in any of them."""
    tables = list(groups)
    none = np.empty(0, np.int64)
    kind = np.unique(np.concatenate([none, *(table.kind for table in tables)]))
    rows = sum(len(table.framework) for table in tables)
    amount = np.zeros((rows, len(kind)), np.int64)
    first = 0
    for table in tables:
        end = first + len(table.framework)
        amount[first:end, np.searchsorted(kind, table.kind)] = table.amount
        first = end
    return Holdings(
        framework=np.concatenate([none, *(table.framework for table in tables)]),
        role=np.concatenate([none, *(table.role for table in tables)]),
        agent=np.concatenate([none, *(table.agent for table in tables)]),
        kind=kind,
        amount=amount,
    )


def explained(
    decisions: Decisions, snapshot: Snapshot, able: Ints, error: str, *, plans: bool
) -> Decisions:
    """Add to the decisions of a cycle over all agents whether rules explain that there are none.

    `snapshot`: as it was taken.
    `able` (n,): clients that some agent could serve, and that were given nothing.
    `error`: why the policy could not decide; empty if it could.
    `plans`: the policy waits for what its plan says.
    """
    if len(decisions) or error:
        return decisions
    by_rule = plans or bool(is_kept_back(snapshot, able).all())
    return replace(decisions, holds_back=by_rule)


def is_kept_back(snapshot: Snapshot, clients: Ints) -> Bools:
    """Return whether a quota or a limit may hold back clients that some agent could serve.

    If in doubt, it does: if a bound leaves less of a resource than an agent may have free.

    `snapshot`: as it was taken.
    `clients` (n,).
    Returns (n,).
    """
    bounds = snapshot.bounds
    if not len(clients) or not len(bounds.above):
        return np.zeros(len(clients), np.bool_)
    most = snapshot.free_by_column[snapshot.agents].max(axis=0)
    # From the top down, so that descendants inherit from each role. The last row is for
    # clients without any bound.
    tight = np.append((bounds.left < most).any(axis=1), False)
    for row in range(len(bounds.above) - 1, -1, -1):
        tight[row] |= tight[bounds.above[row]]
    kept: Bools = tight[bounds.of_client[clients]] | tight[bounds.of_framework[clients]]
    # Amounts that must stay free for guarantees of other roles.
    if bounds.required.any() and (bounds.available - bounds.required < most).any():
        kept |= ~is_owed(bounds, clients)
    return kept
