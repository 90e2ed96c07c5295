"""A small session to test against: few agents, few frameworks, short calls."""

from collections.abc import Mapping

import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    FrameworkInfo,
    Holdings,
    Kind,
    Limits,
    Options,
    Outcomes,
    PolicySpec,
    Release,
    Settings,
    Transition,
)
from allocator.policies import build

CPUS, MEM = 0, 1
KINDS = {CPUS: Kind("cpus"), MEM: Kind("mem")}
Offer = tuple[int, int, int, dict[str, int]]


class Session:
    """An allocator with short verbs; amounts are whole units."""

    def __init__(
        self,
        policy: PolicySpec | None = None,
        roles: Mapping[int, str] | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        **settings,
    ) -> None:
        given = Settings(policy=policy or PolicySpec("drf"), **settings)
        self.allocator = Allocator(build, given, limits)
        self.allocator.step(options or Options())
        self.allocator.step(Define(kinds=KINDS, roles={1: "a", 2: "b"} if roles is None else roles))

    @property
    def state(self):
        return self.allocator.state

    def agent(self, agent: int, cpus: int, mem: int, **info) -> None:
        known = AgentInfo(f"agent-{agent}", hostname=f"host-{agent}", **info)
        self.allocator.step(AddAgent(agent, known, {CPUS: cpus * 1000, MEM: mem * 1000}))

    def framework(self, framework: int, *roles: int, **info) -> None:
        known = FrameworkInfo(f"framework-{framework}", **info)
        self.allocator.step(AddFramework(framework, known, roles or (1,)))

    def cycle(self, now_ms: int, agents: list[int] | None = None) -> list[Offer]:
        """Run a cycle in which every decision becomes an offer: (framework, role, agent, units)."""
        made = self.allocator.allocate(now_ms, None if agents is None else np.array(agents))
        self.settle(made)
        return [self._offer(made, row) for row in range(len(made))]

    def settle(self, made: Decisions, offered: bool = True) -> None:
        fate = np.full(len(made), offered)
        self.allocator.step(Outcomes.all_or_nothing(made.first_decision, fate))

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
        who, what, where = np.array([[framework], [role], [agent]])
        amount = np.array([[cpus * 1000, mem * 1000]])
        return Holdings(who, what, where, np.array([CPUS, MEM]), amount)

    def use(self, offer: Offer) -> None:
        """All of an offer comes into use."""
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
        self.allocator.step(Release(back, np.array([refuse_ms]), np.array([False])))
