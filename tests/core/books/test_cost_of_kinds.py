"""Kinds that only one agent has cost little memory for all other agents."""

import math
import mmap

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    RemoveAgent,
    Settings,
    UpdateAgent,
)
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.policies import build
from tests.counting import resident_bytes
from tests.world.rows import given_back, settled

AGENTS, KINDS = 1023, 512
"""Each table of them has 4 MiB; a page of it is one agent."""

PAGE = 4096


@pytest.fixture
def allocator() -> Allocator:
    """A cluster with CPUs alone, and an agent with 510 kinds that no other one has."""
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")))
    allocator.step(Options())
    kinds = {kind: Kind(f"made-up-{kind}") for kind in range(2, KINDS)}
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")} | kinds, {1: "a"}))
    for agent in range(1, AGENTS + 1):
        allocator.step(AddAgent(agent, AgentInfo(f"agent-{agent}"), {0: 1000}))
    allocator.step(UpdateAgent(1, capacity=dict.fromkeys(range(KINDS), 1000)))
    allocator.step(AddFramework(1, FrameworkInfo("alone"), (1,)))
    return allocator


def _apart(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Zeros in pages that the system does not join with others, so that they can be counted."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = mmap.mmap(-1, np.dtype(dtype).itemsize * math.prod(shape), flags=flags)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    pages.madvise(mmap.MADV_DONTDUMP)
    return np.frombuffer(pages, dtype).reshape(shape)


def _cycle(allocator: Allocator, refusing: int = 0) -> None:
    """All is offered and released; on `refusing` agents that have only CPUs it is refused."""
    made = allocator.allocate(allocator.state.now_ms + 1000)
    assert len(made) == AGENTS
    allocator.step(settled(made))
    for rows in made.groups:
        count = refusing if len(rows.kind) == 1 else 0
        allocator.step(given_back(rows.cut(slice(0, count)), 600_000))
        allocator.step(given_back(rows.cut(slice(count, len(rows.framework)))))


def test_filters_take_memory_on_their_agents_alone(allocator):
    filters = allocator.state.filters
    shape = filters.rows.largest.shape
    filters.rows = filters.rows._replace(largest=_apart(shape, np.int64))
    filters._seen = _apart(shape, np.int64)
    filters.rows.stale[:] = True
    for refusing, most in ((0, 0), (100, 2 * 100 * PAGE)):  # the two may lie side by side
        _cycle(allocator, refusing)
        assert allocator.preview() is not None
        for table in (filters.rows.largest, filters._seen):
            assert table.nbytes == 4 * 2**20
            assert resident_bytes(table) <= most
    assert np.count_nonzero(filters.rows.covered) == 100
    filters.check()


def test_a_snapshot_shows_the_books_capacity_and_keeps_it(allocator):
    """It is copied only where it changes while it is shown."""
    state = allocator.state
    shown = SnapshotBuilder().build(state, None).capacity
    assert np.shares_memory(shown, state.agents.capacity)
    before = shown.copy()
    allocator.step(UpdateAgent(2, capacity={0: 5}))
    changed = state.agents.capacity
    assert (shown == before).all()
    assert not np.shares_memory(shown, changed)
    allocator.step(RemoveAgent(3))
    assert state.agents.capacity is changed, "nothing shows it yet"
    shown, before = SnapshotBuilder().build(state, None).capacity, changed.copy()
    allocator.step(RemoveAgent(4))
    assert (shown == before).all()
    assert state.agents.capacity[[2, 3, 4], 0].tolist() == [5, 0, 0]


def test_what_is_free_takes_no_memory_behind_the_last_agent(allocator, monkeypatch):
    state = allocator.state
    monkeypatch.setattr("allocator.core.books.state.untouched", _apart)
    for agent in range(AGENTS // 2, AGENTS + 1):
        allocator.step(RemoveAgent(agent))
    free = state.free
    assert (free == np.maximum(state.agents.capacity - state.ledger.books.agent_held, 0)).all()
    assert resident_bytes(free) <= (AGENTS // 2) * PAGE
