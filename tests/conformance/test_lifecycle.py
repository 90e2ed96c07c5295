"""Frameworks from their subscription to their end, as the master tells of it."""

import pytest

from allocator.core import Define, EventError, Request
from tests.conformance.mesos import mesos
from tests.world.amounts import resources
from tests.world.world import DAY_S, World

HALF = "cpus:1;mem:512"


@mesos("MasterAllocatorTest.SingleFramework")
def test_all_of_one_agent_is_offered_to_one_framework(world):
    agent = world.agent("cpus:2;mem:1024;disk:4096;ports:1001")
    framework = world.framework("*")
    assert world.cycle() == [framework.gets(agent)]


@mesos(
    "MasterAllocatorTest.ResourcesUnused",
    "ResourceOffersTest.ResourcesGetReofferedWhenUnused",
    "ResourceOffersTest.ResourcesGetReofferedAfterTaskInfoError",
)
def test_what_an_accepted_offer_leaves_is_offered_to_another(world):
    agent = world.agent("cpus:2;mem:1024")
    world.framework("*")
    (offer,) = world.cycle()
    two = world.framework("*")
    world.use(offer, HALF)
    world.decline(offer, part=HALF)
    assert world.cycle() == [two.gets(agent, HALF)]


@mesos("MasterAllocatorTest.OutOfOrderDispatch")
def test_what_comes_back_from_a_framework_that_is_gone_is_passed_over(world):
    agent = world.agent("cpus:2;mem:1024")
    one = world.framework("*")
    (offer,) = world.cycle()
    world.remove_framework(one)
    two = world.framework("*")
    assert two.handle == one.handle
    world.remove_framework(two)
    world.decline(offer)
    world.allocator.check()
    two = world.framework("*")
    assert world.cycle() == [two.gets(agent)]


@mesos("MasterAllocatorTest.SchedulerFailover")
def test_tasks_outlive_a_disconnected_framework(world):
    agent = world.agent("cpus:3;mem:1024")
    framework = world.framework("*")
    (offer,) = world.cycle()
    world.use(offer, "cpus:1;mem:256")
    world.decline(offer, part="cpus:2;mem:768", refuse_s=DAY_S)
    world.deactivate(framework)
    assert world.cycle() == []
    world.update_framework(framework)
    world.activate(framework)
    assert world.cycle() == [framework.gets(agent, "cpus:2;mem:768")]


@mesos(
    "MasterAllocatorTest.FrameworkExited",
    "ResourceOffersTest.ResourcesGetReofferedAfterFrameworkStops",
)
def test_what_a_framework_used_is_free_when_it_is_gone(world):
    agent = world.agent("cpus:3;mem:1024")
    one = world.framework("*")
    (offer,) = world.cycle()
    world.use(offer, "cpus:1;mem:256")
    world.decline(offer, part="cpus:2;mem:768", refuse_s=DAY_S)
    two = world.framework("*")
    (offer,) = world.cycle()
    assert offer == two.gets(agent, "cpus:2;mem:768")
    world.remove_framework(one)
    assert world.cycle() == [two.gets(agent, "cpus:1;mem:256")]


@mesos("MasterAllocatorTest.AgentLost")
def test_a_lost_agent_is_offered_no_more(world):
    lost = world.agent("cpus:2;mem:1024")
    framework = world.framework("*")
    (offer,) = world.cycle()
    world.use(offer, HALF)
    world.remove_agent(lost)
    world.decline(offer, part=HALF)
    world.finish(offer, HALF)
    assert world.cycle() == []
    agent = world.agent("cpus:3;gpus:0;mem:256")
    assert world.cycle() == [framework.gets(agent)]


@mesos("MasterAllocatorTest.AgentAdded")
def test_a_late_agent_is_offered(world):
    early = world.agent("cpus:3;mem:1024")
    framework = world.framework("*")
    (offer,) = world.cycle()
    world.use(offer, "cpus:2;mem:512")
    world.decline(offer, part="cpus:1;mem:512", refuse_s=DAY_S)
    late = world.agent("cpus:4;mem:2048")
    offers = world.cycle()
    assert offers == [framework.gets(late)]
    assert early not in {offer.agent for offer in offers}


@mesos("MasterAllocatorTest.TaskFinished")
def test_what_a_finished_task_used_is_offered_again(world):
    agent = world.agent("cpus:3;mem:1024")
    framework = world.framework("*")
    (offer,) = world.cycle()
    world.use(offer)
    assert world.cycle() == []
    world.finish(offer, "cpus:1;mem:256")
    assert world.cycle() == [framework.gets(agent, "cpus:1;mem:256")]


@mesos(
    "MasterAllocatorTest.CpusOnlyOfferedAndTaskLaunched",
    "MasterAllocatorTest.MemoryOnlyOfferedAndTaskLaunched",
)
@pytest.mark.parametrize("has", ["cpus:2", "mem:200"])
def test_one_resource_alone_is_offered_used_and_offered_again(world, has):
    agent = world.agent(has)
    framework = world.framework("*")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.use(offer)
    assert world.cycle() == []
    world.finish(offer)
    assert world.cycle() == [framework.gets(agent)]


@mesos("MasterAllocatorTest.MinAllocatableResources")
def test_the_masters_minimum_is_any_of_several(policy):
    """Mesos's flag: cpus:1;mem:100|disk:100, and an agent for each way to reach it or not."""
    world = World(policy, minimum=({"cpus": 1000, "mem": 100_000}, {"disk": 100_000}))
    framework = world.framework("*")
    enough = [world.agent("cpus:1;mem:100"), world.agent("cpus:0.5;mem:50;disk:100")]
    world.agent("cpus:1;mem:99;disk:99")
    world.agent("cpus:0.9;mem:1000")
    assert world.cycle() == [framework.gets(agent) for agent in enough]


@mesos("MasterAllocatorTest.NestedRoles")
def test_the_subtree_below_its_share_is_served_first():
    world = World()
    agent = world.agent("cpus:2;mem:1024")
    one = world.framework("a/b")
    (offer,) = world.cycle()
    assert offer == one.gets(agent)
    world.use(offer)
    world.framework("a/c")
    three = world.framework("b/x")
    assert world.cycle() == []
    agent = world.agent("cpus:1;mem:512")
    assert world.cycle() == [three.gets(agent)]


@mesos("MasterAllocatorTest.RoleTest")
@pytest.mark.parametrize("path", ["/a", "a/", "a//b", ""])
def test_what_is_no_role_is_refused(world, path):
    with pytest.raises(EventError):
        world.roles("a", path)


@mesos("ResourceOffersTest.ResourceOfferWithMultipleAgents")
def test_many_agents_are_offered_at_once(world):
    framework = world.framework("*")
    agents = [world.agent("cpus:2;mem:1024") for _ in range(10)]
    assert world.cycle() == [framework.gets(agent) for agent in agents]


@mesos("ResourceOffersTest.Request")
def test_a_request_is_what_one_task_needs(policy):
    """The built-in does nothing with requests; nor does a policy that offers all that is free."""
    world = World(policy)
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("*")
    world.tell(Request(framework.handle, ({"cpus": 2000},)))
    expected = "cpus:2" if policy.mode == "characterised" else "cpus:2;mem:1024"
    assert world.cycle() == [framework.gets(agent, expected)]


@mesos("UpdateFrameworkTest.OffersOnAddingRole")
def test_a_new_role_brings_offers(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework()
    assert world.cycle() == []
    world.update_framework(framework, ["new"])
    assert world.cycle() == [framework.gets(agent, role="new")]


@mesos("UpdateFrameworkTest.RescindOnRemovingRoles")
def test_a_framework_without_roles_is_offered_nothing(world):
    """The update comes before the offers that it makes the master rescind."""
    world.agent("cpus:2;mem:1024")
    framework = world.framework("role")
    (offer,) = world.cycle()
    world.update_framework(framework, [])
    assert world.held(framework) == offer.resources
    world.decline(offer)
    assert not world.held(framework)
    assert world.cycle() == []


@mesos("UpdateFrameworkTest.AddSuppressedRole", "MESOS-7015")
def test_a_role_may_be_added_suppressed(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework()
    world.update_framework(framework, ["new"], suppressed=["new"])
    assert world.cycle() == []
    world.revive(framework)
    assert world.cycle() == [framework.gets(agent, role="new")]


@mesos("UpdateFrameworkTest.SuppressedRoles", "MESOS-7015")
def test_a_framework_may_subscribe_suppressed(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("role", suppressed=["role"])
    assert world.cycle() == []
    world.update_framework(framework, suppressed=["role"])
    assert world.cycle() == []
    world.update_framework(framework)
    assert world.cycle() == [framework.gets(agent)]


@mesos("UpdateFrameworkTest.RemoveAndUnsuppress", "MESOS-9870")
def test_roles_and_suppressed_roles_change_at_once(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("a", "b", suppressed=["a", "b"])
    world.update_framework(framework, ["c", "b"], suppressed=["c"])
    assert world.cycle() == [framework.gets(agent, role="b")]
    world.update_framework(framework, [])
    world.allocator.check()
    world.update_framework(framework, ["a", "c"], suppressed=["a"])
    world.agent("cpus:2;mem:1024")
    (offer,) = world.cycle()
    assert offer.role == "c"


@mesos("UpdateFrameworkTest.OfferConstraints")
def test_constraints_that_the_module_evaluated_keep_a_pair_apart(world):
    agents = [world.agent("cpus:2;mem:1024") for _ in range(2)]
    framework = world.framework("role")
    world.exclude(framework, "role", agents[0])
    assert world.cycle() == [framework.gets(agents[1])]
    world.exclude(framework, "role", agents[0], excluded=False)
    assert world.cycle() == [framework.gets(agents[0])]


@mesos("MESOS-7566", "MESOS-9542")
def test_whatever_still_comes_for_a_framework_that_is_gone_is_harmless(world):
    """Operations and executors end after a shutdown; the totals change within the same pause."""
    agent = world.agent("cpus:4;mem:1024;disk:100")
    framework = world.framework("role")
    (offer,) = world.cycle()
    world.use(offer, HALF)
    world.pause()
    world.remove_framework(framework)
    world.update_agent(agent, "cpus:4;mem:1024;disk:50")
    world.finish(offer, HALF)
    world.decline(offer, part="disk:50")
    assert world.cycle() == []
    world.pause(paused=False)
    two = world.framework("role")
    assert world.cycle() == [two.gets(agent)]


@mesos("MESOS-7566")
@pytest.mark.parametrize("order", ["agent first", "framework first"])
def test_agents_and_frameworks_go_in_any_order(world, order):
    agents = [world.agent("cpus:4;mem:1024;ports:10") for _ in range(2)]
    framework = world.framework("a/b", "a")
    for offer in world.cycle():
        world.use(offer, HALF)
    if order == "agent first":
        world.remove_agent(agents[0])
        world.remove_framework(framework)
    else:
        world.remove_framework(framework)
        world.remove_agent(agents[0])
    world.allocator.check()
    two = world.framework("a")
    assert world.cycle() == [two.gets(agents[1])]


@mesos("MESOS-7566")
def test_a_role_that_is_left_keeps_what_is_used_in_it(world):
    agent = world.agent("cpus:4;mem:1024")
    framework = world.framework("a", "b", suppressed=["b"])
    (offer,) = world.cycle()
    world.use(offer, HALF)
    world.decline(offer, part="cpus:3;mem:512")
    world.update_framework(framework, ["b"])
    assert world.held(framework) == resources(HALF)
    assert world.cycle() == [framework.gets(agent, "cpus:3;mem:512", role="b")]
    world.finish(offer, HALF)
    assert world.cycle() == [framework.gets(agent, HALF, role="b")]


@mesos("RoleTreeTest.RolesTracking")
def test_a_role_is_kept_while_something_names_it(world):
    world.weights(**{"a/b/c": 2.0})
    world.agent("cpus:4;mem:1024")
    framework = world.framework("a/b/c")
    roles, handles = world.allocator.state.roles, world.roles("a", "a/b", "a/b/c")
    assert [roles.weight[handle] for handle in handles] == [1.0, 1.0, 2.0]
    (offer,) = world.cycle()
    world.update_framework(framework, [])
    for handle in handles:
        with pytest.raises(EventError):
            world.tell(Define(forgotten_roles=(handle,)))
    world.decline(offer)
    for handle in reversed(handles):
        world.tell(Define(forgotten_roles=(handle,)))
        assert not roles.is_bound(handle)
    world.allocator.check()
