"""Servable clients: many that no agent suits are rejected together."""

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import FrameworkInfo, PolicySpec
from allocator.core import needs as wanting
from allocator.core.cycle import servable as looking
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.events import AddFramework, Define
from allocator.core.needs import (
    Needs,
    ThresholdIndex,
    could_do,
    steps_reached,
    suffices,
    threshold_index,
)
from allocator.core.numba.compiled import interpreted_here
from allocator.core.snapshot import Snapshot
from allocator.core.warm import warm
from allocator.policies import build
from allocator.testing import shared
from tests.core.session import Session
from tests.counting import count_calls
from tests.tables import dense

AGENTS, ROLES = 200, 100
MIB = 1000


def snapshot_of(info: FrameworkInfo) -> Snapshot:
    """Many agents, a framework in many roles; agent 1 has many CPUs, the others much memory."""
    session = Session(PolicySpec("drf", "listed"))
    session.allocator.step(Define(roles={role: f"many-{role}" for role in range(10, 10 + ROLES)}))
    session.agent(1, 64, 1)
    for agent in range(2, AGENTS + 1):
        session.agent(agent, 4, 64)
    session.allocator.step(AddFramework(1, info, tuple(range(10, 10 + ROLES))))
    return SnapshotBuilder().build(session.state, None)


def minimums(step: int, alternatives: int = 1) -> dict[int, tuple[dict[str, int], ...]]:
    """Each minimum needs more CPUs than the other agents have, and more memory than agent 1 has."""
    return {
        10 + role: tuple(
            {"cpus": 60_000 - step * role - each, "mem": 60 * MIB + step * role + each}
            for each in range(alternatives)
        )
        for role in range(ROLES)
    }


@pytest.mark.parametrize(
    "info",
    [
        FrameworkInfo("nowhere", labels={"allocator.constraint": "nope"}),
        FrameworkInfo("too-much", minimum=minimums(0)),
        FrameworkInfo("each-too-much", minimum=minimums(7, alternatives=3)),
    ],
    ids=lambda info: info.name,
)
def test_roles_that_no_agent_suits_are_not_looked_for_one_by_one(info, monkeypatch):
    snapshot = snapshot_of(info)
    calls = count_calls(monkeypatch, looking, "_bit", "_gather")
    with interpreted_here():
        found = looking.servable(snapshot, snapshot.tree.client)
    assert len(found) == ROLES
    assert not found.any()
    assert calls.total() < AGENTS * ROLES / 2


def test_one_agent_among_many_that_suits_a_few_roles_is_found():
    """Only the last agent suits the roles with a smaller minimum."""
    few = minimums(0) | {10 + role: ({"cpus": 4000, "mem": 64 * MIB},) for role in (3, 70)}
    snapshot = snapshot_of(FrameworkInfo("few", minimum=few))
    only = np.flatnonzero(snapshot.free[:, 0] == 4000)[-1]
    excluded = np.full_like(dense(snapshot.excluded), 2**64 - 1)
    excluded[:, only] = 0
    there = replace(snapshot, excluded=shared(excluded))
    found = looking.servable(there, snapshot.tree.client)
    assert np.flatnonzero(found).tolist() == [3, 70]


amounts = st.integers(0, 6)


@st.composite
def wanted(draw: Any) -> tuple[Needs, np.ndarray]:
    """Needs of clients in several words, some with several rows, and the clients asked for."""
    columns, clients = draw(st.integers(1, 3)), draw(st.integers(1, 90))
    rows = draw(st.lists(st.lists(amounts, min_size=columns, max_size=columns), min_size=1))
    row = np.array(rows, np.int64)
    first = np.array(draw(st.lists(st.integers(0, len(row) - 1), min_size=clients)), np.int64)
    end = np.minimum(first + draw(st.integers(1, 3)), len(row))
    known = np.array(draw(st.lists(st.booleans(), min_size=len(first), max_size=len(first))))
    asked = sorted(draw(st.sets(st.integers(0, len(first) - 1), min_size=1)))
    several = np.zeros(len(first), np.bool_)
    nothing = np.zeros((len(first), columns), np.int64)
    return Needs(row, first, end, known, several, nothing), np.array(asked)


@given(wanted(), st.lists(st.lists(amounts, min_size=3, max_size=3), min_size=2, max_size=2))
@pytest.mark.parametrize("steps", [2, 128])
def test_the_index_leaves_out_no_client_and_adds_few(steps, made, have):
    needs, clients = made
    amount, words = np.array(have)[:, : needs.row.shape[1]], np.unique(clients >> 6)
    with mock.patch.object(wanting, "_STEPS_MAX", steps):
        thresholds = threshold_index(needs, clients, words)
    at = np.zeros((2, len(thresholds.column)), np.int64)
    some = steps_reached(thresholds, amount, at)
    for client in clients.tolist():
        found = stands(thresholds, at, int(np.searchsorted(words, client >> 6)), client & 63)
        enough = suffices(needs, client, amount)
        assert found or not enough
        assert some or not found
        # If steps are as many as amounts, the index is exact.
        if steps > len(clients) and amount[0 if needs.known[client] else 1].any():
            assert found == enough


def stands(thresholds: ThresholdIndex, at: np.ndarray, word: int, place: int) -> bool:
    bit = np.uint64(1) << np.uint64(place)
    return bool(could_do(thresholds, at, word, bit) == bit)


@given(st.lists(st.integers(0, 1000) | st.just(7), min_size=1, max_size=2000), st.integers(2, 64))
def test_few_stand_on_a_step_unless_they_want_the_same(wanted, count):
    steps = wanting._steps(np.array(wanted), count)
    assert steps[0] == min(wanted)
    assert len(steps) <= 2 * count
    on = np.searchsorted(steps, wanted, "right") - 1
    for step in np.unique(on):
        here = {amount for amount, its in zip(wanted, on, strict=True) if its == step}
        assert len(here) == 1 or (on == step).sum() <= 2 * -(-len(wanted) // count)


def test_every_caller_uses_one_compiled_type_of_the_loops():
    """`warm` must compile the type used in cycles; another one would be compiled within a cycle."""
    snapshot = snapshot_of(FrameworkInfo("each-too-much", minimum=minimums(7, alternatives=3)))
    looking.servable(snapshot, snapshot.tree.client)
    warm(build)
    for name in ("_look_nearby", "_look_everywhere"):
        loop: Any = getattr(looking, name)
        assert len(loop.dispatcher.signatures) == 1
