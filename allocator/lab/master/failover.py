"""Another master is elected: it knows quotas and weights, the rest comes back bit by bit."""

from collections.abc import Mapping, Sequence
from functools import partial

from allocator.core import Hold
from allocator.lab.frameworks.base import Framework
from allocator.lab.master.agents import AgentCalls
from allocator.lab.master.frameworks import FrameworkCalls
from allocator.lab.master.ledger_rows import AgentRow
from allocator.lab.master.outbox import Row
from allocator.lab.master.registered_framework import RegisteredFramework


class Failover(AgentCalls, FrameworkCalls):
    """What happens between the election and the last that comes back.

    Agents tell what runs on them; of frameworks that did not subscribe yet the master then knows
    that they exist, or not even that.
    """

    def fail_over(
        self, agents_ms: Mapping[int, int], frameworks_ms: Sequence[tuple[Framework, int]]
    ) -> None:
        """Begin anew.

        agents_ms: after how long each agent comes back; those that are not named never do.
        frameworks_ms (Framework, int): the same of frameworks; every one must be named.
        """
        # Offers end with the master that made them; tasks go on.
        for member in self.members.values():
            member.void_offers(list(member.offers))
        agents = dict(self.ledger.agents)
        self.ledger.forget()
        self._begin_recovery(len(agents))
        self.session.open()
        # Agents and frameworks come back one by one; the tasks of agents that never do are lost.
        for agent, row in agents.items():
            if agent in agents_ms:
                self.event_heap.after(agents_ms[agent], partial(self._return_agent, agent, row))
            else:
                self._never_returns(agent)
        for framework, delay_ms in frameworks_ms:
            self.event_heap.after(delay_ms, partial(self.return_framework, framework))

    def _begin_recovery(self, agents: int) -> None:
        """Hold back, where there are guarantees to keep, until enough agents are known."""
        expected = int(agents * self.recovery.agent_factor)
        if self.ledger.quotas and expected:
            timeout_ms = self.recovery.timeout_ms
            recovery = (expected, self.event_heap.now_ms + timeout_ms)
            self.ledger.recovery = recovery
            self.event_heap.after(timeout_ms, partial(self._give_up, recovery))

    def _give_up(self, recovery: tuple[int, int]) -> None:
        # Not if it ended before, or another failover began another one.
        if self.ledger.recovery is recovery:
            self._end_recovery()

    def _never_returns(self, agent: int) -> None:
        """An agent does not come back: its tasks are lost."""
        self._agent_handles.give_back(agent)
        for member in self.members.values():
            tasks = [task for task in member.tasks if task.agent == agent]
            member.void_tasks(tasks)
            if tasks:
                member.framework.lost(tasks)

    def _return_agent(self, agent: int, row: AgentRow) -> None:
        """An agent registers again, and says what runs on it."""
        row.held = list(self.ledger.zero)
        self._register(agent, row)
        running: list[Row] = []
        unknown: list[RegisteredFramework] = []
        # Book its tasks, also those of frameworks that are not back yet.
        for member in self.members.values():
            tasks = [task for task in member.tasks if task.agent == agent]
            for task in tasks:
                self.ledger.recover(task.framework, (task.role, agent), task.amount)
                running.append((task.framework, task.role, agent, task.amount))
            if tasks and member.handle not in self.ledger.frameworks:
                unknown.append(member)
        if running:
            self.outbox.add(Hold(self.outbox.holdings(running)))
        # An agent knows the FrameworkInfo of some of them: whose handle is even, say.
        for member in unknown:
            if member.handle % 2 == 0:
                self._introduce(member, active=False)
        self._note_use()

    def return_framework(self, framework: Framework) -> None:
        """A framework subscribes again; an agent may have made it known before."""
        if framework not in self._handle:
            return
        if self.knows(framework):
            self.reconnect(framework)
        else:
            self._introduce(self.member(framework), active=True)
