"""What is too little to be offered."""

from dataclasses import replace

import pytest

from tests.conformance.mesos import mesos
from tests.world.amounts import resources
from tests.world.world import World

TOO_LITTLE = "cpus:0.005;mem:16;disk:128"


@mesos("Allocatable")
@pytest.mark.parametrize(
    ("has", "enough"),
    [
        ("cpus:0.005;mem:16;disk:128", False),
        ("cpus:0.01;mem:16;disk:128", True),
        ("cpus:0.005;mem:32;disk:128", True),
        ("cpus:0.015;mem:16;cpus(role1):0.015;mem(role1):16;disk:128", True),
        # Neither part alone would do, and both together do.
        ("cpus:0.005;mem:16;cpus(role1):0.005;mem(role1):16;disk:128", True),
    ],
)
def test_cpus_or_memory_must_reach_the_minimum_reserved_or_not(world, has, enough):
    framework = world.framework("role1")
    agent = world.agent(has)
    assert world.cycle() == ([framework.gets(agent)] if enough else [])


@mesos("FrameworkMinAllocatable")
def test_a_framework_may_take_less_than_the_master_asks_for(world):
    framework = world.framework("role1")
    agent = world.agent(TOO_LITTLE)
    assert world.cycle() == []
    world.update_framework(framework, minimum={"role1": ["cpus:0.003"]})
    assert world.cycle() == [framework.gets(agent)]


@mesos("FrameworkMinAllocatable")
def test_a_framework_may_ask_for_more_than_the_master(world):
    framework = world.framework("role1", "role2", minimum={"role1": ["cpus:4", "disk:200"]})
    agent = world.agent("cpus:2;mem:1024;disk:100")
    assert world.cycle() == [framework.gets(agent, role="role2")]
    agent = world.agent("cpus:2;mem:1024;disk:200")
    world.suppress(framework, "role2")
    assert world.cycle() == [framework.gets(agent)]


@mesos("FrameworkEmptyMinAllocatable")
def test_a_framework_with_an_empty_minimum_takes_anything(world):
    framework = world.framework("role1", minimum={"role1": []})
    agent = world.agent(TOO_LITTLE)
    assert world.cycle() == [framework.gets(agent)]


@mesos("MESOS-8935")
def test_cpus_alone_are_not_offered_where_the_minimum_asks_for_memory(policy):
    """What a limit leaves of an agent must reach the minimum as a whole."""
    world = World(policy, minimum=({"cpus": 100, "mem": 32_000},))
    world.quota("role", "", "cpus:4;mem:1024")
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    assert world.cycle() == [framework.gets(agent)]
    world.agent("cpus:2;mem:1024")
    assert world.cycle() == []


@mesos("MESOS-9324", "MESOS-3765")
def test_nobody_is_left_without_ports_on_a_shared_agent(policy):
    """In whole tasks: oblivious, the first to come would take all the ports of the agent."""
    world = World(replace(policy, mode="characterised"))
    task = resources("cpus:1;mem:512;ports:10")
    takers = []
    for n in range(4):
        world.quota(f"role{n}", "cpus:1;mem:512")
        takers.append(world.framework(f"role{n}"))
        world.demand(takers[n], "cpus:1;mem:512;ports:10")
    agent = world.agent("cpus:4;mem:2048;ports:1001")
    assert world.cycle() == [taker.gets(agent, task) for taker in takers]
