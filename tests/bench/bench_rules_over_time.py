"""Processor time of a cycle without and with rules over time, and inside roles.

Use over time with a half-life, budgets of roles, drains that begin soon, claims, and caps inside
roles on amounts, on tasks and on agents: each alone, and all together. In a full cluster, every
200th holding ends before each cycle. Two kinds of cycles are measured: over all agents, and over
one agent that became free. Prints a table in Markdown, in milliseconds; times include those of
`advance`, which counts what is used of budgets and over time. The last column is the peak memory of
the process, in MiB.
"""

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from allocator.core import (
    AddFramework,
    Allocator,
    Event,
    Holdings,
    Options,
    PolicySpec,
    SetBudget,
    SetCap,
    SetClaim,
    SetDrain,
    Settings,
    Trail,
    Transition,
)
from allocator.policies import build
from tests.bench.bench_gangs import ENDS, ROLES, end_some
from tests.bench.cluster import arrivals, settle
from tests.world.rows import given_back, holdings_of

SIZES = [(1_000, 400), (10_000, 1_000), (50_000, 6_000)]
SHARE = 3
"""Number of frameworks of a role that share a user."""
ROUNDS = 3
SPEC = PolicySpec("drf", mode="characterised")


def rules(kind: str, agents: int) -> Iterator[Event]:
    """The rules of one kind; most bound something in a full cluster."""
    for role in (f"role-{handle}" for handle in range(1, ROLES + 1)):
        match kind:
            case "budgets":
                yield SetBudget(role, {"cpus": 10_000_000, "mem": 2**50}, "day")
            case "claims":
                yield SetClaim(role, {"cpus": 1000 * agents // 10})
            case "caps on amounts":
                yield SetCap(role, "user", {"cpus": 8 * agents})
            case "caps on tasks":
                yield SetCap(role, "user", {"tasks": 1000 * (agents // 250)})
            case "caps on agents":
                yield SetCap(role, "user", {"agents": 1000 * (agents // 250)})
    if kind == "drains":
        for agent in range(1, agents + 1, 20):
            yield SetDrain(f"agent-{agent}", from_ms=60_000)


KINDS = (
    *("off", "use over time", "budgets", "drains", "claims"),
    *("caps on amounts", "caps on tasks", "caps on agents", "all"),
)


def cluster(agents: int, frameworks: int, kind: str) -> Allocator:
    """Make a cluster in which some frameworks of each role have the same user."""
    chosen = KINDS[1:-1] if kind == "all" else (kind,)
    settings = Settings(policy=SPEC)
    if "use over time" in chosen:
        settings.half_life_ms, settings.usage_weight = 3_600_000, 0.7
    settings.drain_ahead_ms = 3_600_000 if "drains" in chosen else 0
    allocator = Allocator(build, settings, trail=Trail())
    allocator.step(Options())
    for event in arrivals(agents, frameworks, ROLES):
        if isinstance(event, AddFramework):
            user = f"user-{event.framework // (SHARE * ROLES)}"
            allocator.step(replace(event, info=replace(event.info, user=user)))
        else:
            allocator.step(event)
    for each in chosen:
        for rule in rules(each, agents):
            allocator.step(rule)
    return allocator


def timed(allocator: Allocator, now_ms: int, agents: np.ndarray | None = None):
    """Decide a cycle; returns its decisions and its processor time in ms."""
    gc.collect()
    begin = time.thread_time()
    made = allocator.allocate(now_ms, agents)
    took_ms = (time.thread_time() - begin) * 1000
    assert not allocator.last_cycle.policy_error, allocator.last_cycle.policy_error
    settle(allocator, made)
    return made, took_ms


def measure(agents: int, frameworks: int, kind: str, cycles: int) -> str:
    """Measure one kind of rules; returns a row of the table."""
    allocator = cluster(agents, frameworks, kind)
    for cycle in range(1, ROUNDS + 1):
        made, _ = timed(allocator, 1000 * cycle)
        allocator.step(Transition(holdings_of(made)))
    whole, single = [], []
    for cycle in range(ROUNDS + 1, ROUNDS + cycles + 1):
        end_some(allocator, cycle)
        made, took_ms = timed(allocator, 1000 * cycle)
        whole.append(took_ms)
        allocator.step(Transition(holdings_of(made)))
        for at in range(5):
            agent = 1 + (997 * cycle + at) % agents
            free_agent(allocator, agent)
            made, took_ms = timed(allocator, 1000 * cycle + at, np.array([agent]))
            single.append(took_ms)
            allocator.step(Transition(holdings_of(made)))
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    held = len(allocator.state.ledger)
    figures = (*(f"{f(whole):.0f}" for f in (min, statistics.median, max)),)
    ones = (*(f"{f(single):.2f}" for f in (min, statistics.median, max)),)
    return f"| {kind} | {held:,} | {' | '.join((*figures, *ones))} | {mib:,} |"


def free_agent(allocator: Allocator, agent: int) -> None:
    """Let all that is held on an agent end."""
    books, rows = allocator.state.ledger.books, allocator.state.ledger.rows_of_agent(agent)
    clients, kinds = allocator.state.clients, np.arange(len(books.held))
    who, role = clients.framework[books.client[rows]], clients.role[books.client[rows]]
    allocator.step(
        given_back(Holdings(who, role, books.agent[rows], kinds, books.held[:, rows].T), used=True)
    )


def main() -> None:
    """Measure each kind in a process of its own, so that memory can be compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--size", type=int, default=len(SIZES) - 1)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--one", default="")
    arguments = parser.parse_args()
    agents, frameworks = SIZES[arguments.size]
    if arguments.one:
        print(measure(agents, frameworks, arguments.one, arguments.cycles), flush=True)
        return
    print(f"{agents:,} agents, {frameworks:,} frameworks, 1 in {ENDS} holdings ends in each cycle")
    print(
        "| rules | holdings | full: least | median | most | one agent: least | median | most |"
        " MiB |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for kind in arguments.kinds:
        options = ["--one", kind, "--cycles", str(arguments.cycles), "--size", str(arguments.size)]
        command = [sys.executable, "-m", "tests.bench.bench_rules_over_time", *options]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
