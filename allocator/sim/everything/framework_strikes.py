"""What may happen to frameworks."""

from dataclasses import replace

from allocator.sim.everything.stagehand import Stagehand
from allocator.sim.everything.tenant import Tenant


class FrameworkStrikes:
    """Frameworks drop out, fail over, change, leave, and say what they need.

    Parameters
    ----------
    hand : Stagehand
    """

    def __init__(self, hand: Stagehand) -> None:
        self._hand = hand
        self._master = hand.stage.master

    def fail_framework_over(self) -> None:
        """A framework drops out; another process of it subscribes, perhaps as something else."""
        tenant = self._hand.tenant()
        if tenant is not None:
            self._hand.away.add(tenant)
            self._master.disconnect(tenant)
            self._hand.later(lambda: self._return(tenant))

    def _return(self, tenant: Tenant) -> None:
        if not tenant.gone and self._master.knows(tenant):
            self._hand.away.discard(tenant)
            if self._hand.chance.random() < 0.5:
                self._change(tenant)
            self._master.reconnect(tenant)

    def change_framework(self) -> None:
        """A framework takes other roles, minima and capabilities while it is connected."""
        tenant = self._hand.tenant()
        if tenant is not None:
            self._change(tenant)
            self._master.reconnect(tenant)

    def _change(self, tenant: Tenant) -> None:
        other = self._hand.population.framework(tell_demand=self._hand.stage.tell_demand)
        tenant.identity = replace(other, name=tenant.identity.name)

    def replace_framework(self) -> None:
        """A framework leaves, another one comes."""
        tenant = self._hand.tenant()
        if tenant is not None:
            self._hand.tenants.remove(tenant)
            tenant.leave()
            self._hand.later(self._hand.hire)

    def exclude(self) -> None:
        """A framework's offer constraints bar an agent, or do so no more."""
        tenant, agent = self._hand.tenant(), self._hand.agent()
        if tenant is not None and agent:
            handle = self._master.member(tenant).handle
            role = min(self._master.ledger.frameworks[handle].roles)
            excluded = bool(self._hand.chance.random() < 0.6)
            self._master.exclude([(handle, role, agent)], excluded=excluded)

    def request(self) -> None:
        """A framework says what a task needs."""
        tenant = self._hand.tenant()
        if tenant is not None and self._hand.stage.tell_demand:
            demand = self._hand.population.demand(tenant.identity.capabilities)
            self._master.request(tenant, demand)

    def answer_inverse_offer(self) -> None:
        """A framework that holds something on an agent under maintenance answers."""
        tenant, ledger = self._hand.tenant(), self._master.ledger
        if tenant is None:
            return
        places = ledger.holdings[self._master.member(tenant).handle]
        agents = sorted({agent for _, agent in places if ledger.agents[agent].unavailable_ms})
        if agents:
            accept = bool(self._hand.chance.random() < 0.5)
            agent = self._hand.one_of(agents)
            self._master.answer_inverse_offer(tenant, agent, accept=accept, refuse_ms=5_000)
