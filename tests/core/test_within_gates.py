"""No decision exceeds the module's gates, which judge decisions one after the other."""

import os

import pytest

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
