"""Hostile tenants in a large cluster: `python -m tests.hostile.at_scale [--agents 50000]`.

Prints a table in Markdown. Each scenario plays some allocation intervals on the core, beside an
honest framework that wants everything and gives it back: all that the tenant says in an interval,
then a cycle. A scenario has a process of its own, so that memory can be compared.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from allocator.core import (
    CONSTRAINT_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    RemoveAgent,
    Settings,
    Trail,
    UpdateAgent,
    UpdateFramework,
)
from allocator.explain import explain, take
from allocator.policies import build
from allocator.server.system import loop_cache
from tests.world.rows import given_back, holdings_of, settled

AGENTS, FRAMEWORKS, ROLES, ATTRIBUTES = 50_000, 3000, 1024, 8
UPDATES = 8000
"""A module lets through this many changes of one tenant in an interval."""

HONEST, HOSTILE = 1, 2
INTERVAL_MS = 1000

Scenario = Callable[[Allocator, int], Iterator[None]]
"""Says what a tenant says in each interval."""


def _agent(agent: int, number: int) -> AddAgent:
    attributes = {f"a{name}": f"v{(number >> name) % 8}" for name in range(ATTRIBUTES)}
    capabilities = frozenset({"MULTI_ROLE"})
    info = AgentInfo(f"agent-{agent}", f"host-{number}", attributes, capabilities=capabilities)
    return AddAgent(agent, info, {0: 8000, 1: 8000})


def _tenant(name: str, label: str) -> FrameworkInfo:
    capabilities = frozenset({"MULTI_ROLE"})
    return FrameworkInfo(name, labels={CONSTRAINT_LABEL: label}, capabilities=capabilities)


def _label(number: int, clauses: int = 128) -> str:
    """It asks for what agents have, and for much that no agent has."""
    known = [f"a{name}!=v{(number + name) % 9}" for name in range(ATTRIBUTES)]
    return ";".join([*known, *(f"!x{number}-{name}" for name in range(clauses - len(known)))])


def leaves_its_roles(allocator: Allocator, _: int) -> Iterator[None]:
    """A thousand roles are left and joined, eight times an interval."""
    info, roles = _tenant("leaver", "hostname!=host-1"), tuple(range(2, ROLES + 1))
    allocator.step(AddFramework(HOSTILE, info, roles))
    yield
    for _ in range(3):
        for _ in range(8):
            allocator.step(UpdateFramework(HOSTILE, info, ()))
            allocator.step(UpdateFramework(HOSTILE, info, roles))
        yield


def changes_its_constraint(allocator: Allocator, _: int) -> Iterator[None]:
    """Another constraint with each of 8,000 updates an interval."""
    allocator.step(AddFramework(HOSTILE, _tenant("changer", ""), (2,)))
    yield
    for interval in range(3):
        for update in range(UPDATES):
            label = _label(interval * UPDATES + update, ATTRIBUTES + 1)
            allocator.step(UpdateFramework(HOSTILE, _tenant("changer", label), (2,)))
        yield


def comes_with_large_rules(allocator: Allocator, _: int) -> Iterator[None]:
    """3,000 frameworks come at once, each with 128 clauses of its own."""
    for number in range(FRAMEWORKS):
        info = _tenant(f"tenant-{number}", _label(number))
        allocator.step(AddFramework(HOSTILE + number, info, (2 + number % 100,)))
    yield


def comes_back_to_large_rules(allocator: Allocator, agents: int) -> Iterator[None]:
    """A hundred agents come back as others, one an interval, beside these."""
    yield from comes_with_large_rules(allocator, agents)
    for number in range(min(100, agents - 5)):
        allocator.step(RemoveAgent(5 + number))
        allocator.step(_agent(5 + number, 100_000 + 7 * number))
        yield


def has_many_pairs(allocator: Allocator, _: int) -> Iterator[None]:
    """60 frameworks are in a thousand roles each, and say nothing of any agent."""
    roles, capabilities = tuple(range(2, 1002)), frozenset({"MULTI_ROLE"})
    for number in range(60):
        info = FrameworkInfo(f"tenant-{number}", capabilities=capabilities)
        allocator.step(AddFramework(HOSTILE + number, info, roles))
    for _ in range(3):
        yield


def makes_up_kinds(allocator: Allocator, _: int) -> Iterator[None]:
    """There are 510 more kinds of resources, of which one agent has something."""
    more = range(2, 512)
    allocator.step(Define({kind: Kind(f"made-up-{kind}") for kind in more}, {}))
    allocator.step(UpdateAgent(1, capacity={0: 8000, 1: 8000, **dict.fromkeys(more, 1000)}))
    for _ in range(3):
        yield


def is_asked_about(allocator: Allocator, agents: int) -> Iterator[None]:
    """An explanation of a tenant that excludes every agent in ten roles, in each interval."""
    barring = ";".join(f"a0!=v{value}" for value in range(8))
    info = _tenant("barred", f"{barring};{';'.join(f'x{name}' for name in range(120))}")
    allocator.step(AddFramework(HOSTILE, info, tuple(range(2, 12))))
    yield
    for _ in range(3):
        found = explain(take(allocator, "framework", "barred"), "framework", "barred")
        assert found.clients[0].blockers[0].agents == agents
        yield


SCENARIOS: dict[str, Scenario] = {
    each.__name__.replace("_", "-"): each
    for each in (
        leaves_its_roles,
        changes_its_constraint,
        comes_with_large_rules,
        comes_back_to_large_rules,
        has_many_pairs,
        makes_up_kinds,
        is_asked_about,
    )
}


def _cluster(agents: int) -> Allocator:
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")), trail=Trail())
    allocator.step(Options())
    roles = {handle: f"role-{handle}" for handle in range(1, ROLES + 1)}
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")}, roles))
    for agent in range(1, agents + 1):
        allocator.step(_agent(agent, agent))
    allocator.step(AddFramework(HONEST, FrameworkInfo("honest"), (1,)))
    return allocator


def _cycle(allocator: Allocator) -> int:
    """Decide, and have all offers released; returns on how many agents the honest one has one."""
    made = allocator.allocate(allocator.state.now_ms + INTERVAL_MS)
    allocator.step(settled(made))
    allocator.step(given_back(holdings_of(made)))
    return int(np.count_nonzero(made.framework == HONEST))


def play(name: str, agents: int) -> tuple[float, float, float]:
    """Play a scenario.

    Returns processor seconds of the core, the longest of them from one offer to the honest
    framework to the next, and by how many megabytes memory grew. What cycles cost without the
    tenant is left out.
    """
    allocator = _cluster(agents)
    for _ in range(2):  # the first one loads loops
        usual_s, begun_s = 0.0, time.process_time()
        assert _cycle(allocator) == agents
        usual_s = time.process_time() - begun_s
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total_s = longest_s = waited_s = 0.0
    begun_s = time.process_time()
    for _ in SCENARIOS[name](allocator, agents):
        served = _cycle(allocator)
        now_s = time.process_time()
        waited_s += now_s - begun_s
        total_s += max(0.0, now_s - begun_s - usual_s)
        longest_s, waited_s = max(longest_s, waited_s), 0.0 if served else waited_s
        begun_s = time.process_time()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    return total_s, longest_s, grown_kib / 1024


def main() -> None:
    """Print a row for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--only", choices=SCENARIOS)
    options = parser.parse_args()
    if options.only:
        total_s, longest_s, grown_mib = play(options.only, options.agents)
        text = f"| `{options.only}` | {total_s:.2f} | {longest_s:.2f} | {grown_mib:.0f} |\n"
        sys.stdout.write(text)
        return
    sys.stdout.write("| scenario | processor s | longest wait of an honest one, s | MiB |\n")
    sys.stdout.write("|---|---|---|---|\n")
    for name in SCENARIOS:
        command = [sys.executable, "-m", __spec__.name, "--only", name]
        command += ["--agents", str(options.agents)]
        sys.stdout.flush()
        subprocess.run(command, check=True)


if __name__ == "__main__":
    loop_cache.prepare()
    main()
