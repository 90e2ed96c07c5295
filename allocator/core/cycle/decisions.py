"""The allocator's answer to a cycle: its decisions, or why there are none.

The module does not see operators' rules, known demands or plans. An answer without decisions
therefore says in `holds_back` whether one of these explains it. If not, the sidecar may be faulty,
and after some time the module decides once itself.
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
    `first_decision`: number of the first row; the others follow, group by group.
    `groups`: decisions with the same kinds are in one group; no group is empty.
    `holds_back`: rules, demands or a plan explain why there are no decisions.
    `gangs`: first row and number of rows of each gang's decisions, which are offered together or
        not at all.
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
        """All groups in one table, which is large if there are many kinds."""
        return one_table(self.groups)

    @property
    def framework(self) -> Ints:
        return self.together.framework

    @property
    def role(self) -> Ints:
        return self.together.role

    @property
    def agent(self) -> Ints:
        return self.together.agent

    @property
    def kind(self) -> Ints:
        """All kinds in any decision, (K,), ascending."""
        return self.together.kind

    @property
    def amount(self) -> Ints:
        """The amount of each decision and kind, (N, K), in thousandths."""
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
    """Set `holds_back` of a full cycle: whether rules explain that there are no decisions.

    `snapshot`: as it was at the start of the cycle.
    `able` (n,): clients that some agent could serve, but that were granted nothing.
    `plans`: whether the policy follows a plan, which explains any missing decision.
    """
    if len(decisions) or error:
        return decisions
    by_rule = plans or bool(is_kept_back(snapshot, able).all())
    return replace(decisions, holds_back=by_rule)


def is_kept_back(snapshot: Snapshot, clients: Ints) -> Bools:
    """Return which servable clients (n,) may get nothing because of a quota or a limit.

    The answer errs towards True: it is True if a bound leaves less of any resource than the largest
    free amount on an agent.

    `snapshot`: as it was at the start of the cycle.
    """
    bounds = snapshot.bounds
    if not len(clients) or not len(bounds.above):
        return np.zeros(len(clients), np.bool_)
    most = snapshot.free_by_column[snapshot.agents].max(axis=0)
    # From the top down, so that descendants inherit from each role. The last row is for clients
    # without any bound.
    tight = np.append((bounds.left < most).any(axis=1), False)
    for row in range(len(bounds.above) - 1, -1, -1):
        tight[row] |= tight[bounds.above[row]]
    kept: Bools = tight[bounds.of_client[clients]] | tight[bounds.further[clients]].any(axis=1)
    # Amounts that must stay free for guarantees may also bar clients without an unmet guarantee.
    if bounds.required.any() and (bounds.available - bounds.required < most).any():
        kept |= ~is_owed(bounds, clients)
    return kept
