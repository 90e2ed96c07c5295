"""The age of the oldest outstanding offer, which identifies frameworks that hoard offers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Outcomes, Reason, Release, RemoveAgent
from allocator.core.books.ledger import Ledger
from tests.core.session import CPUS, Session


def hoarder() -> Session:
    """Two agents; the first client is offered both at 1000 ms."""
    session = Session()
    session.agent(1, 4, 8)
    session.agent(2, 4, 8)
    session.framework(1)
    assert len(session.cycle(1000)) == 2
    return session


def oldest_ms(session: Session, framework: int = 1) -> int:
    session.allocator.check()
    client = session.state.clients.row(framework, 1)
    return int(session.state.ledger.oldest_offer_ms()[client])


def test_an_offer_ages_until_all_of_it_is_used():
    session = hoarder()
    session.allocator.advance(61_000)
    assert oldest_ms(session) == 1000
    session.use((1, 1, 1, {"cpus": 4, "mem": 8}))
    assert oldest_ms(session) == 1000  # on the other agent
    session.use((1, 1, 2, {"cpus": 4, "mem": 7}))
    assert oldest_ms(session) == 1000  # the rest of that offer
    session.use((1, 1, 2, {"mem": 1}))
    assert oldest_ms(session) == -1


def test_a_new_offer_has_its_own_age_and_the_oldest_counts():
    session = hoarder()
    session.give_back((1, 1, 1, {"cpus": 4, "mem": 8}))
    assert len(session.cycle(5000)) == 1
    assert oldest_ms(session) == 1000
    session.give_back((1, 1, 2, {"cpus": 4, "mem": 8}))
    assert oldest_ms(session) == 5000


def test_additions_to_an_offer_do_not_reset_its_age():
    session = hoarder()
    session.give_back((1, 1, 1, {"cpus": 4, "mem": 8}), cpus=2, mem=4)
    session.give_back((1, 1, 2, {"cpus": 4, "mem": 8}), 3_600_000)
    assert len(session.cycle(5000)) == 1
    assert oldest_ms(session) == 1000


def test_used_resources_have_no_offer_age():
    session = hoarder()
    for agent in (1, 2):
        session.use((1, 1, agent, {"cpus": 4, "mem": 8}))
    ended = session.holdings(1, 1, 1, 2, 4)
    session.allocator.step(Release(ended, np.array([-1]), np.array([True])))
    assert oldest_ms(session) == -1
    assert len(session.cycle(9000)) == 1
    assert oldest_ms(session) == 9000


def test_a_refused_release_leaves_the_age_as_it_was():
    session = hoarder()
    good, bad = session.holdings(1, 1, 1, 4, 8), session.holdings(1, 1, 2, 5, 8)
    session.allocator.advance(2000)
    ledger = session.state.ledger
    client, agent = np.array([1, 1]), np.array([1, 2])
    amount = np.vstack([good.amount, bad.amount])
    assert ledger.release(client, agent, good.kind, amount, np.zeros(2, np.bool_))[0] == 1
    assert oldest_ms(session) == 1000


def test_a_row_that_is_used_again_has_no_past():
    session = hoarder()
    session.framework(2)
    session.allocator.step(RemoveAgent(1))
    session.give_back((1, 1, 2, {"cpus": 4, "mem": 8}), 3_600_000)
    assert oldest_ms(session) == -1
    assert session.cycle(7000) == [(2, 1, 2, {"cpus": 4, "mem": 8})]
    assert (oldest_ms(session, 1), oldest_ms(session, 2)) == (-1, 7000)


def test_a_partial_offer_is_as_old_as_its_outcome():
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1)
    made = session.allocator.allocate(1000)
    session.allocator.advance(1500)
    part = np.array([[1000]])
    reason = np.array([Reason.PARTIAL])
    outcome = Outcomes(made.first_decision, reason, np.array([CPUS]), part)
    session.allocator.step(outcome)
    assert oldest_ms(session) == 1500


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["offer", "hold", "use", "decline", "end"]),
        st.integers(1, 3),
        st.integers(1, 2),
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_ledger_agrees_with_a_dictionary(steps):
    ledger = Ledger()
    ledger.reserve(agents=3, clients=4, kinds=2)
    kind = np.arange(2)
    offered: dict[tuple[int, int], np.ndarray] = {}
    used: dict[tuple[int, int], np.ndarray] = {}
    since: dict[tuple[int, int], int] = {}
    for now_ms, (verb, client, agent, amount) in enumerate(steps):
        key, row = (client, agent), (np.array([client]), np.array([agent]))
        some, wide = np.array(amount), np.array([amount])
        lies = offered.get(key, np.zeros(2, np.int64))
        runs = used.get(key, np.zeros(2, np.int64))
        if verb in ("offer", "hold"):
            ledger.charge(*row, kind, wide, as_offer=verb == "offer", now_ms=now_ms)
            if verb == "offer" and some.any() and not lies.any():
                since[key] = now_ms
            lies, runs = (lies + some, runs) if verb == "offer" else (lies, runs + some)
        elif verb == "use":
            ledger.use(*row, kind, wide, now_ms=now_ms)
            moved = np.minimum(some, lies)
            lies, runs = lies - moved, runs + moved
        else:
            first = lies if verb == "decline" else runs
            if (some > first).any():
                continue
            ended = np.array([verb == "end"])
            assert ledger.release(*row, kind, wide, ended)[0] == -1
            lies, runs = (lies - some, runs) if verb == "decline" else (lies, runs - some)
        offered[key], used[key] = lies, runs
        ledger.check(now_ms)
        for each in range(1, 4):
            ages = [since[key] for key, lies in offered.items() if key[0] == each and lies.any()]
            assert ledger.oldest_offer_ms()[each] == min(ages, default=-1)


def test_a_check_finds_an_offer_of_the_future():
    session = hoarder()
    session.state.ledger.books.since_ms[:] = 2000
    with pytest.raises(AssertionError):
        session.allocator.check()
