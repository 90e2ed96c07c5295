"""Two Spark jobs that wait for all of their executors, on a real master.

Each wants six executors, and there is room for eight. If both have some, neither starts. As gangs
they start one after the other.
"""

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from tests.cluster.live import CLUSTER, counts, interpreter, start
from tests.cluster.mesos import Mesos, NotFoundError
from tests.cluster.processes import Child, until
from tests.cluster.scenario import INTERVAL_S, settle
from tests.cluster.world import World

pytestmark = pytest.mark.long

ROLES = ("red", "blue")
WAIT_FOR_ALL = (
    "spark.cores.max=6",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime=1h",
)
DEMAND = '[policy]\nmode = "characterised"\n[[demand]]\nall = true\nresources = "cpus:1;mem:896"\n'
GANG = "[[gang]]\nall = true\ntasks = 6\n"
WITHIN_S = 240.0


@contextlib.contextmanager
def two_jobs(mesos: Mesos, configuration: str) -> Iterator[tuple[World, Sequence[Child]]]:
    """Two drivers, one in each role, and agents that come when both have subscribed."""
    try:
        interpreter("spark")
    except NotFoundError as error:
        pytest.skip(str(error))
    with World(
        mesos,
        agents=0,
        interval=f"{INTERVAL_S * 1000:.0f}ms",
        parameters={"fallback": "false", "answer_deadline_ms": "30000"},
        configuration=configuration,
        **CLUSTER,
    ) as world:
        drivers = [
            start(world, "spark", f"spark.mesos.role={role}", *WAIT_FOR_ALL, log=role)
            for role in ROLES
        ]
        try:
            until(lambda: all(counts(world, role) for role in ROLES), WITHIN_S, "both subscribe")
            for number in range(2):
                world.add_agent(f"agent-{number}")
            yield world, drivers
        finally:
            for driver in drivers:
                driver.kill()


def launched(world: World) -> list[int]:
    """Executors that each role has started."""
    return [each.launched for role in ROLES if (each := counts(world, role))]


def jobs(drivers: Sequence[Child]) -> list[int]:
    """Finished jobs of each driver."""
    return [driver.said().count("job 12") for driver in drivers]


def test_without_gangs_each_job_keeps_what_the_other_lacks(mesos):
    with two_jobs(mesos, DEMAND) as (world, drivers):
        until(lambda: launched(world) == [4, 4], WITHIN_S, "the cluster is full")
        settle(20)
        assert launched(world) == [4, 4]
        assert jobs(drivers) == [0, 0]


def test_as_gangs_one_job_starts_after_the_other(mesos):
    with two_jobs(mesos, DEMAND + GANG) as (world, drivers):
        until(lambda: max(launched(world)) == 6, WITHIN_S, "one has all of its executors")
        assert min(launched(world)) == 0
        until(lambda: min(jobs(drivers)) > 0, WITHIN_S, "both jobs end")
