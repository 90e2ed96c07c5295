"""Budgets: roles over theirs are served last, or not at all, by every policy and in both modes."""

import random

import pytest

from allocator.core import DEMAND_LABEL, GANG_LABEL, PolicySpec, RemoveFramework, SetBudget
from allocator.core.events import SetQuota, Suppress
from allocator.policies import POLICIES
from tests.core.session import Offer, Session

HOUR_MS = 3_600_000
ONE = {DEMAND_LABEL: "cpus:1;mem:1"}
MODES = ("oblivious", "characterised")


def cluster(name: str = "drf", mode: str = "characterised", roles=None, **settings) -> Session:
    session = Session(PolicySpec(name, "listed", mode), roles=roles, **settings)
    for agent in (1, 2):
        session.world.agent("cpus:4;mem:8", handle=agent)
    return session


def spend(session: Session, role: str, *, hard: bool = False) -> None:
    """Let a role use up a budget: half an hour of four CPUs, which it then gives back."""
    session.allocator.step(SetBudget(role, {"cpus": 2000}, "day", hard=hard))
    number = next(each for each, path in session.paths.items() if path == role)
    session.framework(99, number, labels=ONE)
    session.allocator.advance(0)
    offers = session.cycle(0, [1])
    for offer in offers:
        session.use(offer)
    session.allocator.advance(HOUR_MS // 2)
    for offer in offers:
        session.give_back(offer)
    session.allocator.step(RemoveFramework(99))
    assert session.state.memory.budgets.over == {role: hard}


def cpus(offers, framework: int) -> int:
    return sum(units.get("cpus", 0) for who, _, _, units in offers if who == framework)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_role_over_a_soft_budget_gets_what_others_cannot_use(name, mode):
    session = cluster(name, mode)
    spend(session, "a")
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    assert cpus(session.cycle(HOUR_MS), 2) == 8
    session = cluster(name, mode)
    spend(session, "a")
    session.framework(1, 1, labels=ONE)
    assert cpus(session.cycle(HOUR_MS), 1) == 8, "work-conserving"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_role_over_a_hard_budget_gets_nothing_until_the_period_ends(name, mode):
    session = cluster(name, mode)
    spend(session, "a", hard=True)
    session.framework(1, 1, labels=ONE)
    assert session.cycle(HOUR_MS) == []
    assert session.cycle(24 * HOUR_MS - 1) == []
    assert cpus(session.cycle(24 * HOUR_MS), 1) == 8


def test_others_are_served_up_to_their_limits_and_filters_and_the_rest_is_left():
    session = cluster()
    spend(session, "a")
    session.allocator.step(SetQuota("b", {}, {"cpus": 3000}))
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert (cpus(offers, 2), cpus(offers, 1)) == (3, 5)


def test_roles_below_are_over_the_budget_too():
    session = cluster(roles={1: "a", 2: "b", 3: "a/x", 4: "b/y"})
    spend(session, "a")
    for framework in (1, 2, 3, 4):
        session.framework(framework, framework, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert [cpus(offers, each) for each in (1, 2, 3, 4)] == [0, 4, 0, 4]


def test_the_role_beside_one_that_is_over_is_not_over():
    session = cluster(roles={1: "a", 2: "b", 3: "a/x", 4: "a/y"})
    spend(session, "a/x")
    for framework in (1, 3, 4):
        session.framework(framework, framework, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert cpus(offers, 3) == 0
    assert cpus(offers, 1) == cpus(offers, 4) == 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_soft_budget_does_not_touch_a_guarantee(name, mode):
    """Both are owed, and there is not enough for the guarantees of both and more."""
    session = cluster(name, mode)
    spend(session, "a")
    for role in ("a", "b"):
        session.allocator.step(SetQuota(role, {"cpus": 3000}, {}))
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    session.framework(3, 2, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert cpus(offers, 1) == 3
    assert cpus(offers, 2) + cpus(offers, 3) == 5


def test_a_role_over_its_budget_keeps_its_guarantee():
    """With room for one of two guarantees, the turn decides, not the budget."""
    session = Session(PolicySpec("drf", "listed", "characterised"))
    session.agent(1, 4, 8)
    spend(session, "a")
    for role in ("a", "b"):
        session.allocator.step(SetQuota(role, {"cpus": 4000}, {}))
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert (cpus(offers, 1), cpus(offers, 2)) == (2, 2)


def test_a_hard_budget_comes_before_a_guarantee_which_stays_free():
    """The module holds it back for the role, whatever budgets say."""
    session = cluster()
    spend(session, "a", hard=True)
    session.allocator.step(SetQuota("a", {"cpus": 3000}, {}))
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    offers = session.cycle(HOUR_MS)
    assert (cpus(offers, 1), cpus(offers, 2)) == (0, 5)


def test_gangs_over_budget_come_last_and_do_not_collect():
    gang = {**ONE, GANG_LABEL: "tasks:6"}
    session = cluster(patience_cycles=2)
    spend(session, "a")
    session.framework(1, 1, labels=gang)
    session.framework(2, 2, labels=gang)
    first = session.cycle(HOUR_MS)
    assert (cpus(first, 2), cpus(first, 1)) == (6, 0)
    for offer in first:
        session.use(offer)
    session.allocator.step(Suppress(2, (2,)))
    for second in range(10):
        assert session.cycle(HOUR_MS + 1000 * second) == []
    assert not session.state.clients.collecting
    session.framework(3, 2, labels=ONE)
    assert cpus(session.cycle(HOUR_MS + 20_000), 3) == 2, "nothing is kept from it"


def test_a_gang_within_budget_collects_before_those_over_budget():
    session = cluster(patience_cycles=2)
    spend(session, "a")
    session.framework(1, 1, labels=ONE)
    (held,) = session.cycle(HOUR_MS, [1])
    session.use(held)
    session.framework(2, 2, labels={**ONE, GANG_LABEL: "tasks:6"})
    for second in range(1, 8):
        offers = session.cycle(HOUR_MS + 1000 * second)
        for offer in offers:
            session.give_back(offer)
    assert list(session.state.clients.collecting)
    assert offers == [], "what it keeps is not for those over budget"


def test_waiting_over_a_budget_gives_no_turn_before_others():
    session = cluster(patience_cycles=2)
    spend(session, "a")
    session.framework(1, 1, labels=ONE)
    session.framework(2, 2, labels=ONE)
    for second in range(6):
        offers = session.cycle(HOUR_MS + 1000 * second)
        assert cpus(offers, 2) == 8
        for offer in offers:
            session.give_back(offer, refuse_ms=0)
    assert not session.state.clients.waited.any()


@pytest.mark.long
@pytest.mark.parametrize("hard", [False, True])
def test_a_month_of_budgets_is_met(hard):
    """Two roles with endless jobs of one to three hours, of a quarter of the cluster each.

    8 CPUs for 30 days are 5,760 CPU hours: a may use a quarter of them, b three quarters.
    """
    job = {DEMAND_LABEL: "cpus:2;mem:4"}
    session = Session(PolicySpec("drf", "listed", "characterised"), roles={1: "a", 2: "b"})
    session.agent(1, 8, 16)
    budget = {"a": 1440, "b": 4320}
    for role, hours in budget.items():
        rule = SetBudget(role, {"cpus": hours * 1000}, "month", hard=hard)
        session.allocator.step(rule)
    session.framework(1, 1, labels=job)
    session.framework(2, 2, labels=job)
    chance = random.Random(1)
    running: list[tuple[int, Offer]] = []
    month = 30 * 24
    start_ms = 1_793_491_200_000  # 2026-11-01
    for hour in range(month):
        now_ms = start_ms + hour * HOUR_MS
        session.allocator.advance(now_ms)
        for _, offer in [each for each in running if each[0] <= hour]:
            session.give_back(offer)
        running = [each for each in running if each[0] > hour]
        for offer in session.cycle(now_ms):
            session.use(offer)
            running.append((hour + chance.randint(1, 3), offer))
    session.allocator.advance(start_ms + month * HOUR_MS - 1)
    for role, hours in budget.items():
        used = session.state.memory.budgets.spent[role].used["cpus"] / (1000 * HOUR_MS)
        assert used == pytest.approx(hours, rel=0.05)
