"""Compiles every loop of the core, or loads it from the cache, before the first session."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from allocator.core.allocator import Allocator
from allocator.core.cycle import within_gates
from allocator.core.cycle.cycle import coalesce
from allocator.core.cycle.room import fits_on_plain
from allocator.core.cycle.servable import servable
from allocator.core.diagnostics.trail import Trail
from allocator.core.events import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Hold,
    Holdings,
    Move,
    Moves,
    Options,
    Outcomes,
    Release,
    RemoveAgent,
    Revive,
    Transition,
)
from allocator.core.filters.coverage import covering
from allocator.core.policy import Policy, PolicySpec
from allocator.core.resources import Kind
from allocator.core.settings import Settings
from allocator.core.snapshot import Grants, Snapshot
from allocator.core.task_counts import tasks_held


class GiveAll:
    """A policy that grants each agent to the first client; it has no loops of its own."""

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Grant all that is free and plain."""
        agents, count = snapshot.agents, len(snapshot.agents)
        client = np.full(count, snapshot.tree.client[0])
        return Grants(client, agents, np.zeros(count, np.int64), snapshot.free[agents])


def warm(build_policy: Callable[[PolicySpec], Policy]) -> None:
    """Play a session with one agent and one framework, in which every loop runs."""
    allocator = Allocator(build_policy, Settings(), trail=Trail())
    allocator.step(Options())
    allocator.step(Define(kinds={0: Kind("cpus")}, roles={1: "warm"}))
    allocator.step(AddAgent(1, AgentInfo("agent"), {0: 4000}))
    allocator.step(AddFramework(1, FrameworkInfo("framework"), roles=(1,)))
    for now_ms in (1000, 2000, 20_000):
        made = allocator.allocate(now_ms)
        yes = np.ones(len(made), np.bool_)
        allocator.step(Outcomes.all_or_nothing(made.first_decision, yes))
        offered = Holdings(made.framework, made.role, made.agent, made.kind, made.amount)
        allocator.step(Transition(offered))
        allocator.step(Release(offered, np.full(len(made), 5000), yes))
    # Run loops that only some cycles need.
    snapshot = allocator.preview()
    assert snapshot is not None
    servable(snapshot, snapshot.tree.client, nearby=0)
    covering(snapshot, snapshot.agents, snapshot.characterised)
    fits_on_plain(snapshot, int(snapshot.tree.client[0]), need=1)
    grant = np.zeros(1, np.int64), snapshot.tree.client[:1], snapshot.free[:1]
    within_gates.kept(snapshot.bounds, *grant)
    twice = np.zeros(2, np.int64)
    coalesce(Grants(twice, twice, twice, snapshot.free[twice]))
    tasks_held(snapshot.held, snapshot.demand, snapshot.characterised)
    # Tasks that run when a session begins, and offers of frameworks unknown to the host.
    allocator.step(Hold(offered))
    allocator.step(Transition(replace(offered, framework=np.zeros(len(made), np.int64))))
    # The same events, row by row.
    hold, one = np.full(len(made), int(Move.HOLD)), np.zeros(len(made), np.int64)
    allocator.move(Moves(hold, offered, np.full(len(made), -1), yes, one))
    allocator.state.ledger.oldest_offer_ms()
    allocator.state.ledger.offered_by_agent()
    groups = np.zeros((len(allocator.state.clients.framework), 1), np.int64)
    allocator.state.ledger.agents_of(groups, 1)
    allocator.step(Revive(1))
    allocator.step(RemoveAgent(1))
