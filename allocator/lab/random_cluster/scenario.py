"""The scenario: so many agents and frameworks, for so long, and what happens to them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from allocator.core import Options
from allocator.lab.master.base import Recovery
from allocator.lab.random_cluster.events import (
    AgentEvents,
    Context,
    FrameworkEvents,
    OperatorEvents,
)
from allocator.lab.random_cluster.offer_checks import Inspector
from allocator.lab.random_cluster.population import PLAIN, REGION, Population
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Stage

RECOVERY = Recovery(timeout_ms=5_000)
OPTIONS = Options(region=REGION, fairness_excluded=frozenset({"gpus"}))
RETURN_MS_MAX = 8_000
LOST_IN_FAILOVER = 0.15


@dataclass(slots=True)
class RandomScenario:
    """A scenario in which everything occurs; one seed fixes it all.

    size: agents, and frameworks at a time.
    duration_ms: in the middle another master is elected.
    event_ms: from one thing that happens to the next, on average.
    silent: whether the sidecar is silent now and then, so that the master's fallback offers agents.
    happened: what happened, by name, and how often.
    inspector: once it has begun.
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

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        """Those that are there from the beginning."""
        population = Population(np.random.default_rng((self.seed, 1)))
        return tuple((0, population.agent(number)) for number in range(self.size))

    @property
    def jobs(self) -> int:
        """The end of the run is the only thing that is waited for."""
        return 1

    def begin(self, stage: Stage) -> None:
        """Plan frameworks, what happens to them, and the end."""
        stage.master.recovery = RECOVERY
        self.inspector = Inspector(stage.master.ledger)
        stage.master.inspect(self.inspector)
        _Driver(self, stage).begin()


class _Driver:
    """Makes things happen, any one as likely as the other."""

    def __init__(self, scenario: RandomScenario, stage: Stage) -> None:
        chance = np.random.default_rng((scenario.seed, 2))
        context = Context(stage, chance, Population(chance), hosts=scenario.size)
        self._scenario, self._stage, self._context = scenario, stage, context
        sources = (AgentEvents(context), FrameworkEvents(context), OperatorEvents(context))
        self._events: dict[str, Callable[[], None]] = {
            name: getattr(source, name)
            for source in sources
            for name in vars(type(source))
            if not name.startswith("_") and (scenario.silent or name != "silence")
        }

    def begin(self) -> None:
        for _ in range(self._scenario.size):
            self._stage.at(self._context.some_ms(1_000), self._context.subscribe)
        self._stage.at(self._context.some_ms(self._scenario.event_ms), self._happen)
        self._stage.at(self._scenario.duration_ms // 2, self._fail_over)
        self._stage.at(self._scenario.duration_ms, self._end)

    def _happen(self) -> None:
        after_ms = self._context.some_ms(2 * self._scenario.event_ms)
        self._stage.master.event_heap.after(after_ms, self._happen)
        name = self._context.one_of(sorted(self._events))
        self._scenario.happened[name] += 1
        self._events[name]()

    def _fail_over(self) -> None:
        """Another master is elected; some agents never come back."""
        context, master = self._context, self._stage.master
        context.away.clear()
        agents_ms = {
            agent: context.some_ms(RETURN_MS_MAX)
            for agent in sorted(master.ledger.agents)
            if context.chance.random() >= LOST_IN_FAILOVER
        }
        frameworks_ms = [(tenant, context.some_ms(RETURN_MS_MAX)) for tenant in context.tenants]
        self._scenario.happened["fail_over"] += 1
        master.fail_over(agents_ms, frameworks_ms)

    def _end(self) -> None:
        self._stage.exhausted()
        self._stage.ended("")
