"""Backfill in random lives of small clusters, against a plain recount of what is known.

The twin keeps plain lists: of what ran where since when, and of how long it lasted. It decides
without the core's buckets of counts, except for their edges, when a gang is expected to begin and
whose tasks end before.
"""

from bisect import bisect_left
from collections import Counter
from itertools import product
from math import inf
from random import Random

import pytest

from allocator.core import DEMAND_LABEL, GANG_LABEL, PolicySpec, SetCap
from allocator.core.demand.durations import EDGES_MS, SAMPLES_MIN
from allocator.policies import POLICIES
from tests.core.session import Session
from tests.tiers import long, some
from tests.world.rows import given_back

MODES = ("characterised", "oblivious")
QUICK = {("drf", "characterised"), ("quincy", "oblivious")}
COLLECT_MS = 40_000
SLOW, GANG, BRIEF = 1, 2, 3
NAMES = {SLOW: "slow", GANG: "gang", BRIEF: "brief"}
ROLES = {1: "a", 2: "b", 3: "c"}
SECOND = 1000


def bucket(lasted_ms: int) -> int:
    return bisect_left(EDGES_MS, lasted_ms)


def lower(lasted_ms: int) -> int:
    return (0, *EDGES_MS)[bucket(lasted_ms)]


def upper(lasted_ms: int) -> int:
    return EDGES_MS[bucket(lasted_ms)]


class Life:
    """Agents full of slow tasks, a gang that waits for them, and brief tasks that fill gaps.

    In some lives the brief tasks are small gangs, too, and in some a cap limits them.

    Tasks of a framework all run equally long, so what is learnt of them is correct.

    `runs`: framework, agent, CPUs, and when the task ends.
    `began`: by framework and agent, since when something is in use there.
    `lasted`: by framework, how long those that ended had used the agent.
    """

    def __init__(self, spec: PolicySpec, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.whole = spec.mode == "oblivious"
        self.session = Session(
            spec, roles=ROLES, patience_cycles=2, collect_ms=COLLECT_MS, seed=seed
        )
        self.sizes = {agent: chance.randint(2, 5) for agent in range(1, chance.randint(3, 6))}
        for agent, cpus in self.sizes.items():
            self.session.agent(agent, cpus, cpus)
        self.task_s = {SLOW: chance.randint(8, 25), GANG: 3, BRIEF: chance.randint(1, 6)}
        self.cpus = {SLOW: chance.randint(1, 3), GANG: chance.randint(1, 2), BRIEF: 1}
        room = sum(size // self.cpus[GANG] for size in self.sizes.values())
        self.tasks = max(2, room - chance.randint(0, 3))
        self.together = chance.choice([1, 1, 2, 3])
        self.cap = self._capped(Random(seed))
        self.role = {SLOW: 2, GANG: 1, BRIEF: 3 if self.cap else 1}
        self.lasted = {framework: self._taught(framework) for framework in NAMES}
        for framework, name in NAMES.items():
            self._add(framework, name)
        self.runs = list[tuple[int, int, int, int]]()
        self.began = dict[tuple[int, int], int]()
        self.now_ms, self.expected, self.lent, self.starts = 0, inf, 0, 0
        self.full_ms = 0  # the last full cycle

    def _capped(self, chance: Random) -> dict[str, int]:
        """Limit the brief tasks, in a role of their own, or the agents that they run on."""
        least = chance.choice([0, 1])
        cap = chance.choice([{}, {}, {"tasks": self.together + least}, {"agents": 1 + least}])
        if cap:
            thousandths = {what: 1000 * most for what, most in cap.items()}
            self.session.allocator.step(SetCap(ROLES[3], "framework", thousandths))
        return cap

    def _taught(self, framework: int) -> list[int]:
        """Durations that an earlier process learnt; for some frameworks too few."""
        count = self.chance.choice([60, 60, SAMPLES_MIN - 1])
        lasted = [SECOND * self.task_s[framework]] * count
        ends = Counter(map(bucket, lasted))
        topic = (ROLES[self.role[framework]], "name", NAMES[framework])
        self.session.state.memory.durations.teach(self.session.state.settings, topic, ends, 0)
        return lasted

    def _add(self, framework: int, name: str) -> None:
        cpus = self.cpus[framework]
        labels = {DEMAND_LABEL: f"cpus:{cpus};mem:{cpus}"}
        tasks = {GANG: self.tasks, BRIEF: self.together}.get(framework, 1)
        if tasks > 1:
            labels[GANG_LABEL] = f"tasks:{tasks}"
        self.session.framework(framework, self.role[framework], name=name, labels=labels)

    @property
    def its(self):
        clients = self.session.state.clients
        return clients.collecting.get(clients.row(GANG, 1))

    def free(self) -> dict[int, int]:
        return {agent: int(self.session.state.free[agent, 0]) // 1000 for agent in self.sizes}

    # What the twin knows.

    def within(self, framework: int) -> float:
        """The time after which all but one in twenty have ended; infinite if it is not known."""
        lasted = self.lasted[framework]
        if len(lasted) < SAMPLES_MIN:
            return inf
        ages = [self.now_ms - since for (who, _), since in self.began.items() if who == framework]
        for edge in EDGES_MS:
            older = sum(age > edge for age in ages)
            if 20 * (sum(each > edge for each in lasted) + older) <= len(lasted) + older:
                return edge
        return inf

    def end_ms(self, framework: int, agent: int) -> float:
        """Expected end of a holding: the median of durations that are at least as long so far."""
        began = self.began.get((framework, agent), self.now_ms)
        age = self.now_ms - began
        left = sorted(each for each in self.lasted[framework] if bucket(each) >= bucket(age))
        if len(self.lasted[framework]) < SAMPLES_MIN:
            return inf
        return began + (max(lower(left[(len(left) - 1) // 2]), age) if left else age)

    def room(self, agent: int, when_ms: float, free: dict[int, int], held: dict) -> int:
        """Tasks of the gang that an agent has room for once others have ended."""
        back = sum(
            cpus
            for (who, at), cpus in held.items()
            if at == agent and self.end_ms(who, at) <= when_ms
        )
        return (free[agent] + back) // self.cpus[GANG]

    def forecast(self, free: dict[int, int], held: dict) -> float:
        """When the gang begins; infinite if it is not known."""
        places = dict(zip(self.its.agent, self.its.tasks, strict=True))
        for who, agent in held:
            lacks = agent in places and free[agent] // self.cpus[GANG] < places[agent]
            if lacks and self.end_ms(who, agent) == inf:
                return inf
        missing = self.tasks - sum(places.values())
        others = [agent for agent in self.sizes if agent not in places]
        whens = sorted(
            {float(self.now_ms), *(max(self.end_ms(*each), self.now_ms) for each in held)}
        )
        for when in whens[: -1 if whens[-1] == inf else None]:
            own = all(self.room(agent, when, free, held) >= need for agent, need in places.items())
            more = sum(
                self.room(agent, when, free, held) - free[agent] // self.cpus[GANG]
                for agent in others
            )
            if own and (missing <= 0 or more >= missing):
                return when
        return inf

    # What happens.

    def cycle(self) -> None:
        self.now_ms += SECOND
        self._end_tasks()
        full = self.chance.random() < 0.8
        agents = None if full else sorted(self.chance.sample(sorted(self.sizes), 2))
        free, before = self.free(), self.its
        held = dict[tuple[int, int], int]()
        for framework, agent, cpus, _ in self.runs:
            held[framework, agent] = held.get((framework, agent), 0) + cpus
        self.session.allocator.advance(self.now_ms)
        offers = self.session.cycle(self.now_ms, agents)
        offered = {(who, agent): has["cpus"] for who, _, agent, has in offers}
        brief = sum(cpus for (who, _), cpus in offered.items() if who == BRIEF)
        assert not 0 < brief < self.together, "a part of a gang"
        if self.its is None:
            begun = any(who == GANG for who, _ in offered)
            if before is not None and begun:
                self.starts += 1
                # A collection ends in the first full cycle after its time.
                assert self.full_ms < before.since_ms + COLLECT_MS
            self.expected = inf
        elif full:
            self._check(
                free, held, offered, new=before is None or before.since_ms != self.its.since_ms
            )
        elif before is not None:
            for agent, kept in self._kept(free).items():
                assert free[agent] - self.free()[agent] <= free[agent] - kept
        self.full_ms = self.now_ms if full else self.full_ms
        for offer in offers:
            self._launch(*offer)
        self._check_cap()

    def _kept(self, free: dict[int, int]) -> dict[int, int]:
        places = zip(self.its.agent, self.its.tasks, strict=True)
        return {
            agent: free[agent] if self.whole else min(free[agent], tasks * self.cpus[GANG])
            for agent, tasks in places
        }

    def _check(self, free: dict[int, int], held: dict, offered: dict, *, new: bool) -> None:
        """Nothing set aside is offered to a client that needs longer than the gang can wait."""
        if new:
            self.expected = inf
        now = self.forecast(free, held)
        self.expected = min(self.expected, now)
        expected = self.its.expected_ms
        assert (inf if expected < 0 else expected) == self.expected
        until = min(self.expected, self.its.since_ms + COLLECT_MS)
        for agent, kept in self._kept(free).items():
            others = {who: cpus for (who, at), cpus in offered.items() if at == agent}
            lent = sum(others.values()) - (free[agent] - kept)
            if lent <= 0:
                continue
            guests = {who for who in others if self.now_ms + self.within(who) <= until}
            assert now < inf
            assert GANG not in others
            assert sum(others[who] for who in guests) >= lent, "more than guests may have"
            assert agent in self.its.lent
            self.lent += 1
            # The learnt durations are correct, so guests end before the collection ends.
            for who in guests:
                assert self.now_ms + SECOND * self.task_s[who] <= until

    def _check_cap(self) -> None:
        agents = [agent for framework, agent, _, _ in self.runs if framework == BRIEF]
        assert len(agents) <= self.cap.get("tasks", len(agents))
        assert len(set(agents)) <= self.cap.get("agents", len(agents))

    def _end_tasks(self) -> None:
        for run in [run for run in self.runs if run[-1] <= self.now_ms]:
            framework, agent, cpus, _ = run
            self.runs.remove(run)
            self.session.allocator.advance(self.now_ms)
            back = self.session.holdings(framework, self.role[framework], agent, cpus, cpus)
            self.session.allocator.step(given_back(back, used=True))
            self.lasted[framework].append(self.now_ms - self.began[framework, agent])
            if not any(each[:2] == (framework, agent) for each in self.runs):
                del self.began[framework, agent]

    def _launch(self, framework: int, role: int, agent: int, has: dict[str, int]) -> None:
        size = self.cpus[framework]
        for _ in range(has["cpus"] // size):
            self.session.use((framework, role, agent, {"cpus": size, "mem": size}))
            self.began.setdefault((framework, agent), self.now_ms)
            ends_ms = self.now_ms + SECOND * self.task_s[framework]
            self.runs.append((framework, agent, size, ends_ms))
        if rest := has["cpus"] % size:
            self.session.give_back((framework, role, agent, {"cpus": rest, "mem": rest}))


def live(spec: PolicySpec, seed: int) -> tuple[int, int]:
    """Returns how often room was lent, and how often a gang that collected began."""
    life = Life(spec, seed)
    for _ in range(100):
        life.cycle()
    life.session.allocator.check()
    return life.lent, life.starts


@pytest.mark.parametrize(("policy", "mode"), some(product(POLICIES, MODES), QUICK))
def test_guests_end_before_the_gang_begins(policy, mode):
    first = 10 * sorted(POLICIES).index(policy)
    found = [live(PolicySpec(policy, mode=mode), seed) for seed in range(first, first + 2)]
    assert sum(starts for _, starts in found), "a gang begins"


def test_room_is_lent_in_these_lives():
    lives = (live(PolicySpec("drf", mode=mode), seed) for seed in range(10) for mode in MODES)
    assert any(lent for lent, _ in lives)


@pytest.mark.parametrize("seeds", long(*(range(n, n + 10) for n in range(0, 200, 10))))
def test_guests_end_in_time_in_hundreds_of_lives(seeds):
    policies = sorted(POLICIES)
    for seed in seeds:
        for mode in MODES:
            live(PolicySpec(policies[seed % len(policies)], mode=mode), seed)
