"""Guarantees are met first and limits never exceeded, under every policy."""

import pytest

from allocator.core import AMOUNT_MAX, SetQuota, parse_quantities
from allocator.core.books.quota import bounds_of, quota_tree
from allocator.v1 import session_pb2 as pb
from tests.conformance.mesos import mesos
from tests.wire.dialogue import Module, new_sidecar
from tests.world.amounts import mount_disk, reserved, resources, revocable

HALF = "cpus:1;mem:512"
FULL = "cpus:2;mem:1024"


@mesos("RemoveQuota")
def test_without_the_quota_the_smallest_share_is_served_again(world):
    world.quota("quota-role", FULL)
    one = world.framework("quota-role")
    two = world.framework("no-quota-role")
    agents = [world.agent(HALF, used={(one, "quota-role"): HALF}) for _ in range(2)]
    assert world.cycle() == []
    world.quota("quota-role")
    world.decline(one.gets(agents[0]))
    assert world.cycle() == [two.gets(agents[0])]
    assert not world.allocator.state.quotas


@mesos("MESOS-9759")
def test_the_headroom_can_be_read(world):
    """Mesos logs it; here each cycle's snapshot has it, by resource."""
    world.quota("quota-role", FULL)
    framework = world.framework("no-quota-role")
    agent = world.agent("cpus:3;mem:1536")
    state = world.allocator.state
    bounds, _ = bounds_of(state, quota_tree(state))
    assert state.space.named(bounds.required) == parse_quantities(FULL)
    assert state.space.named(bounds.available) == parse_quantities("cpus:3;mem:1536")
    assert world.cycle() == [framework.gets(agent, HALF)]
    assert world.cycle() == []


@mesos("MESOS-10008")
def test_the_largest_quotas_are_held_like_any_other(world):
    for role in ("large", "larger"):
        world.quota_amounts(role, {"cpus": AMOUNT_MAX}, {"cpus": AMOUNT_MAX})
    taker = world.framework("large")
    other = world.framework("other")
    agent = world.agent(FULL)
    assert world.cycle() == [taker.gets(agent)]
    agent = world.agent(FULL)
    world.suppress(taker)
    assert world.cycle() == [other.gets(agent, "mem:1024")]


@mesos("MESOS-10008")
@pytest.mark.parametrize("amount", [AMOUNT_MAX + 1, 2**63 - 1, -1])
@pytest.mark.parametrize("part", ["guarantee", "limit"])
def test_larger_quotas_are_refused_and_change_nothing(amount, part):
    """A session rejects a quota that is out of range, and the quotas stay as they were."""
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    module.batch(SetQuota("eng", {}, {"cpus": 1000}))
    quotas = dict(sidecar.allocator.state.quotas)
    guarantee = {"cpus": amount} if part == "guarantee" else {}
    allocator = sidecar.allocator
    error = module.refused(SetQuota("eng", guarantee, {"cpus": amount}))
    assert error.code == pb.ERROR_CODE_VALUE
    assert f"is {amount}; it must be from 0" in error.message
    assert allocator.state.quotas == quotas


def test_revocable_resources_do_not_count_against_a_quota(world):
    world.quota("quota-role", "cpus:1;mem:512")
    framework = world.framework("quota-role", capabilities=["REVOCABLE_RESOURCES"])
    agent = world.agent(resources(FULL) + revocable("cpus:4"))
    expected = resources(HALF) + revocable("cpus:4")
    assert world.cycle() == [framework.gets(agent, expected)]
    assert world.cycle() == []


@pytest.mark.parametrize("whole", [True, False])
def test_a_mount_disk_is_laid_aside_whole_for_a_guarantee(world, whole):
    world.quota("quota-role", "disk:50")
    framework = world.framework("no-quota-role")
    disk = mount_disk("100") if whole else resources("disk:100")
    agent = world.agent(resources(HALF) + disk)
    rest = "" if whole else ";disk:50"
    assert world.cycle() == [framework.gets(agent, HALF + rest)]


def test_a_role_at_its_limit_gets_what_is_reserved_to_it(world):
    """The reservation fills the limit, and other free resources stay free."""
    world.quota("role", "", "cpus:1;mem:512")
    framework = world.framework("role")
    own = reserved(HALF, "role")
    agent = world.agent(resources(FULL) + own)
    assert world.cycle() == [framework.gets(agent, own)]


def test_reservations_beyond_a_limit_are_offered_all_the_same(world):
    world.quota("role", "", "cpus:0;mem:0")
    framework = world.framework("role")
    agent = world.agent(reserved(FULL, "role"))
    assert world.cycle() == [framework.gets(agent)]


def test_a_guarantee_is_met_below_the_role_by_share(world):
    """Two children of the role get three agents by share, before any other role gets one."""
    world.quota("eng", "cpus:3;mem:1536")
    children = {world.framework("eng/a"), world.framework("eng/b")}
    world.framework("ops")
    for _ in range(3):
        world.agent(HALF)
    offers = world.cycle()
    assert len(offers) == 3
    assert {offer.framework for offer in offers} == children
