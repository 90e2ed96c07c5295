"""Time of advice on a recorded day of a large cluster: 1,000 agents, 75,000 tasks, 24 hours.

The day is recorded once and kept: an emulated master plays it against a sidecar's session in this
process, which writes a journal. Then the command runs on the journal, as a separate process. Run by
hand: ``python -m tests.bench.bench_advise``. Prints a table in Markdown: wall time, processor time
of all processes together, and the memory of the largest process.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from allocator.core import PolicySpec, Settings
from laboratory.frameworks.base import REFUSE_DEFAULT_MS, Identity
from laboratory.frameworks.batch import RecordedFramework, Wanted
from laboratory.resources import AgentSpec
from laboratory.workloads.scenario import JobStage
from tests.bench.cluster import GIB, SHAPES, TASKS
from tests.laboratory.advise.made import written

HOUR_S = 3600
WEIGHTS = {"production": 4.0, "research": 2.0}
ROLES = ("production", "research", "reports", "ingest", "search", "training", "adhoc", "tests")
PEAKS_H = (10, 15)
"""Most jobs come at these hours."""

HEADER = ("| part | wall s | processor s | largest process MiB |", "|---|---|---|---|")


class BusyDay:
    """Services that run all day, and batch frameworks whose jobs come in bursts, mostly by day.

    A job is a number of equal tasks, requested at once: usually a few, sometimes a thousand. Tasks
    take minutes, some take hours.
    """

    kinds = ("cpus", "mem")

    def __init__(self, agents: int, frameworks: int, tasks: int, hours: float) -> None:
        shapes = [SHAPES[n % len(SHAPES)] for n in range(agents)]
        self.agents = tuple(
            (0, AgentSpec(f"agent-{n + 1}", {"cpus": cpus * 1000, "mem": gib * GIB * 1000}))
            for n, (cpus, gib) in enumerate(shapes)
        )
        self.jobs = frameworks
        self._cpus = sum(cpus for cpus, _ in shapes)
        self._tasks = tasks
        self._span_s = hours * HOUR_S

    def begin(self, stage: JobStage) -> None:
        """Submit all frameworks in the first minutes."""
        stage.master.set_weights(WEIGHTS)
        for number in range(self.jobs):
            role = ROLES[number % len(ROLES)]
            cpus, gib = TASKS[number % len(TASKS)]
            need = {"cpus": round(cpus * 1000), "mem": gib * GIB * 1000}
            tasks = list(self._service(need) if number % 5 == 0 else self._batch(need, number))
            # A third states what its tasks need; for the others it is learned.
            identity = Identity(f"framework-{number}", (role,), need if number % 3 == 0 else {})
            left = partial(stage.ended, role)
            # Spark and Marathon decline for two minutes; a quarter keeps the default of Mesos.
            refuse_ms = REFUSE_DEFAULT_MS if number % 4 == 0 else 120_000
            player = RecordedFramework(
                identity, tasks, lambda *_ran: None, left, refuse_ms=refuse_ms
            )
            stage.at(number * 1000, partial(stage.submit, player))

    def _service(self, need: dict[str, int]) -> Iterator[Wanted]:
        """All services together use three tenths of the cluster, until long after the end."""
        services = -(-self.jobs // 5)
        count = round(0.3 * self._cpus * 1000 / services / need["cpus"])
        for _ in range(count):
            yield Wanted(need, 60_000, round(2 * self._span_s * 1000))

    def _batch(self, need: dict[str, int], number: int) -> Iterator[Wanted]:
        chance = np.random.default_rng(number)
        batches = self.jobs - -(-self.jobs // 5)
        count = self._tasks // batches
        # Together they want two fifths of the cluster's processors, on average over the day.
        mean_s = 0.4 * self._cpus * self._span_s / batches / count / (need["cpus"] / 1000)
        sigma = 1.3
        while count > 0:
            size = min(count, round(float(np.exp(chance.uniform(0, np.log(1000))))))
            at_s = self._moment(chance)
            typical = np.log(mean_s) - sigma**2 / 2 + chance.normal(0, 0.5) - 0.125
            lasts_s = np.exp(chance.normal(typical, sigma, size)).clip(5, self._span_s)
            for each in lasts_s:
                yield Wanted(need, round(at_s * 1000), round(each * 1000))
            count -= size

    def _moment(self, chance: np.random.Generator) -> float:
        """Two thirds of the jobs come around the peaks."""
        scale = self._span_s / 24
        if chance.random() < 1 / 3:
            return float(chance.uniform(0, self._span_s))
        return float(chance.normal(chance.choice(PEAKS_H), 1.5) * scale) % self._span_s


def make(path: Path, day: BusyDay, hours: float) -> None:
    """Record the day under DRF, up to its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = Settings(policy=PolicySpec("drf", mode="characterised"))
    written(day, path, settings, until_ms=round(hours * HOUR_S * 1000))


def timed(name: str, command: list[str]) -> None:
    """Run a command, and print its row."""
    before, begin_s = os.times(), time.perf_counter()
    subprocess.run(command, check=True)
    wall_s, after = time.perf_counter() - begin_s, os.times()
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"| {name} | {wall_s:.0f} | {cpu_s:.0f} | {peak_mib:.0f} |", flush=True)


def main() -> None:
    """Record the day if it does not exist, and measure the advice on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--frameworks", type=int, default=40)
    parser.add_argument("--tasks", type=int, default=75_000)
    parser.add_argument("--hours", type=float, default=24.0, help="of the day that is made")
    parser.add_argument("--directory", type=Path, default=Path(".cache/bench-advise"))
    parser.add_argument("--only-make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("advise", nargs="*", help="options of advise, after --")
    arguments = parser.parse_args()
    name = "{agents}-{frameworks}-{tasks}-{hours:g}".format(**vars(arguments))
    journal = arguments.directory / name / "journal"
    if arguments.only_make:
        sizes = arguments.agents, arguments.frameworks, arguments.tasks, arguments.hours
        make(journal, BusyDay(*sizes), arguments.hours)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    print(*HEADER, sep="\n")
    if not journal.exists():
        timed("making the day", [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--only-make"])
    out = ["--out", str(journal.parent / "advice")]
    command = [sys.executable, "-m", "laboratory", "advise", str(journal), *out, *arguments.advise]
    timed("advise", command)


if __name__ == "__main__":
    main()
