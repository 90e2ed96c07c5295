"""A world in numbers, for tests of the core.

Names are handles, which are also the core's rows, and amounts are whole units of two resources, so
that offers are tuples that can be compared. A `World` records its events instead.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from allocator.core import (
    Allocator,
    Decisions,
    Holdings,
    Kind,
    PolicySpec,
    SessionLimits,
    Transition,
)
from allocator.core.books.state import State
from allocator.policies import POLICIES
from tests.tiers import in_turn
from tests.world.rows import given_back, holdings, settled
from tests.world.world import World

CPUS, MEM = 0, 1
KINDS = {CPUS: Kind("cpus"), MEM: Kind("mem")}
Offer = tuple[int, int, int, dict[str, int]]

MODES = ("characterised", "oblivious")
EACH_POLICY = in_turn(POLICIES, MODES, lambda name, mode: PolicySpec(name, mode=mode))


class Session:
    """An allocator with short verbs; amounts are whole units."""

    def __init__(
        self,
        policy: PolicySpec | None = None,
        roles: Mapping[int, str] | None = None,
        options: Mapping[str, Any] | None = None,
        limits: SessionLimits | None = None,
        **settings,
    ) -> None:
        self.world = World(policy, settings=settings, limits=limits, **(options or {}))
        self.paths = {1: "a", 2: "b"} if roles is None else roles
        self.world.bind("cpus", "mem", roles=self.paths.values())

    @property
    def allocator(self) -> Allocator:
        return self.world.allocator

    @allocator.setter
    def allocator(self, allocator: Allocator) -> None:
        self.world.allocator = allocator

    @property
    def state(self) -> State:
        return self.allocator.state

    def agent(self, agent: int, cpus: int, mem: int, **info) -> None:
        known: dict[str, Any] = {"capabilities": (), **info}
        self.world.agent(f"cpus:{cpus};mem:{mem}", handle=agent, **known)

    def framework(self, framework: int, *roles: int, **info) -> None:
        paths = [self.paths[role] for role in roles or (1,)]
        self.world.framework(*paths, handle=framework, multi_role=False, **info)

    def cycle(self, now_ms: int, agents: list[int] | None = None) -> list[Offer]:
        """Run a cycle in which every decision becomes an offer: (framework, role, agent, units)."""
        made = self.allocator.allocate(now_ms, None if agents is None else np.array(agents))
        self.allocator.step(settled(made))
        return [self._offer(made, row) for row in range(len(made))]

    def _offer(self, made: Decisions, row: int) -> Offer:
        names = [self.state.space.kinds[kind].name for kind in made.kind.tolist()]
        units = dict(zip(names, (made.amount[row] // 1000).tolist(), strict=True))
        return (
            int(made.framework[row]),
            int(made.role[row]),
            int(made.agent[row]),
            {name: amount for name, amount in units.items() if amount},
        )

    def holdings(self, framework: int, role: int, agent: int, cpus: int, mem: int) -> Holdings:
        return holdings((framework, role, agent, cpus * 1000, mem * 1000))

    def use(self, offer: Offer) -> None:
        """Start using all of an offer."""
        framework, role, agent, units = offer
        used = self.holdings(framework, role, agent, units.get("cpus", 0), units.get("mem", 0))
        self.allocator.step(Transition(used))

    def give_back(
        self, offer: Offer, refuse_ms: int = -1, cpus: int | None = None, mem: int | None = None
    ) -> None:
        framework, role, agent, units = offer
        back = self.holdings(
            framework,
            role,
            agent,
            units.get("cpus", 0) if cpus is None else cpus,
            units.get("mem", 0) if mem is None else mem,
        )
        self.allocator.step(given_back(back, refuse_ms))
