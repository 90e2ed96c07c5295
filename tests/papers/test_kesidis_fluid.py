"""Proportional fairness over agents (Kesidis et al., eq. 8): the distance of `pf` from it."""

import numpy as np
import pytest

from laboratory.papers.kesidis.fluid import SELECTIONS, shortfall


@pytest.mark.parametrize("selection", SELECTIONS)
def test_one_agent_is_the_pool_that_the_prices_are_made_for(selection: str) -> None:
    off = shortfall(np.array([[5, 1], [1, 5]]), np.array([[3000, 3000]]), selection, seed=0)
    assert abs(off) < 1


@pytest.mark.parametrize("selection", SELECTIONS)
def test_agents_that_suit_one_framework_each_are_shared_by_both(selection: str) -> None:
    """Table I's cluster: the optimum gives each framework the agent that suits it."""
    cluster = np.array([[5, 1], [1, 5]]), np.array([[10_000, 3000], [3000, 10_000]])
    assert shortfall(*cluster, selection, seed=0) > 20
