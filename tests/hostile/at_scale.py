"""Hostile tenants in a large cluster: `python -m tests.hostile.at_scale [--agents 5000]`.

Prints a table in Markdown. Each scenario plays some allocation intervals on the core: the tenant's
events, then a cycle. An honest framework takes everything and releases it. Each scenario runs in
its own process, so that their memory can be compared.

``--keep`` stores the figures for `docs/explanation/hostile-tenants.md`, which `make docs` writes.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    PlanningPolicy,
    PolicySpec,
    RemoveAgent,
    SetCap,
    SetPolicy,
    Settings,
    Trail,
    UpdateAgent,
    UpdateFramework,
)
from allocator.explain import explain, take
from allocator.policies import build
from allocator.server.system import loop_cache
from tests.world.rows import given_back, settled

KEPT = Path("tools", "docs", "data", "hostile-at-scale.json")
"""Relative to the working directory."""

AGENTS, FRAMEWORKS, ROLES, ATTRIBUTES = 50_000, 3000, 1024, 20
UPDATES = 8000
"""Maximum updates of one tenant that a module forwards in an interval."""

WARM_UP = 10
"""Cycles before a scenario; their records take as much memory as is kept of past cycles."""

HONEST, HOSTILE = 1, 2
INTERVAL_MS = 1000

CAPS = {
    "framework": {"cpus": 60_000},
    "principal": {"tasks": 50_000, "agents": 40_000},
    "user": {"agents": 30_000},
}
"""Caps of each role by kind of holder, in thousandths; the last one binds first."""

Scenario = Callable[[Allocator, int], Iterator[int]]
"""Applies a tenant's events of each interval; yields how long the honest framework refuses what it
releases, in milliseconds, -1 if it does not.
"""


class Cost(NamedTuple):
    """The cost of a scenario.

    core_s: processor seconds of the core, without the usual cost of cycles.
    wait_s: the longest time between two offers to the honest framework, in processor seconds.
    grown_mib: growth of peak memory.
    """

    core_s: float
    wait_s: float
    grown_mib: float


def agent_of(agent: int, number: int) -> AddAgent:
    """An agent; its number determines its attributes."""
    attributes = {f"a{name}": f"v{(number >> name) % 8}" for name in range(ATTRIBUTES)}
    capabilities = frozenset({"MULTI_ROLE"})
    info = AgentInfo(f"agent-{agent}", f"host-{number}", attributes, capabilities=capabilities)
    return AddAgent(agent, info, {0: 8000, 1: 8000})


def _tenant(name: str, label: str) -> FrameworkInfo:
    capabilities = frozenset({"MULTI_ROLE"})
    return FrameworkInfo(name, labels={CONSTRAINT_LABEL: label}, capabilities=capabilities)


def _label(number: int, clauses: int = 128) -> str:
    """A label with clauses on attributes of agents, and many on unknown attributes."""
    known = [f"a{name}!=v{(number + name) % 9}" for name in range(ATTRIBUTES)]
    return ";".join([*known, *(f"!x{number}-{name}" for name in range(clauses - len(known)))])


def leaves_its_roles(allocator: Allocator, _: int) -> Iterator[int]:
    """Leaves and joins a thousand roles, eight times an interval."""
    info, roles = _tenant("leaver", "hostname!=host-1"), tuple(range(2, ROLES + 1))
    allocator.step(AddFramework(HOSTILE, info, roles))
    yield -1
    for _ in range(3):
        for _ in range(8):
            allocator.step(UpdateFramework(HOSTILE, info, ()))
            allocator.step(UpdateFramework(HOSTILE, info, roles))
        yield -1


def changes_its_constraint(allocator: Allocator, _: int) -> Iterator[int]:
    """Changes its constraint 8,000 times an interval."""
    allocator.step(AddFramework(HOSTILE, _tenant("changer", ""), (2,)))
    yield -1
    for interval in range(3):
        for update in range(UPDATES):
            label = _label(interval * UPDATES + update, ATTRIBUTES + 1)
            allocator.step(UpdateFramework(HOSTILE, _tenant("changer", label), (2,)))
        yield -1


def comes_with_large_rules(
    allocator: Allocator, _: int, frameworks: int = FRAMEWORKS
) -> Iterator[int]:
    """3,000 frameworks register at once, each with 128 clauses of its own."""
    for number in range(frameworks):
        info = _tenant(f"tenant-{number}", _label(number))
        allocator.step(AddFramework(HOSTILE + number, info, (2 + number % 100,)))
    yield -1


def comes_back_to_large_rules(allocator: Allocator, agents: int) -> Iterator[int]:
    """As comes-with-large-rules; then an agent returns as another one each interval."""
    yield from comes_with_large_rules(allocator, agents)
    for number in range(min(100, agents - 5)):
        allocator.step(RemoveAgent(5 + number))
        allocator.step(agent_of(5 + number, 100_000 + 7 * number))
        yield -1


def names_hosts(allocator: Allocator, _: int = 0, frameworks: int = FRAMEWORKS) -> Iterator[int]:
    """3,000 frameworks name 128 hosts each, half of which the next framework names, too."""
    for number in range(frameworks):
        hosts = "|".join(f"host-{64 * number + name}" for name in range(128))
        label = f"a0!=v{number % 9};hostname!={hosts}"
        info = _tenant(f"tenant-{number}", label)
        allocator.step(AddFramework(HOSTILE + number, info, (2 + number % 100,)))
    yield -1


def comes_back_to_named_hosts(allocator: Allocator, agents: int) -> Iterator[int]:
    """As names-hosts; then twenty agents with named hosts return each interval."""
    yield from names_hosts(allocator)
    for interval in range(50):
        for number in range(min(20, agents - 5)):
            allocator.step(RemoveAgent(5 + number))
            allocator.step(agent_of(5 + number, 20 * interval + number))
            assert allocator.state.eligibility.excluded.row[:, 5 + number].any()
        yield -1


def has_many_pairs(allocator: Allocator, _: int) -> Iterator[int]:
    """60 frameworks subscribe to a thousand roles each, without constraints."""
    roles, capabilities = tuple(range(2, 1002)), frozenset({"MULTI_ROLE"})
    for number in range(60):
        info = FrameworkInfo(f"tenant-{number}", capabilities=capabilities)
        allocator.step(AddFramework(HOSTILE + number, info, roles))
    for _ in range(3):
        yield -1


def bars_half_in_many_roles(allocator: Allocator, _: int) -> Iterator[int]:
    """60 frameworks with a thousand roles each exclude half of the agents.

    The honest framework refuses all agents.
    """
    roles, info = tuple(range(2, 1002)), _tenant("tenant", "a0=v0|v2|v4|v6")
    for number in range(60):
        allocator.step(AddFramework(HOSTILE + number, info, roles))
    for _ in range(3):
        yield INTERVAL_MS // 2


def bars_half_alone(allocator: Allocator, _: int) -> Iterator[int]:
    """One framework excludes half of the agents in a thousand roles."""
    info = _tenant("tenant", "a0=v0|v2|v4|v6")
    allocator.step(AddFramework(HOSTILE, info, tuple(range(2, 1002))))
    for _ in range(3):
        yield -1


def bars_half_beside_many_pairs(allocator: Allocator, agents: int) -> Iterator[int]:
    """As has-many-pairs; then one framework excludes half of the agents in a thousand roles."""
    yield from has_many_pairs(allocator, agents)
    info = _tenant("tenant", "a0=v0|v2|v4|v6")
    allocator.step(AddFramework(HOSTILE + 60, info, tuple(range(2, 1002))))
    for _ in range(3):
        yield -1


def refuses_in_many_roles(allocator: Allocator, _: int) -> Iterator[int]:
    """A framework with a thousand roles refuses all that it is offered, as the honest one does."""
    info = FrameworkInfo("tenant", capabilities=frozenset({"MULTI_ROLE"}))
    allocator.step(AddFramework(HOSTILE, info, tuple(range(2, 1002))))
    for _ in range(15):
        yield 600_000


def makes_up_kinds(allocator: Allocator, _: int, kinds: int = 512) -> Iterator[int]:
    """Agents have 510 additional kinds of resources, all on one of them."""
    more = range(2, kinds)
    allocator.step(Define({kind: Kind(f"made-up-{kind}") for kind in more}, {}))
    allocator.step(UpdateAgent(1, capacity={0: 8000, 1: 8000, **dict.fromkeys(more, 1000)}))
    for _ in range(4):
        yield -1


def reserves_for_many_roles(allocator: Allocator, _: int, kinds: int = 320) -> Iterator[int]:
    """Reserves for 318 roles on one agent. The honest framework refuses all agents."""
    more = range(2, kinds)
    reserved = {each: Kind("mem", reserved_role=f"role-{each}", depth=1) for each in more}
    allocator.step(Define(reserved, {}))
    allocator.step(UpdateAgent(1, capacity={0: 8000, 1: 8000, **dict.fromkeys(more, 1000)}))
    for _ in range(4):
        yield 600_000


def needs_a_thousandth(allocator: Allocator, _: int, frameworks: int = 300) -> Iterator[int]:
    """300 frameworks have tasks of a thousandth of a CPU, and the mode grants whole tasks."""
    allocator.step(SetPolicy(PolicySpec("drf", mode="characterised")))
    for number in range(frameworks):
        info = FrameworkInfo(f"tenant-{number}", labels={DEMAND_LABEL: "cpus:0.001"})
        allocator.step(AddFramework(HOSTILE + number, info, (2 + number,)))
    for _ in range(3):
        yield -1


def has_many_users(allocator: Allocator, _: int, frameworks: int = FRAMEWORKS) -> Iterator[int]:
    """3,000 frameworks, each of a user and a principal of its own, below caps for all of these."""
    allocator.step(SetPolicy(PolicySpec("drf", mode="characterised")))
    for number in range(100):
        for per, cap in CAPS.items():
            allocator.step(SetCap(f"role-{2 + number}", per, cap))
    for number in range(frameworks):
        name = f"tenant-{number}"
        info = FrameworkInfo(name, user=name, principal=name, labels={DEMAND_LABEL: "cpus:1"})
        allocator.step(AddFramework(HOSTILE + number, info, (2 + number % 100,)))
    for _ in range(3):
        yield -1


def is_asked_about(allocator: Allocator, agents: int) -> Iterator[int]:
    """Each interval asks for an explanation of a tenant that excludes every agent in ten roles."""
    barring = ";".join(f"a0!=v{value}" for value in range(8))
    info = _tenant("barred", f"{barring};{';'.join(f'x{name}' for name in range(120))}")
    allocator.step(AddFramework(HOSTILE, info, tuple(range(2, 12))))
    yield -1
    for _ in range(3):
        found = explain(take(allocator, "framework", "barred"), "framework", "barred")
        assert found.clients[0].blockers[0].agents == agents
        yield -1


def is_planned_for(allocator: Allocator, agents: int) -> Iterator[int]:
    """As bars-half-in-many-roles; the observer makes a plan by pf-exact each interval."""
    policy = build(PolicySpec("pf-exact"))
    assert isinstance(policy, PlanningPolicy)
    for refuse_ms in bars_half_in_many_roles(allocator, agents):
        problem = allocator.problem()
        assert problem is not None
        assert policy.plan(problem).target.any()
        yield refuse_ms


SCENARIOS: dict[str, Scenario] = {
    each.__name__.replace("_", "-"): each
    for each in (
        leaves_its_roles,
        changes_its_constraint,
        comes_with_large_rules,
        comes_back_to_large_rules,
        names_hosts,
        comes_back_to_named_hosts,
        has_many_pairs,
        bars_half_in_many_roles,
        bars_half_alone,
        bars_half_beside_many_pairs,
        refuses_in_many_roles,
        makes_up_kinds,
        reserves_for_many_roles,
        needs_a_thousandth,
        has_many_users,
        is_asked_about,
        is_planned_for,
    )
}


def cluster(agents: int) -> Allocator:
    """A cluster with an honest framework."""
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")), trail=Trail())
    allocator.step(Options())
    roles = {handle: f"role-{handle}" for handle in range(1, ROLES + 1)}
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")}, roles))
    for agent in range(1, agents + 1):
        allocator.step(agent_of(agent, agent))
    allocator.step(AddFramework(HONEST, FrameworkInfo("honest"), (1,)))
    return allocator


def _cycle(allocator: Allocator, refuse_ms: int = -1) -> int:
    """Run a cycle, and release all offers; returns the number of offers to the honest one."""
    made = allocator.allocate(allocator.state.now_ms + INTERVAL_MS)
    allocator.step(settled(made))
    for rows in made.groups:  # one event per group, as a module reports them
        allocator.step(given_back(rows, refuse_ms))
    return int(np.count_nonzero(made.framework == HONEST))


def play(name: str, agents: int) -> Cost:
    """Measure a scenario."""
    allocator = cluster(agents)
    # The first cycles load compiled loops, also those for exclusions, and fill the trail.
    barred = allocator.state.eligibility
    for turn in range(WARM_UP):
        label = "hostname!=host-1" if turn == 0 else ""
        allocator.step(UpdateFramework(HONEST, _tenant("honest", label), (1,)))
        assert barred.excluded.row.any() == (turn == 0)
        usual_s, begun_s = 0.0, time.process_time()
        assert _cycle(allocator) == agents - (turn == 0)
        usual_s = time.process_time() - begun_s
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total_s = longest_s = waited_s = 0.0
    begun_s = time.process_time()
    for refuse_ms in SCENARIOS[name](allocator, agents):
        served = _cycle(allocator, refuse_ms)
        now_s = time.process_time()
        waited_s += now_s - begun_s
        total_s += max(0.0, now_s - begun_s - usual_s)
        longest_s, waited_s = max(longest_s, waited_s), 0.0 if served else waited_s
        begun_s = time.process_time()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    return Cost(total_s, longest_s, grown_kib / 1024)


def _keep(name: str, cost: Cost, agents: int) -> None:
    """Store a row in the data file."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    kept["does"] = {
        name: " ".join((each.__doc__ or "").split()) for name, each in SCENARIOS.items()
    }
    row = [round(cost.core_s, 2), round(cost.wait_s, 2), round(cost.grown_mib)]
    kept.setdefault("cost", {}).setdefault(str(agents), {})[name] = row
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Print a row for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--keep", action="store_true", help="for the page in docs")
    options = parser.parse_args()
    if options.only:
        cost = play(options.only, options.agents)
        text = f"{cost.core_s:.2f} | {cost.wait_s:.2f} | {cost.grown_mib:.0f}"
        sys.stdout.write(f"| `{options.only}` | {text} |\n")
        if options.keep:
            _keep(options.only, cost, options.agents)
        return
    sys.stdout.write("| scenario | processor s | longest wait of an honest one, s | MiB |\n")
    sys.stdout.write("|---|---|---|---|\n")
    for name in SCENARIOS:
        command = [sys.executable, "-m", __spec__.name, "--only", name]
        command += ["--agents", str(options.agents)]
        command += ["--keep"] if options.keep else []
        sys.stdout.flush()
        subprocess.run(command, check=True)


if __name__ == "__main__":
    loop_cache.prepare()
    main()
