"""Small clusters, and what one scrape says of them."""

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest

from allocator import policies
from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Options,
    PolicySpec,
    Settings,
    SetWeights,
)
from allocator.server import report
from allocator.server.metric_families import Scrape, StateCollector
from allocator.wire import Counts
from tests.server.scraping import Samples, samples

GIB = 1024 * 1000  # thousandths of a MiB
NESTED = frozenset({"HIERARCHICAL_ROLE"})


def holdings(*rows: tuple[int, int, int, int, int]) -> Holdings:
    """Rows of (framework, role, agent, thousandths of cpus, thousandths of MiB)."""
    table = np.array(rows, np.int64).reshape(-1, 5)
    return Holdings(table[:, 0], table[:, 1], table[:, 2], np.array([0, 1]), table[:, 3:])


def nsdi(*, flat: bool = True, **settings) -> Allocator:
    """9 CPUs and 18 GB on two agents; A uses 3 and 12, B uses 6 and 2 (NSDI 2011, sec. 4.1)."""
    spec = PolicySpec("drf", flat=flat)
    allocator = Allocator(policies.build, Settings(policy=spec, **settings))
    for event in (
        Options(),
        Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops", 3: "eng/ads"}),
        AddAgent(1, AgentInfo("a1", capabilities=NESTED), {0: 5000, 1: 10 * GIB}),
        AddAgent(2, AgentInfo("a2", capabilities=NESTED), {0: 4000, 1: 8 * GIB}),
        AddFramework(1, FrameworkInfo("id-A", name="A"), (3,)),
        AddFramework(2, FrameworkInfo("id-B", name="B"), (2,)),
        SetWeights({"eng": 2.0, "eng/ads": 4.0}),
        Hold(holdings((1, 3, 1, 3000, 10 * GIB), (1, 3, 2, 0, 2 * GIB))),
        Hold(holdings((2, 2, 2, 4000, 2 * GIB), (2, 2, 1, 2000, 0))),
    ):
        allocator.step(event)
    return allocator


def scrape(
    allocator: Allocator, counts: Counts | None = None, *, frameworks_max=100, roles_max=100
) -> Samples:
    taken = Scrape(
        report=report.read(allocator),
        counts=counts or Counts(),
        cycle_buckets=[("0.1", 3), ("+Inf", 4)],
        cycle_total_s=1.5,
        journal_errors=2,
        sessions=3,
        filters_forgotten=0,
        in_session=True,
        age_s=0.25,
    )
    registry = CollectorRegistry()
    limits = {"frameworks_max": frameworks_max, "roles_max": roles_max}
    registry.register(StateCollector(lambda: taken, **limits))
    return samples(generate_latest(registry).decode())


def crowd(frameworks: int, roles: int) -> Allocator:
    """So many frameworks; each holds its number of thousandths of a CPU in role number % roles."""
    allocator = Allocator(policies.build, Settings())
    paths = {role + 1: f"role{role}" for role in range(roles)}
    allocator.step(Options())
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")}, paths))
    allocator.step(AddAgent(1, AgentInfo("a"), {0: 10**9, 1: 10**9}))
    for number in range(1, frameworks + 1):
        info = FrameworkInfo(f"id-{number}", name="same for all")
        allocator.step(AddFramework(number, info, (1 + number % roles,)))
    rows = [(each, 1 + each % roles, 1, each, 0) for each in range(1, frameworks + 1)]
    allocator.step(Hold(holdings(*rows)))
    return allocator
