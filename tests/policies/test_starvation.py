"""No starvation: a client that could be served gets an offer within a bounded number of cycles.

The bound is `patience_cycles` plus the number of clients that wait as long, divided by the number
that a cycle can serve. It holds for every policy, because waiting is counted outside the policy.
"""

from itertools import pairwise

import pytest

from allocator.core import DEMAND_LABEL, PolicySpec, SetQuota
from allocator.policies import POLICIES, SELECTIONS
from tests.core.session import MODES, Session
from tests.tiers import in_turn

PATIENCE = 5
TASK = {DEMAND_LABEL: "cpus:1;mem:2"}
GREEDY = 4
"""Frameworks that hold nothing, and decline every offer, without a filter."""


def crowded(spec: PolicySpec, *, patience: int, agents: int = 1) -> Session:
    """Framework 1 holds much; the greedy ones hold nothing, so every criterion prefers them."""
    session = Session(spec, patience_cycles=patience)
    session.agent(90, 64, 64)
    for agent in range(1, agents + 1):
        session.agent(agent, 4, 8)
    session.framework(1, labels=TASK)
    for offer in session.cycle(1000):
        if offer[2] == 90:
            session.use(offer)
        else:
            session.give_back(offer)
    for framework in range(2, 2 + GREEDY):
        session.framework(framework, labels=TASK)
    return session


def decline_all(session: Session, now_ms: int, keep: int) -> set[int]:
    """Run a cycle; all decline except framework `keep`. Returns the frameworks with offers."""
    offers = session.cycle(now_ms)
    for offer in offers:
        if offer[0] != keep:
            session.give_back(offer)
    return {offer[0] for offer in offers}


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(("name", "mode"), in_turn(POLICIES, MODES))
def test_the_one_that_holds_most_is_offered_something_in_time(name, selection, mode):
    session = crowded(PolicySpec(name, selection, mode), patience=PATIENCE)
    waited = 0
    while 1 not in decline_all(session, 2000 + 1000 * waited, keep=1):
        waited += 1
        assert waited <= PATIENCE + GREEDY


@pytest.mark.parametrize("selection", SELECTIONS)
def test_without_patience_it_starves(selection):
    """Mesos's own allocator starves it, too: so patience makes the difference."""
    session = crowded(PolicySpec("drf", selection), patience=0)
    for cycle in range(3 * (PATIENCE + GREEDY)):
        assert 1 not in decline_all(session, 2000 + 1000 * cycle, keep=1)


def test_one_grant_each_and_no_more():
    """One of three agents goes to the client that waited; the others as the policy prefers."""
    session = crowded(PolicySpec("drf", "listed"), patience=PATIENCE, agents=3)
    for cycle in range(PATIENCE):
        assert 1 not in decline_all(session, 2000 + 1000 * cycle, keep=1)
    offers = session.cycle(9000)
    assert sorted(offer[0] for offer in offers).count(1) == 1
    assert len(offers) == 3


def test_cycles_for_some_agents_do_not_count():
    session = crowded(PolicySpec("drf", "listed"), patience=PATIENCE)
    for cycle in range(3 * PATIENCE):
        offers = session.cycle(2000 + cycle, agents=[1])
        for offer in offers:
            session.give_back(offer)
        assert [offer[0] for offer in offers] != [1]


def test_a_framework_that_hoards_offers_is_offered_no_more():
    """With a quarter of 16 CPUs and 32 GiB on offer to it, the rest goes to others."""
    session = Session(PolicySpec("drf", "listed"), outstanding_max=0.25)
    for agent in range(1, 5):
        session.agent(agent, 4, 8)
    session.framework(1)
    offers = session.cycle(1000)
    assert [offer[2] for offer in offers] == [1]
    assert session.cycle(2000) == []
    session.use(offers[0])
    assert [offer[2] for offer in session.cycle(3000)] == [2]


def behind_another_role() -> Session:
    """One agent, and more clients than cycles of patience; the policy prefers those of role 2."""
    session = Session(
        PolicySpec("drf", "listed"), roles={1: "a", 2: "b", 3: "c"}, patience_cycles=2
    )
    session.agent(90, 64, 64)
    session.agent(1, 4, 8)
    session.framework(1)
    for offer in session.cycle(1000):
        (session.use if offer[2] == 90 else session.give_back)(offer)
    for framework in range(2, 5):
        session.framework(framework, 2)
    return session


def test_clients_that_become_overdue_quickly_are_not_always_served_first():
    session = behind_another_role()
    waited = 0
    while 1 not in decline_all(session, 2000 + 1000 * waited, keep=1):
        waited += 1
        assert waited <= 2 + 2 * 4


def test_an_overdue_client_at_its_limit_does_not_block_others():
    """The free resources would suffice for it, so it waits, and longer than all others."""
    session = behind_another_role()
    session.allocator.step(SetQuota("c", {}, {"cpus": 0, "mem": 0}))
    session.framework(5, 3)
    offered = [decline_all(session, 2000 + 1000 * cycle, keep=0) for cycle in range(100)]
    assert not any(5 in each for each in offered)
    cycles = [0, *(cycle for cycle, each in enumerate(offered) if 1 in each), len(offered)]
    assert max(after - before for before, after in pairwise(cycles)) <= 2 + 2 * 5
