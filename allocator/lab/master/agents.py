"""Agents that come, change and go."""

from collections.abc import Mapping
from dataclasses import replace

from allocator.core import ActivateAgent, RemoveAgent, SetPaused, UpdateAgent
from allocator.lab.frameworks.base import Task
from allocator.lab.master.base import Base
from allocator.lab.master.cycles import RegisteredFramework
from allocator.lab.master.ledger_rows import AgentRow, Amount, minus, plus
from allocator.lab.master.resources import Resource
from allocator.lab.master.session import agent_event
from allocator.lab.workloads.cluster import AgentSpec


class AgentCalls(Base):
    """What agents cause."""

    def add_agent(self, spec: AgentSpec) -> int:
        """An agent registers."""
        agent = self._agent_handles.take()
        self._agent_count += 1
        row = AgentRow(
            agent_id=f"agent-{self._agent_count:06d}",
            hostname=spec.hostname,
            attributes=spec.attributes,
            bound_sequence=0,
            capacity=list(plus(self.ledger.amount(spec.capacity), self.row(spec.special))),
            held=list(self.ledger.zero),
            region=spec.region,
            zone=spec.zone,
            capabilities=spec.capabilities,
        )
        self._register(agent, row)
        return agent

    def _register(self, agent: int, row: AgentRow) -> None:
        row.bound_sequence = self.session.sequence + 1
        self.ledger.kinds.tell(row.capacity, row.agent_id)
        self.ledger.add_agent(agent, row)
        self.outbox.add(agent_event(agent, row, self.outbox.sparse(row.capacity)))
        self._note_use()
        # With enough agents back, offers begin again.
        recovery = self.ledger.recovery
        if recovery is not None and len(self.ledger.agents) >= recovery[0]:
            self._end_recovery()
        self._cycles.trigger(agent)

    def _end_recovery(self) -> None:
        if self.ledger.recovery is not None:
            self.ledger.recovery = None
            self.outbox.add(SetPaused(paused=False))

    def remove_agent(self, agent: int) -> None:
        """An agent is lost, and what was on it goes with it."""
        # The sidecar and the books forget the agent first; frameworks are told at the end, for
        # their answers may change anything.
        self.outbox.add(RemoveAgent(agent))
        self.ledger.remove_agent(agent)
        self._note_use()
        lost: list[tuple[RegisteredFramework, list[Task]]] = []
        for member in self.members.values():
            tasks = [task for task in member.tasks if task.agent == agent]
            offers = [offer for offer in member.offers if offer.agent == agent]
            member.void_offers(offers)
            member.void_tasks(tasks)
            if tasks:
                lost.append((member, tasks))
        self._agent_handles.give_back(agent)
        for member, tasks in lost:
            member.framework.lost(tasks)

    def activate_agent(self, agent: int, *, active: bool) -> None:
        """Offer an agent again, or no more (it drains, or dropped out); offers are taken back."""
        self.ledger.agents[agent].active = active
        self.outbox.add(ActivateAgent(agent, active))
        if not active:
            self.rescind([agent])

    def resize_agent(self, agent: int, capacity: Mapping[str, int]) -> None:
        """An agent has more or less of what is nobody's in particular."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        self._set_capacity(agent, (*self.ledger.amount(capacity), *special))

    def oversubscribe(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """An agent's estimate changes: it has so much of these revocable resources now."""
        # The revocable resources that it had go, the others stay.
        before = self.ledger.agents[agent].capacity
        has = self.resources_of(tuple(before))
        revocable = {each: amount for each, amount in has.items() if each.revocable}
        self._set_capacity(agent, minus(plus(before, self.row(amounts)), self.row(revocable)))

    def add_provider(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """A resource provider of the agent registers, with resources that it alone has."""
        amount = plus(self.ledger.agents[agent].capacity, self.row(amounts))
        self._resize(agent, amount)

    def reregister_agent(self, agent: int, spec: AgentSpec) -> None:
        """An agent that is known comes back; what was reserved or created on it is still there."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        capacity = (*self.ledger.amount(spec.capacity), *special)
        # With other attributes, what was refused may be wanted.
        if spec.attributes != row.attributes:
            self.ledger.drop_filters(agent)
        self.ledger.resize_agent(agent, capacity)
        renewed = replace(
            self.ledger.agents[agent],
            hostname=spec.hostname,
            attributes=spec.attributes,
            region=spec.region,
            zone=spec.zone,
            capabilities=spec.capabilities,
        )
        self.ledger.agents[agent] = renewed
        self.outbox.add(
            UpdateAgent(
                agent,
                spec.hostname,
                dict(spec.attributes),
                spec.region,
                spec.zone,
                spec.capabilities,
                self.outbox.sparse(capacity),
            )
        )
        self._note_use()
        # As Mesos does: offers were made of what the agent had before.
        self.rescind([agent])
        if not renewed.active:
            self.activate_agent(agent, active=True)
        self._cycles.trigger(agent)

    def _set_capacity(self, agent: int, amount: Amount) -> None:
        """The total changes first; then the agent's offers are taken back."""
        self._resize(agent, amount)
        self.rescind([agent])
        self._cycles.trigger(agent)

    def _resize(self, agent: int, amount: Amount) -> None:
        self.ledger.kinds.tell(amount, self.ledger.agents[agent].agent_id)
        self.ledger.resize_agent(agent, amount)
        self.outbox.add(UpdateAgent(agent, capacity=self.outbox.sparse(amount)))
        self._note_use()
