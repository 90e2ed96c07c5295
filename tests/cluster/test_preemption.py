"""Preemption on a real master: the requests to leave agents, and frameworks' answers.

The framework red runs sixteen tasks on four agents, so that no further task fits on any of them.
Then the framework blue arrives. Quincy's plan gives blue two agents, so red is asked to leave two,
and no third one, whatever it answers.
"""

import itertools
import time
from collections import defaultdict

import pytest

from allocator.core import PolicySpec
from laboratory.links.borrowed import set_policy
from tests.cluster.framework import Framework, Offer
from tests.cluster.framework_behaviours import task_resources, work
from tests.cluster.processes import rest, until
from tests.cluster.world import World

WEEK_MS = 7 * 86_400_000
YEAR_S = 365 * 86_400
CPUS, MEM_MIB = 0.9, 900.0
ALL, PART = 16, 8
LATE_S = 15
LASTS_S = 3_600.0
SILENT_S = 30
"""How long the test waits without an answer; no other framework may be asked meanwhile."""


class Red:
    """A framework that keeps sixteen tasks running, and knows their agents."""

    def __init__(self) -> None:
        self.there: defaultdict[str, list[str]] = defaultdict(list)
        self.killed: list[str] = []

    def __call__(self, framework: Framework, offer: Offer) -> None:
        resources = task_resources(offer, CPUS, MEM_MIB)
        if resources is None or len(framework.running()) >= ALL:
            framework.decline(offer, 1.0)
            return
        task = framework.launch(offer, resources, LASTS_S)
        if task:
            self.there[offer["agent_id"]["value"]].append(task)

    def leave(self, framework: Framework, agent: str) -> None:
        """Kill its tasks on an agent."""
        for task in self.there.pop(agent, []):
            framework.call("KILL", task_id={"value": task}, agent_id={"value": agent})
            self.killed.append(task)


def schedule(world: World) -> None:
    """Schedule maintenance of all agents, in a year: this permits the requests."""
    start = {"nanoseconds": int((time.time() + YEAR_S) * 1e9)}
    machines = [{"hostname": agent.name, "ip": "127.0.0.1"} for agent in world.agents]
    windows = [{"machine_ids": machines, "unavailability": {"start": start}}]
    answer = world.operator.try_call("UPDATE_MAINTENANCE_SCHEDULE", schedule={"windows": windows})
    assert answer == 200


def asked(framework: Framework) -> list[str]:
    """The agents that it was asked to leave, in order."""
    with framework.lock:
        return [each["agent_id"]["value"] for each in framework.inverse_offers]


@pytest.fixture
def crowded(compiled_mesos):
    """Start red on all four agents; returns the world, red, and its tasks by agent."""
    parameters = {"inverse_offers_within_ms": str(WEEK_MS)}
    with World(compiled_mesos, agents=4, parameters=parameters) as world:
        assert world.sidecar is not None
        world.sidecar.until_compiled()
        chosen = PolicySpec("quincy", parameters={"preempt": "on"})
        set_policy(world.sidecar.target, chosen)
        holdings = Red()
        red = world.framework("red", "red", manner=holdings)
        until(lambda: red.states()["RUNNING"] == ALL, 120, "red runs everywhere")
        schedule(world)
        yield world, red, holdings


def comes(world: World) -> Framework:
    """Let blue arrive, which wants half of the cluster; it refuses offers smaller than a task."""
    refuse_s = itertools.cycle((1.0, 2.5, 4.0))
    working = work(CPUS, MEM_MIB, LASTS_S, PART)

    def manner(framework: Framework, offer: Offer) -> None:
        if task_resources(offer, CPUS, MEM_MIB) is None:
            framework.decline(offer, next(refuse_s))
        else:
            working(framework, offer)

    return world.framework("blue", "blue", manner=manner)


def test_a_framework_that_gives_way_is_asked_for_two_agents(crowded) -> None:
    world, red, holdings = crowded
    blue = comes(world)
    left: set[str] = set()

    def gives_way() -> bool:
        for agent in set(asked(red)) - left:
            left.add(agent)
            holdings.leave(red, agent)
        return blue.states()["RUNNING"] >= PART

    until(gives_way, 120, "blue runs its part")
    rest(SILENT_S)
    assert len(set(asked(red))) == 2
    assert len(holdings.killed) == PART


def test_a_framework_that_does_not_answer_is_asked_for_no_others(crowded) -> None:
    world, red, holdings = crowded
    comes(world)
    until(lambda: len(set(asked(red))) == 2, 60, "red is asked")
    rest(SILENT_S)
    assert len(set(asked(red))) == 2
    assert not holdings.killed
    told = [each.text for each in world.sidecar.status().warnings if each.what == "asked to leave"]
    assert len(told) == 1
    assert "has not answered" in told[0]


def test_a_framework_that_leaves_late_is_asked_for_no_third(crowded) -> None:
    world, red, holdings = crowded
    blue = comes(world)
    until(lambda: len(set(asked(red))) == 2, 60, "red is asked")
    rest(LATE_S)
    for agent in set(asked(red)):
        holdings.leave(red, agent)
    until(lambda: blue.states()["RUNNING"] >= PART, 120, "blue runs its part")
    rest(SILENT_S)
    assert len(set(asked(red))) == 2
    assert len(holdings.killed) == PART
