"""The sidecar's books are the emulated master's, whatever happens in between.

Frameworks that do anything, agents that come, go and change, sessions that break: after every
moment at which all is told, capacity, free, offered, held, filters and subscriptions are equal,
number by number.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.core import Reason
from allocator.lab.checks.books_audit import differences, of_ledger, of_state
from allocator.lab.experiments.play import play
from allocator.lab.experiments.soak_scenario import Soak
from allocator.lab.master.cycles import Timing
from allocator.policies import POLICIES
from tests.lab.auditing import Audited
from tests.lab.masters import wire_link

RACES = set(Reason) - {Reason.MALFORMED, Reason.LIMIT, Reason.HEADROOM}
"""What may become of a decision that took its time: meanwhile a framework may leave its role."""


def soak(seed, policy, mode, *, decision_ms=0, cut_every_ms=0, duration_ms=30_000):
    link = wire_link(policy, mode, seed)
    scenario = Soak(seed, duration_ms=duration_ms)
    audited = Audited(scenario, link, cut_every_ms=cut_every_ms, until_ms=duration_ms)
    played = play(audited, link, tell_demand=True, timing=Timing(decision_ms=decision_ms))
    assert audited.compared > 50
    assert audited.facts > 20
    return played.record


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_books_agree_and_nothing_is_rejected(policy, mode):
    """Decisions that arrive at once can only be turned down where the sidecar is wrong."""
    record = soak(1, policy, mode)
    assert record.offers > 20
    assert not record.rejected


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(sorted(POLICIES)),
    mode=st.sampled_from(["oblivious", "characterised"]),
    decision_ms=st.sampled_from([0, 150, 400]),
    cut_every_ms=st.sampled_from([0, 4_500]),
)
def test_books_agree_under_any_soak(seed, policy, mode, decision_ms, cut_every_ms):
    record = soak(
        seed, policy, mode, decision_ms=decision_ms, cut_every_ms=cut_every_ms, duration_ms=20_000
    )
    assert record.resyncs == (4 if cut_every_ms else 0)
    assert set(record.rejected) <= (RACES if decision_ms else set())


def test_a_session_that_is_cut_goes_on_with_equal_books():
    record = soak(5, "drf", "characterised", cut_every_ms=3_000)
    assert record.resyncs == 9
    assert not record.rejected


def test_late_decisions_are_turned_down_where_they_are_outdated():
    """The gates are needed: without them these would have been offers to nobody, or twice."""
    record = soak(2, "drf", "oblivious", decision_ms=400, duration_ms=60_000)
    assert record.rejected


def test_the_same_seed_is_the_same_run():
    one, two = (soak(7, "ps-dsf", "characterised") for _ in range(2))
    assert one.used == two.used
    assert one.time_ms == two.time_ms
    assert one.outcomes == two.outcomes


def test_the_comparison_sees_a_difference():
    link = wire_link()
    audited = Audited(Soak(1, duration_ms=5_000), link)
    played = play(audited, link, tell_demand=True)
    now_ms = played.master.event_heap.now_ms
    state = link.sidecar.allocator.state  # The session is closed: an empty allocator.
    wrong = differences(of_ledger(played.master.ledger, now_ms), of_state(state, now_ms))
    assert any(line.startswith("agent 1:") for line in wrong)
    assert any(line.startswith("held ") for line in wrong)
