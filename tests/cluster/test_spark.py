"""Spark's jobs on a real master: without the sidecar for a while, and as gangs.

The gangs are two jobs that wait for all of their executors. Each wants six, and there is room for
eight. If both have some, neither starts. As gangs they start one after the other.
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


@pytest.fixture(autouse=True)
def spark() -> None:
    """Spark and its native library; without them the test is skipped."""
    try:
        interpreter("spark")
    except NotFoundError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def two_jobs(mesos: Mesos, configuration: str) -> Iterator[tuple[World, Sequence[Child]]]:
    """Two drivers, one in each role, and agents that come when both have subscribed."""
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


def launched(world: World, *roles: str) -> list[int]:
    """Executors that each role has started."""
    return [each.launched for role in roles if (each := counts(world, role))]


def jobs(*drivers: Child) -> list[int]:
    """Finished jobs of each driver."""
    return [driver.said().count("job 12") for driver in drivers]


def test_a_job_outlives_the_sidecar_and_its_return(mesos):
    with World(mesos, **CLUSTER) as world:
        driver = start(world, "spark")
        try:
            until(lambda: launched(world, "spark") == [3], WITHIN_S, "a job has its executors")
            assert jobs(driver) == [0]
            world.sidecar.crash()
            until(lambda: launched(world, "spark") == [6], WITHIN_S, "so has the next")
            assert jobs(driver) == [1]
            world.sidecar.start()
            world.wait_connected()
            until(lambda: launched(world, "spark") == [9], WITHIN_S, "so has the third")
            world.wait_for_agreement()
            assert jobs(driver) == [2]
            found = counts(world, "spark")
        finally:
            driver.kill()
    assert found
    assert (found.finished, found.otherwise, found.subscribed) == (6, 0, 0)


def test_without_gangs_each_job_keeps_what_the_other_lacks(mesos):
    with two_jobs(mesos, DEMAND) as (world, drivers):
        until(lambda: launched(world, *ROLES) == [4, 4], WITHIN_S, "the cluster is full")
        settle(20)
        assert launched(world, *ROLES) == [4, 4]
        assert jobs(*drivers) == [0, 0]


def test_as_gangs_one_job_starts_after_the_other(mesos):
    with two_jobs(mesos, DEMAND + GANG) as (world, drivers):
        until(lambda: max(launched(world, *ROLES)) == 6, WITHIN_S, "one has all its executors")
        assert min(launched(world, *ROLES)) == 0
        until(lambda: min(jobs(*drivers)) > 0, WITHIN_S, "both jobs end")
