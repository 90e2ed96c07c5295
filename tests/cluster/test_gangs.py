"""Gangs, caps and claims on a real master.

A framework with a gang is offered room for all its tasks in one callback, or nothing. The clusters
have room for one gang at a time. The tasks that hold their agents end at different times, so an
allocator without gangs offers the agents one by one.
"""

import contextlib
from collections.abc import Iterator

import pytest

from tests.cluster.amounts import scalar
from tests.cluster.framework import Framework, Manner, Offer
from tests.cluster.framework_behaviours import task_resources, work
from tests.cluster.mesos import Mesos
from tests.cluster.processes import until
from tests.cluster.scenario import INTERVAL_S, retire, run_on, settle
from tests.cluster.world import World

pytestmark = pytest.mark.long

ONE = (1.0, 64.0)
TWO = (2.0, 128.0)
DEMAND = {"allocator.demand": "cpus:1;mem:64"}
GANG = {**DEMAND, "allocator.gang": "tasks:3"}
LASTS_S = 3.0
WITHIN_S = 120.0
Sizes = tuple[tuple[float, float], ...]
"""CPUs and MiB of each task."""


@contextlib.contextmanager
def cluster(mesos: Mesos, mode: str, *resources: str) -> Iterator[World]:
    """A cluster with an agent for each of these resources, where only the sidecar decides."""
    with World(
        mesos,
        agents=0,
        interval=f"{INTERVAL_S * 1000:.0f}ms",
        parameters={"fallback": "false", "answer_deadline_ms": "30000"},
        configuration=f'[policy]\nmode = "{mode}"\n',
    ) as world:
        for number, each in enumerate(resources):
            world.add_agent(f"agent-{number}", resources=each)
        world.wait_for_agents(len(resources))
        yield world


def together(sizes: Sizes, seconds: tuple[float, ...]) -> Manner:
    """Launch all tasks if the offers of one callback have room for them, each on its own agent.

    Then offers are suppressed. Sizes are in descending order. If the room is not enough, nothing
    is launched.
    """

    def manner(framework: Framework, offer: Offer) -> None:
        offers = list(framework.callbacks[-1])
        if offer is not offers[0]:
            return
        placed = []
        for cpus, mem_mib in sizes:
            for each in offers:
                resources = task_resources(each, cpus, mem_mib)
                if resources is not None:
                    placed.append((each, resources))
                    offers.remove(each)
                    break
        if len(placed) == len(sizes):
            framework.call("SUPPRESS")
            for (each, resources), duration_s in zip(placed, seconds, strict=True):
                framework.launch(each, resources, duration_s)
        framework.decline_all()

    return manner


def finishes(framework: Framework, tasks: int) -> bool:
    return framework.states()["FINISHED"] == tasks


def running(*frameworks: Framework) -> list[int]:
    """Running tasks of each."""
    return [each.states()["RUNNING"] for each in frameworks]


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_two_gangs_start_one_after_the_other(mesos, mode):
    """Each is offered all three agents in one callback, and never fewer."""
    lasts_s = (LASTS_S, 2 * LASTS_S, 3 * LASTS_S)
    with cluster(mesos, mode, *["cpus:1;mem:512"] * 3) as world:
        gangs = [
            world.framework(name, name, labels=GANG, manner=together((ONE,) * 3, lasts_s))
            for name in ("red", "blue")
        ]
        until(lambda: all(finishes(each, 3) for each in gangs), WITHIN_S, "both gangs finish")
        for each in gangs:
            assert {len(offers) for offers in each.callbacks} == {3}
        world.wait_for_agreement()


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_unlike_tasks_of_one_request_are_offered_together(mesos, mode):
    """A server and two workers; the agents of the server and of one worker are in use first."""
    sizes = (TWO, ONE, ONE)
    requests = [
        {"resources": [scalar("cpus", cpus), scalar("mem", mem_mib)]} for cpus, mem_mib in sizes
    ]
    with cluster(mesos, mode, "cpus:2;mem:512", "cpus:1;mem:512", "cpus:1;mem:512") as world:
        before = world.framework("before", "ads", labels=DEMAND)
        run_on(before, world.agents[0].id(), *TWO, 3 * LASTS_S)
        run_on(before, world.agents[1].id(), *ONE, LASTS_S)
        retire(before)
        manner = together(sizes, (LASTS_S,) * 3)
        mixed = world.framework("mixed", "eng", suppressed=["eng"], manner=manner)
        mixed.call("REQUEST", requests=requests)
        mixed.call("REVIVE")
        until(lambda: finishes(mixed, 3), WITHIN_S, "the gang finishes")
        assert finishes(before, 2)
        assert {len(offers) for offers in mixed.callbacks} == {3}
        assert not mixed.errors


def test_a_cap_by_command_holds(mesos):
    """A framework runs what the cap permits until the cap is removed; its sibling has its own."""
    with cluster(mesos, "characterised", "cpus:8;mem:4096") as world:
        world.sidecar.command("cap", "set", "eng", "cpus:2", "--force")
        one, other = (
            world.framework(name, "eng", labels=DEMAND, manner=work(*ONE, 600, at_once=4))
            for name in ("one", "other")
        )
        until(lambda: running(one, other) == [2, 2], WITHIN_S, "both have reached their caps")
        settle(10)
        assert running(one, other) == [2, 2]
        world.sidecar.command("cap", "remove", "eng")
        until(lambda: running(one, other) == [4, 4], WITHIN_S, "both get more without")


def test_a_claim_by_command_holds(mesos):
    """A role with a claim gets more than its fair share of what others release."""
    with cluster(mesos, "characterised", "cpus:8;mem:4096") as world:
        ads = world.framework("ads", "ads", labels=DEMAND, manner=work(*ONE, LASTS_S, at_once=8))
        until(lambda: running(ads) > [4], WITHIN_S, "the other role has more than half")
        world.sidecar.command("claim", "set", "eng", "cpus:6", "--force")
        eng = world.framework("eng", "eng", labels=DEMAND, manner=work(*ONE, 600, at_once=8))
        until(lambda: running(eng) == [6], WITHIN_S, "it has its claim")
        settle(20)
        assert running(eng) == [6]
