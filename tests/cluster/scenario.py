"""Scenarios: actions of operators and frameworks on a cluster, and observations.

A scenario is a function of a running cluster that returns observations. It runs with Mesos's own
allocator and with ours, and both must give the same.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.cluster import books
from tests.cluster.amounts import Amounts, amounts_of
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import refuse, role_of, task_resources
from tests.cluster.mesos import Mesos
from tests.cluster.processes import Patience, rest, until
from tests.cluster.world import World

Outcome = dict[str, object]
"""Observations by name."""

INTERVAL_S = 0.5
RESCINDED_S = 5.0
"""How long resources that an operator rescinded are withheld from the same frameworks."""

ALLOCATORS = ("built-in", "sidecar", "fallback", "shadow")
"""Mesos's own; ours with a sidecar; ours without one; Mesos's own with ours in its shadow."""


@dataclass(frozen=True)
class Scenario:
    """A function, and the additional options of its cluster."""

    function: Callable[[World], Outcome]
    needs: dict[str, Any] = field(default_factory=dict)


SCENARIOS: dict[str, Scenario] = {}


def scenario(**needs: Any) -> Callable[[Callable[[World], Outcome]], Callable[[World], Outcome]]:
    """Register a scenario under the name of its function; `needs` are options of `World`."""

    def register(function: Callable[[World], Outcome]) -> Callable[[World], Outcome]:
        SCENARIOS[function.__name__] = Scenario(function, needs)
        return function

    return register


def observe(mesos: Mesos, name: str, allocator: str) -> Outcome:
    """Run a scenario in its own cluster; the master must survive, without double allocation."""
    scenario = SCENARIOS[name]
    options: dict[str, Any] = {
        "interval": f"{INTERVAL_S * 1000:.0f}ms",
        "built_in": allocator == "built-in",
        "sidecar": allocator in {"sidecar", "shadow"},
        "parameters": {"shadow": "true"} if allocator == "shadow" else {},
        **scenario.needs,
    }
    with World(mesos, **options) as world:
        outcome = scenario.function(world)
        world.check_master()
        assert not books.over_committed(world.operator.state())
    return outcome


# Steps of scenarios.


def settle(intervals: float = 4.0) -> None:
    """Let some allocation cycles pass."""
    rest(intervals * INTERVAL_S)


def forget(*frameworks: Framework) -> None:
    """Forget offers so far, and decline the outstanding ones."""
    for framework in frameworks:
        framework.decline_all()
        framework.seen.clear()


def retire(framework: Framework) -> None:
    """Make a framework suppress offers, and wait for those still in transit."""
    framework.manner = refuse()
    framework.call("SUPPRESS")
    framework.decline_all()


def seen(framework: Framework, agent_id: str | None = None, role: str | None = None) -> int:
    """Number of later offers, of an agent or to a role."""
    return sum(
        (agent_id is None or offer["agent_id"]["value"] == agent_id)
        and (role is None or role_of(offer) == role)
        for offer in list(framework.seen)
    )


def comes(framework: Framework, agent_id: str | None = None, role: str | None = None) -> bool:
    """Whether such an offer comes within ten seconds."""
    try:
        until(lambda: seen(framework, agent_id, role), 10, "an offer", 0.05)
    except AssertionError:
        return False
    return True


def reaches(framework: Framework, task_id: str, state: str, within_s: float = 40.0) -> bool:
    """Whether a task's latest state becomes this one."""
    try:
        until(lambda: framework.tasks[task_id][-1:] == [state], within_s, state, 0.05)
    except AssertionError:
        return False
    return True


def out(frameworks: Iterable[Framework], agent_id: str | None = None) -> Amounts:
    """The contents of the outstanding offers to these frameworks."""
    sums: Amounts = Amounts()
    for framework in frameworks:
        with framework.lock:
            for offer in framework.offers.values():
                if agent_id in (None, offer["agent_id"]["value"]):
                    sums.update(amounts_of(offer["resources"]))
    return sums


def all_out(
    frameworks: Iterable[Framework], agent_id: str | None = None, steady_s: float = 2.0
) -> Amounts:
    """Offers to frameworks that keep them, once no more have come for a while."""
    settle(2)
    last, steady, enough = out(frameworks, agent_id), Patience(steady_s), Patience(40)
    while not (steady.over or enough.over):
        time.sleep(INTERVAL_S / 5)
        now = out(frameworks, agent_id)
        if now != last:
            last, steady = now, Patience(steady_s)
    return last


def run_on(
    framework: Framework,
    agent_id: str,
    cpus: float = 0.5,
    mem_mib: float = 64,
    seconds: float = 600,
) -> str:
    """Launch one task on this agent, and wait until it runs; returns its id."""
    launched: list[str] = []
    manner = framework.manner

    def once(each: Framework, offer: Any) -> None:
        resources = task_resources(offer, cpus, mem_mib)
        wanted = offer["agent_id"]["value"] == agent_id and not launched
        if wanted and resources is not None:
            launched.extend(filter(None, [each.launch(offer, resources, seconds)]))
        else:
            each.decline(offer)

    framework.manner = once
    framework.decline_all()
    until(lambda: launched, 20, f"{framework.name} launches on {agent_id}", 0.05)
    assert reaches(framework, launched[0], "RUNNING"), framework.tasks
    framework.manner = manner
    return launched[0]
