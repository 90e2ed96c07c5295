"""Times of the core on the grid of clusters that Mesos uses to measure its own allocator.

The grid is agents by frameworks. For each size, the steps of those benchmarks are measured: agents
are added; everything is declined and offered again, with and without filters; half or 99 % of the
frameworks suppress offers; some roles have guarantees and limits. Two common steps are added: one
agent is freed, or none is. A turn is the cycle alone (`Allocator.allocate`); when agents are added
it includes the events. Prints a table in Markdown: processor time in milliseconds, the minimum of
the repetitions.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from allocator.core import Decisions, Holdings, PolicySpec, SetQuota, Suppress
from tests.bench.cluster import cluster, settle
from tests.bench.yardstick import Meter, clock_ms
from tests.world.rows import given_back, holdings_of

AGENTS = (1_000, 5_000, 10_000, 20_000, 30_000, 50_000)
FRAMEWORKS = (1, 50, 100, 200, 500, 1_000, 3_000, 6_000)
REFUSE_MS = 3_600_000
EVERY_CYCLE_MS = 1000


class Bench:
    """A cluster whose free resources are offered and released, cycle by cycle."""

    def __init__(
        self, agents: int, frameworks: int, spec: PolicySpec, meter: Meter = clock_ms
    ) -> None:
        self.frameworks, self.meter, self.now_ms = frameworks, meter, 0
        self.allocator = cluster(agents, frameworks, spec)

    def cycle(self, agents: np.ndarray | None = None) -> tuple[Decisions, Any]:
        """Run a cycle, and turn decisions into offers; returns the meter's result of the cycle."""
        self.now_ms += EVERY_CYCLE_MS
        made, cost = self.meter(self.allocator.allocate, self.now_ms, agents)
        assert not self.allocator.last_cycle.policy_error, self.allocator.last_cycle.policy_error
        settle(self.allocator, made)
        return made, cost

    def give_back(self, made: Decisions, refuse_ms: int = -1) -> None:
        """Decline the offers."""
        if len(made):
            self.allocator.step(given_back(holdings_of(made), refuse_ms))


Turns = list[float]


def reoffer(bench: Bench, repeats: int, refuse_ms: int = -1) -> Turns:
    """Decline everything, and offer it again."""
    made, _ = bench.cycle()
    took = []
    for _ in range(repeats):
        bench.give_back(made, refuse_ms)
        made, took_ms = bench.cycle()
        took.append(took_ms)
    bench.give_back(made)
    return took


def filters(bench: Bench, repeats: int) -> Turns:
    """A framework that declines refuses that agent for an hour."""
    return reoffer(bench, repeats, REFUSE_MS)


def half_suppressed(bench: Bench, repeats: int) -> Turns:
    """Every other framework suppresses offers."""
    return _suppressed(bench, repeats, range(1, bench.frameworks, 2))


def most_suppressed(bench: Bench, repeats: int) -> Turns:
    """99 of 100 frameworks suppress offers."""
    some = (each for each in range(1, bench.frameworks + 1) if each % 100)
    return _suppressed(bench, repeats, some)


def _suppressed(bench: Bench, repeats: int, some) -> Turns:
    for framework in some:
        bench.allocator.step(Suppress(framework))
    return reoffer(bench, repeats)


def quota(bench: Bench, repeats: int) -> Turns:
    """A third of the roles has small guarantees, a third large ones with limits."""
    for role in range(1, min(100, bench.frameworks) + 1):
        if role % 3:
            cpus = 1000 if role % 3 == 1 else 64_000
            limits = {} if role % 3 == 1 else {"cpus": 4 * cpus}
            bench.allocator.step(SetQuota(f"role-{role}", {"cpus": cpus}, limits))
    return reoffer(bench, repeats)


def one_freed(bench: Bench, repeats: int) -> Turns:
    """Everything is used; then one agent is freed."""
    made, _ = bench.cycle()
    took = []
    for _ in range(repeats):
        agent = made.agent[:1]
        rows, mine = holdings_of(made), made.agent == agent
        freed = Holdings(
            rows.framework[mine], rows.role[mine], rows.agent[mine], rows.kind, rows.amount[mine]
        )
        bench.allocator.step(given_back(freed))
        made, took_ms = bench.cycle(agent)
        took.append(took_ms)
    return took


def nothing(bench: Bench, repeats: int) -> Turns:
    """Everything is on offer already."""
    bench.cycle()
    return [bench.cycle()[1] for _ in range(repeats)]


WORKLOADS: dict[str, Callable[[Bench, int], Turns]] = {
    "re-offer": reoffer,
    "with filters": filters,
    "half suppressed": half_suppressed,
    "99 % suppressed": most_suppressed,
    "quotas": quota,
    "one agent freed": one_freed,
    "nothing free": nothing,
}


def add_ms(agents: int, frameworks: int, spec: PolicySpec) -> float:
    """Time of adding all agents and frameworks, and of the first cycle."""

    return clock_ms(lambda: cluster(agents, frameworks, spec).allocate(1000))[1]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="*", default=list(AGENTS))
    parser.add_argument("--frameworks", type=int, nargs="*", default=list(FRAMEWORKS))
    parser.add_argument("--policy", default="drf")
    parser.add_argument("--mode", default="oblivious")
    parser.add_argument("--selection", default="random")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also keep the figures here")
    given = parser.parse_args()
    spec = PolicySpec(given.policy, selection=given.selection, mode=given.mode)
    print("| agents x frameworks | add all |", " | ".join(WORKLOADS), "|")
    print("|---" * (2 + len(WORKLOADS)) + "|")
    reoffer(Bench(100, 10, spec), 2)  # loads the loops
    kept = []
    for agents in given.agents:
        for frameworks in given.frameworks:
            row = {"agents": agents, "frameworks": frameworks}
            row["add all"] = add_ms(agents, frameworks, spec)
            for name, work in WORKLOADS.items():
                row[name] = min(work(Bench(agents, frameworks, spec), given.repeats))
            cells = (f"{value:.2f}" for value in list(row.values())[2:])
            print(f"| {agents:,} x {frameworks:,} |", " | ".join(cells), "|", flush=True)
            kept.append(row)
    if given.json:
        given.json.write_text(json.dumps({"at": time.time(), "spec": str(spec), "rows": kept}))


if __name__ == "__main__":
    main()
