"""A random cluster with erratic frameworks, and faults: everything that Mesos may tell a module.

For a while agents are lost, come back, are deactivated or resized; frameworks drop out, fail over
(in other roles, too), leave and are followed by others; pairs are excluded. One seed fixes it all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from allocator.core import MILLI, Options
from allocator.lab.frameworks.base import Identity, Quantities
from allocator.lab.frameworks.random_framework import ErraticFramework
from allocator.lab.master.gates import GPU_CAPABILITY
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Stage

ROLES = ("a", "b", "b/x", "b/y", "c")
ZONES = ("north", "south", "west")
AWAY_MS_MAX = 8_000


@dataclass(frozen=True, slots=True)
class Soak:
    """A scenario of so many agents and frameworks at a time, for so long.

    size: agents, and frameworks at a time.
    fault_ms: from one fault to the next, on average; 0: none.
    """

    seed: int
    size: int = 6
    duration_ms: int = 60_000
    fault_ms: int = 700
    kinds: tuple[str, ...] = ("cpus", "mem", "gpus")
    options: Options = field(default_factory=Options)

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        """Agents of random sizes, a third of them with GPUs."""
        chance = np.random.default_rng((self.seed, 1))
        return tuple((0, _agent(chance, number)) for number in range(self.size))

    @property
    def jobs(self) -> int:
        """The end of the run is the only thing that is waited for."""
        return 1

    def begin(self, stage: Stage) -> None:
        """Plan frameworks, faults and the end."""
        _Director(self, stage).begin()


def _agent(chance: np.random.Generator, number: int) -> AgentSpec:
    capacity: Quantities = {
        "cpus": int(chance.integers(1, 17)) * MILLI,
        "mem": int(chance.integers(64, 8_193)) * MILLI,
    }
    if number % 3 == 0:
        capacity["gpus"] = int(chance.integers(1, 5)) * MILLI
    return AgentSpec(f"host-{number}", capacity, {"zone": str(chance.choice(ZONES))})


class _Director:
    """Makes things happen."""

    def __init__(self, soak: Soak, stage: Stage) -> None:
        self._soak = soak
        self._stage = stage
        self._master = stage.master
        self._chance = np.random.default_rng((soak.seed, 2))
        self._frameworks: list[ErraticFramework] = []
        self._away: set[ErraticFramework] = set()
        self._hosts = soak.size
        self._names = 0

    def begin(self) -> None:
        for _ in range(self._soak.size):
            self._stage.at(self._some_ms(2_000), self._hire)
        if self._soak.fault_ms:
            self._stage.at(self._some_ms(self._soak.fault_ms), self._strike)
        self._stage.at(self._soak.duration_ms, self._end)

    def _end(self) -> None:
        self._stage.exhausted()
        self._stage.ended("")

    def _hire(self) -> None:
        self._names += 1
        demand: Quantities = {}
        if self._stage.tell_demand and self._chance.random() < 0.7:
            demand = {"cpus": int(self._chance.integers(100, 3_001)), "mem": 128 * MILLI}
        zones = frozenset(self._chance.choice(ZONES, 2).tolist())
        identity = Identity(
            name=f"erratic-{self._names}",
            roles=self._some_roles(),
            demand=demand,
            allowed={"zone": zones} if self._chance.random() < 0.3 else {},
            capabilities=frozenset({GPU_CAPABILITY} if self._chance.random() < 0.5 else ()),
        )
        framework = ErraticFramework(identity, self._chance)
        self._stage.submit(framework)
        self._frameworks.append(framework)

    def _strike(self) -> None:
        """One fault, and the next is planned."""
        self._stage.master.event_heap.after(self._some_ms(2 * self._soak.fault_ms), self._strike)
        faults: list[Callable[[], None]] = [
            self._lose_agent,
            self._deactivate_agent,
            self._resize_agent,
            self._disconnect,
            self._disconnect,
            self._replace,
            self._exclude,
        ]
        faults[int(self._chance.integers(len(faults)))]()

    def _lose_agent(self) -> None:
        agent = self._some_agent()
        if agent:
            self._master.remove_agent(agent)
            self._hosts += 1
            spec = _agent(self._chance, self._hosts)
            self._later(lambda: self._master.add_agent(spec))

    def _deactivate_agent(self) -> None:
        agent = self._some_agent()
        if agent:
            row = self._master.ledger.agents[agent]
            self._master.activate_agent(agent, active=False)
            self._later(lambda: self._reactivate(agent, row.agent_id))

    def _reactivate(self, agent: int, agent_id: str) -> None:
        row = self._master.ledger.agents.get(agent)
        if row is not None and row.agent_id == agent_id:
            self._master.activate_agent(agent, active=True)

    def _resize_agent(self) -> None:
        agent = self._some_agent()
        if agent:
            self._master.resize_agent(agent, _agent(self._chance, agent).capacity)

    def _disconnect(self) -> None:
        framework = self._some_framework()
        if framework is not None:
            self._away.add(framework)
            self._master.disconnect(framework)
            self._later(lambda: self._reconnect(framework))

    def _reconnect(self, framework: ErraticFramework) -> None:
        if framework.gone:
            return
        self._away.discard(framework)
        if self._chance.random() < 0.5:
            framework.identity = replace(framework.identity, roles=self._some_roles())
        self._master.reconnect(framework)

    def _replace(self) -> None:
        framework = self._some_framework()
        if framework is not None:
            self._frameworks.remove(framework)
            framework.leave()
            self._later(self._hire)

    def _exclude(self) -> None:
        framework, agent = self._some_framework(), self._some_agent()
        if framework is not None and agent:
            handle = self._master.member(framework).handle
            role = min(self._master.ledger.frameworks[handle].roles)
            excluded = bool(self._chance.random() < 0.6)
            self._master.exclude([(handle, role, agent)], excluded=excluded)

    def _some_agent(self) -> int:
        agents = sorted(self._master.ledger.agents)
        return agents[int(self._chance.integers(len(agents)))] if agents else 0

    def _some_framework(self) -> ErraticFramework | None:
        here = [framework for framework in self._frameworks if framework not in self._away]
        return here[int(self._chance.integers(len(here)))] if here else None

    def _some_roles(self) -> tuple[str, ...]:
        count = int(self._chance.integers(1, 4))
        return tuple(sorted(set(self._chance.choice(ROLES, count).tolist())))

    def _some_ms(self, most: int) -> int:
        return int(self._chance.integers(1, most + 1))

    def _later(self, action: Callable[[], object]) -> None:
        self._master.event_heap.after(self._some_ms(AWAY_MS_MAX), action)
