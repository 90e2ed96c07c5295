"""Third-party frameworks side by side, under each policy; the sidecar is killed half-way.

    python -m tests.cluster.live >> tools/docs/data/frameworks.jsonl

Each line is one policy in one mode: the results of each framework with a sidecar, and after its
death.
"""

import argparse
import dataclasses
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allocator.policies import MODES, POLICIES
from tests.cluster.mesos import Mesos, NotFoundError, find
from tests.cluster.processes import Child, until
from tests.cluster.world import World

PACKAGES = {
    "pymesos": "pymesos",
    "tfmesos2": "tfmesos2",
    "airflow": "avmesos_airflow_provider",
    "spark": "pyspark",
}
"""The package that each framework needs, by the framework's name."""

DRIVER = Path(__file__).with_name("live_frameworks.py")
TASKS_S = 240.0
STARTED_S = 240.0
TERMINAL = "tasks/terminal/task_"
JNI = "MESOS_NATIVE_JAVA_LIBRARY"

CLUSTER: dict[str, Any] = {
    # Spark's executors listen at the host name of their agent.
    "agent_flags": {"hostname": "127.0.0.1"},
    # The master drops the counters of frameworks that leave this list. Each Spark job is one.
    "flags": {"max_completed_frameworks": "1000"},
}


@dataclass(frozen=True)
class Counts:
    """Results of a framework: finished tasks, tasks with other ends, launched tasks, and offers.

    subscribed: how often it subscribed again.
    """

    finished: int
    otherwise: int
    launched: int
    offers: int
    accepted: int
    declined: int
    subscribed: int

    def __sub__(self, other: "Counts") -> "Counts":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Counts(*(now - before for now, before in pairs))


@dataclass(frozen=True)
class Row:
    """One policy in one mode: results by framework with a sidecar, and without."""

    policy: str
    mode: str
    alive: dict[str, Counts]
    dead: dict[str, Counts]


def interpreter(name: str, below: str | None = None) -> Path:
    """The interpreter of a framework: `DIR/NAME/bin/python` below MESOS_FRAMEWORKS.

    Raises NotFoundError if the framework's package is not installed, or Spark's native library is
    not named.
    """
    below = below or os.environ.get("MESOS_FRAMEWORKS")
    if not below:
        raise NotFoundError("no frameworks: MESOS_FRAMEWORKS is the directory of their venvs")
    if not list(Path(below).glob(f"{name}/lib/python*/site-packages/{PACKAGES[name]}")):
        raise NotFoundError(f"MESOS_FRAMEWORKS: {below}/{name} is no venv with {PACKAGES[name]}")
    if name == "spark" and not os.environ.get(JNI):
        raise NotFoundError(f"{JNI}: Spark needs Mesos's native library for Java")
    return Path(below) / name / "bin" / "python"


def live(
    mesos: Mesos, names: Sequence[str], ways: Sequence[tuple[str, str]], tasks: int = 3
) -> Iterator[Row]:
    """Run the frameworks in all ways, pairs of a policy and a mode; returns a row for each.

    A way ends when each framework has launched and finished this number of tasks with the sidecar,
    and as many without it.
    """
    with World(mesos, agents=2, sidecar=False, **CLUSTER) as world:
        children = {name: start(world, name) for name in names}
        try:
            until(lambda: all(counts(world, each) for each in names), STARTED_S, "all subscribe")
            for policy, mode in ways:
                yield _way(world, children, policy, mode, tasks)
        finally:
            for child in children.values():
                child.kill()


def start(world: World, name: str, *settings: str, log: str = "") -> Child:
    """Start a framework, or the driver of Spark with further settings."""
    words = [interpreter(name), DRIVER, name, world.address, *settings]
    home = {"AIRFLOW_HOME": str(world.directory / "airflow"), "PYTHONPATH": ""}
    return Child(words, world.directory / f"{log or name}.log", home)


def _way(world: World, children: Mapping[str, Child], policy: str, mode: str, tasks: int) -> Row:
    world.sidecar.start(f"policy.name={policy}", f"policy.mode={mode}")
    world.wait_connected()
    alive = _stretch(world, children, tasks)
    now = world.sidecar.status().policy
    assert (now.name, now.mode) == (policy, mode)
    world.sidecar.crash()
    connected = "allocator/sidecar/connected"
    until(lambda: world.operator.metrics()[connected] == 0, TASKS_S, "the sidecar is gone")
    dead = _stretch(world, children, tasks)
    world.check_master()
    return Row(policy, mode, alive, dead)


def _stretch(world: World, children: Mapping[str, Child], tasks: int) -> dict[str, Counts]:
    """Wait until each has launched and finished this number of tasks; returns the results."""
    before = {name: _counted(world, name) for name in children}

    def done() -> dict[str, Counts] | None:
        for name, child in children.items():
            assert child.alive, f"{name} ended:\n{child.said()[-2000:]}"
        found = {name: _counted(world, name) - before[name] for name in children}
        least = min(min(each.finished, each.launched) for each in found.values())
        return found if least >= tasks else None

    return until(done, TASKS_S, f"{tasks} tasks of each", 0.5) or {}


def _counted(world: World, name: str) -> Counts:
    found = counts(world, name)
    assert found, f"{name} is gone"
    return found


def counts(world: World, name: str) -> Counts | None:
    """The master's own counters of all frameworks in the role of this name; None without any."""
    found = world.operator.call("GET_FRAMEWORKS")
    rows = [*found.get("frameworks", []), *found.get("completed_frameworks", [])]
    infos = [row["framework_info"] for row in rows]
    roles = [(each["id"]["value"], [each.get("role"), *each.get("roles", [])]) for each in infos]
    known = {identity for identity, its in roles if name in its}
    if not known:
        return None
    own: Counter[str] = Counter()
    for key, value in world.operator.metrics().items():
        match key.split("/", 4):
            case ["master", "frameworks", _, identity, counter] if identity in known:
                own[counter] += int(value)
    ends = sum(count for key, count in own.items() if key.startswith(TERMINAL))
    finished = own[f"{TERMINAL}finished"]
    return Counts(
        finished,
        ends - finished,
        own["operations/launch"],
        own["offers/sent"],
        own["offers/accepted"],
        own["offers/declined"],
        own["events/subscribed"] - len(known),
    )


def main() -> None:
    """Run, and write each row as it comes."""
    parser = argparse.ArgumentParser(description="third-party frameworks on a real Mesos")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PACKAGES)}")
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    given = parser.parse_args()
    ways = list(itertools.product(given.policies, MODES))
    for row in live(find(), given.names or list(PACKAGES), ways, given.tasks):
        sys.stdout.write(f"{json.dumps(dataclasses.asdict(row))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
