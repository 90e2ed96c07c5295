"""Each scenario at scale can be played; `python -m tests.hostile.at_scale` measures its cost."""

import pytest

from tests.hostile.at_scale import SCENARIOS, play


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_plays_to_its_end(name):
    """`play` raises unless the honest framework is offered everything before the tenant comes."""
    cost = play(name, agents=100)
    assert cost.core_s > 0
    assert cost.wait_s > 0
