"""No decision exceeds the module's gates, which judge decisions one after the other."""

import os

import pytest

from allocator.core.cycle import within_gates
from tests.core.random_gates import MODES, POLICIES, cycles

CLUSTERS = int(os.environ.get("GATE_CLUSTERS", "9"))
"""All policies in each mode, in the second tier."""


@pytest.mark.parametrize("clusters", [2, pytest.param(CLUSTERS, marks=pytest.mark.long)])
def test_gates_make_no_decision_smaller(clusters):
    seen = 0
    for seed in range(clusters * len(POLICIES) * len(MODES)):
        for lack, made, wrong in cycles(seed):
            seen += lack and len(made) > 0
            assert not wrong, seed
    assert seen


def test_decisions_that_gates_would_reduce_are_found(monkeypatch):
    """As if the core did not apply guarantees decision by decision."""
    monkeypatch.setattr(within_gates, "are_at_stake", lambda *_: False)
    assert any(wrong for seed in range(100, 110) for _, _, wrong in cycles(seed))
