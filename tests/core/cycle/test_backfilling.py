"""Room that a gang collects is lent to clients whose tasks end before it begins."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    PolicySpec,
    RemoveAgent,
    Revive,
    SetConstraint,
    SetGang,
    SetShadow,
    Suppress,
    Trail,
    UpdateAgent,
    compare_beside,
)
from allocator.core.cycle import backfilling
from allocator.core.cycle.holders import Outlook, look
from allocator.core.demand.durations import bucket_of
from allocator.policies import POLICIES, build
from tests.core.session import EACH_POLICY, Offer, Session
from tests.world.rows import given_back

PATIENCE = 2
LONG, GANG, SHORT, OTHER = 1, 2, 3, 4
DRF = PolicySpec("drf", "listed", "characterised")


def gang_of(tasks: int) -> dict[str, str]:
    return {DEMAND_LABEL: "cpus:1;mem:1", GANG_LABEL: f"tasks:{tasks}"}


class Cluster:
    """Two agents of 4 CPUs, full of a long task each, that a gang of two such tasks waits for.

    Time goes by cycles of a second. Long tasks are known to run for 100 s, short ones for 5 s.
    """

    def __init__(self, spec: PolicySpec = DRF, **settings) -> None:
        self.session = Session(spec, patience_cycles=PATIENCE, **settings)
        for handle in (1, 2):
            self.session.agent(handle, 4, 4, hostname=f"h{handle}")
        self.now_s, self.offers = 0, list[Offer]()
        self.session.framework(LONG, 2, name="long", labels={DEMAND_LABEL: "cpus:4;mem:4"})
        for offer in self.cycle():
            self.session.use(offer)
        self.session.allocator.step(Suppress(LONG, ()))
        self.learn("b", "long", 100)
        self.learn("a", "short", 5)

    def learn(self, role: str, name: str, lasted_s: int, times: int = 30) -> None:
        ends = {int(bucket_of(np.array([1000 * lasted_s]))[0]): times}
        memory = self.session.state.memory
        memory.durations.teach(
            self.session.state.settings, (role, "name", name), ends, memory.elapsed_ms
        )

    def gang_waits(
        self, tasks: int = 2, others: tuple[str, ...] = ("short",), together: int = 1
    ) -> None:
        """Agent 1 becomes free at 10 s, while a gang collects and others want offers.

        `together`: size of the others' gangs.
        """
        labels = {DEMAND_LABEL: "cpus:4;mem:4", GANG_LABEL: f"tasks:{tasks}"}
        self.until(9)
        self.session.framework(GANG, 1, name="gang", labels=labels, principal="p")
        self.until(12)  # the gang waits
        self.end(LONG, 1, 4)
        self.until(15)
        for framework, name in enumerate(others, SHORT):
            self.session.framework(framework, 1, name=name, labels=gang_of(together))

    def cycle(self, agents: list[int] | None = None) -> list[Offer]:
        self.now_s += 1
        self.offers = self.session.cycle(1000 * self.now_s, agents)
        return self.offers

    def until(self, now_s: int) -> None:
        while self.now_s < now_s:
            self.cycle()

    def end(self, framework: int, agent: int, cpus: int) -> None:
        role = 2 if framework == LONG else 1
        rows = self.session.holdings(framework, role, agent, cpus, cpus)
        self.session.allocator.step(given_back(rows, used=True))

    def got(self, framework: int) -> dict[int, int]:
        """CPUs that a framework was offered in the last cycle, by agent."""
        return {agent: has["cpus"] for who, _, agent, has in self.offers if who == framework}

    @property
    def its(self):
        """What the gang collects."""
        clients = self.session.state.clients
        return clients.collecting.get(clients.row(GANG, 1))

    @property
    def starts(self):
        return self.session.state.memory.durations.starts


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_room_is_lent_to_a_client_whose_tasks_end_before_the_gang_begins(spec):
    cluster = Cluster(spec)
    cluster.gang_waits()
    cluster.cycle()
    assert cluster.got(SHORT) == {1: 4}
    assert cluster.its.expected_ms == 97_000, "long tasks began at 1 s, and run for 96 s to 128 s"
    assert cluster.its.latest_ms == 129_000
    assert cluster.its.lent == (1,)
    assert cluster.starts.lent == 1
    cluster.session.allocator.check()


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_room_is_lent_to_a_smaller_gang_as_a_whole(spec):
    """It gets what is free on other agents, too."""
    cluster = Cluster(spec)
    cluster.gang_waits(others=())
    cluster.session.agent(3, 2, 2, hostname="h3")
    cluster.session.framework(SHORT, 1, name="short", labels=gang_of(6))
    cluster.cycle()
    assert cluster.got(SHORT) == {1: 4, 3: 2}
    assert cluster.its.lent == (1,)
    cluster.session.allocator.check()


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_nothing_is_lent_to_a_part_of_a_gang(spec):
    cluster = Cluster(spec)
    cluster.gang_waits(together=5)
    for _ in range(5):
        assert cluster.cycle() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_only_clients_with_learnt_and_short_tasks_are_guests(policy):
    cluster = Cluster(PolicySpec(policy))
    cluster.learn("a", "middle", 80)  # their p95 is 96 s, and the gang begins in 81 s
    cluster.gang_waits(others=("middle", "unknown"))
    for _ in range(5):
        cluster.cycle()
        assert cluster.offers == []
    assert cluster.its.lent == ()


def test_many_holdings_are_examined_less_often(monkeypatch):
    """Here a forecast examines one holding, and is followed by a pause of three seconds."""
    monkeypatch.setattr(backfilling, "REST_MS", 2990)
    cluster, looked = Cluster(), []

    def counted(*given: Any) -> Outlook:
        looked.append(cluster.now_s)
        return look(*given)

    monkeypatch.setattr(backfilling, "look", counted)
    cluster.gang_waits(others=("unknown",))
    cluster.until(30)
    rests = [later - earlier for earlier, later in pairwise(looked)]
    assert len(rests) > 3
    assert set(rests) == {3}


def test_nothing_is_lent_without_learnt_durations():
    cluster = Cluster()
    cluster.session.state.memory.durations.entries.clear()
    cluster.gang_waits()
    for _ in range(5):
        assert cluster.cycle() == []
    assert cluster.its.expected_ms == -1


def test_nothing_is_lent_where_a_holder_has_no_learnt_durations():
    cluster = Cluster()
    del cluster.session.state.memory.durations.entries["b", "name", "long"]
    cluster.gang_waits()
    assert cluster.cycle() == []


def test_nothing_is_lent_for_longer_than_the_gang_collects():
    cluster = Cluster(collect_ms=20_000)
    cluster.gang_waits()
    begun_ms = cluster.its.since_ms
    while cluster.its:
        cluster.cycle()
        left_ms = begun_ms + 20_000 - 1000 * cluster.now_s
        if cluster.its:
            assert bool(cluster.got(SHORT)) == (left_ms >= 6000)
        for offer in cluster.offers:
            cluster.session.give_back(offer)
    assert 1000 * cluster.now_s == begun_ms + 20_000


def test_the_gang_begins_when_it_was_expected_and_guests_end_before():
    """Short tasks run for exactly as long as the longest learnt duration: 6 s."""
    cluster = Cluster()
    cluster.gang_waits()
    runs, lent_s = list[tuple[int, int, int]](), 0
    while not cluster.got(GANG):
        for ends_s, agent, cpus in [each for each in runs if each[0] == cluster.now_s + 1]:
            cluster.session.allocator.advance(1000 * ends_s)
            cluster.end(SHORT, agent, cpus)
        if cluster.now_s + 1 == 97:
            cluster.session.allocator.advance(97_000)
            cluster.end(LONG, 2, 4)
        cluster.cycle()
        for offer in [each for each in cluster.offers if each[0] == SHORT]:
            cluster.session.use(offer)
            runs.append((cluster.now_s + 6, offer[2], offer[3]["cpus"]))
            lent_s = cluster.now_s
    assert cluster.now_s == 97
    assert lent_s >= 97 - 2 * 6, "the room was used until shortly before"
    assert (cluster.starts.held, cluster.starts.late, cluster.starts.missed) == (1, 0, 0)
    assert (cluster.starts.early_ms, cluster.starts.late_ms) == (0, 0)


def test_a_guest_that_runs_on_delays_the_gang_and_gets_no_more():
    cluster = Cluster()
    cluster.gang_waits()
    cluster.cycle()
    cluster.session.use(cluster.offers[0])
    cluster.until(96)
    cluster.end(LONG, 2, 4)
    lent = cluster.starts.lent
    assert cluster.its.lent == (1,)
    cluster.until(130)
    assert not cluster.got(GANG)
    assert cluster.its.expected_ms == 97_000
    assert cluster.its.lent == (), "it may choose another agent"
    assert cluster.starts.lent == lent
    cluster.end(SHORT, 1, 4)
    cluster.cycle()
    assert cluster.got(GANG) == {1: 4, 2: 4}
    assert cluster.starts.late == 1
    assert cluster.starts.late_ms == 1000 * cluster.now_s - 97_000


def test_a_guest_that_never_ends_costs_one_collection():
    """It ran short tasks until it was trusted."""
    cluster = Cluster(collect_ms=120_000)
    cluster.gang_waits()
    begun_ms = cluster.its.since_ms
    cluster.cycle()
    cluster.session.use(cluster.offers[0])
    cluster.until(96)
    cluster.end(LONG, 2, 4)
    lent = cluster.starts.lent
    while cluster.its:
        cluster.cycle()
    assert 1000 * cluster.now_s == begun_ms + 120_000
    assert cluster.starts.missed == 1
    assert cluster.got(SHORT) == {2: 4}, "what was kept is offered to all"
    cluster.session.give_back(cluster.offers[0])
    cluster.session.allocator.step(Suppress(SHORT, ()))
    # The gang rests, for it needs more than half. Then agent 2 is not lent, because the guest still
    # runs on agent 1.
    while not cluster.its:
        cluster.cycle()
    assert (cluster.its.agent, cluster.its.tasks) == ((2, 1), (1, 1))
    cluster.session.allocator.step(Revive(SHORT, ()))
    cluster.until(cluster.now_s + 10)
    assert not cluster.got(SHORT)
    assert cluster.starts.lent == lent


def test_resources_released_by_a_guest_are_kept_for_the_gang():
    """Another agent with more room does not draw the gang away from the one that it lent."""
    cluster = Cluster()
    cluster.gang_waits()
    cluster.cycle()
    cluster.session.use(cluster.offers[0])
    cluster.end(SHORT, 1, 1)
    cluster.session.agent(3, 3, 3)
    cluster.cycle()
    places = dict(zip(cluster.its.agent, cluster.its.tasks, strict=True))
    assert places[1] == 1


def test_lent_agents_that_are_gone_are_forgotten():
    for event in (RemoveAgent(1), SetConstraint("a", "gang", "hostname!=h1")):
        cluster = Cluster()
        cluster.gang_waits()
        cluster.cycle()
        assert cluster.its.lent == (1,)
        cluster.session.agent(3, 1, 1)
        cluster.session.allocator.step(event)
        cluster.cycle()
        assert cluster.its.agent == (2,)
        assert cluster.its.lent == ()
        cluster.session.allocator.check()


@pytest.mark.parametrize("runs", [False, True])
def test_running_tasks_older_than_their_like_bar_a_client(runs):
    """A client first ends short tasks, then runs long ones: running tasks count, too."""
    cluster = Cluster()
    cluster.session.state.memory.durations.entries.clear()
    cluster.learn("b", "long", 26)  # the gang begins in 9 s
    cluster.learn("a", "short", 5)
    labels = {DEMAND_LABEL: "cpus:1;mem:1"}
    for agent in (3, 4):
        cluster.session.agent(agent, 1, 1, hostname=f"h{agent}")
    if runs:
        cluster.session.framework(OTHER, 1, name="short", labels=labels)
        for offer in cluster.cycle():
            cluster.session.use(offer)
        cluster.session.allocator.step(Suppress(OTHER, ()))
    cluster.session.allocator.step(SetConstraint("a", "gang", "hostname=h1|h2"))
    cluster.session.allocator.step(SetConstraint("a", "short", "hostname=h1|h2"))
    cluster.gang_waits()
    cluster.cycle()
    # Two of 32 tasks are more than one in twenty.
    assert cluster.got(SHORT) == ({} if runs else {1: 4})


def test_a_cycle_over_some_agents_lends_nothing():
    cluster = Cluster()
    cluster.gang_waits(others=())
    cluster.session.framework(SHORT, 1, name="short", labels={DEMAND_LABEL: "cpus:1;mem:1"})
    assert cluster.cycle([1]) == []
    assert cluster.cycle() != []


def test_exclusions_of_guests_still_count():
    cluster = Cluster()
    cluster.session.allocator.step(SetConstraint("a", "short", "hostname!=h1"))
    cluster.gang_waits()
    assert cluster.cycle() == []


@pytest.mark.parametrize("collect_ms", [0, 300_000])
def test_learnt_durations_change_nothing_where_no_gang_collects(collect_ms):
    def offers(*, known: bool) -> list[list[Offer]]:
        cluster = Cluster(collect_ms=collect_ms)
        if not known:
            cluster.session.state.memory.durations.entries.clear()
        cluster.gang_waits() if collect_ms == 0 else cluster.session.framework(SHORT, 1)
        cluster.end(LONG, 2, 4)
        return [cluster.cycle() for _ in range(10)]

    assert offers(known=True) == offers(known=False)


def test_a_checkpoint_keeps_what_backfill_rests_on():
    """A restored core lends the same, and forecasts the same."""
    cluster = Cluster()
    cluster.gang_waits()
    cluster.cycle()
    cluster.session.use(cluster.offers[0])
    cluster.end(SHORT, 1, 2)
    copied = cluster.session.allocator.copied()
    its, offers = cluster.its, cluster.cycle()
    again = Cluster()
    again.session.allocator.suppose(copied)
    again.now_s = cluster.now_s - 1
    assert again.its == its
    assert again.cycle() == offers
    assert offers == [(SHORT, 1, 1, {"cpus": 2, "mem": 2})]
    assert again.its == cluster.its
    assert vars(again.starts) == vars(cluster.starts)


def test_a_policy_in_the_shadow_of_itself_lends_the_same():
    cluster = Cluster()
    allocator = cluster.session.allocator
    allocator.trail = Trail()
    cluster.gang_waits()
    allocator.step(SetShadow(DRF))
    cluster.cycle()
    assert cluster.got(SHORT) == {1: 4}
    assert allocator.trail.for_shadow is not None
    found = compare_beside(allocator.trail.for_shadow, DRF, build(DRF))
    assert found is not None
    assert (found.of_both, found.of_policy, found.of_beside) == (1, 0, 0)


def lent() -> Cluster:
    """Agent 1 is lent to a guest that wants no more."""
    cluster = Cluster()
    cluster.gang_waits()
    cluster.cycle()
    assert cluster.its.lent == (1,)
    cluster.session.use(cluster.offers[0])
    cluster.session.allocator.step(Suppress(SHORT, ()))
    return cluster


def test_a_new_agent_with_the_handle_of_a_lent_one_is_not_kept():
    cluster = lent()
    cluster.session.allocator.step(RemoveAgent(1))
    assert cluster.its.agent == (2,)
    cluster.session.agent(1, 1, 1, hostname="tiny")
    cluster.session.agent(3, 4, 4, hostname="h3")
    cluster.cycle()
    assert cluster.its.agent == (3, 2)
    assert cluster.its.lent == ()


@pytest.mark.parametrize(
    "event",
    [UpdateAgent(1, capacity={0: 1000, 1: 1000}), SetGang("a", "gang", 1)],
    ids=["a smaller agent", "a smaller gang"],
)
def test_after_such_a_change_lent_agents_are_chosen_again(event):
    cluster = lent()
    cluster.session.allocator.step(event)
    assert cluster.its.lent == ()
    cluster.session.allocator.check()
