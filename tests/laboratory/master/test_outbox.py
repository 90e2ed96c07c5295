"""Outgoing events: adjacent ones are merged into columns, and the order stays."""

from allocator.core import Define, Kind, Outcomes, Reason, Release, Suppress, Transition
from laboratory.master.gates import GateVerdict
from laboratory.master.session import Outbox
from laboratory.resources import KindTable, Resource, ResourceTable, reserved
from tests.laboratory.master.masters import outbox_of


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
    outbox.outcome(1, GateVerdict(Reason.OFFERED, (1,)))
    outbox.release((1, 1, 1, (1,)))
    expected = ["Release", "Suppress", "Transition", "Release", "Outcomes", "Release"]
    assert names(outbox.drain()) == expected


def test_uses_are_sent_before_releases_as_by_the_module():
    outbox = outbox_of(1)
    for agent in (1, 2):
        outbox.release((1, 1, agent, (2,)), refuse_ms=5000)
        outbox.transition((1, 1, agent, (3,)))
    used, released = outbox.drain()
    assert isinstance(used, Transition)
    assert isinstance(released, Release)
    assert used.used.agent.tolist() == released.released.agent.tolist() == [1, 2]


def test_a_kind_is_defined_before_it_is_used():
    table = ResourceTable(["cpus"])
    outbox = Outbox(KindTable(table, 1))
    row = table.row(Resource("ports", scalar=False))
    assert row == 1
    outbox.release((1, 1, 1, (1, 2)))
    define, release = outbox.drain()
    assert define == Define(kinds={1: Kind("ports", scalar=False)})
    assert isinstance(release, Release)
    assert release.released.kind.tolist() == [0, 1]
    outbox.transition((1, 1, 1, (0, 2)))
    assert names(outbox.drain()) == ["Transition"]


def test_a_conversion_within_a_kind_is_no_change():
    table = ResourceTable(["cpus"])
    outbox = Outbox(KindTable(table, 1))
    first, second = (reserved(Resource("cpus"), "r", principal=name) for name in ("a", "b"))
    assert (table.row(first), table.row(second)) == (1, 2)
    assert outbox.change((0, 5), (0, 0, 5)) == ({}, {})
    assert outbox.change((3, 5), (0, 0, 8)) == ({0: 3}, {1: 3})


def test_outcomes_carry_amounts_only_where_they_are_partial():
    outbox = outbox_of(2)
    outbox.outcome(7, GateVerdict(Reason.OFFERED, (1, 1)))
    outbox.outcome(8, GateVerdict(Reason.PARTIAL, (2, 0)))
    outbox.outcome(9, GateVerdict(Reason.FILTERED))
    (event,) = outbox.drain()
    assert isinstance(event, Outcomes)
    assert event.first_decision == 7
    assert event.reason.tolist() == [Reason.OFFERED, Reason.PARTIAL, Reason.FILTERED]
    assert event.amount.tolist() == [[2, 0]]
    assert event.offered.tolist() == [True, True, False]
    assert event.partial.tolist() == [False, True, False]


def test_outcomes_of_decisions_apart_are_two_events():
    outbox = outbox_of(1)
    outbox.outcome(1, GateVerdict(Reason.OFFERED, (1,)))
    outbox.outcome(3, GateVerdict(Reason.OFFERED, (1,)))
    first, second = outbox.drain()
    assert isinstance(first, Outcomes)
    assert isinstance(second, Outcomes)
    assert (first.first_decision, second.first_decision) == (1, 3)
