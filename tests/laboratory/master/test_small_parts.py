"""Simulated time, handles, roles."""

from allocator.core import Define
from laboratory.event_heap import EventHeap, Priority
from laboratory.master.session import Handles, Roles
from tests.laboratory.master.masters import outbox_of


def test_actions_run_by_time_then_priority_then_plan():
    event_heap, log = EventHeap(), []
    event_heap.at(5, lambda: log.append("later"))
    event_heap.at(1, lambda: log.append("cycle"), Priority.CYCLE)
    event_heap.at(1, lambda: log.append("first fact"))
    event_heap.at(1, lambda: log.append("second fact"))
    while event_heap.step():
        pass
    assert log == ["first fact", "second fact", "cycle", "later"]
    assert event_heap.now_ms == 5


def test_actions_scheduled_in_the_past_are_due_now():
    event_heap = EventHeap(now_ms=10)
    event_heap.at(3, lambda: None)
    assert event_heap.next_ms == 10


def test_the_lowest_free_handle_is_taken_first():
    handles = Handles()
    assert [handles.take() for _ in range(4)] == [1, 2, 3, 4]
    handles.give_back(3)
    handles.give_back(2)
    assert [handles.take() for _ in range(3)] == [2, 3, 5]


def test_a_role_is_bound_after_its_ancestors_and_kept_for_the_session():
    outbox = outbox_of(1)
    roles = Roles(outbox)
    assert roles.name(("a/b/c",)) == (3,)
    assert outbox.drain() == [Define(roles={1: "a", 2: "a/b", 3: "a/b/c"})]
    roles.forget(("a/b/c",))
    assert outbox.drain() == []
    assert len(roles.handle) == 3
    roles.begin()
    assert not roles.handle
    assert not roles.path
    assert roles.name(("b",)) == (1,)


def test_a_role_stays_while_something_names_it():
    outbox = outbox_of(1)
    roles = Roles(outbox)
    roles.name(("a/b", "a/c"))
    roles.name(("a/b",))
    outbox.drain()
    roles.forget(("a/b", "a/c"))
    roles.begin()
    assert roles.handle == {"a": 1, "a/b": 2}
    assert roles.path == {1: "a", 2: "a/b"}
