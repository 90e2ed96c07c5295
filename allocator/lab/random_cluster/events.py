"""What may happen to agents, to frameworks, and by operators' hands; and whom it hits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from allocator.core import MILLI
from allocator.lab.frameworks.base import Conversion, Quantities
from allocator.lab.master.ledger_rows import Quota
from allocator.lab.master.resources import Resource, reserved, unreserved
from allocator.lab.random_cluster.framework import RandomFramework
from allocator.lab.random_cluster.population import ROLES, TOP_ROLES, Population, one_of
from allocator.lab.workloads.scenario import Stage

# What everybody who makes something happen needs.

AWAY_MS_MAX = 6_000

_T = TypeVar("_T")


@dataclass
class Context:
    """Draws whom it hits, and when it is over.

    tenants: those that are registered.
    away: those of them that are not connected.
    hosts: how many agents there were so far.
    """

    stage: Stage
    chance: np.random.Generator
    population: Population
    tenants: list[RandomFramework] = field(default_factory=list)
    away: set[RandomFramework] = field(default_factory=set)
    hosts: int = 0

    def subscribe(self) -> None:
        """One more framework."""
        identity = self.population.framework(tell_demand=self.stage.tell_demand)
        tenant = RandomFramework(identity, self.chance)
        self.stage.submit(tenant)
        self.tenants.append(tenant)

    def agent(self) -> int:
        """Any agent; 0 where there is none."""
        agents = sorted(self.stage.master.ledger.agents)
        return self.one_of(agents) if agents else 0

    def tenant(self) -> RandomFramework | None:
        """Any framework that is connected."""
        here = [
            tenant
            for tenant in self.tenants
            if tenant not in self.away and self.stage.master.knows(tenant)
        ]
        return self.one_of(here) if here else None

    def some_ms(self, most: int) -> int:
        """A while."""
        return int(self.chance.integers(1, most + 1))

    def later(self, action: Callable[[], object]) -> None:
        """Plan the end of a fault."""
        self.stage.master.event_heap.after(self.some_ms(AWAY_MS_MAX), action)

    def one_of(self, items: Sequence[_T]) -> _T:
        """Any of them."""
        return one_of(self.chance, items)


# What may happen to agents.


class AgentEvents:
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


# What may happen to frameworks.


class FrameworkEvents:
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

    def _return(self, tenant: RandomFramework) -> None:
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

    def _change(self, tenant: RandomFramework) -> None:
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


# What operators may do.

QUOTA_NAMES = ("cpus", "mem", "disk")
NESTED_ROLES = tuple(role for role in ROLES if "/" in role)


class OperatorEvents:
    """Quotas, weights, the whitelist, maintenance, reservations."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._master = context.stage.master

    def set_quota(self) -> None:
        """A top-level role gets a quota, or another one: perhaps below what it has."""
        guarantees: Quantities = {}
        limits: Quantities = {}
        total = self._master.ledger.by_name(tuple(self._master.ledger.total))
        for name in QUOTA_NAMES:
            if self._context.chance.random() < 0.5:
                guarantees[name] = int(total[name] * self._context.chance.random() * 0.3)
            if self._context.chance.random() < 0.6:
                room = int(total[name] * self._context.chance.random() * 0.6)
                limits[name] = guarantees.get(name, 0) + room
        self._master.set_quota(self._context.one_of(TOP_ROLES), Quota(guarantees, limits))

    def limit_nested_role(self) -> None:
        """A role below another one gets a limit of its own, or loses it."""
        limits = {"cpus": self._context.some_ms(20) * MILLI}
        quota = Quota(limits=limits) if self._context.chance.random() < 0.6 else Quota()
        self._master.set_quota(self._context.one_of(NESTED_ROLES), quota)

    def remove_quota(self) -> None:
        """A quota is removed."""
        self._master.set_quota(self._context.one_of(TOP_ROLES), Quota())

    def set_weights(self) -> None:
        """Weights change, of roles that are there and of others."""
        weight = float(self._context.chance.integers(1, 9)) / 2
        self._master.set_weights({self._context.one_of((*ROLES, "nobody")): weight})

    def restrict(self) -> None:
        """Only some hosts may be offered for a while."""
        hosts = [row.hostname for row in self._master.ledger.agents.values()]
        some = [host for host in hosts if self._context.chance.random() < 0.7]
        self._master.set_whitelist(some)
        self._context.later(lambda: self._master.set_whitelist(None))

    def maintain(self) -> None:
        """An agent is to be maintained, or the maintenance is called off."""
        agent = self._context.agent()
        if agent:
            begin_ms = self._master.event_heap.now_ms + self._context.some_ms(60_000)
            planned = self._master.ledger.agents[agent].unavailable_ms is None
            self._master.maintain(agent, (begin_ms, 60_000) if planned else None)

    def operate(self) -> None:
        """Free resources are reserved, or a reservation of nobody's is taken back."""
        agent = self._context.agent()
        if not agent:
            return
        free = self._master.resources_of(self._master.ledger.available(agent))
        turnable = [each for each in free if not each.revocable and not each.persistence]
        if turnable:
            one = self._context.one_of(turnable)
            converted = {self._turned(one): free[one]}
            self._master.operate(agent, Conversion({one: free[one]}, converted))

    def _turned(self, resource: Resource) -> Resource:
        if resource.reservations and not resource.reservations[-1].static:
            return unreserved(resource)
        below = [role for role in ROLES if role.startswith(resource.role + "/")]
        roles = below if resource.reservations else ROLES
        if not roles:
            return resource
        return reserved(resource, self._context.one_of(roles), principal="ops")
