"""The leading master ends while the sidecar decides; the next one uses the same sidecar."""

import re
import signal
from collections.abc import Callable

import pytest

from tests.cluster.experiments import PREFIX, freeze, lost_tasks
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import work
from tests.cluster.processes import rest, until
from tests.cluster.quorum import SESSION_S, Quorum
from tests.cluster.world import FATAL, Sampler

pytestmark = pytest.mark.long

AGENTS = 3

STEPPED_DOWN = re.compile(r"Lost leadership|Lost candidacy as a leader")
"""Messages of a master that has lost its leadership; which one depends on timing."""


def frameworks_at_work(world: Quorum) -> list[Framework]:
    frameworks = [
        world.framework("one", "eng", "ads", manner=work(0.3, 48, 20, at_once=6)),
        world.framework("two", "ads", manner=work(0.2, 48, 15, at_once=6)),
    ]
    until(lambda: all(each.states()["RUNNING"] > 2 for each in frameworks), 90, "tasks run")
    return frameworks


def wait_until_it_decides(world: Quorum) -> None:
    """Stop the sidecar in the middle of a decision that a master waits for."""
    world.sidecar.freeze()
    until(lambda: world.operator.metrics()[PREFIX + "unanswered"], 20, "a batch waits", 0.02)


def go_on_with(world: Quorum, frameworks: list[Framework]) -> list[Framework]:
    """Check that the cluster works under its new leader, by the sidecar's decisions."""
    ran = {each.name: each.running() for each in frameworks}
    world.wait_for_agents(AGENTS)
    heirs = [world.successor(each) for each in frameworks]
    with Sampler(world.operator) as sampler:
        for heir in heirs:
            heir.call("RECONCILE", tasks=[])
        world.wait_connected()
        begun = [len(each.tasks) for each in heirs]
        until(
            lambda: all(
                len(each.tasks) > count + 2 for each, count in zip(heirs, begun, strict=True)
            ),
            90,
            "new tasks are run",
        )
        metrics = world.operator.metrics()
        assert metrics[PREFIX + "outcomes/offered"] > 0, "the sidecar decides"
        assert metrics[PREFIX + "misfits"] == 0
        freeze(world, heirs)
        rest(1)
    assert not sampler.found, sampler.found[:5]
    assert all(ran.values())
    assert not started_and_lost(heirs)
    world.check_master()
    return heirs


def started_and_lost(frameworks: list[Framework]) -> dict[str, list[str]]:
    """Tasks that ran and then ended badly, except those whose launch a dying master never read."""
    return {task: each for task, each in lost_tasks(frameworks).items() if "RUNNING" in each}


def test_leaders_die_while_the_sidecar_decides(quorum: Callable[..., Quorum]) -> None:
    """Each master is killed once; a standby takes over tasks, books and the sidecar."""
    with quorum(agents=AGENTS, interval="300ms") as world:
        frameworks = frameworks_at_work(world)
        led = set()
        for _ in range(world.MASTERS):
            address = world.address
            led.add(address)
            wait_until_it_decides(world)
            world.leader.kill()
            world.sidecar.thaw()
            world.wait_for_leader()
            assert world.address != address
            frameworks = go_on_with(world, frameworks)
            world.restart(address)
        assert len(led) > 1
        assert sum(len(each.tasks) for each in frameworks) > 12


def test_a_leader_that_was_stopped_decides_nothing_any_more(
    quorum: Callable[..., Quorum],
) -> None:
    """It resumes when another one leads with the same sidecar, and steps down."""
    with quorum(agents=AGENTS, interval="300ms") as world:
        frameworks = frameworks_at_work(world)
        address, old = world.address, world.leader
        wait_until_it_decides(world)
        old.signal(signal.SIGSTOP)
        world.stopped.add(address)
        world.sidecar.thaw()
        world.wait_for_leader()
        frameworks = go_on_with(world, frameworks)
        old.signal(signal.SIGCONT)
        until(lambda: not old.alive, 10 * SESSION_S, "the former leader ends")
        assert not [line for line in FATAL.findall(old.said()) if "Check failed" in line]
        assert STEPPED_DOWN.search(old.said()), old.said()[-2000:]
        rest(2)
        assert world.operator.metrics()[PREFIX + "connected"] == 1
        freeze(world, frameworks)
        world.check_master()
