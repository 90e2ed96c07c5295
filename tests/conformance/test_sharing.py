"""Hierarchical dominant resource fairness, with whole agents, as the built-in does it."""

from collections import Counter

import pytest

from tests.conformance.mesos import mesos
from tests.world.nouns import total
from tests.world.world import World

FULL = "cpus:2;mem:1024"


@pytest.mark.parametrize("gpus", [False, True], ids=["plain", "gpus are not counted"])
@mesos("UnreservedDRF", "DRFWithFairnessExclusion", "MESOS-5758")
def test_each_new_agent_goes_to_the_role_with_the_smallest_share(gpus):
    world = World(fairness_excluded=frozenset({"gpus"}))
    agents = [world.agent(FULL + ";gpus:1" if gpus else FULL)]
    one = world.framework("role1", capabilities=["GPU_RESOURCES"])
    assert world.cycle() == [one.gets(agents[0])]
    two = world.framework("role2")
    for has in ("cpus:1;mem:512", "cpus:3;mem:2048"):  # 2/3 against 0, then 2/6 against 512/3584
        agent = world.agent(has)
        assert world.cycle() == [two.gets(agent)]
    three = world.framework("role1")
    agent = world.agent("cpus:4;mem:4096")  # 2/10 against 4/10
    assert world.cycle() == [three.gets(agent)]
    world.framework("role1")
    agent = world.agent("cpus:1;mem:512")  # 6/11 against 4/11
    assert world.cycle() == [two.gets(agent)]


@mesos("MESOS-5377")
def test_scarce_gpus_make_no_dominant_share_unless_they_count():
    """The first framework holds the only GPU; counted, that is all of it, and it is served last."""
    taken = {}
    for excluded in (frozenset({"gpus"}), frozenset()):
        world = World(fairness_excluded=excluded)
        one = world.framework("a", capabilities=["GPU_RESOURCES"])
        two = world.framework("b")
        world.agent("cpus:1;mem:512;gpus:1", used={(one, "a"): "cpus:1;mem:512;gpus:1"})
        world.agent("cpus:2;mem:1024", used={(two, "b"): "cpus:2;mem:1024"})
        world.agent("cpus:1;mem:512")
        (offer,) = world.cycle()
        taken[bool(excluded)] = offer.framework is one
    assert taken == {True: True, False: False}


@mesos("ReservedDRF")
def test_reservations_that_are_held_count_in_shares():
    world = World()
    agent = world.agent("cpus:1;mem:512;cpus(role1):100;mem(role1):1024")
    one = world.framework("role1")
    assert world.cycle() == [one.gets(agent)]
    two = world.framework("role2")
    for _ in range(2):
        agent = world.agent("cpus:2;mem:512")
        assert world.cycle() == [two.gets(agent)]
    three = world.framework("role1")
    agent = world.agent("cpus(role1):2;mem(role1):1024")
    assert world.cycle() == [three.gets(agent)]


@mesos("NestedRoleDRF")
def test_roles_compete_level_by_level():
    world = World()
    agent = world.agent(FULL)
    one = world.framework("a/b")
    assert world.cycle() == [one.gets(agent)]
    world.framework("a/c")
    three = world.framework("d/e")
    agent = world.agent("cpus:1;mem:512")
    assert world.cycle() == [three.gets(agent)]
    four = world.framework("d/f")
    agent = world.agent(FULL)
    assert world.cycle() == [four.gets(agent)]


@mesos("CoarseGrained")
def test_an_agent_goes_to_one_framework_as_a_whole(policy):
    world = World(policy)
    agents = [world.agent(FULL), world.agent(FULL)]
    one = world.framework("role1")
    offers = world.cycle()
    assert offers == [one.gets(agent) for agent in agents]
    for offer in offers:
        world.decline(offer)
    two = world.framework("role2")
    offers = world.cycle()
    assert [offer.framework for offer in offers] == [one, two]
    assert all(offer.resources == offer.agent.resources for offer in offers)


@mesos("SameShareFairness", "MESOS-1086")
def test_frameworks_with_equal_shares_take_turns(world):
    takers = [world.framework("*"), world.framework("*")]
    agent = world.agent(FULL)
    counts: Counter = Counter()
    for _ in range(10):
        (offer,) = world.cycle()
        assert offer == offer.framework.gets(agent)
        counts[offer.framework] += 1
        world.decline(offer)
    assert counts == {takers[0]: 5, takers[1]: 5}


def agents_by_role(world: World) -> list[int]:
    """Count who gets how many agents, and take them all back."""
    offers = world.cycle()
    assert len(offers) == 6
    for offer in offers:
        assert offer.resources == offer.agent.resources
        world.decline(offer)
    counts = Counter(offer.role for offer in offers)
    return [counts[role] for role in sorted(counts)]


@mesos("UpdateWeight")
def test_agents_are_split_by_weight():
    world = World()
    for _ in range(6):
        world.agent(FULL)
    world.framework("role1")
    world.framework("role2")
    assert agents_by_role(world) == [3, 3]
    world.weights(role2=2.0)
    assert agents_by_role(world) == [2, 4]
    world.weights(role3=3.0)
    world.framework("role3")
    assert agents_by_role(world) == [1, 2, 3]


@mesos("MasterAllocatorTest.RebalancedForUpdatedWeights")
def test_what_is_rescinded_after_new_weights_is_split_by_them():
    world = World()
    agents = [world.agent("cpus:2;mem:1024;disk:4096;ports:1001") for _ in range(3)]
    one = world.framework("role1")
    offers = world.cycle()
    assert offers == [one.gets(agent) for agent in agents]
    two = world.framework("role2")
    assert world.cycle() == []
    world.weights(role2=2.0)
    for offer in offers:
        world.decline(offer)
    offers = world.cycle()
    assert Counter(offer.framework for offer in offers) == {one: 1, two: 2}
    assert total(offers) == total(one.gets(agent) for agent in agents)


@mesos("MESOS-3202")
def test_a_framework_with_a_large_share_waits_only_while_others_have_not_refused(policy):
    """Those who decline step aside until their filters run out: it is served within the cycles
    that they need to decline, one each."""
    world = World(policy)
    large = world.framework("large")
    world.agent("cpus:8;mem:4096", used={(large, "large"): "cpus:8;mem:4096"})
    small = [world.framework(f"small{n}") for n in range(4)]
    agent = world.agent(FULL)
    for _ in small:
        (offer,) = world.cycle()
        assert offer.framework in small
        world.decline(offer, refuse_s=60)
    assert world.cycle() == [large.gets(agent)]
