"""A gang whose turn it is and that does not fit collects room over several cycles."""

import numpy as np
import pytest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    Outcomes,
    PolicySpec,
    SetConstraint,
    SetGang,
    SetLimit,
    SetQuota,
    Suppress,
)
from allocator.core.books.gang_offers import declined
from allocator.core.cycle import collecting
from tests.core.session import EACH_POLICY, MODES, Offer, Session
from tests.tiers import long
from tests.world.rows import given_back

PATIENCE = 3
DRF = PolicySpec("drf", "listed", "characterised")


def gang(tasks: int, cpus: int = 2) -> dict[str, str]:
    return {DEMAND_LABEL: f"cpus:{cpus};mem:{cpus}", GANG_LABEL: f"tasks:{tasks}"}


class Busy:
    """Agents full of one-CPU tasks, run by framework 1 in role b; time is counted in cycles."""

    def __init__(self, spec: PolicySpec = DRF, agents: int = 3, size: int = 4, **settings) -> None:
        self.session = Session(spec, patience_cycles=PATIENCE, **settings)
        for handle in range(1, agents + 1):
            self.session.agent(handle, size, size)
        self.session.framework(1, 2, labels={DEMAND_LABEL: "cpus:1;mem:1"})
        self.now_s, self.offers = 0, list[Offer]()
        self.cycle()

    def cycle(self, agents: list[int] | None = None) -> list[Offer]:
        """Run a cycle; framework 1 starts tasks on all its offers."""
        self.now_s += 1
        self.offers = self.session.cycle(1000 * self.now_s, agents)
        for offer in self.offers:
            if offer[0] == 1:
                self.session.use(offer)
        return self.offers

    def end(self, agent: int, cpus: int = 1) -> None:
        """End this many of framework 1's CPUs of tasks on an agent."""
        self.session.give_back((1, 2, agent, {"cpus": cpus, "mem": cpus}))

    def churn(self, cycles: int) -> None:
        """Before each cycle end a task, on one agent after the other."""
        for _ in range(cycles):
            self.end(1 + self.now_s % 3)
            self.cycle()

    def got(self, framework: int) -> int:
        """CPUs offered to a framework in the last cycle."""
        return sum(units["cpus"] for who, _, _, units in self.offers if who == framework)

    def collecting(self) -> dict[int, dict[int, int]]:
        """Room collected by frameworks: tasks by agent."""
        clients = self.session.state.clients
        return {
            int(clients.framework[row]): dict(zip(its.agent, its.tasks, strict=True))
            for row, its in clients.collecting.items()
        }


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_a_gang_begins_though_others_take_what_becomes_free(spec):
    """Without collecting, framework 1 takes every CPU as soon as it is free."""
    busy = Busy(spec)
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    assert not busy.collecting()
    for _ in range(20):
        busy.end(1 + busy.now_s % 3)
        if busy.cycle() and busy.got(2):
            break
    assert busy.got(2) >= 8
    assert not busy.collecting()
    busy.session.allocator.check()


def until_served(busy: Busy) -> bool:
    """End a task before each of 15 cycles; whether framework 2 is offered four CPUs."""
    for _ in range(15):
        busy.end(1 + busy.now_s % 3)
        busy.cycle()
        if busy.got(2):
            return busy.got(2) == 4
    return False


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_a_task_larger_than_what_is_ever_free_begins_if_it_is_a_gang_of_one(spec):
    """Framework 1 takes every CPU as soon as it is free, so no agent ever has four of them."""
    busy = Busy(spec)
    busy.session.framework(2, 1, labels=gang(1, cpus=4))
    busy.churn(PATIENCE)
    assert not busy.collecting()
    assert until_served(busy)
    assert not busy.collecting()
    busy.session.allocator.check()


def test_without_a_gang_of_one_it_does_not():
    busy = Busy()
    busy.session.framework(2, 1, labels={DEMAND_LABEL: "cpus:4;mem:4"})
    busy.churn(PATIENCE)
    assert not until_served(busy)


def test_a_gang_of_one_is_served_as_usual_where_its_task_has_room():
    """Many of its tasks in one cycle, and the policy is asked once."""
    session = Session(DRF, patience_cycles=PATIENCE)
    session.agent(1, 4, 4)
    session.agent(2, 4, 4)
    session.framework(1, 1, labels=gang(1))
    assert [offer[3]["cpus"] for offer in session.cycle(1000)] == [4, 4]
    assert not session.state.clients.collecting


def test_a_rule_makes_a_gang_of_one_and_of_many_those_that_waited_longest_collect():
    busy = Busy()
    for framework in range(2, 6):
        labels = {DEMAND_LABEL: "cpus:4;mem:4"}
        info = {"labels": labels, "principal": f"p{framework}"}
        busy.session.framework(framework, 1, **info)
    busy.session.allocator.step(SetGang("a", "", 1))
    busy.churn(PATIENCE + 1)
    assert list(busy.collecting()) == [2, 3, 4, 5]
    busy.session.allocator.step(SetGang("a", "", None))
    busy.churn(1)
    assert not busy.collecting()


def test_collected_resources_are_not_offered_to_others():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    for _ in range(4):
        busy.end(1)
        busy.cycle()
        assert busy.collecting() == {2: {1: 2, 2: 1, 3: 1}}
        assert busy.got(1) == 0
    # The gang needs four tasks: two more agents have to free one each.
    busy.end(2, 4)
    busy.end(3, 1)
    busy.cycle()
    assert (busy.got(2), busy.got(1)) == (8, 1)


def test_a_cycle_over_some_agents_leaves_what_is_collected():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    busy.end(1)
    busy.cycle()
    busy.end(1)
    assert busy.cycle([1]) == []


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_what_full_agents_free_between_full_cycles_is_collected(spec):
    """If others were offered it at once, all full cycles would find these agents full."""
    busy = Busy(spec, agents=5)
    busy.session.framework(2, 1, labels=gang(10))  # all agents, if they were empty
    busy.churn(PATIENCE + 1)
    assert busy.collecting() == {2: dict.fromkeys(range(1, 6), 2)}
    for agent in (4, 5, 3, 2):
        while _runs(busy, agent):
            busy.end(agent)
            assert busy.cycle([agent]) == []
    while _runs(busy, 1):
        busy.end(1)
        busy.cycle()
    assert busy.got(2) == 20


def test_a_gang_collects_on_a_few_full_agents_at_a_time(monkeypatch):
    """Each gang looks at few of a large cluster's full agents; too small ones do not count."""
    monkeypatch.setattr(collecting, "FULL_MAX", 1)
    busy = Busy(agents=1, size=1)
    for handle in (2, 3, 4):
        busy.session.agent(handle, 4, 4)
    busy.cycle()
    busy.session.framework(2, 1, labels=gang(6))  # agents 2 to 4, if they were empty
    for _ in range(PATIENCE + 1):
        busy.end(2)
        busy.cycle()
    assert busy.collecting() == {2: {2: 2, 3: 2}}
    busy.end(3)
    assert busy.cycle([3]) == []
    busy.end(4)
    busy.cycle([4])
    assert busy.got(1) == 1
    busy.cycle()
    assert busy.collecting() == {2: {2: 2, 3: 2, 4: 2}}
    while not busy.got(2):
        for agent in filter(lambda agent: _runs(busy, agent), (2, 3, 4)):
            busy.end(agent)
        busy.cycle()
    assert busy.got(2) == 12


def test_of_two_gangs_the_first_chooses_first_and_both_begin():
    busy = Busy()
    for framework in (2, 3):
        info = {"labels": gang(4), "principal": f"p{framework}"}
        busy.session.framework(framework, 1, **info)
    busy.churn(PATIENCE)
    busy.end(1, 2)
    busy.cycle()
    # The first gang collects on all agents: on the free one, and on those that are full.
    assert busy.collecting() == {2: {1: 2, 2: 1, 3: 1}, 3: {}}
    began = list[int]()
    while len(began) < 2:
        for agent in filter(lambda agent: _runs(busy, agent), (1, 2, 3)):
            busy.end(agent)
        busy.cycle()
        began += [framework for framework in (2, 3) if busy.got(framework)]
        if len(began) == 1:
            assert list(busy.collecting()) == [3]
        for offer in [each for each in busy.offers if each[0] != 1]:
            busy.session.give_back(offer, 0)
    assert began == [2, 3]


def _runs(busy: Busy, agent: int) -> bool:
    """Whether framework 1 uses something of an agent."""
    books, clients = busy.session.state.ledger.books, busy.session.state.clients
    rows = (books.agent == agent) & (books.client == clients.row(1, 2))
    return bool(books.kinds_used[rows].any())


def test_collecting_ends_in_time_and_what_was_kept_goes_to_others():
    busy = Busy(collect_ms=5000)
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    busy.end(1)
    for _ in range(5):
        assert busy.cycle() == []
        assert busy.collecting()
    busy.cycle()
    assert (busy.got(1), busy.collecting()) == (1, {})
    # It then waits for its turn again.
    for wait in range(2 * PATIENCE):
        assert bool(busy.collecting()) == (wait >= PATIENCE)
        busy.end(1)
        busy.cycle()


@pytest.mark.parametrize("off", [{"collect_ms": 0}, {"patience_cycles": 0}])
def test_nothing_is_collected_where_it_is_turned_off(off):
    busy = Busy()
    for name, value in off.items():
        setattr(busy.session.state.settings, name, value)
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(10)
    assert not busy.collecting()
    assert busy.got(1) == 1


def test_one_gang_of_each_principal_collects():
    busy = Busy()
    for framework, principal in ((2, "p"), (3, "p"), (4, ""), (5, ""), (6, "q")):
        info = {"labels": gang(2), "principal": principal}
        busy.session.framework(framework, 1, **info)
    busy.churn(PATIENCE + 1)
    assert list(busy.collecting()) == [2, 4, 6]


def test_a_gang_larger_than_the_cluster_collects_nothing():
    for tasks, fits in ((7, False), (6, True)):
        busy = Busy()
        busy.session.framework(2, 1, labels=gang(tasks))
        busy.churn(PATIENCE + 1)
        row = busy.session.state.clients.row(2, 1)
        assert bool(busy.collecting()) == fits
        assert busy.session.state.clients.too_large == (set() if fits else {row})
        assert busy.got(1) == (0 if fits else 1)
        # The gang may shrink later.
        busy.session.allocator.step(SetGang("a", "", 2))
        busy.churn(PATIENCE + 1)
        assert busy.collecting()
        assert busy.session.state.clients.too_large == set()


@pytest.mark.parametrize(
    "rule",
    [
        SetLimit("a", {"cpus": 7000}),
        SetQuota("a", {}, {"cpus": 7000}),
        SetConstraint("a", "", "hostname!=h2"),
    ],
)
def test_a_gang_larger_than_its_rules_allow_collects_nothing(rule):
    busy = Busy(agents=0)
    for handle in (1, 2, 3):
        busy.session.agent(handle, 4, 4, hostname=f"h{handle}")
    busy.session.allocator.step(rule)
    busy.session.framework(2, 1, labels=gang(5))
    busy.cycle()
    busy.churn(PATIENCE + 1)
    assert not busy.collecting()
    assert busy.session.state.clients.too_large == {busy.session.state.clients.row(2, 1)}
    assert busy.got(1) == 1


@pytest.mark.parametrize("spec", EACH_POLICY, ids=str)
def test_a_gang_does_not_wait_for_its_own_tasks_to_end(spec):
    """Such as Spark's executors, of which it wants no more, but which run until the job ends."""
    busy = Busy(spec, agents=0)
    for handle in (1, 2, 3):
        busy.session.agent(handle, 4, 4)
    busy.session.framework(2, 1, labels=gang(4))
    busy.cycle()
    mine = [offer for offer in busy.offers if offer[0] == 2]
    for offer in mine:
        busy.session.use(offer)
    busy.cycle()
    for _ in range(3 * PATIENCE):
        for agent in filter(lambda agent: _runs(busy, agent), (1, 2, 3)):
            busy.end(agent)
        busy.cycle()
        assert not busy.collecting()
        assert busy.got(1)
    busy.session.give_back(mine[0], 0)
    for _ in range(PATIENCE + 1):
        busy.cycle()
    assert busy.collecting()


def test_a_client_that_declines_gangs_waits_longer_each_time():
    busy = Busy(agents=3, size=2)
    busy.session.framework(2, 1, labels=gang(2))
    waits = []
    for _ in range(4):
        begun = busy.now_s
        while not busy.collecting():
            busy.end(1)
            busy.cycle()
            busy.offers = []
        waits.append(busy.now_s - begun)
        while not busy.got(2):
            for agent in (1, 2, 3):
                if _runs(busy, agent):
                    busy.end(agent)
            busy.cycle()
        for offer in [each for each in busy.offers if each[0] == 2]:
            busy.session.give_back(offer, 0)
        # Framework 1 is alone for a moment, and takes everything.
        busy.session.allocator.step(SetGang("a", "", 100))
        busy.cycle()
        busy.session.allocator.step(SetGang("a", "", 2))
    assert waits == [PATIENCE + 1, 2 * PATIENCE, 4 * PATIENCE, 8 * PATIENCE]


def test_a_gang_whose_offers_failed_still_collects_and_has_declined_nothing():
    busy = Busy(agents=2, size=2)
    busy.session.framework(2, 1, labels=gang(2))
    while not busy.collecting():
        busy.end(1)
        busy.cycle()
    while _runs(busy, 1):
        busy.end(1)
    busy.end(2, 2)
    allocator = busy.session.allocator
    for _ in range(3):
        busy.now_s += 1
        made = allocator.allocate(1000 * busy.now_s)
        assert made.gangs == ((0, 2),)
        assert not busy.collecting()
        # Each decision is settled by itself, as if they were judged in two slices.
        for row in range(2):
            allocator.step(Outcomes.all_or_nothing(made.first_decision + row, np.array([False])))
        assert busy.collecting() == {2: {1: 1, 2: 1}}
    busy.cycle()
    assert busy.got(2) == 4
    ((client, offers),) = busy.session.state.clients.gang_offers.items()
    assert (offers.declined, declined(busy.session.state, client)) == (0, 1)
    allocator.check()


def test_resources_needed_for_guarantees_are_not_collected():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    busy.session.allocator.step(SetQuota("b", {"cpus": 12_000}, {}))
    busy.end(1)
    busy.cycle()
    assert busy.collecting()
    assert busy.got(1) == 1


def test_a_gang_that_refuses_agents_does_not_wait_for_them():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(1, cpus=1))
    busy.end(1)
    offer = next(each for each in busy.cycle() if each[0] == 2)
    busy.session.give_back(offer, 3_600_000)
    busy.cycle()
    busy.session.allocator.step(SetGang("a", "", 2))
    for _ in range(2 * PATIENCE):
        busy.end(1)
        busy.cycle()
    assert not busy.collecting()


def test_nothing_decided_while_a_gang_collects_is_no_fault():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    busy.end(1)
    decisions = busy.session.allocator.allocate(1000 * busy.now_s + 1000)
    assert len(decisions) == 0
    assert decisions.holds_back


def test_a_suppressed_gang_collects_no_longer():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE + 1)
    assert busy.collecting()
    busy.session.allocator.step(Suppress(2, ()))
    busy.end(1)
    busy.cycle()
    assert not busy.collecting()
    assert busy.got(1) > 0


@pytest.mark.parametrize(("tasks", "least", "most"), [(6, 0.45, 0.51), (3, 0.7, 1.0)])
@pytest.mark.parametrize("mode", [MODES[0], *long(MODES[1])])
def test_a_principal_keeps_its_fair_share_on_average(tasks, least, most, mode):
    """Each of two roles may have half: a gang that needs everything may collect half of the time.

    It never fits, because no task ends on two of the agents.
    """
    busy = Busy(PolicySpec("drf", mode=mode), collect_ms=10_000)
    busy.session.framework(2, 1, labels=gang(tasks))
    collected, runs = 0, 4
    for _ in range(120):
        if runs:
            busy.end(1)
        busy.cycle()
        runs = max(runs - 1, 0) + busy.got(1)
        collected += bool(busy.collecting())
    assert least < collected / 120 <= most


def test_resources_refused_beside_a_gang_are_not_offered_again():
    """Its demand is not known. The gang keeps all CPUs, so it refuses the memory beside them."""
    session = Session(DRF, options={"minimum": ()}, patience_cycles=2)
    for agent in (1, 2):
        session.agent(agent, 4, 4)
    session.framework(1, 2, labels={DEMAND_LABEL: "cpus:1;mem:1"})
    for offer in session.cycle(1000):
        session.use(offer)
    session.allocator.step(Suppress(1, ()))
    for agent, cpus in ((1, 4), (2, 3)):
        rows = session.holdings(1, 2, agent, cpus, cpus)
        session.allocator.step(given_back(rows, used=True))
    session.framework(2, 1, labels={DEMAND_LABEL: "cpus:4;mem:1", GANG_LABEL: "tasks:2"})
    for second in range(2, 6):
        session.cycle(1000 * second)
    session.framework(3, 1)
    offers = session.cycle(6000)
    assert sorted(offers) == [(3, 1, 1, {"mem": 3}), (3, 1, 2, {"mem": 2})]
    for offer in offers:
        session.give_back(offer, refuse_ms=10_000)
    assert session.cycle(7000) == []
    assert len(session.cycle(17_000)) == 2
