"""Time of a policy's decisions in one cycle, by size, criterion, selection and mode.

Only `Policy.allocate`, on a synthetic snapshot: agents of ten shapes, partly used; frameworks in a
hundred roles, or all below the root. Prints a table in Markdown with the smallest and the median of
the repetitions, in milliseconds of processor time (the loops use one core), which other work on the
machine affects less.
"""

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np

from allocator.core.policy import PolicySpec
from allocator.core.snapshot import Snapshot
from allocator.policies import build, warm
from allocator.server.system import loop_cache
from allocator.testing import make_snapshot, make_tree, with_refusals
from tests.bench.cluster import different_policies

loop_cache.prepare()

SHAPES = [  # cpus, mem in GB, disk in GB
    (4, 14, 100),
    (8, 8, 100),
    (6, 11, 200),
    (16, 64, 400),
    (16, 32, 800),
    (32, 64, 400),
    (32, 128, 800),
    (48, 96, 1000),
    (64, 256, 2000),
    (96, 192, 500),
]
ROLES = 100


def synthetic(
    agents: int,
    clients: int,
    *,
    flat: bool = False,
    characterised: bool = False,
    tasks: int = 100_000,
    filters: float = 0,
    excluded: float = 0,
) -> Snapshot:
    """Build a busy cluster: every client holds something, every agent has something free.

    tasks: approximate number of whole tasks that fit, if characterised.
    filters: refusals that exclude a client from an agent, relative to the number of pairs.
    excluded: fraction of the pairs that is excluded.
    """
    random = np.random.default_rng(1)
    shape = np.array(SHAPES) * 1000
    capacity = np.vstack([np.zeros(3, int), shape[random.integers(0, len(shape), agents)]])
    free = np.ceil(capacity * random.uniform(0.2, 1, (agents + 1, 1))).astype(int)
    demand = np.zeros((clients, 3), np.int64)
    if characterised:
        scale = shape.mean(axis=0) * 0.6 * agents / tasks
        demand = (scale * random.uniform(0.3, 1.7, (clients, 3))).astype(int) // 10 * 10 + 10
    excluded_words = np.zeros((agents + 1, clients // 64 + 1), np.uint64)
    if excluded:
        for agent in range(1, agents + 1):
            bits = random.random(excluded_words.shape[1] * 64) < excluded
            excluded_words[agent] = np.packbits(bits, bitorder="little").view(np.uint64)
    snapshot = make_snapshot(
        capacity=capacity,
        free=free,
        demand=demand,
        held=(shape.mean(axis=0) * random.uniform(0, 4, (clients, 3))).astype(int),
        agents_held=random.integers(0, 20, clients),
        excluded=excluded_words,
        minimum=np.array([[10, 0, 0], [0, 32, 0]]),
        **make_tree(
            role=np.zeros(clients, int) if flat else random.integers(1, ROLES + 1, clients),
            role_parent=[-1] if flat else [-1, *[0] * ROLES],
            weight=random.choice([1.0, 2.0], clients),
        ),
    )
    return _refuse(snapshot, round(filters * agents * clients), random)


def _refuse(snapshot: Snapshot, count: int, random: np.random.Generator) -> Snapshot:
    """Refusals of random pairs, large enough to exclude them."""
    agents, clients = len(snapshot.free) - 1, len(snapshot.demand)
    return with_refusals(
        snapshot,
        client=random.integers(0, clients, count),
        agent=random.integers(1, agents + 1, count),
        refused=np.full((count, 3), 10**6),
    )


def measure(label: str, snapshot: Snapshot, spec: PolicySpec, repeats: int) -> None:
    """Print one row of the table."""
    policy = build(spec)
    took_ms = []
    grants = 0
    for seed in range(repeats):
        begin = time.process_time()
        grants = len(policy.allocate(snapshot, seed))
        took_ms.append((time.process_time() - begin) * 1000)
    unit = spec.parameters.get("unit", "")
    sys.stdout.write(
        f"| {label} | {spec.name} {unit} | {spec.selection} | {grants:,} "
        f"| {min(took_ms):.1f} | {statistics.median(took_ms):.1f} |\n"
    )
    sys.stdout.flush()


def main() -> None:
    """Measure the selected policies; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--policies", nargs="*", default=different_policies())
    parser.add_argument(
        "--selections", nargs="*", default=["random", "round_robin", "listed", "joint", "best_fit"]
    )
    parser.add_argument("--small", action="store_true", help="leave out 50,000 x 6,000")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    warm()
    cases: dict[str, dict[str, Any]] = {
        "oblivious 10,000 x 1,000 roles": {},
        "oblivious 10,000 x 1,000 flat": {"flat": True},
        "oblivious 10,000 x 1,000 half refused": {"filters": 0.5},
        "oblivious 10,000 x 1,000 62 % excluded": {"excluded": 0.62},
        "characterised 10,000 x 1,000 roles": {"characterised": True},
        "characterised 10,000 x 1,000 flat": {"characterised": True, "flat": True},
        "oblivious 50,000 x 6,000 roles": {},
        "oblivious 50,000 x 6,000 flat": {"flat": True},
    }
    sys.stdout.write("| case | policy | selection | grants | least ms | median ms |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    for label, options in cases.items():
        if arguments.only not in label or (arguments.small and "50,000" in label):
            continue
        size = (50_000, 6_000) if "50,000" in label else (10_000, 1_000)
        snapshot = synthetic(*size, **options)
        for name in arguments.policies:
            for selection in arguments.selections:
                measure(label, snapshot, PolicySpec(name, selection), arguments.repeats)


if __name__ == "__main__":
    main()
