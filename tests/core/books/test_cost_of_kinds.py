"""Kinds of resources on a single agent cost the other agents little memory."""

import math
import mmap
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Holdings,
    Kind,
    Options,
    PolicySpec,
    RemoveAgent,
    Settings,
    UpdateAgent,
)
from allocator.core.apply.learning import learn_from_ends
from allocator.core.checkpoint.detaching import Detached, nbytes_of
from allocator.core.cycle.cycle import BadGrantError, check_grants
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.numba.array_structures import grow
from allocator.core.numba.compiled import interpreted_here
from allocator.core.snapshot import Grants, Snapshot
from allocator.policies import build
from allocator.policies.drf import drf
from allocator.policies.filling.scene import scene_builder
from allocator.policies.filling.scene.loop_arrays import Log
from tests.counting import resident_bytes
from tests.world.rows import given_back, settled

AGENTS, KINDS = 1991, 512
"""Each table of agents and kinds has nearly 8 MiB; if it has a row per agent, a row is a page."""

PAGE = 4096


@pytest.fixture
def allocator() -> Allocator:
    return _cluster(AGENTS)


def _cluster(agents: int) -> Allocator:
    """Make a cluster whose agents have CPUs, one of which has 510 other kinds, too."""
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")))
    allocator.step(Options())
    kinds = {kind: Kind(f"made-up-{kind}") for kind in range(2, KINDS)}
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")} | kinds, {1: "a"}))
    for agent in range(1, agents + 1):
        allocator.step(AddAgent(agent, AgentInfo(f"agent-{agent}"), {0: 1000}))
    allocator.step(UpdateAgent(1, capacity=dict.fromkeys(range(KINDS), 1000)))
    allocator.step(AddFramework(1, FrameworkInfo("alone"), (1,)))
    return allocator


def _apart(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Zeroed memory without huge pages, so that resident pages can be counted."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if not size:
        return np.empty(shape, dtype)
    pages = mmap.mmap(-1, size, flags=flags)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    pages.madvise(mmap.MADV_DONTDUMP)
    return np.frombuffer(pages, dtype).reshape(shape)


def _cycle(allocator: Allocator, refusing: int = 0) -> None:
    """Offer and release everything; `refusing` agents with CPUs only are refused."""
    made = allocator.allocate(allocator.state.now_ms + 1000)
    assert len(made) == AGENTS
    allocator.step(settled(made))
    for rows in made.groups:
        count = refusing if len(rows.kind) == 1 else 0
        allocator.step(given_back(rows.cut(slice(0, count)), 600_000))
        allocator.step(given_back(rows.cut(slice(count, len(rows.framework)))))


def test_filters_take_memory_on_their_agents_alone(allocator):
    filters = allocator.state.filters
    kinds, agents = filters.rows.largest.shape
    filters.rows = filters.rows._replace(largest=_apart((kinds, agents), np.int64))
    filters._seen = _apart((agents, kinds), np.int64)
    filters.rows.stale[:] = True
    for refusing, most in ((0, 0), (100, 2 * 100 * PAGE)):  # the two may be adjacent
        _cycle(allocator, refusing)
        assert allocator.preview() is not None
        for table in (filters.rows.largest, filters._seen):
            assert table.nbytes >= 4 * 2**20
            assert resident_bytes(table) <= most
    assert np.count_nonzero(filters.rows.covered) == 100
    assert nbytes_of(filters._forms) < 2**19, "keeps no table of what was free"
    filters.check()


def test_the_capacity_in_a_snapshot_stays_as_it_was(allocator):
    state, builder = allocator.state, SnapshotBuilder()
    shown = builder.build(state, None).capacity
    before = shown.copy()
    assert builder.build(state, None).capacity is shown, "it is copied only after a change"
    allocator.step(UpdateAgent(2, capacity={0: 5}))
    allocator.step(RemoveAgent(3))
    assert (shown == before).all()
    assert builder.build(state, None).capacity[[2, 3, 4], 0].tolist() == [5, 0, 1000]


def test_kinds_of_one_agent_take_no_memory_for_the_others():
    """Each kind takes a page of each table, rather than a cell for each agent or holding."""
    agents, most = 4039, (KINDS + 10) * PAGE  # 10 pages of amounts of CPUs
    allocator = _cluster(agents)
    made = allocator.allocate(1000)
    assert len(made) == agents
    allocator.step(settled(made))
    state, books = allocator.state, allocator.state.ledger.books
    tables = [state.agents.capacity, books.held, books.offered, books.agent_held]
    for rows in made.groups:
        allocator.step(given_back(rows, 600_000))
    tables += [state.filters.rows.amount, state.filters.rows.largest]
    copied = Detached(state.ledger).value.books
    for table in (*tables, copied.held, copied.offered, copied.agent_held):
        assert table.nbytes > 7 * most
        # The tables may be adjacent, and then count together.
        assert resident_bytes(table) <= 9 * most


def test_a_table_of_zeros_that_grows_takes_no_memory(monkeypatch):
    """Nor where a hundred kinds make no wide rows."""
    monkeypatch.setattr("allocator.core.numba.array_structures.untouched", _apart)
    larger = grow(np.zeros((AGENTS, 100), np.int64), 8 * AGENTS)
    assert larger.nbytes >= 6 * 2**20
    assert resident_bytes(larger) <= PAGE
    larger[5, 7] = 3
    assert grow(larger, 2 * len(larger))[5, 7] == 3


def test_a_policys_copy_of_free_amounts_ends_with_the_last_agent(allocator, monkeypatch):
    state = allocator.state
    left = AGENTS // 2 + 10
    for agent in range(left, AGENTS + 1):
        allocator.step(RemoveAgent(agent))
    free = state.free
    unheld = state.agents.capacity - state.ledger.books.agent_held
    assert (free == np.maximum(unheld, 0).T).all()
    # A policy's copy takes no memory behind the last agent.
    monkeypatch.setattr(scene_builder, "untouched", _apart)
    snapshot = SnapshotBuilder().build(state, None)
    copy = scene_builder.scene_of(snapshot, [drf(snapshot)]).agents.free
    assert (copy == free[:, : copy.shape[1]]).all()
    assert resident_bytes(copy) <= left * PAGE


@contextmanager
def _at_most(nbytes: float) -> Iterator[None]:
    """Limit the peak of allocated memory; loops are interpreted so that their memory counts.

    An additional table of all agents and kinds would exceed the limit.
    """
    with interpreted_here():
        tracemalloc.start()
        try:
            yield
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < nbytes


def test_grants_are_checked_without_a_table_of_what_is_left(allocator):
    state, some = allocator.state, np.arange(1, 101)
    snapshot = SnapshotBuilder().build(state, some)
    granted, amount = snapshot.agents, snapshot.free[snapshot.agents]
    client, tasks = np.ones(len(granted), np.int64), np.zeros(len(granted), np.int64)
    table = snapshot.free.nbytes
    with _at_most(table / 4):
        check_grants(
            state.eligibility.excluded,
            snapshot.handle,
            snapshot,
            Grants(client, granted, tasks, amount),
        )
    # Either of two grants on one agent fits, but not both.
    twice, each = np.repeat(granted[-1:], 2), np.repeat(amount[-1:], 2, axis=0)
    for part, allowed in ((2, True), (1, False)):
        grants = Grants(client[:2], twice, tasks[:2], each // part)
        with nullcontext() if allowed else pytest.raises(BadGrantError, match="than is free"):
            check_grants(state.eligibility.excluded, snapshot.handle, snapshot, grants)


def test_grants_of_policies_are_not_copied(allocator, monkeypatch):
    logs, empty_log = list[Log](), scene_builder.empty_log
    snapshot = SnapshotBuilder().build(allocator.state, np.arange(1, 4))

    def noted(of: Snapshot) -> Log:
        logs.append(empty_log(of))
        return logs[0]

    monkeypatch.setattr(scene_builder, "empty_log", noted)
    with interpreted_here():
        grants = build(PolicySpec("drf")).allocate(snapshot, 1)
    assert len(grants) == 3
    assert np.shares_memory(grants.amount, logs[0].amount)


def test_offers_that_come_back_unused_teach_nothing_and_cost_no_table(allocator):
    one, kind = np.ones(AGENTS, np.int64), np.array([0])
    rows = Holdings(one, one, np.arange(1, AGENTS + 1), kind, one[:, None])
    allocator.state.clients.learned[1, 0] = 5
    with _at_most(AGENTS * KINDS):
        learn_from_ends(allocator.state, one, rows, np.zeros(AGENTS, np.bool_))
