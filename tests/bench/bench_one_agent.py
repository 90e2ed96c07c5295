"""Time of a cycle over one freed agent, by the number of holdings in the cluster.

50,000 agents and 6,000 frameworks; everything is held, and then one agent becomes free. The cycle
is `Allocator.allocate` for that agent: snapshot, policy, verification, booking, decisions. Prints a
table in Markdown, in milliseconds: the smallest, the median and the largest of the repetitions, and
the median of the processor time, which other work on the machine disturbs less.
"""

import argparse
import gc
import statistics
import time

import numpy as np

from allocator.core import Allocator, Hold, Holdings, PolicySpec, Release
from allocator.core.snapshot import Ints
from tests.bench.cluster import cluster, settle

PER_AGENT = {20_000: 1, 200_000: 4, 1_000_000: 20}
"""Holdings in the cluster, and how many of them are on one agent."""
POLICIES = ["drf", "tsf", "ps-dsf", "rps-dsf", "choosy", "pf", "asset"]
ROWS = 50_000


def hold_everything(allocator: Allocator, holdings: int, agents: int, frameworks: int) -> Ints:
    """Fill agents with this number of holdings; returns these agents."""
    state = allocator.state
    each = PER_AGENT[holdings]
    role_of = np.zeros(frameworks + 1, np.int64)
    role_of[state.clients.framework] = state.clients.role
    filled = 1 + np.arange(min(agents, holdings // each))
    agent = np.repeat(filled, each)
    framework = 1 + np.arange(len(agent)) * 7 % frameworks
    part = state.free[agent] // each
    part[::each] += state.free[filled] - each * (state.free[filled] // each)
    kind = np.arange(part.shape[1])
    for first in range(0, len(agent), ROWS):
        some = slice(first, first + ROWS)
        who = framework[some]
        allocator.step(Hold(Holdings(who, role_of[who], agent[some], kind, part[some])))
    return filled


def release_all(allocator: Allocator, agent: int) -> None:
    """End everything that runs on an agent."""
    state = allocator.state
    books, rows = state.ledger.books, state.ledger.rows_of_agent(agent)
    client, held = books.client[rows], books.held[:, rows].T
    framework, role = state.clients.framework[client], state.clients.role[client]
    where = np.full(len(rows), agent)
    back = Holdings(framework, role, where, np.arange(held.shape[1]), held.copy())
    allocator.step(Release(back, np.full(len(rows), -1), np.ones(len(rows), np.bool_)))


def measure(
    holdings: int,
    agents: int,
    frameworks: int,
    specs: list[PolicySpec],
    repeats: int,
    *,
    trail: bool,
) -> list[str]:
    """The rows of the table for one size."""
    rows = []
    allocator = cluster(agents, frameworks, specs[0], trail=trail)
    filled = hold_everything(allocator, holdings, agents, frameworks)
    now_ms = 1000
    chance = np.random.default_rng(1)
    # As a sidecar does: exempt loaded objects from garbage collection.
    gc.freeze()
    for spec in specs:
        allocator.settings.policy = spec
        allocator._policy = allocator._build(spec)  # as an operator would
        took_ms, cpu_ms = [], []
        for _ in range(repeats + 1):
            agent = int(chance.choice(filled))
            release_all(allocator, agent)
            now_ms += 10
            begin, cpu = time.perf_counter(), time.thread_time()
            made = allocator.allocate(now_ms, agents=np.array([agent]))
            took_ms.append((time.perf_counter() - begin) * 1000)
            cpu_ms.append((time.thread_time() - cpu) * 1000)
            report = allocator.last_cycle
            assert not report.policy_error, report.policy_error
            assert len(made), "no client was served"
            settle(allocator, made)
        held = len(allocator.state.ledger)
        warm = took_ms[1:]
        name = f"{spec.name} {spec.selection or 'default'} {spec.mode}"
        rows.append(
            f"| {held:,} | {name} | {min(warm):.2f} | {statistics.median(warm):.2f} "
            f"| {max(warm):.2f} | {statistics.median(cpu_ms[1:]):.2f} |"
        )
    return rows


def main() -> None:
    """Measure every policy at every size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--policies", nargs="*", default=POLICIES)
    parser.add_argument("--holdings", type=int, nargs="*", default=list(PER_AGENT))
    parser.add_argument("--agents", type=int, default=50_000)
    parser.add_argument("--frameworks", type=int, default=6_000)
    parser.add_argument("--no-trail", action="store_true", help="keep nothing for explanations")
    given = parser.parse_args()
    specs = [
        PolicySpec(name, selection="random", mode=mode)
        for name in given.policies
        for mode in ("oblivious", "characterised")
    ]
    print("| holdings | policy | least ms | median ms | largest ms | median CPU ms |")
    print("|---|---|---|---|---|---|")
    for holdings in given.holdings:
        sizes = holdings, given.agents, given.frameworks
        for row in measure(*sizes, specs, given.repeats, trail=not given.no_trail):
            print(row, flush=True)


if __name__ == "__main__":
    main()
