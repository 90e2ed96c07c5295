"""Gangs in random histories of small clusters, against a direct count of what would fit."""

from collections import Counter
from itertools import product
from random import Random

import pytest

from allocator.core import DEMAND_LABEL, GANG_LABEL, PolicySpec
from allocator.policies import POLICIES
from tests.core.session import Offer, Session
from tests.tiers import long, some

MODES = ("characterised", "oblivious")
PATIENCE = 2
COLLECT_S = 12
GANGS = (2, 3)
"""Frameworks with a gang; framework 1 uses all its offers for tasks of one CPU."""

TASK_S = 6
"""Maximum duration of a task."""


class Life:
    """Agents, a framework of small tasks that takes everything, and two with gangs.

    `running`: framework, role, agent, CPUs, and end time.
    """

    def __init__(self, spec: PolicySpec, chance: Random) -> None:
        self.chance, self.mode = chance, spec.mode
        self.session = Session(
            spec,
            patience_cycles=PATIENCE,
            collect_ms=1000 * COLLECT_S,
            seed=chance.randrange(2**32),
        )
        self.sizes = {agent: chance.randint(1, 5) for agent in range(1, chance.randint(3, 6))}
        for agent, cpus in self.sizes.items():
            self.session.agent(agent, cpus, cpus)
        self.session.framework(1, 2, labels={DEMAND_LABEL: "cpus:1;mem:1"})
        self.task, self.tasks = dict[int, int](), dict[int, int]()
        for framework in GANGS:
            self.task[framework], self.tasks[framework] = chance.randint(1, 3), chance.randint(1, 4)
            self.session.framework(
                framework,
                1,
                principal=f"p{framework}",
                labels={
                    DEMAND_LABEL: f"cpus:{self.task[framework]};mem:{self.task[framework]}",
                    GANG_LABEL: f"tasks:{self.tasks[framework]}",
                },
            )
        self.running = list[tuple[int, int, int, int, int]]()
        self.now_s = 0
        self.began = Counter[int]()

    def fits(self, framework: int, cpus: dict[int, int]) -> bool:
        """Whether agents with these CPUs, by agent, have room for a gang."""
        room = sum(each // self.task[framework] for each in cpus.values())
        return room >= self.tasks[framework]

    def free(self) -> dict[int, int]:
        return {agent: int(self.session.state.free[agent, 0]) // 1000 for agent in self.sizes}

    def collecting(self) -> dict[int, dict[int, int]]:
        clients = self.session.state.clients
        return {
            int(clients.framework[row]): dict(zip(its.agent, its.tasks, strict=True))
            for row, its in clients.collecting.items()
        }

    def cycle(self) -> None:
        """End tasks, run a cycle, check it against a direct count, and start tasks."""
        self.now_s += 1
        for each in [each for each in self.running if each[-1] <= self.now_s]:
            self.running.remove(each)
            framework, role, agent, cpus, _ = each
            self.session.give_back((framework, role, agent, {"cpus": cpus, "mem": cpus}))
        some = self.chance.random() < 0.3
        agents = sorted(self.chance.sample(sorted(self.sizes), 2)) if some else None
        free, first = self.free(), next(iter(self.collecting()), 0)
        offers = self.session.cycle(1000 * self.now_s, agents)
        offered = {framework: self._by_agent(offers, framework) for framework in (1, *GANGS)}
        if agents is None:
            if first and self.fits(first, free) and first in self.collecting():
                raise AssertionError(f"{first} is not offered {free}")
            self._check_kept(free, begins=any(offered[framework] for framework in GANGS))
        for framework in GANGS:
            if offered[framework]:
                assert self.fits(framework, offered[framework]), "a part of a gang"
                self.began[framework] += 1
        for offer in offers:
            self._launch(offer)

    def _by_agent(self, offers: list[Offer], framework: int) -> dict[int, int]:
        return {agent: has["cpus"] for who, _, agent, has in offers if who == framework}

    def _check_kept(self, free: dict[int, int], *, begins: bool) -> None:
        """Check that no two gangs collect on one agent, and that no other client is offered their
        room.

        `begins`: a gang was offered room, possibly room that a later gang had collected.
        """
        collecting, left = self.collecting(), self.free()
        places = [agent for where in collecting.values() for agent in where]
        assert len(places) == len(set(places))
        for framework, where in () if begins else collecting.items():
            for agent, tasks in where.items():
                whole = self.mode == "oblivious"
                kept = free[agent] if whole else min(free[agent], tasks * self.task[framework])
                assert left[agent] >= kept

    def _launch(self, offer: Offer) -> None:
        framework, role, agent, has = offer
        size = self.task.get(framework, 1)
        cpus = has["cpus"] // size * size
        if cpus:
            self.session.use((framework, role, agent, {"cpus": cpus, "mem": cpus}))
            ends_s = self.now_s + self.chance.randint(1, TASK_S)
            self.running.append((framework, role, agent, cpus, ends_s))
        if rest := has["cpus"] - cpus:
            self.session.give_back((framework, role, agent, {"cpus": rest, "mem": rest}))


def live(spec: PolicySpec, seed: int, *, whole: bool = True) -> None:
    """Two gangs that can fit start again and again; one that cannot never collects.

    `whole`: play all cycles; otherwise only until each gang that can fit has begun twice.
    """
    life = Life(spec, Random(seed))
    able = [framework for framework in GANGS if life.fits(framework, life.sizes)]
    for _ in range(80):
        life.cycle()
        assert set(life.collecting()) <= set(able), seed
        if able and not whole and min(life.began[framework] for framework in able) >= 2:
            break
    for framework in GANGS:
        if framework in able:
            assert life.began[framework] >= 2, (seed, framework, life.began)
        else:
            assert not life.began[framework]
    life.session.allocator.check()


QUICK = {("drf", MODES[0]), ("rps-dsf", MODES[1]), ("bf-drf", MODES[0]), ("quincy", MODES[1])}


@pytest.mark.parametrize(("policy", "mode"), some(product(POLICIES, MODES), QUICK))
def test_gangs_begin_in_random_lives(policy, mode):
    live(PolicySpec(policy, mode=mode), seed=sorted(POLICIES).index(policy))


# Few at once: on a busy machine, fifty lives took longer than a test may.
@pytest.mark.parametrize("seeds", long(*(range(n, n + 10) for n in range(0, 1000, 10))))
def test_gangs_begin_in_2000_lives(seeds):
    policies = sorted(POLICIES)
    for seed in seeds:
        for mode in MODES:
            live(PolicySpec(policies[seed % len(policies)], mode=mode), seed)


@pytest.mark.parametrize("seeds", long(*(range(n, n + 40) for n in range(1000, 5000, 40))))
def test_gangs_begin_in_8000_more_lives(seeds):
    policies = sorted(POLICIES)
    for seed in seeds:
        for mode in MODES:
            live(PolicySpec(policies[seed % len(policies)], mode=mode), seed, whole=False)
