"""What may happen to agents."""

from collections.abc import Callable
from dataclasses import replace

from allocator.lab.random_cluster.context import Context


class AgentStrikes:
    """Agents are lost, drained, resized, oversubscribed, extended, replaced.

    And offered by the master's fallback, while the sidecar is silent.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._master = context.stage.master

    def lose_agent(self) -> None:
        """An agent is lost, with offers and tasks; another one comes."""
        agent = self._context.agent()
        if agent:
            self._master.remove_agent(agent)
            self._context.hosts += 1
            spec = self._context.population.agent(self._context.hosts)
            self._context.later(lambda: self._master.add_agent(spec))

    def drain_agent(self) -> None:
        """An agent is deactivated, and activated again."""
        agent = self._context.agent()
        if agent:
            self._master.activate_agent(agent, active=False)
            self._if_still_there(agent, lambda: self._master.activate_agent(agent, active=True))

    def resize_agent(self) -> None:
        """An agent has more, or less than is held."""
        agent = self._context.agent()
        if agent:
            self._master.resize_agent(agent, self._context.population.capacity())

    def oversubscribe(self) -> None:
        """The estimate of what is unused changes."""
        agent = self._context.agent()
        if agent:
            self._master.oversubscribe(agent, self._context.population.estimate())

    def add_provider(self) -> None:
        """A resource provider comes late, once an agent."""
        agent = self._context.agent()
        if agent:
            provided = self._context.population.provided(agent)
            has = self._master.resources_of(tuple(self._master.ledger.agents[agent].capacity))
            if not any(each.provider for each in has):
                self._master.add_provider(agent, provided)

    def reregister_agent(self) -> None:
        """An agent drops out, and comes back as another one: in rack, size, region, version."""
        agent = self._context.agent()
        if not agent:
            return
        row = self._master.ledger.agents[agent]
        self._master.activate_agent(agent, active=False)
        spec = replace(self._context.population.agent(self._context.hosts), hostname=row.hostname)
        self._if_still_there(agent, lambda: self._master.reregister_agent(agent, spec))

    def silence(self) -> None:
        """The sidecar says nothing for a moment; the master's fallback offers an agent."""
        agent = self._context.agent()
        if agent:
            frameworks = self._master.ledger.frameworks
            clients = [
                (one, role) for one in sorted(frameworks) for role in sorted(frameworks[one].roles)
            ]
            order = self._context.chance.permutation(len(clients))
            self._master.fall_back(agent, [clients[place] for place in order.tolist()])

    def _if_still_there(self, agent: int, action: Callable[[], object]) -> None:
        agent_id = self._master.ledger.agents[agent].agent_id

        def act() -> None:
            row = self._master.ledger.agents.get(agent)
            if row is not None and row.agent_id == agent_id:
                action()

        self._context.later(act)
