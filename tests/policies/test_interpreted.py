"""Interpreted loops decide as compiled ones do, and make way for them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import PolicySpec
from allocator.core.numba.compiled import _Mode, interpret, part, supersede
from allocator.policies import POLICIES, SELECTIONS, build
from allocator.policies.filling import by_agent
from allocator.testing import static_snapshot
from tests.core.test_determinism import play
from tests.strategies import snapshots


@contextmanager
def interpreted() -> Iterator[None]:
    interpret(True)
    try:
        yield
    finally:
        interpret(False)


@pytest.mark.parametrize("selection", SELECTIONS)
@given(snapshot=snapshots(), name=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 2**64 - 1))
def test_the_same_grants(selection, snapshot, name, seed):
    policy = build(PolicySpec(name, selection))
    expected = policy.allocate(snapshot, seed)
    with interpreted():
        found = policy.allocate(snapshot, seed)
    for field in fields(expected):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_same_sessions(name):
    spec = PolicySpec(name, selection="random")
    expected = play(spec, 7)
    with interpreted():
        assert play(spec, 7) == expected


def test_a_cycle_under_way_begins_anew_when_compiled_loops_are_there():
    policy = build(PolicySpec("drf", "listed"))
    cluster = static_snapshot([[9, 18]], [[1, 4], [3, 1]])
    expected = policy.allocate(cluster, 0)
    steps = []

    @part(restarts=True)
    def take_over_after_two_grants(*arguments):
        steps.append(arguments)
        if len(steps) == 3:
            supersede()
        return serve(*arguments)

    serve = by_agent._serve
    with interpreted():
        by_agent.__dict__["_serve"] = take_over_after_two_grants
        try:
            found = policy.allocate(cluster, 0)
            assert not _Mode.interpreted
        finally:
            by_agent.__dict__["_serve"] = serve
    assert len(steps) == 3
    np.testing.assert_array_equal(found.client, expected.client)


def test_whoever_interprets_needs_no_numba():
    program = """
import sys
from allocator.core import PolicySpec
from allocator.core.numba.compiled import interpret
from allocator.policies import build
from allocator.testing import static_snapshot
interpret(True)
for selection in "random", "joint":
    build(PolicySpec("drf", selection)).allocate(static_snapshot([[1, 1]], [[1, 1]]), 0)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)
