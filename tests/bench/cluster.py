"""Synthetic clusters for the benchmarks: heterogeneous agents, frameworks spread over roles."""

from collections.abc import Iterator

from allocator.core import (
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    Event,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    Settings,
    Trail,
)
from allocator.policies import POLICIES, build
from allocator.server.system import loop_cache
from tests.world.rows import given_back, holdings_of, settled

loop_cache.prepare()

SHAPES = [
    (4, 14),
    (8, 8),
    (6, 11),
    (16, 64),
    (32, 128),
    (48, 96),
    (8, 64),
    (64, 256),
    (12, 24),
    (2, 8),
]
"""CPUs and GiB of memory of the ten types of agents."""
TASKS = [(1, 2), (2, 1), (1, 4), (4, 4), (0.5, 1), (2, 8), (1, 1), (3, 2)]
"""CPUs and GiB of memory of one task, by type of framework."""
GIB = 1024


def cluster(
    agents: int, frameworks: int, spec: PolicySpec, roles: int = 100, *, trail: bool = True
) -> Allocator:
    """Make an allocator with these agents and frameworks; all resources are free.

    trail: whether it records recent cycles, as in a sidecar.
    """
    allocator = Allocator(build, Settings(policy=spec), trail=Trail() if trail else None)
    allocator.step(Options())
    for event in arrivals(agents, frameworks, roles):
        allocator.step(event)
    return allocator


def arrivals(agents: int, frameworks: int, roles: int = 100) -> Iterator[Event]:
    """Add agents and frameworks, as a master does."""
    kinds = {0: Kind("cpus"), 1: Kind("mem"), 2: Kind("disk")}
    roles = min(roles, frameworks)
    yield Define(kinds=kinds, roles={handle: f"role-{handle}" for handle in range(1, roles + 1)})
    for agent in range(1, agents + 1):
        cpus, gib = SHAPES[agent % len(SHAPES)]
        capacity = {0: cpus * 1000, 1: gib * GIB * 1000, 2: 100 * GIB * 1000}
        yield AddAgent(agent, AgentInfo(f"agent-{agent}"), capacity)
    for framework in range(1, frameworks + 1):
        task_cpus, task_gib = TASKS[framework % len(TASKS)]
        label = f"cpus:{task_cpus};mem:{task_gib * GIB}"
        info = FrameworkInfo(f"framework-{framework}", labels={DEMAND_LABEL: label})
        yield AddFramework(framework, info, (1 + framework % roles,))


def settle(allocator: Allocator, made: Decisions) -> None:
    """Report that every decision became an offer."""
    allocator.step(settled(made))


def decline(allocator: Allocator, made: Decisions) -> None:
    """Decline every offer, without a filter."""
    allocator.step(given_back(holdings_of(made)))


def different_policies() -> list[str]:
    """The policies of the registry, but only the first of those with the same ranking."""
    ranks: dict[object, str] = {}
    for name, entry in POLICIES.items():
        ranks.setdefault(entry.criterion() if entry.criterion else name, name)
    return list(ranks.values())
