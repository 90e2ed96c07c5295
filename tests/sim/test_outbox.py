"""Events on their way: neighbours become columns, order stays."""

import numpy as np

from allocator.core import Release, SetPaused, Suppress, Transition
from allocator.sim.master.gates import Reason, Verdict
from allocator.wire import Outcomes
from tests.sim.masters import outbox_of


def names(messages):
    return [type(message).__name__ for message in messages]


def test_neighbouring_releases_become_one_event():
    outbox = outbox_of(2)
    outbox.release((1, 1, 1, (5, 6)), refuse_ms=7)
    outbox.release((2, 1, 3, (8, 9)), used=True)
    (event,) = outbox.drain()
    assert isinstance(event, Release)
    assert event.released.framework.tolist() == [1, 2]
    assert event.released.agent.tolist() == [1, 3]
    assert event.released.amount.tolist() == [[5, 6], [8, 9]]
    assert event.refuse_ms.tolist() == [7, -1]
    assert event.allocated.tolist() == [False, True]


def test_order_is_kept_between_different_events():
    outbox = outbox_of(1)
    outbox.release((1, 1, 1, (1,)))
    outbox.add(Suppress(1))
    outbox.release((1, 1, 1, (1,)))
    outbox.transition((1, 1, 1, (1,)))
    outbox.outcome(1, Verdict(Reason.OFFERED, (1,)))
    outbox.release((1, 1, 1, (1,)))
    expected = ["Release", "Suppress", "Release", "Transition", "Outcomes", "Release"]
    assert names(outbox.drain()) == expected


def test_the_bracket_of_an_accept_is_in_mesos_order():
    outbox = outbox_of(1)
    outbox.pause()
    outbox.release((1, 1, 1, (2,)), refuse_ms=5000)
    outbox.transition((1, 1, 1, (3,)))
    outbox.resume()
    assert names(outbox.drain()) == ["SetPaused", "Release", "Transition", "SetPaused"]


def test_two_brackets_in_a_row_are_one():
    outbox = outbox_of(1)
    for agent in (1, 2):
        outbox.pause()
        outbox.transition((1, 1, agent, (3,)))
        outbox.resume()
    first, *used, last = outbox.drain()
    assert (first, last) == (SetPaused(paused=True), SetPaused(paused=False))
    assert [type(event) for event in used] == [Transition, Transition]


def test_outcomes_carry_amounts_only_where_they_are_partial():
    outbox = outbox_of(2)
    outbox.outcome(7, Verdict(Reason.OFFERED, (1, 1)))
    outbox.outcome(8, Verdict(Reason.PARTIAL, (2, 0)))
    outbox.outcome(9, Verdict(Reason.FILTERED))
    (event,) = outbox.drain()
    assert isinstance(event, Outcomes)
    assert event.first_decision == 7
    assert event.reason.tolist() == [Reason.OFFERED, Reason.PARTIAL, Reason.FILTERED]
    assert event.amount.tolist() == [[2, 0]]
    settled = event.settle()
    assert settled.offered.tolist() == [True, True, False]
    assert settled.partial.tolist() == [False, True, False]


def test_outcomes_of_decisions_apart_are_two_events():
    outbox = outbox_of(1)
    outbox.outcome(1, Verdict(Reason.OFFERED, (1,)))
    outbox.outcome(3, Verdict(Reason.OFFERED, (1,)))
    first, second = outbox.drain()
    assert isinstance(first, Outcomes)
    assert isinstance(second, Outcomes)
    assert (first.first_decision, second.first_decision) == (1, 3)


def test_what_is_drained_is_gone():
    outbox = outbox_of(1)
    outbox.release((1, 1, 1, (1,)))
    assert len(outbox) == 1
    outbox.drain()
    assert len(outbox) == 0
    assert outbox.drain() == []


def test_columns_are_exact_integers():
    outbox = outbox_of(1)
    outbox.release((1, 1, 1, (2**53,)))
    (event,) = outbox.drain()
    assert isinstance(event, Release)
    assert event.released.amount.dtype == np.int64
    assert event.released.amount[0, 0] == 2**53
