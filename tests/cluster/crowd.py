"""Many small agents and many frameworks on one machine."""

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.cluster.amounts import milli
from tests.cluster.experiments import PREFIX, freeze, longest_gap, lost_tasks, offer_times
from tests.cluster.framework import Framework, keep
from tests.cluster.framework_behaviours import refuse, work
from tests.cluster.mesos import Mesos
from tests.cluster.processes import until
from tests.cluster.world import Sampler, World

CPUS = 0.5
SMALL = {
    "resources": f"cpus:{CPUS};mem:128;disk:64;ports:[31000-31003]",
    "disk_watch_interval": "1hrs",
    "gc_delay": "1weeks",
}
AT_ONCE = 10
"""Number of agents that start at the same time."""

WORKERS_AMONG = 10
"""One in this many frameworks runs tasks, because executors are processes, too."""

CROWD_S = 300.0


@dataclass
class CrowdFigures:
    """Observations of a crowd.

    agents_s: until all agents were registered.
    offers: received while most frameworks declined theirs.
    usual_gap_s, without_sidecar_gap_s: the longest time without any offer, with a sidecar and after
        it was killed.
    fewest, most: smallest and largest number of agents that a framework with a single role has at
        the end, when all frameworks keep their offers.
    """

    agents: int
    frameworks: int
    agents_s: float = 0.0
    seconds: float = 0.0
    offers: int = 0
    usual_gap_s: float = 0.0
    without_sidecar_gap_s: float = 0.0
    fewest: int = 0
    most: int = 0
    samples: int = 0
    states: Counter[str] = field(default_factory=Counter)
    round_trip_ms: dict[str, float] = field(default_factory=dict)


def crowd(mesos: Mesos, agents: int, frameworks: int, seconds: float) -> CrowdFigures:
    """Run frameworks, kill the sidecar and restart it; finally all keep offers and share evenly."""
    figures, begun_s = CrowdFigures(agents, frameworks), time.monotonic()
    with World(mesos, agents=0) as world:
        figures.agents_s = _gather(world, agents)
        members = [
            world.framework(f"member-{number}", *_roles(number), manner=refuse())
            for number in range(frameworks)
        ]
        with Sampler(world.operator, 1.0) as sampler:
            for member in members[::WORKERS_AMONG]:
                member.manner = work(CPUS / 2, 32, 10, at_once=1)
            figures.usual_gap_s = _watch(members, seconds)
            figures.offers = sum(each.counts["offers"] for each in members)
            assert all(each.seen for each in members), "none is left out"
            _settle(world, members)

            world.sidecar.crash()
            figures.without_sidecar_gap_s = _watch(members, seconds / 2)
            world.sidecar.start()
            world.wait_connected()
            _settle(world, members)
            _share(world, members, figures)
        assert not sampler.found, sampler.found[:5]
        assert not lost_tasks(members)
        figures.samples = sampler.samples
        figures.states = sum((each.states() for each in members), Counter())
        metrics = world.operator.metrics()
        for name in ("p50", "p90", "max"):
            figures.round_trip_ms[name] = metrics[f"{PREFIX}round_trip_ms/{name}"]
        assert metrics[PREFIX + "misfits"] == 0
        world.check_master()
    figures.seconds = time.monotonic() - begun_s
    return figures


def _gather(world: World, count: int) -> float:
    begun_s = time.monotonic()
    for first in range(0, count, AT_ONCE):
        for number in range(first, min(first + AT_ONCE, count)):
            world.add_agent(f"agent-{number}", **SMALL)
        world.wait_for_agents(len(world.agents), CROWD_S)
    world.wait_connected()
    return time.monotonic() - begun_s


def _roles(number: int) -> tuple[str, ...]:
    """A role of its own; every other framework also has a second role, shared with others."""
    own = f"team-{number}"
    return (own, f"floor-{number % 8}") if number % 2 else (own,)


def _watch(members: list[Framework], seconds: float) -> float:
    """Wait; returns the longest time without any offer."""
    begun_s = time.monotonic()
    time.sleep(seconds)
    return longest_gap(offer_times(members), begun_s, time.monotonic())


def _settle(world: World, members: list[Framework]) -> None:
    """Compare all books while frameworks keep their offers."""
    world.check_master()
    freeze(world, members, CROWD_S)


def _share(world: World, members: list[Framework], figures: CrowdFigures) -> None:
    """Let all frameworks keep their offers from now on, until nothing is left to offer."""
    for member in members:
        member.manner = refuse()
    until(lambda: not any(each.running() for each in members), CROWD_S, "tasks end")
    for member in members:
        member.manner = keep
    for member in members:
        member.decline_all()
    whole = figures.agents * milli(CPUS)
    until(lambda: _offered_cpus(world) == whole, CROWD_S, "all is offered", 1.0)
    world.wait_for_agreement(CROWD_S)
    # Only frameworks with a single role: each role is served alike.
    kept = [len(member.offers) for member in members if len(member.roles) == 1]
    figures.fewest, figures.most = min(kept), max(kept)


def _offered_cpus(world: World) -> int:
    rows = world.operator.call("GET_AGENTS").get("agents", [])
    offered = itertools.chain.from_iterable(row.get("offered_resources", []) for row in rows)
    return sum(milli(each["scalar"]["value"]) for each in offered if each["name"] == "cpus")
