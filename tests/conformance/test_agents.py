"""Agents that come, go, change, and are known before or after those who use them."""

import pytest

from allocator.core import BeginRecovery, SetQuota
from tests.conformance.mesos import mesos
from tests.world.amounts import resources
from tests.world.nouns import total
from tests.world.world import World


@mesos("MasterQuotaTest.RecoverQuotaEmptyCluster")
@pytest.mark.parametrize("expected_agents", [0, 1])
def test_a_new_master_that_expects_no_agents_holds_nothing_back(world, expected_agents):
    """Four fifths of one agent are none."""
    world.tell(BeginRecovery(expected_agents, (SetQuota("role", {"cpus": 1000}, {}),)))
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    assert world.cycle() == [framework.gets(agent)]


@pytest.mark.parametrize("quotas", [True, False])
def test_a_new_master_with_quotas_waits_for_most_of_its_agents(world, quotas):
    known = (SetQuota("other", {"cpus": 1000}, {}),) if quotas else ()
    world.tell(BeginRecovery(5, known))
    world.framework("role")
    agents = []
    for count in range(1, 5):
        agents.append(world.agent("cpus:2;mem:1024"))
        offers = world.cycle()
        assert bool(offers) == (not quotas or count == 4)
    # Of eight cpus one is laid aside.
    assert quotas is False or total(offers) == resources("cpus:7;mem:4096")


def test_a_new_master_waits_no_longer_than_it_was_told(policy):
    world = World(policy, recovery_timeout_ms=10_000)
    world.tell(BeginRecovery(100, (SetQuota("other", {"cpus": 1000}, {}),)))
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    assert world.cycle(after_ms=9_999) == []
    assert world.cycle(after_ms=1) == [framework.gets(agent, "cpus:1;mem:1024")]
