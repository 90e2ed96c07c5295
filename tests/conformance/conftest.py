"""What the scenarios share: a world for every policy."""

import pytest

from allocator.core import PolicySpec
from allocator.policies import POLICIES
from tests.tiers import long
from tests.world.world import World

# Where no demand is known, a policy of whole tasks offers all that is free, too.
SPECS = {
    **{name: PolicySpec(name) for name in POLICIES if name != "ceei"},  # pf by another name
    "drf in tasks": PolicySpec("drf", mode="characterised"),
    "tsf in tasks": PolicySpec("tsf", mode="characterised"),
}

QUICK = ("drf", "ps-dsf", "cmmf", "tsf in tasks")
"""One of each sort: a global criterion, one of each agent, a plan, whole tasks."""


@pytest.fixture(params=[*QUICK, *long(*(name for name in SPECS if name not in QUICK))])
def policy(request) -> PolicySpec:
    """Choose a policy: what is tested with it holds whichever decides."""
    return SPECS[request.param]


@pytest.fixture
def world(policy: PolicySpec) -> World:
    """Make a world in which some policy decides."""
    return World(policy)
