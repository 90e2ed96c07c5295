"""The history of changes: numbered, bounded; a previous value is known or an error says why."""

import pytest

from allocator.core import PolicySpec, SetConstraint, SetDrain, SetLimit, SetPolicy
from allocator.v1 import settings_pb2 as pb
from allocator.wire import WireError
from allocator.wire.settings import history as subject
from allocator.wire.settings.history import (
    History,
    Replaced,
    read_history,
    read_replaced,
    write_history,
)
from allocator.wire.settings.overlay import read_kept

OLD, NEW = SetPolicy(PolicySpec("drf")), SetPolicy(PolicySpec("tsf"))
LIMIT = SetLimit("eng", {"cpus": 1000})


def limits(count: int) -> list[Replaced]:
    return [Replaced(None, SetLimit(f"r{number}", {"cpus": 1})) for number in range(count)]


def of(*changes: list[Replaced]) -> History:
    history = History()
    for at_ms, replaced in enumerate(changes):
        history = history.with_change(replaced, "me", at_ms)
    return history


def test_the_previous_value_of_a_change_restores_it():
    history = of([Replaced(OLD, NEW), Replaced(None, LIMIT)], [], [Replaced(LIMIT, NEW)])
    assert [(each.number, each.by, each.at_ms) for each in history.changes] == [
        (1, "me", 0),
        (2, "me", 2),
    ]
    assert [read_kept(each).change for each in history.replaced_by(1)] == [
        OLD,
        SetLimit("eng", None),
    ]
    drained = of([Replaced(SetDrain("a1"), SetDrain("a1", drained=False))])
    assert [read_kept(each).change for each in drained.replaced_by(1)] == [SetDrain("a1")]
    undrained = of([Replaced(None, SetDrain("a1"))])
    assert [read_kept(each).change for each in undrained.replaced_by(1)] == [
        SetDrain("a1", drained=False)
    ]


def test_a_history_is_read_as_written():
    history = of([Replaced(OLD, NEW)], [Replaced(None, LIMIT)])
    again = read_history(write_history(history))
    assert write_history(again) == write_history(history)
    assert read_replaced(again.changes[0].replaced[0]) == Replaced(OLD, NEW)
    assert again.with_change([Replaced(NEW, OLD)], "me", 9).last == 3


@pytest.mark.parametrize("number", [0, 3, 2**63])
def test_a_change_that_there_is_not_is_named(number):
    with pytest.raises(LookupError, match=f"{number}: there is no such change; the latest is 2"):
        of([Replaced(OLD, NEW)], [Replaced(NEW, OLD)]).replaced_by(number)
    with pytest.raises(LookupError, match="nothing was changed yet"):
        History().replaced_by(number)


def test_the_oldest_changes_go(monkeypatch):
    monkeypatch.setattr(subject, "SETTINGS_MAX", 5)
    history = of(limits(2), limits(2), limits(2))
    assert [each.number for each in history.changes] == [2, 3]
    with pytest.raises(LookupError, match=r"no longer known; the oldest that .* is 2"):
        history.replaced_by(1)
    assert len(history.replaced_by(2)) == 2
    assert [each.number for each in read_history(write_history(history)).changes] == [2, 3]


def test_of_a_change_that_is_too_large_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(subject, "SETTINGS_MAX", 5)
    history = of(limits(1), limits(8))
    (change,) = history.changes
    assert (change.number, len(change.replaced), change.left_out) == (2, 5, 3)
    with pytest.raises(LookupError, match=r"replaced are no longer known$"):
        history.replaced_by(2)


def test_long_texts_are_bounded():
    long = [Replaced(None, SetConstraint(f"r{each}", "", "x" * 60_000)) for each in range(20)]
    history = of([Replaced(OLD, NEW)], long)
    for _ in range(12):
        history = history.with_change(long[:1], "me", 0)
        assert write_history(history).ByteSize() <= subject.BYTES_MAX + 100
    assert history.last == 14
    assert history.changes[-1].number == 14


def test_a_history_entry_without_a_change_is_refused():
    message = write_history(of([Replaced(None, LIMIT)]))
    message.changes[0].replaced[0].after.Clear()
    with pytest.raises(WireError, match=r"changes\[0\]\.replaced\[0\]\.change: is missing"):
        read_history(message)
    message.changes[0].replaced[0].after.change.limit.limit.name.append("cpus")
    with pytest.raises(WireError, match=r"changes\[0\]\.replaced\[0\]\.limit\.limit"):
        read_history(message)
    assert read_history(pb.KeptHistory()).changes == ()
