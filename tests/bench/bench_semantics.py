"""Cost of Mesos's rules in a cycle: quotas of thousands of roles, millions of active filters.

Also the cost of tenants with a thousand roles each.

Measures `Allocator.allocate` on each cluster with the rule and without it, in the same run. Prints
a table in Markdown, in milliseconds of processor time.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from allocator.core import (
    CONSTRAINT_LABEL,
    AddFilters,
    AddFramework,
    Allocator,
    Define,
    FrameworkInfo,
    Holdings,
    PolicySpec,
    SetQuota,
)
from tests.bench.cluster import cluster, decline, settle
from tests.bench.yardstick import clock_ms

FAR_MS = 2**50


def measure(allocator: Allocator, repeats: int) -> tuple[float, float, int]:
    """Smallest and median time of a cycle, and its decisions; offers are declined in between."""
    took_ms = []
    now_ms = allocator.state.now_ms + 1000
    made = allocator.allocate(now_ms)
    for cycle in range(repeats):
        settle(allocator, made)
        decline(allocator, made)
        made, each_ms = clock_ms(allocator.allocate, now_ms + 1000 * (1 + cycle))
        took_ms.append(each_ms)
    assert not allocator.last_cycle.policy_error, allocator.last_cycle.policy_error
    settle(allocator, made)
    decline(allocator, made)
    return min(took_ms), statistics.median(took_ms), len(made)


def quotas(spec: PolicySpec, size: int) -> Allocator:
    """Make a cluster of equally many roles, frameworks and agents; each role has a quota."""
    allocator = cluster(size, size, spec, roles=size)
    for role in range(1, size + 1):
        guarantee = {"cpus": 2000, "mem": 4096_000}
        limit = {"cpus": 8000, "mem": 16_384_000}
        allocator.step(SetQuota(f"role-{role}", guarantee, limit))
    return allocator


ROLES = 600
"""A large cluster; each role has a guarantee and a limit, and the limits add up to half of it."""


def used_up(spec: PolicySpec) -> Allocator:
    """A large cluster in which limits are used up while much is free."""
    allocator = cluster(50_000, 6_000, spec, roles=ROLES)
    total = allocator.state.agents.capacity.sum(axis=1)
    half, some = ({"cpus": int(total[0]) // part} for part in (2 * ROLES, 50 * ROLES))
    for role in range(1, ROLES + 1):
        allocator.step(SetQuota(f"role-{role}", some, half))
    return allocator


def refuse(allocator: Allocator, part: float) -> None:
    """Every framework refuses this amount of every agent, forever."""
    clients = np.flatnonzero(allocator.state.clients.framework)
    agents = np.flatnonzero(allocator.state.agents.bound)
    kind = np.arange(len(allocator.state.space))
    amount = np.ceil(allocator.state.agents.capacity[:, agents].T * part).astype(np.int64)
    for client in clients.tolist():
        framework = np.full(len(agents), allocator.state.clients.framework[client])
        role = np.full(len(agents), allocator.state.clients.role[client])
        refused = Holdings(framework, role, agents, kind, amount)
        allocator.step(AddFilters(refused, np.full(len(agents), FAR_MS)))


MANY_ROLES = 1024


def in_many_roles(spec: PolicySpec, agents: int, tenants: int, least: int | None) -> Allocator:
    """A large cluster in which some tenants are in many roles each.

    `least`: their minimum in each role, in thousandths of CPUs. None: instead, a constraint that
        no agent meets.
    """
    allocator = cluster(agents, 100, spec)
    roles = range(1001, 1001 + MANY_ROLES)
    allocator.step(Define(roles={role: f"many-{role}" for role in roles}))
    minimum = {role: ({"cpus": least},) for role in roles} if least else {}
    labels = {} if least else {CONSTRAINT_LABEL: "nope"}
    for tenant in range(101, 101 + tenants):
        info = FrameworkInfo(f"tenant-{tenant}", labels=labels, minimum=minimum)
        allocator.step(AddFramework(tenant, info, tuple(roles)))
    return allocator


def row(label: str, made: Callable[[], Allocator], repeats: int) -> str:
    """One row of the table."""
    least_ms, median_ms, decisions = measure(made(), repeats)
    return f"| {label} | {decisions:,} | {least_ms:.1f} | {median_ms:.1f} |"


def _the_same(allocator: Allocator) -> Allocator:
    return allocator


def beside_tenants(repeats: int) -> Iterator[str]:
    """Rows of clusters without and with tenants of many roles."""
    for agents, selection, mode in (
        (50_000, "random", "oblivious"),
        (50_000, "joint", "oblivious"),
        (5_000, "random", "characterised"),
    ):
        spec = PolicySpec("drf", selection, mode)
        for tenants, least, said in (
            (0, None, "no other"),
            (6, None, "a constraint that no agent meets"),
            (6, 10**9, "a minimum that no agent reaches"),
            (6, 100, "a minimum that any agent reaches"),
        ):
            label = (
                f"{agents:,} x 100, drf {selection} {mode}; {tenants} more of {MANY_ROLES:,} roles"
            )
            made = partial(in_many_roles, spec, agents, tenants, least)
            yield row(f"{label}, {said}", made, repeats)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--size", type=int, default=3000, help="roles, frameworks and agents")
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--frameworks", type=int, default=1_000)
    arguments = parser.parse_args()
    print("| cluster | decisions | least ms | median ms |")
    print("|---|---|---|---|")
    size, repeats = arguments.size, arguments.repeats
    for name, selection, mode in (
        ("drf", "random", "oblivious"),
        ("drf", "joint", "oblivious"),
        ("ps-dsf", "random", "oblivious"),
        ("drf", "random", "characterised"),
    ):
        spec = PolicySpec(name, selection, mode)
        label = f"{size:,} roles, frameworks, agents; {name} {selection} {mode}"
        without = partial(cluster, size, size, spec, roles=size)
        print(row(f"{label}; no quota", without, repeats), flush=True)
        print(row(f"{label}; quotas", partial(quotas, spec, size), repeats), flush=True)
    for selection in ("random", "best_fit"):
        spec = PolicySpec("drf", selection)
        label = f"50,000 x 6,000, {ROLES} roles; drf {selection}"
        without = partial(cluster, 50_000, 6_000, spec, roles=ROLES)
        print(row(f"{label}; no quota", without, repeats), flush=True)
        print(row(f"{label}; limits used up", partial(used_up, spec), repeats), flush=True)
    for each in beside_tenants(repeats):
        print(each, flush=True)
    spec = PolicySpec("drf", "random")
    agents, frameworks = arguments.agents, arguments.frameworks
    for part, said in ((0.0, "no filters"), (0.5, "filters on half of it"), (1.0, "all refused")):
        allocator = cluster(agents, frameworks, spec)
        if part:
            refuse(allocator, part)
        label = f"{agents:,} x {frameworks:,}; {said} ({len(allocator.state.filters):,} in force)"
        print(row(label, partial(_the_same, allocator), repeats), flush=True)


if __name__ == "__main__":
    main()
