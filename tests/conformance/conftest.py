"""Shared fixtures: a world for every policy."""

import pytest

from allocator.core import PolicySpec
from allocator.policies import POLICIES
from tests.tiers import long
from tests.world.world import World

# Without known demands, a policy of whole tasks offers all that is free, too.
SPECS = {
    **{name: PolicySpec(name) for name in POLICIES if name != "ceei"},  # pf by another name
    "drf in tasks": PolicySpec("drf", mode="characterised"),
    "tsf in tasks": PolicySpec("tsf", mode="characterised"),
}

QUICK = ("drf", "ps-dsf", "cmmf", "tsf in tasks")
"""One of each type: a global criterion, one per agent, a plan, whole tasks."""


@pytest.fixture(params=[*QUICK, *long(*(name for name in SPECS if name not in QUICK))])
def policy(request) -> PolicySpec:
    """Parametrize a test with policies: it holds for each of them."""
    return SPECS[request.param]


@pytest.fixture
def world(policy: PolicySpec) -> World:
    """Make a world with one of the policies."""
    return World(policy)
