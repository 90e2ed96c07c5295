"""Minimum offers: each is converted only when it changes, and equal ones share a row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from allocator.core import FrameworkInfo, Revive
from allocator.core.books.state import State
from allocator.core.cycle import cycle as cycles
from allocator.core.cycle import minimums
from allocator.core.cycle.minimums import MinimumRows, reaches, reaches_own
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.demand.own_words import Minimum
from allocator.core.events import AddFramework, Define, RemoveFramework, UpdateFramework
from allocator.core.snapshot import Grants
from tests.core.session import Session

ROLES = (1, 2, 3, 4)
SMALL: Minimum = ({"cpus": 100}, {"mem": 200, "cpus": 1})


def session_of(usual: Minimum = ({"cpus": 10}, {"mem": 32_000})) -> Session:
    session = Session(roles={role: f"role-{role}" for role in ROLES}, options={"minimum": usual})
    session.agent(1, 4, 8)
    return session


def framework(session: Session, handle: int, minimum: dict[int, Minimum]) -> None:
    info = FrameworkInfo(f"f{handle}", minimum=minimum)
    session.allocator.step(AddFramework(handle, info, ROLES))


def shown(state: State, made: tuple[np.ndarray, np.ndarray]) -> list[list[list[int]]]:
    """Rows of every client, wherever they are stored."""
    minimum, rows = made
    return [minimum[first:end].tolist() for first, end in rows.tolist()]


def slow_twin(state: State) -> list[list[list[int]]]:
    """Expected rows, computed client by client from the framework's input."""
    own, usual = state.clients.minimum, state.options.minimum
    clients = range(len(state.clients.framework))
    return [[state.space.demanded(row) for row in own.get(each, usual)] for each in clients]


one_row = st.dictionaries(st.sampled_from(["cpus", "mem", "gpus"]), st.integers(0, 3), max_size=2)
a_minimum = st.lists(one_row, max_size=3).map(tuple)
steps = st.lists(st.tuples(st.integers(1, 3), st.dictionaries(st.sampled_from(ROLES), a_minimum)))


@given(a_minimum, steps)
def test_minimums_equal_the_slow_twins(usual, told):
    session = session_of(usual)
    state, builder = session.state, SnapshotBuilder()
    for handle, minimum in told:
        if not state.frameworks.is_bound(handle):
            framework(session, handle, minimum)
        elif minimum:
            info = FrameworkInfo(f"f{handle}", minimum=minimum)
            session.allocator.step(UpdateFramework(handle, info, ROLES))
        else:
            session.allocator.step(RemoveFramework(handle))
        made = builder._minimum(state)
        assert shown(state, made) == slow_twin(state)
        assert (made[1][0] == [0, len(usual)]).all()
        assert not made[0].flags.writeable


def test_equal_minimums_are_one():
    session = session_of()
    for handle in range(1, 6):
        framework(session, handle, {role: tuple(map(dict, SMALL)) for role in ROLES})
    framework(session, 6, {1: (), 2: ()})
    minimum, rows = MinimumRows().gather(session.state)
    assert len(minimum) == 2 + len(SMALL)
    assert len(np.unique(rows, axis=0)) == 3


@pytest.fixture
def read(monkeypatch):
    """Records each minimum that is converted."""
    found: list[Minimum] = []
    real = minimums._rows

    def noting(state: State, minimum: Minimum) -> bytes:
        found.append(minimum)
        return real(state, minimum)

    monkeypatch.setattr(minimums, "_rows", noting)
    return found


def test_minimums_are_not_read_again_when_a_framework_revives_or_comes(read):
    session = session_of()
    framework(session, 1, dict.fromkeys(ROLES, SMALL))
    builder = SnapshotBuilder()
    first = builder.build(session.state, None)
    read.clear()
    session.allocator.step(Revive(1, (1,)))
    session.allocator.step(Define(roles={9: "later"}))
    session.allocator.step(AddFramework(2, FrameworkInfo("plain"), (9,)))
    second = builder.build(session.state, None)
    assert not read
    assert second.minimum is first.minimum
    # Only the changed one of several is converted, beside the global one; a new column
    # converts all.
    framework(session, 3, {1: ({"cpus": 7},)})
    third = builder.build(session.state, None)
    assert read == [session.state.options.minimum, ({"cpus": 7},)]
    assert len(third.minimum) == 5
    framework(session, 4, {1: ({"gpus": 7},)})
    read.clear()
    assert len(builder.build(session.state, None).minimum) == 6
    assert len(read) == 1 + len(ROLES) + 1 + 1


def test_a_new_session_starts_from_scratch_even_with_equal_counts():
    """Versions of a new table start from zero."""
    session = session_of()
    builder = SnapshotBuilder()
    framework(session, 1, {1: ({"cpus": 7},)})
    builder.build(session.state, None)
    other = session_of()
    framework(other, 1, {1: ({"cpus": 8},)})
    assert shown(other.state, builder._minimum(other.state)) == slow_twin(other.state)
    assert session.state.options == other.state.options


amounts = hnp.arrays(np.int64, st.tuples(st.integers(0, 5), st.just(2)), elements=st.integers(0, 3))


@given(amounts, amounts, st.data())
def test_each_amount_is_compared_with_its_own_rows(amount, minimum, data):
    first = [data.draw(st.integers(0, len(minimum))) for _ in amount]
    ends = [data.draw(st.integers(begin, len(minimum))) for begin in first]
    rows = np.array([first, ends], np.int64).T.reshape(-1, 2)
    found = reaches_own(amount, minimum, rows).tolist()
    assert found == [
        bool(reaches(each[None], minimum[begin:end])[0])
        for each, begin, end in zip(amount, first, ends, strict=True)
    ]
    assert reaches(amount, minimum).tolist() == [
        bool(each.any()) and (not len(minimum) or any((each >= row).all() for row in minimum))
        for each in amount
    ]


def test_offers_to_many_with_minimums_are_compared_in_one_go(monkeypatch):
    session = session_of()
    framework(session, 1, {role: ({"cpus": role},) for role in ROLES})
    snapshot = SnapshotBuilder().build(session.state, None)
    calls: list[Any] = []
    real = minimums._reached

    def noting(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(minimums, "_reached", noting)
    client = snapshot.tree.client
    amount = np.zeros((len(client), snapshot.free.shape[1]), np.int64)
    amount[:, 0] = 2
    zeros = np.zeros(len(client), np.int64)
    grants = Grants(client, snapshot.agents[zeros], zeros, amount)
    enough = cycles.offers_of(snapshot, grants)[2]
    assert enough.tolist() == [True, True, False, False]
    assert len(calls) == 1
