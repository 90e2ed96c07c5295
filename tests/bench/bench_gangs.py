"""Processor time of a full cycle with gangs: none, of equal tasks, and of unlike ones.

Once in a free cluster, whose offers are all declined; and once in a full one, where in each cycle
every 200th task ends, and gangs wait and collect. Prints a table in Markdown, in milliseconds.
"""

import argparse
import gc
import statistics
import time

import numpy as np

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    AddFramework,
    Allocator,
    Decisions,
    FrameworkInfo,
    Holdings,
    PolicySpec,
    Request,
    Transition,
)
from tests.bench.cluster import GIB, cluster, decline, settle
from tests.world.rows import given_back, holdings_of

SIZES = [(1_000, 400), (10_000, 1_000), (50_000, 6_000)]
KINDS = ("none", "equal", "unlike")
TASKS = 8
SERVER, WORKER = {"cpus": 2_000, "mem": 16_384_000}, {"cpus": 4_000, "mem": 8_192_000}
ENDS, ROLES, PATIENCE = 200, 100, 3
SPEC = PolicySpec("drf", mode="characterised")


def subscribe(allocator: Allocator, kind: str, first: int, gangs: int) -> None:
    """Add frameworks, each with a gang of some kind, and with its own principal."""
    for framework in range(first, first + gangs):
        labels = {DEMAND_LABEL: f"cpus:4;mem:{8 * GIB}"}
        if kind == "equal":
            labels[GANG_LABEL] = f"tasks:{TASKS}"
        name = f"gang-{framework}"
        info = FrameworkInfo(name, name="gang", principal=name, labels=labels)
        allocator.step(AddFramework(framework, info, (1 + framework % ROLES,)))
        if kind == "unlike":
            allocator.step(Request(framework, (SERVER,) * 2 + (WORKER,) * (TASKS - 2)))


def timed(allocator: Allocator, now_ms: int, took_ms: list[float]) -> Decisions:
    """Decide a full cycle, and note its processor time."""
    gc.collect()
    begin = time.thread_time()
    made = allocator.allocate(now_ms)
    took_ms.append((time.thread_time() - begin) * 1000)
    assert not allocator.last_cycle.policy_error, allocator.last_cycle.policy_error
    settle(allocator, made)
    return made


def end_some(allocator: Allocator, cycle: int) -> None:
    """Let every 200th of the holdings end, other ones in each cycle."""
    books, rows = allocator.state.ledger.books, allocator.state.ledger.rows()
    some = rows[cycle % ENDS :: ENDS]
    columns = np.arange(len(books.held))
    clients = allocator.state.clients
    who, role = clients.framework[books.client[some]], clients.role[books.client[some]]
    held = Holdings(who, role, books.agent[some], columns, books.held[:, some].T)
    allocator.step(given_back(held, used=True))


def free(agents: int, frameworks: int, kind: str, gangs: int, cycles: int) -> list[float]:
    """Times of cycles in a free cluster."""
    allocator = cluster(agents, frameworks - gangs, SPEC, ROLES)
    subscribe(allocator, kind, frameworks - gangs + 1, gangs)
    took_ms: list[float] = []
    for cycle in range(1, cycles + 2):
        decline(allocator, timed(allocator, 1000 * cycle, took_ms))
    return took_ms[1:]


def full(agents: int, frameworks: int, kind: str, gangs: int, cycles: int) -> list[float]:
    """Times of cycles in a full cluster."""
    allocator = cluster(agents, frameworks - gangs, SPEC, ROLES)
    took_ms: list[float] = []
    for cycle in range(1, 4):
        made = timed(allocator, 1000 * cycle, took_ms)
        allocator.step(Transition(holdings_of(made)))
    subscribe(allocator, kind, frameworks - gangs + 1, gangs)
    allocator.settings.patience_cycles, took_ms = PATIENCE, []
    for cycle in range(4, 8 + PATIENCE + cycles):
        end_some(allocator, cycle)
        made = timed(allocator, 1000 * cycle, took_ms)
        allocator.step(Transition(holdings_of(made)))
    collect = len(allocator.state.clients.collecting)
    print(f"<!-- {kind}: {collect} gangs collect at last -->", flush=True)
    return took_ms[-cycles:]


def main() -> None:
    """Measure each kind of gangs at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--gangs", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="*", default=[len(SIZES) - 1])
    parser.add_argument("--clusters", nargs="*", choices=("free", "full"), default=["free", "full"])
    arguments = parser.parse_args()
    print("| agents x frameworks | cluster | gangs | least | median | largest |")
    print("|---|---|---|---:|---:|---:|")
    for agents, frameworks in (SIZES[each] for each in arguments.sizes):
        for measured in (each for each in (free, full) if each.__name__ in arguments.clusters):
            for kind in KINDS:
                gangs = min(arguments.gangs, frameworks // 2)
                took = measured(agents, frameworks, kind, gangs, arguments.cycles)
                figures = min(took), statistics.median(took), max(took)
                print(
                    f"| {agents:,} x {frameworks:,} | {measured.__name__} | {kind} | "
                    + " | ".join(f"{each:.0f}" for each in figures)
                    + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
