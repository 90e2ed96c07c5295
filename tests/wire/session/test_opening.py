"""A snapshot is events in chunks: complete, in order, and each of bounded size."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddAgent,
    AddFilters,
    AgentInfo,
    Define,
    Exclude,
    Hold,
    Holdings,
    RemoveAgent,
    SetWeights,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire import WireError
from laboratory.module_protocol import pack_snapshot
from tests.wire import strategies
from tests.wire.opening import read_snapshot
from tests.wire.strategies import same


def unpack(chunks) -> list:
    """The events of all chunks, from bytes."""
    return [
        event
        for chunk in chunks
        for _, event in read_snapshot(pb.SnapshotChunk.FromString(chunk.SerializeToString()))
    ]


def flat(events) -> list:
    """Events split into their smallest parts, in order, so that cuts do not matter."""
    parts: list[object] = []
    for event in events:
        match event:
            case Define():
                parts += [(Define, "kind", *item) for item in event.kinds.items()]
                parts += [(Define, "role", *item) for item in event.roles.items()]
            case SetWeights():
                parts += [(SetWeights, *item) for item in event.weights.items()]
            case Hold():
                parts += rows(Hold, event.holdings)
            case AddFilters():
                parts += rows(AddFilters, event.refused, event.expires_ms)
            case Exclude():
                columns = (event.framework, event.role, event.agent, event.excluded)
                parts += [
                    (Exclude, *row) for row in zip(*(c.tolist() for c in columns), strict=True)
                ]
            case _:
                parts.append(event)
    return parts


def rows(name, table, *more) -> list:
    columns = [table.framework, table.role, table.agent, *more]
    return [
        (name, *cells, dict(zip(table.kind.tolist(), amounts, strict=True)))
        for *cells, amounts in zip(
            *(column.tolist() for column in columns), table.amount.tolist(), strict=True
        )
    ]


def distinct(events) -> list:
    """Events in which no weight is set twice: of two for one role in a chunk the last counts."""
    seen: set[str] = set()
    kept = []
    for event in events:
        if isinstance(event, SetWeights):
            fresh = {k: v for k, v in event.weights.items() if k not in seen}
            event = SetWeights(fresh)  # noqa: PLW2901
            seen |= set(event.weights)
        if isinstance(event, Define):
            names = {f"k{k}" for k in event.kinds} | {f"r{r}" for r in event.roles}
            if seen & names:
                continue
            seen |= names
        kept.append(event)
    return kept


@given(st.lists(strategies.snapshot_events, max_size=8).map(distinct), st.integers(200, 3000))
def test_a_snapshot_comes_back_whole_and_in_order(events, bytes_max):
    chunks = list(pack_snapshot(events, sequence=7, clock_ms=9, paused=True, bytes_max=bytes_max))
    assert same(flat(unpack(chunks)), flat(events))
    *others, last = chunks
    assert not any(chunk.last for chunk in others)
    assert (last.last, last.sequence, last.clock_ms, last.paused) == (True, 7, 9, True)


def large_state(agents: int, rows_count: int):
    """Many agents and holdings, with handles and amounts of maximum length."""
    high = np.arange(2**32 - rows_count, 2**32)
    amount = np.full((rows_count, 3), 2**53)
    holdings = Holdings(high, high, high, np.arange(3), amount)
    info = AgentInfo("0" * 40, hostname="h" * 60, attributes={"zone": "z" * 10})
    yield from (AddAgent(agent, info, {0: 2**53, 1: 2**53}) for agent in range(1, agents + 1))
    yield Hold(holdings)
    yield AddFilters(holdings, np.full(rows_count, 2**53))
    yield Exclude(high, high, high, np.ones(rows_count, np.bool_))


@pytest.mark.parametrize("bytes_max", [2**14, 2**20])
def test_no_chunk_is_larger_than_asked(bytes_max):
    state = list(large_state(5000, 20_000))
    chunks = list(pack_snapshot(state, sequence=1, clock_ms=1, bytes_max=bytes_max))
    overhead = 64  # the fields of the last chunk
    assert max(chunk.ByteSize() for chunk in chunks) <= bytes_max + overhead
    total = sum(chunk.ByteSize() for chunk in chunks)
    assert len(chunks) <= 2 * total / bytes_max + 4, "chunks are filled"
    assert same(flat(unpack(chunks)), flat(state))


def test_an_empty_state_is_one_chunk():
    (chunk,) = pack_snapshot([], sequence=3, clock_ms=4)
    assert chunk == pb.SnapshotChunk(last=True, sequence=3, clock_ms=4)


def test_events_that_are_no_state_are_refused():
    event = RemoveAgent(1)
    with pytest.raises(TypeError, match="a snapshot cannot hold"):
        list(pack_snapshot([event], sequence=1, clock_ms=1))


def test_an_error_names_its_place_in_the_chunk():
    info = AgentInfo("a")
    (chunk,) = pack_snapshot([AddAgent(1, info, {}), AddAgent(2, info, {})], sequence=1, clock_ms=1)
    chunk.agents[1].agent = 0
    with pytest.raises(WireError, match=r"agents\[1\].agent: is 0"):
        unpack([chunk])


def test_cutting_rows_keeps_them_whole():
    """A piece takes the same rows of every column."""
    number = np.arange(1, 1001)
    table = Holdings(number, number + 1, number + 2, np.array([4]), number[:, None] * 10)
    chunks = list(pack_snapshot([Hold(table)], sequence=1, clock_ms=1, bytes_max=1000))
    assert len(chunks) > 10
    parts = [event.holdings for event in unpack(chunks)]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("framework", "role", "agent", "amount")
    }
    assert same(replace(table, **joined), table)
