"""Capabilities that frameworks and agents need for certain offers."""

import pytest

from tests.world.world import World

SHARED = ("SHARED_RESOURCES",)


@pytest.mark.parametrize("capable", [True, False])
def test_a_nested_role_needs_an_agent_that_knows_of_them(world, capable):
    framework = world.framework("eng/ads")
    know = ["MULTI_ROLE", "HIERARCHICAL_ROLE"] if capable else ["MULTI_ROLE"]
    agent = world.agent("cpus:2;mem:1024", capabilities=know)
    assert world.cycle() == ([framework.gets(agent)] if capable else [])


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("capable", [True, False])
def test_agents_with_gpus_are_for_frameworks_with_the_capability(policy, filtered, capable):
    world = World(policy, filter_gpus=filtered)
    framework = world.framework("role", capabilities=["GPU_RESOURCES"] if capable else [])
    plain = world.agent("cpus:2;mem:1024")
    gpus = world.agent("cpus:2;mem:1024;gpus:1")
    both = capable or not filtered
    assert world.cycle() == [framework.gets(agent) for agent in (plain, gpus)[: 1 + both]]


@pytest.mark.parametrize("capable", [True, False])
def test_remote_agents_are_for_frameworks_with_the_capability(policy, capable):
    world = World(policy, region="home")
    framework = world.framework("role", capabilities=["REGION_AWARE"] if capable else [])
    near = world.agent("cpus:2;mem:1024", region="home", zone="a")
    far = world.agent("cpus:2;mem:1024", region="away", zone="a")
    assert world.cycle() == [framework.gets(agent) for agent in (near, far)[: 1 + capable]]
