"""Hostile tenants at a real master: with our module, and with the built-in allocator.

Ours withstands what the built-in does: no framework waits longer, no session ends, and memory
stays bounded.
"""

import http.client

import pytest

from tests.cluster.tenants import TenantFigures, play
from tests.hostile.crew import CREW

pytestmark = pytest.mark.long

WAIT_MAX = 3
MEMORY_MIB_MAX = 100


@pytest.mark.parametrize("manner", CREW, ids=lambda each: each.name)
def test_hostile_tenants_do_no_harm(compiled_mesos, manner):
    ours = play(compiled_mesos, manner, built_in=False)
    theirs = with_built_in(compiled_mesos, manner)
    assert not ours.ends
    # A framework with ten thousand roles has ten thousand turns in Mesos, too.
    assert ours.wait <= max(WAIT_MAX, theirs.wait + 1 if theirs else 0)
    # If the built-in allocator does not survive, there is no memory to compare with.
    assert theirs is None or ours.master_mib <= theirs.master_mib + MEMORY_MIB_MAX
    assert ours.sidecar_mib <= MEMORY_MIB_MAX


def with_built_in(mesos, manner) -> TenantFigures | None:
    """The effects on the built-in allocator; none if it does not survive the manner."""
    try:
        return play(mesos, manner, built_in=True)
    except (AssertionError, OSError, http.client.HTTPException):
        return None
