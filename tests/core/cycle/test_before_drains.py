"""Before a drain begins, the agent is offered only to clients whose tasks end in time."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from allocator.core import Exclude, Hold, PolicySpec, SetDrain
from allocator.core.cycle import before_drains
from allocator.core.cycle.holders import Outlook, look
from allocator.core.demand.durations import EDGES_MS, bucket_of
from tests.core.session import Offer, Session
from tests.tiers import seeds

BEGIN_MS = 1_795_000_000_000
HOUR_MS = 3_600_000


class Cluster:
    """Agents h1, h2, ... and frameworks f1, f2, ... that decline whatever they are offered."""

    def __init__(
        self,
        spec: PolicySpec | None = None,
        agents: int = 2,
        frameworks: int = 2,
        *,
        drained: bool = False,
        **settings,
    ) -> None:
        self.session = Session(spec, **settings)
        if drained:
            self.drain(1, BEGIN_MS + HOUR_MS)
        for agent in range(1, agents + 1):
            self.session.agent(agent, 4, 4, hostname=f"h{agent}")
        for framework in range(1, frameworks + 1):
            self.session.framework(framework, 1, name=f"f{chr(96 + framework)}")
        self.first = {offer[2] for offer in self.offers(BEGIN_MS)}

    def learn(self, framework: int, lasted_ms: list[int]) -> None:
        state = self.session.state
        found, counts = np.unique(bucket_of(np.array(lasted_ms)), return_counts=True)
        ends = dict(zip(found.tolist(), counts.tolist(), strict=True))
        topic, memory = ("a", "name", f"f{chr(96 + framework)}"), state.memory
        memory.durations.teach(state.settings, topic, ends, memory.elapsed_ms)

    def drain(self, agent: int, from_ms: int) -> None:
        self.session.allocator.step(SetDrain(f"h{agent}", from_ms=from_ms))

    def cycle(self, at_ms: int) -> set[tuple[int, int]]:
        """Returns the pairs of framework and agent that are offered."""
        return {(offer[0], offer[2]) for offer in self.offers(at_ms)}

    def offers(self, at_ms: int, agents: list[int] | None = None) -> list[Offer]:
        offers = self.session.cycle(at_ms, agents)
        for offer in offers:
            self.session.give_back(offer)
        return offers

    def reached(self, at_ms: int, times: int = 12) -> set[tuple[int, int]]:
        """The pairs that are offered in some cycles, from this time on."""
        return set().union(*(self.cycle(at_ms + turn) for turn in range(times)))

    def restart(self) -> None:
        allocator = self.session.allocator
        allocator.suppose(allocator.copied())


def test_clients_are_barred_only_shortly_before_and_only_if_their_tasks_end_too_late():
    cluster = Cluster()  # of f2 nothing is learnt
    cluster.learn(1, [10 * 60_000] * 30)  # within 12.8 minutes
    begins_ms = BEGIN_MS + 10 * HOUR_MS
    cluster.drain(1, begins_ms)
    both = {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert cluster.reached(begins_ms - 4 * HOUR_MS - 100) == both
    assert cluster.reached(begins_ms - 4 * HOUR_MS) == both - {(2, 1)}
    assert cluster.reached(begins_ms - 13 * 60_000) == both - {(2, 1)}
    others = {(1, 2), (2, 2)}
    assert cluster.reached(begins_ms - 12 * 60_000) == others
    assert cluster.reached(begins_ms + HOUR_MS) == others, "the calendar is late"
    cluster.session.allocator.step(SetDrain("h1", drained=False))
    assert cluster.reached(begins_ms + 2 * HOUR_MS) == both
    cluster.session.allocator.check()


def test_frameworks_that_are_not_subscribed_yet_are_not_barred():
    """What they hold is known, but not their names, and so nothing of their tasks."""
    cluster = Cluster(frameworks=1)
    cluster.session.allocator.step(Hold(cluster.session.holdings(7, 1, 1, 1, 1)))
    cluster.drain(1, BEGIN_MS + HOUR_MS)
    assert cluster.cycle(BEGIN_MS + 1) == {(1, 2)}
    cluster.session.state.check()


def test_the_look_ahead_is_a_setting_and_a_drain_by_id_or_host_counts_from_the_earliest():
    cluster = Cluster(drain_ahead_ms=0)
    cluster.drain(1, BEGIN_MS + HOUR_MS)
    assert len(cluster.reached(BEGIN_MS + 1)) == 4
    cluster.session.state.settings.drain_ahead_ms = HOUR_MS
    assert cluster.reached(BEGIN_MS + 100) == {(1, 2), (2, 2)}
    cluster.drain(1, BEGIN_MS + 9 * HOUR_MS)
    assert cluster.session.state.settings.drains == {"h1": BEGIN_MS + HOUR_MS}
    cluster.session.allocator.step(SetDrain("agent-2", from_ms=BEGIN_MS + 9 * HOUR_MS))
    cluster.drain(2, BEGIN_MS + HOUR_MS)
    assert cluster.reached(BEGIN_MS + 200) == set()
    cluster.drain(2, 0)
    agents = cluster.session.state.agents
    assert (agents.drained[2], agents.drained_from_ms[2]) == (True, 0)


def test_drains_of_the_time_before_the_session_hold_from_the_first_cycle():
    cluster = Cluster(drained=True)
    assert cluster.first == {2}
    cluster.session.state.eligibility.check()


def p95_ms(lasted_ms: list[int]) -> int | None:
    """By definition: all but one in twenty end within it. Times are edges of buckets."""
    if len(lasted_ms) < 20:
        return None
    for edge in sorted(lasted_ms):
        if sum(each > edge for each in lasted_ms) * 20 <= len(lasted_ms):
            return edge
    raise AssertionError


class Pair:
    """A cluster, and one without drains where the host excludes the pairs that must be barred."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        modes = ("oblivious", "characterised")
        spec = PolicySpec(
            self.chance.choice(("drf", "ps-dsf", "choosy", "tsf")), mode=self.chance.choice(modes)
        )
        self.cluster, self.twin = (Cluster(spec, AGENTS, FRAMEWORKS, seed=seed) for _ in range(2))
        self.lasted: dict[int, list[int]] = {each: [] for each in range(1, FRAMEWORKS + 1)}
        self.begins: dict[int, int] = {}
        self.barred: set[tuple[int, int]] = set()
        self.found = [0, 0]
        self.now_ms = BEGIN_MS

    def change(self) -> None:
        chance, framework = self.chance, self.chance.randint(1, FRAMEWORKS)
        agent = chance.randint(1, AGENTS)
        if chance.random() < 0.5:
            more = [chance.choice(EDGES_MS[8:28]) for _ in range(chance.choice((5, 30)))]
            self.lasted[framework] += more
            for each in (self.cluster, self.twin):
                each.learn(framework, more)
        if agent in self.begins and chance.random() < 0.5:
            del self.begins[agent]
            self.cluster.session.allocator.step(SetDrain(f"h{agent}", drained=False))
        elif agent not in self.begins:
            self.begins[agent] = self.now_ms + chance.randint(1, 8 * HOUR_MS)
            self.cluster.drain(agent, self.begins[agent])
        if chance.random() < 0.2:
            self.cluster.restart()

    @property
    def soon(self) -> dict[int, int]:
        return {at: ms for at, ms in self.begins.items() if self.now_ms >= ms - 4 * HOUR_MS}

    def exclude(self) -> None:
        """In the twin, as must be now."""
        before, self.barred = self.barred, set()
        for agent, from_ms in self.soon.items():
            for framework, durations in self.lasted.items():
                needs_ms = p95_ms(durations)
                late = needs_ms is None or self.now_ms + needs_ms > from_ms
                self.found[late] += 1
                self.barred |= {(framework, agent)} if late else set()
        for excluded, pairs in ((False, before - self.barred), (True, self.barred - before)):
            for framework, agent in sorted(pairs):
                row = (np.array([each]) for each in (framework, 1, agent, excluded))
                self.twin.session.allocator.step(Exclude(*row))

    def cycle(self, agents: list[int] | None = None) -> None:
        self.exclude()
        offers = self.cluster.offers(self.now_ms, agents)
        assert offers == self.twin.offers(self.now_ms, agents)
        assert not {(offer[0], offer[2]) for offer in offers} & self.barred
        self.cluster.session.state.eligibility.check()


AGENTS, FRAMEWORKS = 6, 5


def live(seed: int, cycles: int) -> Pair:
    pair = Pair(seed)
    for _ in range(cycles):
        pair.now_ms += pair.chance.choice((1000, 60_000, HOUR_MS))
        pair.change()
        pair.cycle()
        if pair.soon and pair.chance.random() < 0.2:  # durations have been looked up
            pair.now_ms += 1000
            pair.cycle(sorted(pair.chance.sample(range(1, AGENTS + 1), 3)))
    pair.cluster.session.allocator.check()
    return pair


@pytest.mark.parametrize("seed", seeds(2, 22))
def test_the_offers_are_those_of_a_world_where_the_host_excludes_these_pairs(seed):
    assert all(live(seed, 25 if seed < 2 else 60).found), "pairs of both kinds"


def test_many_holdings_are_examined_less_often_and_without_a_drain_soon_not_at_all(monkeypatch):
    """Here one holding is examined, which is followed by a pause of three seconds."""
    monkeypatch.setattr(before_drains, "REST_MS", 3000)
    cluster, looked = Cluster(), []

    def counted(*given: Any) -> Outlook:
        looked.append(cluster.session.state.now_ms)
        return look(*given)

    monkeypatch.setattr(before_drains, "look", counted)
    offer, *others = cluster.session.cycle(BEGIN_MS + 1)
    cluster.session.use(offer)
    for each in others:
        cluster.session.give_back(each)
    cluster.drain(1, BEGIN_MS + 5 * HOUR_MS)
    cluster.drain(2, 0)
    for turn in range(10):
        cluster.cycle(BEGIN_MS + 1000 * turn + 2)
    assert not looked
    for turn in range(20):
        cluster.cycle(BEGIN_MS + HOUR_MS + 1000 * turn)
    rests = [later - earlier for earlier, later in pairwise(looked)]
    assert len(rests) > 3
    assert set(rests) == {3000}
