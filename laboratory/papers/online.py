"""Minimal hosts: one fills a cluster by a policy, one runs a core and accepts all offers.

With the latter, frameworks take all that they are offered, and later release it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Hold,
    Holdings,
    Ints,
    Kind,
    Options,
    Outcomes,
    PolicySpec,
    Release,
    RemoveFramework,
    Settings,
    Snapshot,
    Transition,
)
from allocator.policies import build
from allocator.testing import placement, planned

ROLE = 1
"""The only role, of all frameworks."""


def fill(
    snapshot: Snapshot, policy: str, selection: str = "listed", seed: int = 0, *, flat: bool = True
) -> Ints:
    """Fill a cluster with whole tasks; returns those of each client on each agent, (C, A)."""
    ours = build(PolicySpec(policy, selection, mode="characterised", flat=flat))
    return placement(snapshot, ours.allocate(planned(snapshot, ours), seed))


class Online:
    """A cluster that runs on an `Allocator`; all frameworks are in one role."""

    def __init__(self, policy: PolicySpec, resources: Sequence[str], seed: int) -> None:
        """Begin with an empty cluster.

        resources: names; kind k is the k-th of them.
        seed: of the policy's random choices.
        """
        settings = Settings(policy=policy, seed=seed, learn_demand=False)
        self.allocator = Allocator(build, settings, plans=True)
        self._kind = np.arange(len(resources))
        kinds = {number: Kind(name) for number, name in enumerate(resources)}
        self.allocator.step(Options())
        self.allocator.step(Define(kinds, {ROLE: "users"}))

    def add_agent(
        self, agent: int, capacity: Sequence[int], attributes: Mapping[str, str] | None = None
    ) -> None:
        """Add an agent; the capacity is in thousandths of each resource."""
        info = AgentInfo(f"agent-{agent}", f"host-{agent}", attributes or {})
        self.allocator.step(AddAgent(agent, info, dict(enumerate(capacity))))

    def add_framework(self, framework: int, name: str, demand: str, constraint: str) -> None:
        """Add a framework; demand and constraint are as in its labels, and may be empty."""
        labels = {DEMAND_LABEL: demand, CONSTRAINT_LABEL: constraint}
        given = {label: text for label, text in labels.items() if text}
        info = FrameworkInfo(name, name, labels=given)
        self.allocator.step(AddFramework(framework, info, (ROLE,)))

    def remove_framework(self, framework: int) -> None:
        self.allocator.step(RemoveFramework(framework))

    def hold(self, framework: Ints, agent: Ints, amount: Ints) -> None:
        """Start with resources in use; the amounts have one row per pair."""
        self.allocator.step(Hold(self._holdings(framework, agent, amount)))

    def allocate(self, now_ms: int, agents: Ints | None = None) -> Holdings:
        """Run a cycle on some agents, and accept all offers."""
        decisions = self.allocator.allocate(now_ms, agents)
        rows = len(decisions)
        taken = Holdings(
            decisions.framework, decisions.role, decisions.agent, decisions.kind, decisions.amount
        )
        if rows:
            offered = np.ones(rows, np.bool_)
            self.allocator.step(Outcomes.all_or_nothing(decisions.first_decision, offered))
            self.allocator.step(Transition(taken))
        return taken

    def release(self, framework: Ints, agent: Ints, amount: Ints) -> None:
        rows = len(framework)
        refuse, used = np.full(rows, -1), np.ones(rows, np.bool_)
        self.allocator.step(Release(self._holdings(framework, agent, amount), refuse, used))

    def agents_held(self, frameworks: Sequence[int]) -> Ints:
        """The number of agents on which each framework holds something, (F,)."""
        state, handles = self.allocator.state, np.asarray(frameworks, np.int64)
        rows = state.clients.rows(handles, np.full(len(handles), ROLE))
        return state.ledger.books.agents_held[rows]

    def _holdings(self, framework: Ints, agent: Ints, amount: Ints) -> Holdings:
        return Holdings(framework, np.full(len(framework), ROLE), agent, self._kind, amount)
