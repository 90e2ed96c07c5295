"""The emulated master's ledger: exact sums, and errors for impossible changes."""

from itertools import pairwise

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from laboratory.master.ledger import AgentRow, FrameworkRow, Ledger, LedgerError, OfferFilter
from laboratory.resources import AgentSpec


def agent(*capacity, sequence=0):
    return AgentRow(AgentSpec("h", {}).info("a"), sequence, list(capacity), [0] * len(capacity))


def framework(*roles, sequence=0):
    return FrameworkRow("f", sequence, set(roles))


@pytest.fixture
def ledger():
    ledger = Ledger(("cpus", "mem"))
    ledger.add_agent(1, agent(4000, 8000))
    ledger.add_framework(1, framework(1, 2))
    return ledger


@pytest.mark.parametrize("amount", [(1001, 0), (0, -1)])
def test_no_more_can_be_used_or_released_than_is_held(ledger, amount):
    ledger.offer(1, (1, 1), (1000, 0))
    with pytest.raises(LedgerError, match="cannot be taken"):
        ledger.use(1, (1, 1), amount)
    with pytest.raises(LedgerError, match="cannot be taken"):
        ledger.release(1, (1, 1), amount, used=False)


def test_an_agent_that_shrinks_has_nothing_free_until_enough_is_given_back(ledger):
    ledger.offer(1, (1, 1), (3000, 8000))
    ledger.resize_agent(1, (2000, 9000))
    assert ledger.agents[1].available() == [0, 1000]
    ledger.release(1, (1, 1), (3000, 0), used=False)
    assert ledger.agents[1].available() == [2000, 1000]
    ledger.check()


def test_a_filter_goes_after_its_last_moment(ledger):
    ledger.add_filter(1, (1, 1), OfferFilter((1, 1), 100))
    ledger.add_filter(1, (1, 1), OfferFilter((2, 2), 300))
    ledger.expire(100)
    assert len(ledger.filters[1][1, 1]) == 2
    ledger.expire(101)
    assert ledger.filters[1][1, 1] == [OfferFilter((2, 2), 300)]
    ledger.expire(301)
    assert not ledger.filters[1]


def test_an_expired_filter_of_a_framework_that_left_has_no_effect(ledger):
    ledger.add_filter(1, (1, 1), OfferFilter((1, 1), 100))
    ledger.remove_framework(1)
    ledger.add_framework(1, framework(1))
    ledger.add_filter(1, (1, 1), OfferFilter((2, 2), 300))
    ledger.expire(101)
    assert ledger.filters[1][1, 1] == [OfferFilter((2, 2), 300)]


def test_unknown_names_are_refused(ledger):
    with pytest.raises(LedgerError, match="no such resource: gpus"):
        ledger.amount({"cpus": 1, "gpus": 1})


@pytest.mark.parametrize("kind", ["held", "used", "total"])
def test_check_sees_books_that_do_not_add_up(ledger, kind):
    ledger.offer(1, (1, 1), (1000, 0))
    row = ledger.agents[1].held if kind == "held" else getattr(ledger, kind)
    row[0] += 1
    with pytest.raises(AssertionError):
        ledger.check()


amounts = st.tuples(st.integers(0, 5000), st.integers(0, 5000))


class LedgerMachine(RuleBasedStateMachine):
    """Any sequence of offers, uses and releases, against plain sums."""

    def __init__(self):
        super().__init__()
        self.ledger = Ledger(("cpus", "mem"))
        self.ledger.add_agent(1, agent(9000, 6000))
        self.ledger.add_agent(2, agent(5000, 9000))
        for handle in (1, 2):
            self.ledger.add_framework(handle, framework(1))
        self.log = []

    @rule(handle=st.sampled_from([1, 2]), where=st.sampled_from([1, 2]), amount=amounts)
    def offer(self, handle, where, amount):
        free = self.ledger.agents[where].available()
        if all(a <= f for a, f in zip(amount, free, strict=True)) and any(amount):
            self.ledger.offer(handle, (1, where), amount)
            self.log.append((handle, where, amount, False))
        elif any(amount):
            with pytest.raises(LedgerError):
                self.ledger.offer(handle, (1, where), amount)

    @precondition(lambda self: any(not used for *_, used in self.log))
    @rule(data=st.data())
    def use(self, data):
        entry = data.draw(st.sampled_from([each for each in self.log if not each[3]]))
        handle, where, amount, _ = entry
        self.log.remove(entry)
        self.ledger.use(handle, (1, where), amount)
        self.log.append((handle, where, amount, True))

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def release(self, data):
        entry = data.draw(st.sampled_from(self.log))
        handle, where, amount, used = entry
        self.log.remove(entry)
        self.ledger.release(handle, (1, where), amount, used=used)

    @invariant()
    def free_and_held_are_the_capacity(self):
        self.ledger.check()
        for where, row in self.ledger.agents.items():
            for kind in (0, 1):
                held = sum(amount[kind] for _, at, amount, _ in self.log if at == where)
                assert row.available()[kind] + held == row.capacity[kind]
        used = [sum(a[kind] for _, _, a, u in self.log if u) for kind in (0, 1)]
        assert self.ledger.used == used


TestLedgerMachine = LedgerMachine.TestCase


def test_a_refusal_covers_what_is_at_most_as_large():
    sizes = [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert all(OfferFilter(large, 0).covers(small) for small, large in pairwise(sizes))
    assert not any(OfferFilter(small, 0).covers(large) for small, large in pairwise(sizes))
