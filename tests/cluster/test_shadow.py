"""Mesos's own allocator decides; our module runs in its shadow: it only reports and compares.

`test_scenarios` also checks that operators and frameworks see the same with and without it.
"""

from collections import Counter
from functools import partial

import pytest

from tests.cluster.experiments import FINE_STATES, freeze, lost_tasks, told
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import work
from tests.cluster.processes import until
from tests.cluster.world import Sampler, World, run

pytestmark = pytest.mark.long

SHADOW = {"shadow": "true"}


def compared(world: World) -> Counter[str]:
    """Decisions by whether Mesos's own allocator agreed, from the master's metrics."""
    return told(world.operator.metrics(), "shadow/")


def warnings(world: World) -> set[str]:
    return {each.what for each in world.sidecar.status().warnings}


def more_compared(world: World, before: int) -> None:
    """Wait until Mesos's own allocator has agreed with more of the sidecar's decisions."""
    until(lambda: compared(world)["same"] > before, 60, "comparisons")


def offers(frameworks: list[Framework]) -> int:
    return sum(each.counts["offers"] for each in frameworks)


def finished(frameworks: list[Framework]) -> int:
    return sum(each.states()["FINISHED"] for each in frameworks)


@pytest.fixture
def world(mesos):
    with World(mesos, agents=3, interval="500ms", parameters=SHADOW) as world:
        yield world


def workers(world: World) -> list[Framework]:
    manner = work(0.5, 64, 1, at_once=3)
    return [world.framework(f"of-{role}", role, manner=manner) for role in ("eng", "ads")]


def test_mesos_decides_and_the_sidecar_is_compared(world):
    frameworks = workers(world)
    with Sampler(world.operator) as sampler:
        until(lambda: finished(frameworks) >= 12, 60, "tasks finish")
        assert "TASK_FINISHED" in run(world.execute("one", "true", resources="cpus:0.1;mem:32"))
    assert not sampler.found
    assert not lost_tasks(frameworks)
    freeze(world, frameworks)
    metrics = world.operator.metrics()
    counts = compared(world)
    assert counts["same"] > 0
    assert counts["offers"] >= counts["same"]
    assert metrics["allocator/sidecar/outcomes/shadow"] > 0
    assert not metrics["allocator/sidecar/outcomes/offered"]
    assert not metrics["allocator/sidecar/outcomes/partial"]
    assert not metrics["allocator/sidecar/fallback_cycles"]
    # Its own metrics are there, and count.
    assert metrics["allocator/mesos/allocation_runs"] > 5
    # The sidecar reports the same, a few seconds later.
    until(lambda: "in shadow" in warnings(world), 20, "the status tells of it")
    world.check_master()


def _has_finished(frameworks, least):
    return finished(frameworks) >= least


def test_a_sidecar_that_dies_or_hangs_changes_nothing(world):
    frameworks = workers(world)
    more_compared(world, 0)
    for fault in ("killed", "stopped"):
        if fault == "killed":
            world.sidecar.crash()
        else:
            world.sidecar.freeze()
        done, came = finished(frameworks), offers(frameworks)
        until(partial(_has_finished, frameworks, done + 3), 90, f"tasks finish: {fault}")
        assert offers(frameworks) > came
        if fault == "killed":
            world.sidecar.start()
        else:
            world.sidecar.thaw()
        world.wait_connected()
        more_compared(world, compared(world)["same"])
        freeze(world, frameworks)
    assert not lost_tasks(frameworks)
    states = {state for each in frameworks for state in each.states()}
    assert states <= FINE_STATES
    world.check_master()
