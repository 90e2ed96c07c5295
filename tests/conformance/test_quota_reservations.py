"""What is reserved counts against a quota, used or not, and is never laid aside for another."""

import pytest

from allocator.core import EventError
from tests.conformance.mesos import mesos
from tests.world.amounts import reserved, resources
from tests.world.nouns import total
from tests.world.world import DAY_S, World

ONE = "cpus:1;mem:1024"


@mesos("ReservationUnallocated")
def test_a_reservation_that_nobody_uses_counts(world):
    own = reserved(ONE, "quota-role")
    agent = world.agent(own)
    world.quota("quota-role", ONE)
    framework = world.framework("quota-role")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.decline(offer, refuse_s=DAY_S)
    world.agent(ONE)
    assert world.cycle() == []


@mesos("ReservationAllocated")
def test_a_reservation_in_use_counts_once(world):
    agent = world.agent(reserved(ONE, "quota-role"))
    world.quota("quota-role", "cpus:2;mem:2048")
    framework = world.framework("quota-role")
    assert world.cycle() == [framework.gets(agent)]
    agent = world.agent(ONE)
    assert world.cycle() == [framework.gets(agent)]
    world.agent(ONE)
    assert world.cycle() == []


@mesos("NonQuotaRoleReservationWithQuotaRole", "MESOS-8293")
def test_a_role_gets_its_reservation_though_a_guarantee_is_not_met(world):
    plain = resources("cpus:2;mem:2048")
    theirs = reserved(plain, "non-quota-role")
    agent = world.agent(plain + theirs)
    world.quota("quota-role", "cpus:2;mem:2048")
    one = world.framework("quota-role")
    (offer,) = world.cycle()
    assert offer == one.gets(agent, plain)
    world.decline(offer, refuse_s=DAY_S)
    two = world.framework("non-quota-role")
    assert world.cycle() == [two.gets(agent, theirs)]


@mesos("QuotaAccountingReserveAllocatedResources")
def test_reserving_what_is_held_changes_nothing(world):
    world.quota("quota-role", "cpus:10;mem:1024")
    framework = world.framework("quota-role")
    agent = world.agent("cpus:5;mem:512")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.convert(offer, "cpus:5;mem:512", reserved("cpus:5;mem:512", "quota-role"))
    agent = world.agent("cpus:10;mem:1024")
    assert world.cycle() == [framework.gets(agent, "cpus:5;mem:512")]


@mesos("QuotaAccountingUnreserveAllocatedResources")
def test_unreserving_what_is_held_changes_nothing(world):
    world.quota("quota-role", ONE)
    framework = world.framework("quota-role")
    agent = world.agent(reserved(ONE, "quota-role"))
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.agent(ONE)
    assert world.cycle() == []
    world.convert(offer, offer.resources, ONE)
    assert world.cycle() == []


@mesos("QuotaHeadroomWhenReservationsExceedQuota")
def test_reservations_beyond_a_guarantee_are_no_headroom_for_another(world):
    world.quota("quota-role-1", ONE)
    world.quota("quota-role-2", ONE)
    world.agent(reserved("cpus:2;mem:2048", "quota-role-1"))
    world.agent(ONE)
    framework = world.framework("non-quota-role")
    assert world.cycle() == []
    agent = world.agent(ONE)
    assert world.cycle(agent) == [framework.gets(agent)]
    assert world.cycle() == []


@mesos("ReservationWithinQuota")
def test_a_reservation_is_part_of_the_quota(world):
    world.quota("quota-role", "cpus:2;mem:256")
    one = world.framework("quota-role")
    two = world.framework("non-quota-role")
    used = "cpus:2;mem(quota-role):256"
    agent = world.agent("cpus:8;mem(quota-role):256", used={(one, "quota-role"): used})
    assert world.cycle() == [two.gets(agent, "cpus:6")]
    agent = world.agent("cpus:4")
    assert world.cycle() == [two.gets(agent)]


@mesos("QuotaSetAsideReservedResources")
def test_what_is_reserved_for_others_is_no_headroom(world):
    agents = [world.agent("cpus:4;mem:512") for _ in range(2)]
    theirs = reserved("cpus:4;mem:512", "no-quota-role")
    world.operate(agents[1], "cpus:4;mem:512", theirs)
    one = world.framework("quota-role")
    world.quota("quota-role", "cpus:4;mem:512")
    (offer,) = world.cycle()
    assert offer == one.gets(agents[0])
    world.decline(offer, refuse_s=10)
    assert world.cycle() == []
    two = world.framework("no-quota-role")
    (offer,) = world.cycle()
    assert offer == two.gets(agents[1], theirs)
    world.decline(offer, refuse_s=10)
    assert world.cycle() == []


@mesos("QuotaWithAncestorReservations", "MESOS-8604")
def test_a_reservation_of_a_parent_that_its_child_uses_is_no_headroom(world):
    world.quota("quota-role", ONE)
    agent = world.agent("cpus(a):1;mem(a):1024")
    one = world.framework("a/b")
    assert world.cycle() == [one.gets(agent)]
    two = world.framework("no-quota-role")
    assert world.cycle() == []
    agents = {world.agent(ONE), world.agent(ONE)}
    world.suppress(one)
    offers = world.cycle()
    assert {offer.framework for offer in offers} == {two}
    assert {offer.agent for offer in offers} <= agents
    assert total(offers) == resources(ONE)


@mesos("QuotaWithNestedRoleReservation", "MESOS-9688")
def test_a_reservation_of_a_child_counts_for_its_parent(world):
    world.quota("a", "cpus:2;mem:200")
    world.agent("cpus(a/b):1;mem(a/b):100")
    agent = world.agent("cpus:10;mem:1000")
    framework = world.framework("a")
    assert world.cycle() == [framework.gets(agent, "cpus:1;mem:100")]


@mesos("QuotaWithNestedRoleAllocation")
def test_what_a_child_holds_counts_for_its_parent_and_binds_it(world):
    child = world.framework("a/b")
    agent = world.agent(ONE)
    assert world.cycle() == [child.gets(agent)]
    world.quota("a", ONE)
    world.framework("a")
    world.agent(ONE)
    assert world.cycle() == []


@mesos("QuotaHeadroomWithNestedRoleAllocation", "MESOS-9691")
def test_what_parent_and_child_hold_is_counted_once_in_the_headroom(world):
    child = world.framework("a/b")
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [child.gets(agent)]
    parent = world.framework("a")
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [parent.gets(agent)]
    world.quota("quota-role", "cpus:1;mem:100")
    world.agent("cpus:1;mem:100")
    assert world.cycle() == []
    world.agent("cpus:1;mem:100")
    offers = world.cycle()
    assert total(offers) == resources("cpus:1;mem:100")
    assert world.cycle() == []


@mesos("DISABLED_NestedRoleQuotaAllocateToParent")
def test_a_parent_gets_of_its_guarantee_what_its_child_may_not_have():
    world = World()
    world.quota("b", "cpus:4;mem:2048")
    parent = world.framework("b")
    agent = world.agent("cpus:2;mem:1024")
    assert world.cycle() == [parent.gets(agent)]
    child = world.framework("b/c")
    world.quota("b/c", "", "cpus:1;mem:512")
    agent = world.agent("cpus:1;mem:512")
    assert world.cycle() == [child.gets(agent)]
    agent = world.agent("cpus:1;mem:512")
    assert world.cycle() == [parent.gets(agent)]


@mesos("DISABLED_NestedQuotaAccounting")
def test_what_a_child_gets_within_its_limit_counts_for_its_parent():
    world = World()
    other = world.framework("aaa")
    world.quota("x", "cpus:3;mem:300")
    parent = world.framework("x")
    agent = world.agent("cpus:2;mem:200")
    assert world.cycle() == [parent.gets(agent)]
    world.quota("x/c", "", "cpus:1;mem:100")
    child = world.framework("x/c")
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [child.gets(agent)]
    agent = world.agent("cpus:1;mem:100")
    assert world.cycle() == [other.gets(agent)]


@mesos("DISABLED_NestedRoleQuota", "MESOS-7150")
def test_a_child_without_a_quota_is_served_from_its_parents_guarantee(world):
    parent = world.framework("b")
    world.framework("other")
    world.quota("b", "cpus:2;mem:1024")
    agent = world.agent("cpus:1;mem:512")
    (offer,) = world.cycle()
    assert offer == parent.gets(agent)
    world.decline(offer, refuse_s=10)
    child = world.framework("b/c")
    assert world.cycle() == [child.gets(agent)]


def test_guarantees_are_of_roles_at_the_top():
    """So it is in Mesos, whose master refuses others."""
    world = World()
    with pytest.raises(EventError):
        world.quota("a/b", ONE)
