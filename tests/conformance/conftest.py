"""What the scenarios share: a world for every policy."""

import pytest

from allocator.policies import POLICIES
from tests.conformance.world import World


@pytest.fixture(params=list(POLICIES))
def policy(request) -> str:
    """Name a policy: what is tested with it holds whichever decides."""
    return str(request.param)


@pytest.fixture
def world(policy: str) -> World:
    """Make a world in which some policy decides."""
    return World(policy)
