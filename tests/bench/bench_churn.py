"""Memory over a day of churn: millions of events, in which agents, frameworks and tasks change.

The events are offers, acceptances, refusals and ends of tasks; frameworks in roles of their own
that come and go; and agents that leave and return. Each row counts as an event: one offer declined,
one task ended, one framework added. Prints the resident memory after every tenth of the events;
with ``--traced`` also the memory that Python has allocated, and finally where it has grown since
the first tenth.
"""

import argparse
import gc
import time
import tracemalloc
from pathlib import Path

import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Holdings,
    PolicySpec,
    Release,
    RemoveAgent,
    RemoveFramework,
    Transition,
)
from tests.bench.cluster import GIB, SHAPES, cluster, settle

MIB = 2**20


def resident_mib() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MIB


def allocated_kib() -> float:
    """Memory that Python has allocated and not released; 0 if that is not traced."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


class Churn:
    """One allocator, and all its events."""

    def __init__(self, agents: int, frameworks: int, seed: int) -> None:
        self.allocator: Allocator = cluster(agents, frameworks, PolicySpec("drf"))
        self.random = np.random.default_rng(seed)
        self.agents, self.frameworks = agents, frameworks
        self.now_ms = 0
        self.events = 0
        self.born = 0

    def round(self) -> None:
        """One interval: a cycle, the outcomes of its offers, and some arrivals and departures."""
        self.now_ms += 1000
        made = self.allocator.allocate(self.now_ms)
        settle(self.allocator, made)
        used = self.random.random(len(made)) < 0.3
        rows = Holdings(made.framework, made.role, made.agent, made.kind, made.amount)
        self.allocator.step(Transition(_only(rows, used)))
        self._release(rows, ~used, allocated=False, refuse_ms=5000)
        self._release(rows, used, allocated=True, refuse_ms=-1)
        self.events += 2 * len(made) + int(used.sum())
        for _ in range(5):
            self._replace_framework()
            self._replace_agent()

    def _release(
        self, rows: Holdings, which: np.ndarray, *, allocated: bool, refuse_ms: int
    ) -> None:
        count = int(which.sum())
        back = Release(_only(rows, which), np.full(count, refuse_ms), np.full(count, allocated))
        self.allocator.step(back)

    def _replace_framework(self) -> None:
        """Remove a framework and its role; add another framework, in a new role."""
        framework = int(self.random.integers(1, self.frameworks + 1))
        self.allocator.step(RemoveFramework(framework))
        self.born += 1
        handle = next(h for h in range(1, 2**16) if not self.allocator.state.roles.is_bound(h))
        self.allocator.step(Define(roles={handle: f"born-{self.born}"}))
        info = FrameworkInfo(f"framework-{self.born}-again")
        self.allocator.step(AddFramework(framework, info, (handle,)))
        self.events += 3

    def _replace_agent(self) -> None:
        agent = int(self.random.integers(1, self.agents + 1))
        cpus, gib = SHAPES[agent % len(SHAPES)]
        capacity = {0: cpus * 1000, 1: gib * GIB * 1000, 2: 100 * GIB * 1000}
        self.allocator.step(RemoveAgent(agent))
        self.allocator.step(AddAgent(agent, AgentInfo(f"agent-{agent}-again"), capacity))
        self.events += 2


def _only(rows: Holdings, which: np.ndarray) -> Holdings:
    return Holdings(
        rows.framework[which], rows.role[which], rows.agent[which], rows.kind, rows.amount[which]
    )


def main() -> None:
    """Churn, and watch the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--agents", type=int, default=2_000)
    parser.add_argument("--frameworks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--traced", action="store_true")
    arguments = parser.parse_args()
    if arguments.traced:
        tracemalloc.start()
    churn = Churn(arguments.agents, arguments.frameworks, arguments.seed)
    begin = time.perf_counter()
    print("| events | resident MiB | allocated KiB | filters | holdings | seconds |")
    print("|---|---|---|---|---|---|")
    first: tracemalloc.Snapshot | None = None
    for tenth in range(1, 11):
        while churn.events < arguments.events * tenth // 10:
            churn.round()
        state = churn.allocator.state
        print(
            f"| {churn.events:,} | {resident_mib():.0f} | {allocated_kib():,.0f} "
            f"| {len(state.filters):,} | {len(state.ledger):,} "
            f"| {time.perf_counter() - begin:.0f} |",
            flush=True,
        )
        if arguments.traced and first is None:
            first = tracemalloc.take_snapshot()
    churn.allocator.check()
    if first is not None:
        grown = tracemalloc.take_snapshot().compare_to(first, "lineno")
        print("\nWhere most was allocated since the first tenth:\n")
        print("\n".join(f"- {each}" for each in grown[:10]))


if __name__ == "__main__":
    main()
