"""Agents that come, go, change, and are known before or after those who use them."""

import pytest

from allocator.core import BeginRecovery, SetQuota
from tests.conformance.mesos import mesos
from tests.world.amounts import resources, revocable
from tests.world.nouns import total
from tests.world.world import DAY_S, World


@mesos("AddAgentWithUnknownFrameworkAndMaintenance", "MESOS-10109")
def test_an_agent_under_maintenance_may_be_used_by_somebody_unknown(world):
    unknown = world.unknown_framework("role")
    used = {(unknown, "role"): "cpus:2;mem:1024"}
    world.agent("cpus:2;mem:1024", used=used, unavailable_from_ms=365 * DAY_S * 1000)
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    assert world.cycle() == [framework.gets(agent)]


@mesos("UpdateAgentTotalResources")
def test_an_agent_grows_shrinks_and_may_be_used_beyond_what_it_has(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1")
    (first,) = world.cycle()
    assert first == framework.gets(agent)
    world.update_agent(agent, "cpus:112;mem:100;disk:100")
    (second,) = world.cycle()
    assert second == framework.gets(agent, "cpus:12")
    world.update_agent(agent, "cpus:50;mem:50;disk:50")
    assert world.cycle() == []
    world.decline(first)
    world.decline(second)
    assert world.cycle() == [framework.gets(agent)]
    world.update_agent(agent, "cpus:100;mem:100;disk:100")
    assert world.cycle() == [framework.gets(agent, "cpus:50;mem:50;disk:50")]


@mesos("UpdateAgentCapabilities")
def test_an_agent_learns_of_several_roles(world):
    agent = world.agent("cpus:1;mem:1;disk:1", capabilities=())
    framework = world.framework("role1")
    assert world.cycle() == []
    world.update_agent(agent, capabilities=["MULTI_ROLE"])
    assert world.cycle() == [framework.gets(agent)]


@mesos("RemoveAgentRecoverResources", "MESOS-621")
def test_what_was_held_on_a_lost_agent_counts_no_more(world):
    large = world.agent("cpus:2;mem:200")
    one = world.framework("role")
    assert world.cycle() == [one.gets(large)]
    two = world.framework("role")
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [two.gets(agent)]
    world.remove_agent(large)
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [one.gets(agent)]


@mesos("NonScalarReservationTrackingMESOS_9555", "MESOS-9555")
def test_agents_with_reserved_ports_alone_come_and_go(world):
    world.framework("role")
    agents = [world.agent("cpus:1;mem:1;disk:1;ports(role):2") for _ in range(2)]
    assert len(world.cycle()) == 2
    for agent in agents:
        world.remove_agent(agent)
        world.allocator.check()
    assert world.cycle() == []


@mesos("Whitelist", "MasterAllocatorTest.Whitelist")
def test_only_hosts_on_the_whitelist_are_offered(world):
    world.whitelist("dummy-agent")
    agent = world.agent("cpus:2;mem:1024", hostname="host")
    framework = world.framework("*")
    assert world.cycle() == []
    world.whitelist("dummy-agent", "host")
    assert world.cycle() == [framework.gets(agent)]


@mesos(
    "NoDoubleAccounting",
    "MasterAllocatorTest.FrameworkReregistersFirst",
    "MasterAllocatorTest.AgentReregistersFirst",
)
@pytest.mark.parametrize("first", ["framework", "agent"])
def test_whoever_comes_back_first_after_a_failover(world, first):
    """Both frameworks use half of an agent; nothing is counted twice, and the rest is offered."""
    frameworks = [world.unknown_framework("role1"), world.unknown_framework("role2")]
    if first == "framework":
        for framework in frameworks:
            world.subscribe(framework)
    agents = [
        world.agent("cpus:2;mem:1024", used={(framework, framework.roles[0]): "cpus:1;mem:512"})
        for framework in frameworks
    ]
    if first == "agent":
        assert world.cycle() == []
        for framework in frameworks:
            world.subscribe(framework)
    for framework in frameworks:
        assert world.held(framework) == resources("cpus:1;mem:512")
    offers = world.cycle()
    assert {offer.agent for offer in offers} == set(agents)
    assert all(offer.resources == resources("cpus:1;mem:512") for offer in offers)


@mesos("AddResourceProvider")
def test_what_a_resource_provider_brings_is_offered_and_counts():
    world = World()
    one = world.framework("role1", active=False)
    two = world.framework("role2", active=False)
    has = resources("cpus:1;mem:100;disk:10")
    brought = has + has
    agent = world.agent(has)
    world.update_agent(agent, has + brought)
    world.hold(one, "role1", agent, brought)
    world.activate(two)
    assert world.cycle() == [two.gets(agent, has)]
    world.activate(one)
    agent = world.agent(has)
    # Two of four against one of four.
    assert world.cycle() == [two.gets(agent)]


@mesos("AddResourceProviderOverallocated")
def test_only_what_is_not_used_is_offered_however_it_was_learned(world):
    agent = world.agent("cpus:2;mem:200;disk:20")
    framework = world.framework("role", active=False)
    world.hold(framework, "role", agent, "cpus:1;mem:100;disk:10")
    world.activate(framework)
    assert world.cycle() == [framework.gets(agent, "cpus:1;mem:100;disk:10")]


@mesos("MESOS-7639", "OversubscriptionTest.RescindRevocableOfferWithDecreasedRevocable")
def test_revocable_resources_may_shrink_below_what_is_held(world):
    """First the total, then what was rescinded: in between more is held than there is."""
    agent = world.agent("cpus:4;mem:1024")
    framework = world.framework("role", capabilities=["REVOCABLE_RESOURCES"])
    (plain,) = world.cycle()
    world.update_agent(agent, plain.resources + revocable("cpus:8"))
    (spare,) = world.cycle()
    assert spare == framework.gets(agent, revocable("cpus:8"))
    world.use(spare, revocable("cpus:2"))
    world.update_agent(agent, plain.resources + revocable("cpus:1"))
    assert world.cycle() == []
    world.decline(spare, part=revocable("cpus:6"))
    assert world.cycle() == []
    world.finish(spare, revocable("cpus:2"))
    assert world.cycle() == [framework.gets(agent, revocable("cpus:1"))]
    world.update_agent(agent, plain.resources)
    world.allocator.check()


@mesos("OversubscriptionTest.RescindRevocableOfferWithIncreasedRevocable")
def test_revocable_resources_that_were_rescinded_are_offered_as_they_are_now(world):
    agent = world.agent("cpus:4;mem:1024")
    framework = world.framework("role", capabilities=["REVOCABLE_RESOURCES"])
    (plain,) = world.cycle()
    for amount in ("1", "3"):
        world.update_agent(agent, plain.resources + revocable(f"cpus:{amount}"))
        (spare,) = world.cycle()
        assert spare == framework.gets(agent, revocable(f"cpus:{amount}"))
        world.decline(spare)


@mesos("MESOS-9124")
def test_news_of_an_agent_do_not_revive_a_framework(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("role", suppressed=["role"])
    world.update_agent(agent, "cpus:4;mem:1024", attributes={"rack": "b"})
    assert world.cycle() == []
    world.revive(framework)
    assert world.cycle() == [framework.gets(agent)]


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
