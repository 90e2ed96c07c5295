"""Loops that run as plain Python, as in many tests, decide as compiled ones do."""

import os
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import PolicySpec
from allocator.core.numba.compiled import interpreted_here
from allocator.policies import POLICIES, SELECTIONS, build
from tests.core.test_determinism import play
from tests.strategies import snapshots


@pytest.mark.parametrize("selection", SELECTIONS)
@given(snapshot=snapshots(), name=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 2**64 - 1))
def test_the_same_grants(selection, snapshot, name, seed):
    policy = build(PolicySpec(name, selection))
    expected = policy.allocate(snapshot, seed)
    with interpreted_here():
        found = policy.allocate(snapshot, seed)
    for field in fields(expected):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_same_sessions(name):
    spec = PolicySpec(name, selection="random")
    expected = play(spec, 7)
    with interpreted_here():
        assert play(spec, 7) == expected


def test_interpreted_loops_need_no_numba():
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
