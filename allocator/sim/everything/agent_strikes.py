"""What may happen to agents."""

from collections.abc import Callable
from dataclasses import replace

from allocator.sim.everything.stagehand import Stagehand


class AgentStrikes:
    """Agents are lost, drained, resized, oversubscribed, extended, replaced.

    Parameters
    ----------
    hand : Stagehand
    """

    def __init__(self, hand: Stagehand) -> None:
        self._hand = hand
        self._master = hand.stage.master

    def lose_agent(self) -> None:
        """An agent is lost, with offers and tasks; another one comes."""
        agent = self._hand.agent()
        if agent:
            self._master.remove_agent(agent)
            self._hand.hosts += 1
            spec = self._hand.population.agent(self._hand.hosts)
            self._hand.later(lambda: self._master.add_agent(spec))

    def drain_agent(self) -> None:
        """An agent is deactivated, and activated again."""
        agent = self._hand.agent()
        if agent:
            self._master.activate_agent(agent, active=False)
            self._if_still_there(agent, lambda: self._master.activate_agent(agent, active=True))

    def resize_agent(self) -> None:
        """An agent has more, or less than is held."""
        agent = self._hand.agent()
        if agent:
            self._master.resize_agent(agent, self._hand.population.capacity())

    def oversubscribe(self) -> None:
        """The estimate of what is unused changes."""
        agent = self._hand.agent()
        if agent:
            self._master.oversubscribe(agent, self._hand.population.estimate())

    def add_provider(self) -> None:
        """A resource provider comes late, once an agent."""
        agent = self._hand.agent()
        if agent:
            provided = self._hand.population.provided(agent)
            has = self._master.kinds_of(tuple(self._master.ledger.agents[agent].capacity))
            if not any(kind.provider for kind in has):
                self._master.add_provider(agent, provided)

    def reregister_agent(self) -> None:
        """An agent drops out, and comes back as another one: in rack, size, region, version."""
        agent = self._hand.agent()
        if not agent:
            return
        row = self._master.ledger.agents[agent]
        self._master.activate_agent(agent, active=False)
        spec = replace(self._hand.population.agent(self._hand.hosts), hostname=row.hostname)
        self._if_still_there(agent, lambda: self._master.reregister_agent(agent, spec))

    def _if_still_there(self, agent: int, action: Callable[[], object]) -> None:
        agent_id = self._master.ledger.agents[agent].agent_id

        def act() -> None:
            row = self._master.ledger.agents.get(agent)
            if row is not None and row.agent_id == agent_id:
                action()

        self._hand.later(act)
