"""Hostile tenants before a real master: with our module, and with the built-in allocator.

What the built-in bears, ours does: nobody waits longer, no session ends, and memory stays.
"""

import pytest

from allocator.sim.hostile import CREW
from tests.cluster.tenants import play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WAIT_MAX = 3
MEMORY_MIB_MAX = 100


@pytest.mark.parametrize("manner", CREW, ids=lambda each: each.name)
def test_tenants_harm_nobody(mesos, manner):
    ours = play(mesos, manner, built_in=False)
    theirs = play(mesos, manner, built_in=True)
    assert not ours.ends
    # Whoever has ten thousand roles has ten thousand turns in Mesos, too.
    assert ours.wait <= max(WAIT_MAX, theirs.wait + 1)
    assert ours.master_mib <= theirs.master_mib + MEMORY_MIB_MAX
    assert ours.sidecar_mib <= MEMORY_MIB_MAX
