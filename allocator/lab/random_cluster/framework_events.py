"""What may happen to frameworks."""

from dataclasses import replace

from allocator.lab.random_cluster.context import Context
from allocator.lab.random_cluster.framework import Tenant


class FrameworkStrikes:
    """Frameworks drop out, fail over, change, leave, and say what they need."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._master = context.stage.master

    def fail_framework_over(self) -> None:
        """A framework drops out; another process of it subscribes, perhaps as something else."""
        tenant = self._context.tenant()
        if tenant is not None:
            self._context.away.add(tenant)
            self._master.disconnect(tenant)
            self._context.later(lambda: self._return(tenant))

    def _return(self, tenant: Tenant) -> None:
        if not tenant.gone and self._master.knows(tenant):
            self._context.away.discard(tenant)
            if self._context.chance.random() < 0.5:
                self._change(tenant)
            self._master.reconnect(tenant)

    def change_framework(self) -> None:
        """A framework takes other roles, minima and capabilities while it is connected."""
        tenant = self._context.tenant()
        if tenant is not None:
            self._change(tenant)
            self._master.reconnect(tenant)

    def _change(self, tenant: Tenant) -> None:
        other = self._context.population.framework(tell_demand=self._context.stage.tell_demand)
        tenant.identity = replace(other, name=tenant.identity.name)

    def replace_framework(self) -> None:
        """A framework leaves, another one comes."""
        tenant = self._context.tenant()
        if tenant is not None:
            self._context.tenants.remove(tenant)
            tenant.leave()
            self._context.later(self._context.subscribe)

    def exclude(self) -> None:
        """A framework's offer constraints bar an agent, or do so no more."""
        tenant, agent = self._context.tenant(), self._context.agent()
        if tenant is not None and agent:
            handle = self._master.member(tenant).handle
            role = min(self._master.ledger.frameworks[handle].roles)
            excluded = bool(self._context.chance.random() < 0.6)
            self._master.exclude([(handle, role, agent)], excluded=excluded)

    def request(self) -> None:
        """A framework says what a task needs."""
        tenant = self._context.tenant()
        if tenant is not None and self._context.stage.tell_demand:
            demand = self._context.population.demand(tenant.identity.capabilities)
            self._master.request(tenant, demand)

    def answer_inverse_offer(self) -> None:
        """A framework that holds something on an agent under maintenance answers."""
        tenant, ledger = self._context.tenant(), self._master.ledger
        if tenant is None:
            return
        places = ledger.holdings[self._master.member(tenant).handle]
        agents = sorted({agent for _, agent in places if ledger.agents[agent].unavailable_ms})
        if agents:
            accept = bool(self._context.chance.random() < 0.5)
            agent = self._context.one_of(agents)
            self._master.answer_inverse_offer(tenant, agent, accept=accept, refuse_ms=5_000)
