"""The master's metrics of roles and frameworks."""

import re
import time

from tests.cluster.amounts import reserved, scalar
from tests.cluster.processes import until
from tests.cluster.scenario import Outcome, retire, run_on, scenario
from tests.cluster.scenarios_operator import reserve, set_quota
from tests.cluster.world import World

OF_ROLES = re.compile(
    r"allocator/mesos/(quota|roles|offer_filters|resources)/|master/frameworks/.*/suppressed$"
)
QUEUE_MAX = 8
"""Gauges of Mesos's own allocator that each scrape queues in its actor, even without roles."""


def _shown(world: World) -> dict[str, float]:
    """Metrics of roles, frameworks and resources; ids of frameworks are left out."""
    ids = "|".join(each.framework_id for each in world.frameworks)
    return {
        re.sub(ids, "ID", name): round(value, 6)
        for name, value in world.operator.metrics().items()
        if OF_ROLES.search(name)
    }


def _steady(world: World) -> dict[str, float]:
    """Return the metrics that `_shown` returns, once they have not changed for a second."""
    before = _shown(world)
    while True:
        time.sleep(1)
        now = _shown(world)
        if now == before:
            return now
        before = now


def _shortest_queue(world: World) -> float:
    """The shortest queue of the allocator's actor in several scrapes."""
    name = "allocator/mesos/event_queue_dispatches"
    return min(world.operator.metrics()[name] for _ in range(10))


@scenario()
def metrics_show_roles_and_frameworks(world: World) -> Outcome:
    """Consumption of roles, with and without quota, and metrics of a framework that is gone."""
    queue = _shortest_queue(world)
    agent_id = world.agents[0].id()
    set_quota(world, "vip", {"cpus": 1}, {"cpus": 3, "mem": 2048})
    world.operator.call("UPDATE_WEIGHTS", weight_infos=[{"role": "heavy", "weight": 2.0}])
    reserve(world, agent_id, reserved(scalar("cpus", 1), "eng/dev"))
    one = world.framework("one", "eng/ads", "ops", suppressed=["ops"])
    run_on(one, agent_id)
    retire(one)
    doomed = world.framework("doomed", "vip")
    task = run_on(doomed, agent_id)
    retire(doomed)
    running = _steady(world)
    world.operator.call("TEARDOWN", framework_id={"value": doomed.framework_id})
    until(lambda: doomed.tasks[task][-1:] != ["RUNNING"] or not doomed.connected, 30, "it is gone")
    return {
        "while tasks run": running,
        "after one is gone": _steady(world),
        "the queue is short": queue <= QUEUE_MAX,
    }
