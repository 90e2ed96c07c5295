"""The scenario: agents, frameworks, a duration, and random events."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from allocator.core import AMOUNT_MAX, MILLI, Options
from laboratory.frameworks.base import Conversion, Identity, Quantities
from laboratory.master.emulated import Recovery
from laboratory.master.ledger import Quota
from laboratory.random_cluster.checks import Inspector
from laboratory.random_cluster.tenants import (
    PLAIN,
    REGION,
    ROLES,
    TOP_ROLES,
    Population,
    RandomFramework,
    one_of,
)
from laboratory.resources import AgentSpec, Resource, reserved, unreserved
from laboratory.workloads.scenario import JobStage

RECOVERY = Recovery(timeout_ms=5_000)
OPTIONS = Options(region=REGION, fairness_excluded=frozenset({"gpus"}))
RETURN_MS_MAX = 8_000
LOST_IN_FAILOVER = 0.15
AWAY_MS_MAX = 6_000

QUOTA_NAMES = ("cpus", "mem", "disk")
NESTED_ROLES = tuple(role for role in ROLES if "/" in role)

_T = TypeVar("_T")


@dataclass(slots=True)
class RandomScenario:
    """A scenario with every kind of event; the seed determines it.

    size: number of agents, and of frameworks at a time.
    duration_ms: another master is elected half-way.
    event_ms: mean interval between events.
    silent: whether the sidecar is silent at times, so that the master's fallback makes offers.
    happened: number of events by name.
    inspector: checks all offers; set when the run begins.
    also: called after that.
    """

    seed: int
    size: int = 8
    duration_ms: int = 40_000
    event_ms: int = 250
    kinds: tuple[str, ...] = PLAIN
    options: Options = OPTIONS
    silent: bool = False
    happened: Counter[str] = field(default_factory=Counter)
    inspector: Inspector = field(init=False)
    also: Callable[[JobStage], None] = lambda _stage: None

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        """Agents present from the beginning."""
        population = Population(np.random.default_rng((self.seed, 1)))
        return tuple((0, population.agent(number)) for number in range(self.size))

    @property
    def jobs(self) -> int:
        """The number of jobs that the player waits for: one, which ends with the run."""
        return 1

    def begin(self, stage: JobStage) -> None:
        """Schedule frameworks, events and the end."""
        stage.master.recovery = RECOVERY
        self.inspector = Inspector(stage.master)
        stage.master.inspect(self.inspector)
        _Life(self, stage).begin()
        self.also(stage)


EVENTS: dict[str, Callable[["_Life"], None]] = {}
"""Events that may happen, by name."""

_E = TypeVar("_E", bound=Callable[..., None])


def happens(to: Callable[["_Life"], object] | None = None) -> Callable[[_E], _E]:
    """Add a function to `EVENTS`; `to` draws its target. Without a target the event is skipped."""

    def made(event: _E) -> _E:
        def drawn(life: "_Life") -> None:
            whom = to(life) if to else None
            if whom:
                event(life, whom)

        EVENTS[event.__name__] = drawn if to else event
        return event

    return made


class _Life:
    """Triggers events, all equally likely.

    tenants: registered frameworks.
    away: those that are disconnected.
    hosts: number of all agents so far, lost ones included.
    """

    def __init__(self, scenario: RandomScenario, stage: JobStage) -> None:
        self._scenario, self._stage = scenario, stage
        self._master = stage.master
        self._chance = np.random.default_rng((scenario.seed, 2))
        self._population = Population(self._chance)
        self._tenants: list[RandomFramework] = []
        self._away: set[RandomFramework] = set()
        self._hosts = scenario.size
        self._names = sorted(name for name in EVENTS if scenario.silent or name != "silence")

    def begin(self) -> None:
        """Schedule frameworks, events and the end."""
        for _ in range(self._scenario.size):
            self._stage.at(self._some_ms(1_000), self._subscribe)
        self._stage.at(self._some_ms(self._scenario.event_ms), self._happen)
        self._stage.at(self._scenario.duration_ms // 2, self._fail_over)
        self._stage.at(self._scenario.duration_ms, self._end)

    def _happen(self) -> None:
        self._master.event_heap.after(self._some_ms(2 * self._scenario.event_ms), self._happen)
        name = self._one_of(self._names)
        self._scenario.happened[name] += 1
        EVENTS[name](self)

    def _fail_over(self) -> None:
        """Elect another master; some agents never reregister."""
        self._away.clear()
        agents_ms = {
            agent: self._some_ms(RETURN_MS_MAX)
            for agent in sorted(self._master.ledger.agents)
            if self._chance.random() >= LOST_IN_FAILOVER
        }
        frameworks_ms = [(tenant, self._some_ms(RETURN_MS_MAX)) for tenant in self._tenants]
        self._scenario.happened["fail_over"] += 1
        self._master.fail_over(agents_ms, frameworks_ms)

    def _end(self) -> None:
        self._stage.exhausted()
        self._stage.ended("")

    # Targets of events, and durations of faults.

    def agent(self) -> int:
        agents = sorted(self._master.ledger.agents)
        return self._one_of(agents) if agents else 0

    def tenant(self) -> RandomFramework | None:
        """Any connected framework."""
        here = [
            tenant
            for tenant in self._tenants
            if tenant not in self._away and self._master.knows(tenant)
        ]
        return self._one_of(here) if here else None

    def _subscribe(self) -> None:
        tenant = RandomFramework(self._identity(), self._chance)
        self._stage.submit(tenant)
        self._tenants.append(tenant)

    def _identity(self) -> Identity:
        return self._population.framework(tell_demand=self._stage.tell_demand)

    def _some_ms(self, most: int) -> int:
        return int(self._chance.integers(1, most + 1))

    def _later(self, action: Callable[[], object]) -> None:
        """Schedule the end of a fault."""
        self._master.event_heap.after(self._some_ms(AWAY_MS_MAX), action)

    def _if_still_there(self, agent: int, action: Callable[[], object]) -> None:
        agent_id = self._master.ledger.agents[agent].info.agent_id

        def act() -> None:
            row = self._master.ledger.agents.get(agent)
            if row is not None and row.info.agent_id == agent_id:
                action()

        self._later(act)

    def _one_of(self, items: Sequence[_T]) -> _T:
        return one_of(self._chance, items)

    # Events of agents.

    @happens(agent)
    def lose_agent(self, agent: int) -> None:
        """Lose an agent with its offers and tasks; another one registers later."""
        self._master.remove_agent(agent)
        self._hosts += 1
        spec = self._population.agent(self._hosts)
        self._later(lambda: self._master.add_agent(spec))

    @happens(agent)
    def drain_agent(self, agent: int) -> None:
        """Deactivate an agent, and activate it again."""
        self._master.activate_agent(agent, active=False)
        self._if_still_there(agent, lambda: self._master.activate_agent(agent, active=True))

    @happens(agent)
    def resize_agent(self, agent: int) -> None:
        """Change an agent's capacity, perhaps below what is held."""
        self._master.resize_agent(agent, self._population.capacity())

    @happens(agent)
    def oversubscribe(self, agent: int) -> None:
        """Change the estimate of revocable resources."""
        self._master.oversubscribe(agent, self._population.estimate())

    @happens(agent)
    def add_provider(self, agent: int) -> None:
        """Add a resource provider to an agent that has none."""
        provided = self._population.provided(agent)
        has = self._master.resources_of(tuple(self._master.ledger.agents[agent].capacity))
        if not any(each.provider for each in has):
            self._master.add_provider(agent, provided)

    @happens(agent)
    def reregister_agent(self, agent: int) -> None:
        """Reregister an agent with another rack, size, region and version."""
        row = self._master.ledger.agents[agent]
        self._master.activate_agent(agent, active=False)
        spec = replace(self._population.agent(self._hosts), hostname=row.info.hostname)
        self._if_still_there(agent, lambda: self._master.reregister_agent(agent, spec))

    @happens(agent)
    def silence(self, agent: int) -> None:
        """Silence the sidecar for a moment; the master's fallback offers an agent."""
        frameworks = self._master.ledger.frameworks
        clients = [
            (one, role) for one in sorted(frameworks) for role in sorted(frameworks[one].roles)
        ]
        order = self._chance.permutation(len(clients))
        self._master.fall_back(agent, [clients[place] for place in order.tolist()])

    # Events of frameworks.

    @happens(tenant)
    def fail_framework_over(self, tenant: RandomFramework) -> None:
        """Disconnect a framework; a new instance subscribes, perhaps with a new description."""
        self._away.add(tenant)
        self._master.disconnect(tenant)
        self._later(lambda: self._return(tenant))

    def _return(self, tenant: RandomFramework) -> None:
        if not tenant.gone and self._master.knows(tenant):
            self._away.discard(tenant)
            if self._chance.random() < 0.5:
                self._change(tenant)
            self._master.reconnect(tenant)

    @happens(tenant)
    def change_framework(self, tenant: RandomFramework) -> None:
        """Change a connected framework's roles, minimums and capabilities."""
        self._change(tenant)
        self._master.reconnect(tenant)

    def _change(self, tenant: RandomFramework) -> None:
        other = self._identity()
        tenant.identity = replace(other, name=tenant.identity.name)

    @happens(tenant)
    def replace_framework(self, tenant: RandomFramework) -> None:
        """Remove a framework; another one subscribes later."""
        self._tenants.remove(tenant)
        tenant.leave()
        self._later(self._subscribe)

    @happens()
    def exclude(self) -> None:
        """Exclude an agent by a framework's offer constraints, or readmit it."""
        tenant, agent = self.tenant(), self.agent()
        if tenant is not None and agent:
            handle = self._master.member(tenant).handle
            role = min(self._master.ledger.frameworks[handle].roles)
            excluded = bool(self._chance.random() < 0.6)
            self._master.exclude([(handle, role, agent)], excluded=excluded)

    @happens()
    def request(self) -> None:
        """Send a framework's REQUEST: the needs of a task, or of a gang, some for one agent."""
        tenant = self.tenant()
        if tenant is not None and self._stage.tell_demand:
            one = self._population.demand(tenant.identity.capabilities)
            other = self._population.demand(tenant.identity.capabilities)
            needs = [one, other, one][: int(self._chance.integers(1, 4))]
            self._master.request(tenant, *needs, agents=[self._only() for _ in needs])

    def _only(self) -> str:
        """Id of the only agent for a task; mostly empty: any."""
        agent = self.agent() if self._chance.random() < 0.2 else 0
        return self._master.ledger.agents[agent].info.agent_id if agent else ""

    @happens()
    def answer_inverse_offer(self) -> None:
        """Answer for a framework that holds something on an agent with planned maintenance."""
        tenant, ledger = self.tenant(), self._master.ledger
        if tenant is None:
            return
        places = ledger.holdings[self._master.member(tenant).handle]
        agents = sorted({agent for _, agent in places if ledger.agents[agent].unavailable_ms})
        if agents:
            accept = bool(self._chance.random() < 0.5)
            agent = self._one_of(agents)
            self._master.answer_inverse_offer(tenant, agent, accept=accept, refuse_ms=5_000)

    # Events of operators.

    @happens()
    def set_quota(self) -> None:
        """Set a top-level role's quota, perhaps below its consumption."""
        guarantees: Quantities = {}
        limits: Quantities = {}
        total = self._master.ledger.by_name(tuple(self._master.ledger.total))
        for name in QUOTA_NAMES:
            # Agents may claim more than any quota can be.
            most = min(total[name], AMOUNT_MAX)
            if self._chance.random() < 0.5:
                guarantees[name] = int(most * self._chance.random() * 0.3)
            if self._chance.random() < 0.6:
                room = int(most * self._chance.random() * 0.6)
                limits[name] = guarantees.get(name, 0) + room
        self._master.set_quota(self._one_of(TOP_ROLES), Quota(guarantees, limits))

    @happens()
    def limit_nested_role(self) -> None:
        """Set or remove the limit of a nested role."""
        limits = {"cpus": self._some_ms(20) * MILLI}
        quota = Quota(limits=limits) if self._chance.random() < 0.6 else Quota()
        self._master.set_quota(self._one_of(NESTED_ROLES), quota)

    @happens()
    def remove_quota(self) -> None:
        """Remove a quota."""
        self._master.set_quota(self._one_of(TOP_ROLES), Quota())

    @happens()
    def set_weights(self) -> None:
        """Change weights, also of unknown roles."""
        weight = float(self._chance.integers(1, 9)) / 2
        self._master.set_weights({self._one_of((*ROLES, "nobody")): weight})

    @happens()
    def restrict(self) -> None:
        """Restrict offers to some hosts for a while."""
        hosts = [row.info.hostname for row in self._master.ledger.agents.values()]
        some = [host for host in hosts if self._chance.random() < 0.7]
        self._master.set_whitelist(some)
        self._later(lambda: self._master.set_whitelist(None))

    @happens(agent)
    def maintain(self, agent: int) -> None:
        """Schedule an agent's maintenance, or cancel it."""
        begin_ms = self._master.event_heap.now_ms + self._some_ms(60_000)
        planned = self._master.ledger.agents[agent].unavailable_ms is None
        self._master.maintain(agent, (begin_ms, 60_000) if planned else None)

    @happens(agent)
    def operate(self, agent: int) -> None:
        """Reserve free resources, or remove a dynamic reservation from free ones."""
        free = self._master.resources_of(self._master.ledger.available(agent))
        turnable = [each for each in free if not each.revocable and not each.persistence]
        if turnable:
            one = self._one_of(turnable)
            converted = {self._turned(one): free[one]}
            self._master.operate(agent, Conversion({one: free[one]}, converted))

    def _turned(self, resource: Resource) -> Resource:
        if resource.reservations and not resource.reservations[-1].static:
            return unreserved(resource)
        below = [role for role in ROLES if role.startswith(resource.role + "/")]
        roles = below if resource.reservations else ROLES
        if not roles:
            return resource
        return reserved(resource, self._one_of(roles), principal="ops")
