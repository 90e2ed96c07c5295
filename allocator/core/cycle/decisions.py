"""What the allocator says: the decisions of one cycle."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from allocator.core.events import Holdings
from allocator.core.plans.reclaims import NO_RECLAIMS, Reclaims
from allocator.core.snapshot import Ints


@dataclass(frozen=True)
class Decisions:
    """Offers to make, one row for each (framework, role, agent).

    `cycle`: number of the cycle, from 1; 0 where none was run.
    `first_decision`: row i, counted through the groups in their order, is decision
        ``first_decision + i``.
    `groups`: decisions that name the same kinds stand in one group; none is empty.
    `reclaims`: who is asked to leave an agent.
    `holds_back`: there is nothing by rule: see `allocator.core.cycle.holding_back`.
    """

    cycle: int
    first_decision: int
    groups: tuple[Holdings, ...] = ()
    reclaims: Reclaims = NO_RECLAIMS
    holds_back: bool = False

    def __len__(self) -> int:
        return sum(len(group.framework) for group in self.groups)

    @cached_property
    def together(self) -> Holdings:
        """All groups in one table, for where kinds are few."""
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
    """Put groups of rows one below the other, over all kinds that occur in any of them."""
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
