"""Events that are read together have the effect of single ones."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddAgent,
    AddAgents,
    AgentInfo,
    Event,
    Exclude,
    Hold,
    Holdings,
    Moves,
    Release,
    SetPaused,
    Transition,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire import WireError
from allocator.wire.codec.decode import LIST_READERS, READERS
from allocator.wire.codec.runs import CELLS_MAX, ROWS_FEW, MoveRun, Run, runs
from laboratory.module_protocol import write_event
from tests.wire import strategies
from tests.wire.session.test_opening import flat


def one_row(number: int, kinds=(0, 1)) -> Holdings:
    column = np.array([number])
    return Holdings(column, column, column, np.array(kinds), np.full((1, len(kinds)), number))


def release(number: int, kinds=(0, 1)) -> Release:
    return Release(one_row(number, kinds), np.array([number]), np.array([number % 2 == 0]))


def read(run):
    if isinstance(run, MoveRun):
        return run.read()
    readers = LIST_READERS if isinstance(run.message, list) else READERS
    return readers[run.name](run.message)


def agent(number: int, kinds=(0, 1)) -> AddAgent:
    return AddAgent(number, AgentInfo(f"agent-{number}"), dict.fromkeys(kinds, number))


def length(run: Run | MoveRun) -> int:
    return len(run) if isinstance(run, MoveRun) else run.length


def vars_of(event) -> list:
    return [getattr(event, field.name) for field in fields(event)]


def some(table: Holdings) -> list:
    """The keys of one row, and its amounts other than zero."""
    amounts = zip(table.kind.tolist(), table.amount[0].tolist(), strict=True)
    who = table.framework[0], table.role[0], table.agent[0]
    return [*map(int, who), sorted(each for each in amounts if each[1])]


def parts(event) -> list:
    match event:
        case Moves():
            return [part for row in range(len(event)) for part in parts(event.row(row))]
        case Hold() | Transition() | Release():
            table = next(iter(vars_of(event)))
            each = [table.cut(slice(row, row + 1)) for row in range(len(table.agent))]
            more: list = [[] for _ in each]
            if isinstance(event, Release):
                refused = zip(event.refuse_ms.tolist(), event.allocated.tolist(), strict=True)
                more = [*map(list, refused)]
            return [
                [type(event), *some(one), *extra] for one, extra in zip(each, more, strict=True)
            ]
        case AddAgents():
            windows = zip(event.unavailable_from_ms, event.unavailable_for_ms, strict=True)
            columns = zip(
                event.agent, event.info, event.capacity, event.active, windows, strict=True
            )
            return [
                AddAgent(one, info, dict(zip(event.kind, amounts, strict=True)), active, *window)
                for one, info, amounts, active, window in columns
            ]
        case _:
            return flat([event])


mergeable = st.one_of(
    st.integers(1, 9).map(release),
    st.integers(1, 9).map(lambda number: release(number, (1, 0))),
    st.integers(1, 9).map(lambda number: Hold(one_row(number))),
    st.integers(1, 9).map(lambda number: Transition(one_row(number))),
    strategies.releases(),
    strategies.excludes(),
    strategies.add_agents(),
    st.integers(1, 9).map(agent),
    st.builds(SetPaused, st.booleans()),
)


@given(st.lists(mergeable, max_size=12))
def test_runs_say_what_their_events_say(events):
    batch = pb.EventBatch(events=map(write_event, events))
    batch = pb.EventBatch.FromString(batch.SerializeToString())
    found = list(runs(batch.events))
    said = [part for run in found for part in parts(read(run))]
    assert said == [part for event in events for part in parts(event)]
    lengths = [*map(length, found)]
    assert [run.start for run in found] == np.cumsum([0, *lengths])[: len(found)].tolist()
    assert sum(lengths) == len(events)


def test_neighbours_that_are_read_together_are_one_run():
    events: list[Event] = [
        release(1),
        release(2),
        release(3, (1, 0)),  # other columns
        Hold(one_row(4)),
        Hold(one_row(5)),
        Hold(one_row(6)),
        SetPaused(paused=True),
        SetPaused(paused=False),  # no columns
        Exclude(*(np.array([1]),) * 3, np.array([True])),
        Exclude(*(np.array([2]),) * 3, np.array([False])),
        *map(agent, range(1, 501)),
        agent(501, (1, 0)),
    ]
    found = list(runs(map(write_event, events)))
    names = [run.names if isinstance(run, MoveRun) else run.name for run in found]
    assert [*zip(names, map(length, found), strict=True)] == [
        (["release"] * 3 + ["hold"] * 3, 6),
        ("pause", 1),
        ("pause", 1),
        ("exclusions", 2),
        ("add_agent", 500),
        ("add_agent", 1),
    ]
    assert read(found[0]).holdings.kind.tolist() == [0, 1]


def test_an_event_of_many_rows_is_read_by_itself():
    column = np.full(ROWS_FEW + 1, 1)
    many = Hold(Holdings(column, column, column, np.array([0]), column[:, None]))
    events: list[Event] = [release(1), release(2), many, many, release(3)]
    found = list(runs(map(write_event, events)))
    assert [*map(length, found)] == [2, 1, 1, 1]


def test_moves_of_many_kinds_are_read_in_several_parts():
    """Otherwise a table of all rows and all kinds would need much memory."""
    events = [write_event(release(1, (kind,))) for kind in range(1, 1001)]
    found = list(runs(events))
    assert len(found) > 1
    tables = [run.read().holdings.amount for run in found if isinstance(run, MoveRun)]
    assert max(table.size for table in tables) <= CELLS_MAX
    assert sum(map(length, found)) == len(events)


def test_columns_of_the_wrong_length_are_not_corrected_by_their_neighbours():
    """Two frameworks and one agent, then one framework and two agents: each is invalid."""
    events = [write_event(Hold(one_row(number))) for number in (1, 2, 3)]
    events[0].hold.framework.append(9)
    events[1].hold.agent.append(9)
    (together,) = runs(events)
    for run in (together, *(MoveRun.of(0, event) for event in events[:2])):
        with pytest.raises(WireError):
            read(run)


def test_an_event_without_a_fact_is_a_run_without_a_name():
    (run,) = runs([pb.Event()])
    assert run == Run(0, 1, "", None)


def test_the_batch_itself_is_left_as_it_came():
    batch = pb.EventBatch(events=[write_event(release(number)) for number in (1, 2, 3)])
    before = batch.SerializeToString()
    list(runs(batch.events))
    assert batch.SerializeToString() == before
