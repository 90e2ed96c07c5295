"""What frameworks and agents must be able to do before they meet."""

import pytest

from tests.conformance.mesos import mesos
from tests.world.amounts import reserved, resources, revocable, volume
from tests.world.world import World

SHARED = ("SHARED_RESOURCES",)


@mesos("SharedResourcesCapability")
def test_shared_volumes_are_for_those_who_can_share(world):
    world.agent("cpus:100;mem:100;disk(role1):100")
    one = world.framework("role1")
    (offer,) = world.cycle()
    shared = volume("5", role="role1", shared=True)
    offer = world.convert(offer, "disk(role1):5", shared)
    world.decline(offer)
    (next_offer,) = world.cycle()
    assert next_offer == one.gets(offer.agent, offer.resources - shared)
    world.decline(next_offer, refuse_s=60)
    two = world.framework("role1", capabilities=SHARED)
    assert world.cycle() == [two.gets(offer.agent, offer.resources)]


@mesos("OversubscribedNotAllocated")
def test_revocable_resources_are_for_those_who_ask_for_them(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.update_agent(agent, offer.resources + revocable("cpus:10"))
    assert world.cycle() == []


@mesos("OversubscriptionTest.RevocableOffer")
def test_who_asks_for_them_is_offered_revocable_resources(world):
    agent = world.agent(resources("cpus:2;mem:1024") + revocable("cpus:2"))
    framework = world.framework("*", capabilities=["REVOCABLE_RESOURCES"])
    assert world.cycle() == [framework.gets(agent)]


@mesos(
    "OversubscriptionTest.UpdateAllocatorOnSchedulerFailover",
    "OversubscriptionTest.RemoveCapabilitiesOnSchedulerFailover",
)
def test_a_framework_gains_and_loses_capabilities(world):
    has = resources("cpus:2;mem:1024")
    agent = world.agent(has + revocable("cpus:2"))
    framework = world.framework("role")
    for capabilities, what in (
        ((), has),
        (("REVOCABLE_RESOURCES",), agent.resources),
        ((), has),
    ):
        world.update_framework(framework, capabilities=capabilities)
        (offer,) = world.cycle()
        assert offer == framework.gets(agent, what)
        world.decline(offer)


@mesos("FrameworkLoopMESOS_9554", "MESOS-9554")
def test_a_framework_that_can_take_nothing_does_not_stop_the_others(world):
    one = world.framework("parent/child", capabilities=["RESERVATION_REFINEMENT"])
    agent = world.agent("cpus:1;mem:1;disk:1")
    assert world.cycle() == [one.gets(agent)]
    two = world.framework("parent/child")
    assert world.cycle() == []
    agent = world.agent(reserved("cpus:1;mem:1;disk:1", "parent", "parent/child"))
    assert world.cycle() == [one.gets(agent)]
    agent = world.agent("cpus:1;mem:1;disk:1")
    assert world.cycle() == [two.gets(agent)]


@mesos("DontOfferOldAgentToMultiRoleFramework")
@pytest.mark.parametrize("multi_role", [True, False])
def test_an_old_agent_is_for_frameworks_of_one_role(world, multi_role):
    framework = world.framework("foo", multi_role=multi_role)
    agent = world.agent("cpus:2;mem:1024", capabilities=())
    assert world.cycle() == ([] if multi_role else [framework.gets(agent)])


@pytest.mark.parametrize("capable", [True, False])
def test_a_nested_role_needs_an_agent_that_knows_of_them(world, capable):
    framework = world.framework("eng/ads")
    know = ["MULTI_ROLE", "HIERARCHICAL_ROLE"] if capable else ["MULTI_ROLE"]
    agent = world.agent("cpus:2;mem:1024", capabilities=know)
    assert world.cycle() == ([framework.gets(agent)] if capable else [])


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("capable", [True, False])
def test_agents_with_gpus_are_for_those_who_can_use_them(policy, filtered, capable):
    world = World(policy, filter_gpus=filtered)
    framework = world.framework("role", capabilities=["GPU_RESOURCES"] if capable else [])
    plain = world.agent("cpus:2;mem:1024")
    gpus = world.agent("cpus:2;mem:1024;gpus:1")
    both = capable or not filtered
    assert world.cycle() == [framework.gets(agent) for agent in (plain, gpus)[: 1 + both]]


@pytest.mark.parametrize("capable", [True, False])
def test_remote_agents_are_for_those_who_know_of_regions(policy, capable):
    world = World(policy, region="home")
    framework = world.framework("role", capabilities=["REGION_AWARE"] if capable else [])
    near = world.agent("cpus:2;mem:1024", region="home", zone="a")
    far = world.agent("cpus:2;mem:1024", region="away", zone="a")
    assert world.cycle() == [framework.gets(agent) for agent in (near, far)[: 1 + capable]]


@mesos("AllocateSharedResources")
@pytest.mark.parametrize("quota", [True, False])
def test_a_shared_volume_in_use_is_offered_to_one_framework_a_cycle(world, quota):
    one = world.framework("role1", capabilities=SHARED)
    two = world.framework("role1", capabilities=SHARED)
    if quota:
        world.quota("role1", "cpus:8;mem:2048;disk:4096")
    agent = world.agent("cpus:4;mem:1024;disk(role1):2048")
    (offer,) = world.cycle()
    assert offer == one.gets(agent)
    shared = volume("5", role="role1", shared=True)
    offer = world.convert(offer, "disk(role1):5", shared)
    task = resources("cpus:1;mem:5") + shared
    world.use(offer, task)
    world.decline(offer, part=offer.resources - task)
    assert world.cycle() == [two.gets(agent, offer.resources - resources("cpus:1;mem:5"))]


@mesos("PersistentVolumeTest.SharedPersistentVolumeMultipleFrameworks")
def test_a_shared_volume_serves_two_frameworks_until_both_gave_it_back(world):
    shared = volume("50", role="role1", shared=True)
    agent = world.agent(resources("cpus:2;mem:256") + shared)
    one = world.framework("role1", capabilities=SHARED)
    two = world.framework("role1", capabilities=SHARED)
    task = resources("cpus:1;mem:128") + shared
    (first,) = world.cycle()
    assert first.resources == agent.resources
    world.use(first, task)
    world.decline(first, part="cpus:1;mem:128", refuse_s=60)
    (second,) = world.cycle()
    assert {first.framework, second.framework} == {one, two}
    assert second.resources == task
    world.use(second)
    for offer in (first, second):
        world.finish(offer._replace(resources=task))
        world.allocator.check()
    assert not world.held(one)
    assert not world.held(two)
    assert [offer.resources for offer in world.cycle()] == [agent.resources]


@mesos("AllocateSharedResources")
def test_a_shared_volume_alone_is_offered_once_a_cycle_for_ever(world):
    """Both frameworks take anything, and what is shared never runs out."""
    shared = volume("50", role="role1", shared=True)
    agent = world.agent(shared)
    takers = {
        world.framework("role1", capabilities=SHARED, minimum={"role1": []}) for _ in range(2)
    }
    offers = []
    for _ in range(4):
        (offer,) = world.cycle()
        assert offer == offer.framework.gets(agent)
        offers.append(offer)
    assert {offer.framework for offer in offers} <= takers
    for offer in offers:
        world.decline(offer)
    assert not any(world.held(framework) for framework in takers)


@mesos("SharedResourcesCapability")
@pytest.mark.parametrize("refused", [True, False])
def test_a_shared_volume_that_was_refused_is_not_offered(world, refused):
    agent = world.agent(volume("50", role="role1", shared=True))
    framework = world.framework("role1", capabilities=SHARED, minimum={"role1": []})
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=60 if refused else -1)
    assert world.cycle() == ([] if refused else [framework.gets(agent)])
