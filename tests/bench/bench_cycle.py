"""Time of one full cycle of the core, by size of the cluster and policy.

The cycle is `Allocator.allocate`: snapshot, policy, verification, booking, decisions. Everything is
free before it and offered after it; then all is declined and the cycle repeats. Prints a table in
Markdown; the smallest and the median of the repetitions, in milliseconds.
"""

import argparse
import statistics
import time

from allocator.core import PolicySpec
from allocator.policies import POLICIES
from tests.bench.cluster import cluster, decline, different_policies, settle

SIZES = [(1_000, 100), (10_000, 1_000), (50_000, 6_000)]


def measure(agents: int, frameworks: int, spec: PolicySpec, repeats: int) -> str:
    """One row of the table."""
    allocator = cluster(agents, frameworks, spec)
    took_ms = []
    made = allocator.allocate(1000)
    for cycle in range(repeats):
        settle(allocator, made)
        decline(allocator, made)
        begin = time.perf_counter()
        made = allocator.allocate(2000 + 1000 * cycle)
        took_ms.append((time.perf_counter() - begin) * 1000)
    report = allocator.last_cycle
    assert not report.policy_error, report.policy_error
    name = f"{spec.name} {spec.selection or 'default'} {spec.mode}{' flat' if spec.flat else ''}"
    return (
        f"| {agents:,} x {frameworks:,} | {name} | {report.grants:,} | {report.decisions:,} "
        f"| {min(took_ms):.1f} | {statistics.median(took_ms):.1f} |"
    )


def main() -> None:
    """Measure every policy at every size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--policies", nargs="*", default=different_policies())
    parser.add_argument("--largest", type=int, default=len(SIZES), help="how many of the sizes")
    arguments = parser.parse_args()
    print("| agents x frameworks | policy | grants | decisions | least ms | median ms |")
    print("|---|---|---|---|---|---|")
    for agents, frameworks in SIZES[: arguments.largest]:
        for name in arguments.policies:
            spec = PolicySpec(name, selection="random" if POLICIES[name].selections else "")
            print(measure(agents, frameworks, spec, arguments.repeats), flush=True)
        for selection in ("joint", "best_fit"):
            spec = PolicySpec("drf", selection=selection)
            print(measure(agents, frameworks, spec, arguments.repeats), flush=True)
    for name in arguments.policies:
        spec = PolicySpec(name, selection="random", mode="characterised")
        print(measure(10_000, 1_000, spec, 3), flush=True)


if __name__ == "__main__":
    main()
