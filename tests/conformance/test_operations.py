"""Operations on what is offered, or free: reservations, volumes, conversions."""

from collections import Counter

from tests.conformance.mesos import mesos
from tests.world.amounts import (
    mount_disk,
    reserved,
    reserved_to,
    resources,
    revocable,
    unreserved,
    volume,
)
from tests.world.world import World

SHARED = ("SHARED_RESOURCES",)


@mesos("UpdateAllocation", "PersistentVolumeTest.CreateAndDestroyPersistentVolumes")
def test_a_volume_that_was_made_of_an_offer_is_in_the_next(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    offer = world.convert(offer, "disk:5", volume("5"))
    world.decline(offer)
    assert world.cycle() == [
        framework.gets(agent, resources("cpus:100;mem:100;disk:95") + volume("5"))
    ]


@mesos("UpdateAllocationRemoveResources")
def test_a_conversion_to_nothing_shrinks_the_agent(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    offer = world.convert(offer, "disk:100", "")
    world.decline(offer)
    assert world.cycle() == [framework.gets(agent, "cpus:100;mem:100")]


@mesos("UpdateAllocationSharedPersistentVolume")
def test_a_shared_volume_is_made_and_destroyed(world):
    agent = world.agent("cpus:100;mem:100;disk(role1):100")
    framework = world.framework("role1", capabilities=SHARED)
    (offer,) = world.cycle()
    before = offer.resources
    shared = volume("5", role="role1", shared=True)
    offer = world.convert(offer, "disk(role1):5", shared)
    world.decline(offer)
    (offer,) = world.cycle()
    assert offer.resources == resources("cpus:100;mem:100;disk(role1):95") + shared
    offer = world.convert(offer, shared, "disk(role1):5")
    world.decline(offer)
    assert world.cycle() == [framework.gets(agent, before)]


@mesos("UpdateAvailableSuccess", "ReservationEndpointsTest.AvailableResources")
def test_what_an_operator_reserved_is_offered_as_such(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    own = reserved("cpus:25;mem:50", "role1")
    world.operate(agent, "cpus:25;mem:50", own)
    framework = world.framework("role1")
    expected = resources("cpus:75;mem:50;disk:100") + own
    assert world.cycle() == [framework.gets(agent, expected)]


@mesos("PersistentVolumeTest.GrowVolume", "PersistentVolumeTest.ShrinkVolume")
def test_a_volume_grows_and_shrinks(world):
    """It keeps its name, and is whole at any size."""
    agent = world.agent("cpus:2;mem:64;disk(role):100")
    framework = world.framework("role")
    (offer,) = world.cycle()
    offer = world.convert(offer, "disk(role):40", volume("40", role="role"))
    for size, rest in ((60, 40), (20, 80)):
        before = Counter({kind: n for kind, n in offer.resources.items() if kind.name == "disk"})
        after = volume(str(size), role="role") + resources(f"disk(role):{rest}")
        offer = world.convert(offer, before, after)
        world.decline(offer)
        (offer,) = world.cycle()
        assert offer == framework.gets(agent, resources("cpus:2;mem:64") + after)


@mesos("ReservationEndpointsTest.LabeledResources")
def test_reservations_that_differ_in_a_label_are_offered_together(world):
    """For decisions they are alike; which of them is unreserved the master knows."""
    agent = world.agent("cpus:4;mem:1024")
    one = reserved("cpus:1;mem:256", "role")
    for _ in range(2):
        world.operate(agent, "cpus:1;mem:256", one)
    framework = world.framework("role")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent, resources("cpus:2;mem:512") + one + one)
    offer = world.convert(offer, one, "cpus:1;mem:256")
    world.decline(offer)
    assert world.cycle() == [framework.gets(agent, resources("cpus:3;mem:768") + one)]


@mesos("PersistentVolumeEndpointsTest.DynamicReservation")
def test_a_volume_of_another_role_is_out_of_reach(world):
    agent = world.agent("cpus:1;mem:512;disk:100")
    world.operate(agent, "disk:60", reserved("disk:60", "role1"))
    theirs = reserved(volume("50"), "role1")
    world.operate(agent, reserved("disk:50", "role1"), theirs)
    two = world.framework("role2")
    (offer,) = world.cycle()
    assert offer == two.gets(agent, "cpus:1;mem:512;disk:40")
    one = world.framework("role1", minimum={"role1": []})
    assert world.cycle() == [one.gets(agent, theirs + reserved("disk:10", "role1"))]


@mesos("RecoverResources")
def test_reserved_and_unreserved_parts_come_back_one_by_one(world):
    agent = world.agent("cpus(role1):1;mem(role1):200;cpus:1;mem:200")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    for part in (reserved_to(offer.resources, "role1"), unreserved(offer.resources)):
        world.decline(offer, part=part)
        assert world.cycle() == [framework.gets(agent, part)]


@mesos("UpdateAgentOversubscribedResources")
def test_more_revocable_resources_are_offered_and_fewer_are_not(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1", capabilities=["REVOCABLE_RESOURCES"])
    (offer,) = world.cycle()
    plain = offer.resources
    for amount, more in (("10", "10"), ("12", "2")):
        world.update_agent(agent, plain + revocable(f"cpus:{amount}"))
        assert world.cycle() == [framework.gets(agent, revocable(f"cpus:{more}"))]
    world.update_agent(agent, plain + revocable("cpus:5"))
    assert world.cycle() == []


@mesos("RecoverOversubscribedResources")
def test_parts_of_revocable_resources_come_back(world):
    agent = world.agent("cpus:100;mem:100;disk:100")
    framework = world.framework("role1", capabilities=["REVOCABLE_RESOURCES"])
    (plain,) = world.cycle()
    world.update_agent(agent, plain.resources + revocable("cpus:10"))
    (spare,) = world.cycle()
    world.decline(spare, part=revocable("cpus:6"))
    world.decline(plain, part="cpus:2")
    assert world.cycle() == [framework.gets(agent, revocable("cpus:6") + resources("cpus:2"))]


@mesos("MESOS-10015")
def test_many_reservations_of_one_agent_are_offered_together(world):
    """However many labels there are, they are of one kind."""
    labels = 100
    agent = world.agent(f"cpus:{labels};mem:{labels}")
    for _ in range(labels):
        world.operate(agent, "cpus:1;mem:1", reserved("cpus:1;mem:1", "role"))
    framework = world.framework("role")
    assert world.cycle() == [framework.gets(agent)]
    world.allocator.check()


def test_a_persistent_volume_is_offered_whole_or_not_at_all():
    """A limit of 8 leaves room for a part of the second disk, which cannot be parted."""
    world = World()
    world.quota("role", "", "disk:8")
    agent = world.agent(resources("cpus:2;mem:64") + volume("5") + mount_disk("5"))
    world.framework("role")
    (offer,) = world.cycle()
    rest = agent.resources - offer.resources
    assert list(rest.values()) == [5000]
    assert offer.resources - resources("cpus:2;mem:64") in (volume("5"), mount_disk("5"))
