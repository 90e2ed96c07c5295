"""What everybody who makes something happen needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from allocator.lab.random_cluster.framework import Tenant
from allocator.lab.random_cluster.population import Population, one_of
from allocator.lab.workloads.scenario import Stage

AWAY_MS_MAX = 6_000

_T = TypeVar("_T")


@dataclass
class Context:
    """Draws whom it hits, and when it is over.

    tenants: those that are registered.
    away: those of them that are not connected.
    hosts: how many agents there were so far.
    """

    stage: Stage
    chance: np.random.Generator
    population: Population
    tenants: list[Tenant] = field(default_factory=list)
    away: set[Tenant] = field(default_factory=set)
    hosts: int = 0

    def subscribe(self) -> None:
        """One more framework."""
        identity = self.population.framework(tell_demand=self.stage.tell_demand)
        tenant = Tenant(identity, self.chance)
        self.stage.submit(tenant)
        self.tenants.append(tenant)

    def agent(self) -> int:
        """Any agent; 0 where there is none."""
        agents = sorted(self.stage.master.ledger.agents)
        return self.one_of(agents) if agents else 0

    def tenant(self) -> Tenant | None:
        """Any framework that is connected."""
        here = [
            tenant
            for tenant in self.tenants
            if tenant not in self.away and self.stage.master.knows(tenant)
        ]
        return self.one_of(here) if here else None

    def some_ms(self, most: int) -> int:
        """A while."""
        return int(self.chance.integers(1, most + 1))

    def later(self, action: Callable[[], object]) -> None:
        """Plan the end of a fault."""
        self.stage.master.event_heap.after(self.some_ms(AWAY_MS_MAX), action)

    def one_of(self, items: Sequence[_T]) -> _T:
        """Any of them."""
        return one_of(self.chance, items)
