"""Gang sizes: the framework's label, operators' rules, and invalid values of either."""

from dataclasses import replace

import pytest

from allocator.core import GANG_LABEL, EventError, SetGang, UpdateFramework
from allocator.core.bounds import GANG_TASKS_MAX
from allocator.core.events import TOO_LONG, TOO_MANY, UNREADABLE
from tests.core.session import Session


def begun(label: str = "", roles: tuple[int, ...] = (1,)) -> Session:
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1, *roles, name="mpi-1", labels={GANG_LABEL: label} if label else {})
    return session


def sizes(session: Session, framework: int = 1) -> list[int]:
    state = session.state
    return [state.clients.gangs.get(row, 0) for row in sorted(state.frameworks.clients[framework])]


def test_a_label_counts_in_every_role():
    assert sizes(begun("tasks:8", (1, 2))) == [8, 8]
    assert sizes(begun(" tasks : 8.000 ;")) == [8]


@pytest.mark.parametrize(("label", "size"), [("", 0), ("tasks:1", 1)])
def test_a_gang_may_have_one_task(label, size):
    session = begun(label)
    assert sizes(session) == [size]
    assert not session.state.frameworks.aside


@pytest.mark.parametrize(
    ("label", "reason", "said"),
    [
        ("8", UNREADABLE, "name:amount"),
        ("tasks:0", UNREADABLE, "a whole number"),
        ("tasks:1.5", UNREADABLE, "a whole number"),
        ("tasks:-1", UNREADABLE, "is out of range"),
        ("tasks:NaN", UNREADABLE, "is not a number"),
        ("tasks:8;cpus:1", UNREADABLE, "of the form tasks:8"),
        ("cpus:8", UNREADABLE, "of the form tasks:8"),
        (f"tasks:{GANG_TASKS_MAX + 1}", TOO_MANY, "over 100000"),
        ("tasks:" + "0" * 100 + "8", TOO_LONG, "107 characters, over 64"),
    ],
)
def test_a_label_that_says_no_size_harms_only_its_sender(label, reason, said):
    session = begun(label)
    session.framework(2, 1, labels={GANG_LABEL: "tasks:3"})
    assert (sizes(session), sizes(session, 2)) == ([0], [3])
    (row,) = session.state.frameworks.aside[1]
    assert (row.field, row.reason) == ("labels", reason)
    assert row.text.startswith(GANG_LABEL)
    assert said in row.text
    assert row.text.endswith("each task is served alone")


def test_a_label_may_change():
    session = begun("tasks:8")
    info = session.state.frameworks.info[1]
    assert info is not None
    changed = replace(info, labels={GANG_LABEL: "tasks:3"})
    session.allocator.step(UpdateFramework(1, changed, (1,)))
    assert sizes(session) == [3]


def test_a_rule_counts_before_the_label_until_it_is_taken_back():
    session = begun("tasks:8", (1, 2))
    step = session.allocator.step
    step(SetGang("", "mpi-*", 2))
    step(SetGang("b", "", 1))
    assert sizes(session) == [2, 1], "of several rules the last one"
    session.framework(2, 2, name="mpi-2")
    assert sizes(session, 2) == [1]
    step(SetGang("b", "", None))
    assert (sizes(session), sizes(session, 2)) == ([2, 2], [2])
    step(SetGang("", "mpi-*", None))
    assert (sizes(session), sizes(session, 2)) == ([8, 8], [0])
    assert session.allocator.settings.gangs == {}


def test_settings_that_are_replaced_at_once_count():
    session = begun()
    settings = session.allocator.settings.copied()
    settings.put(SetGang("a", "", 5))
    session.allocator.reconfigure(settings)
    assert sizes(session) == [5]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SetGang("a", "", 0), "give a number from 1 to 100000"),
        (SetGang("a", "", GANG_TASKS_MAX + 1), "give a number from 1 to 100000"),
        (SetGang("a", "", None), "there is no rule"),
    ],
)
def test_a_rule_that_is_not_possible_changes_nothing(event, said):
    session = begun("tasks:8")
    with pytest.raises(EventError, match=said):
        session.allocator.step(event)
    assert sizes(session) == [8]
    assert session.allocator.settings.gangs == {}


def test_labels_and_rules_are_bounded_alike():
    assert SetGang.kind.bounds == (1, GANG_TASKS_MAX)
