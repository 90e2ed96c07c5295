"""Lists loops that are compiled after warming; runs as a process of its own.

Prints what a warm sidecar would still have to compile while it serves, one line each.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from allocator.core.numba.compiled import Loop
from allocator.server.system import compilation, loop_cache

EVENTS = 400


def loops() -> Iterator[tuple[str, Loop]]:
    """All loops that Python calls, of all loaded modules."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("allocator."):
            for key, value in sorted(vars(module).items()):
                if isinstance(value, Loop) and value.entry and value.__module__ == name:
                    yield f"{name}.{key}", value


def compiled() -> dict[str, int]:
    """For each loop the number of argument types it is compiled for."""
    return {
        name: len(loop.dispatcher.signatures) if "dispatcher" in vars(loop) else 0
        for name, loop in loops()
    }


def play_sessions() -> None:
    """Run a cycle of every policy in both modes, on a cluster with all features."""
    from allocator.policies import POLICIES
    from tests.endurance.growth import Load
    from tests.laboratory.master.masters import wire_link

    for name in POLICIES:
        for mode in ("oblivious", "characterised"):
            Load(1, wire_link(name, mode, 1)).play(EVENTS)


def make_plans() -> None:
    """Make plans by every planning policy for clusters of several shapes."""
    from allocator.core import PlanningPolicy, PolicySpec
    from allocator.policies import POLICIES, build
    from allocator.testing import problem_of, static_snapshot

    random = np.random.default_rng(1)
    for name, entry in POLICIES.items():
        choices = [{key: value} for key, some in entry.parameters.items() for value in some]
        for parameters in choices or [{}]:
            policy = build(PolicySpec(name, parameters=parameters))
            if isinstance(policy, PlanningPolicy):
                for _ in range(5):
                    agents, clients = random.integers(1, 8, 2)
                    capacity = random.integers(0, 9, (agents, 2)).tolist()
                    demand = random.integers(0, 3, (clients, 2)).tolist()
                    # With so few agents, whole ones to single owners are refused.
                    with suppress(ValueError):
                        policy.plan(problem_of(static_snapshot(capacity, demand)))


if __name__ == "__main__":
    loop_cache.prepare()
    compilation.load()
    before = compiled()
    play_sessions()
    make_plans()
    for name, count in compiled().items():
        # A solver's repairs serve experiments; no plan starts from the previous one.
        served = not name.startswith("allocator.solvers.") or count
        if served and (count, before.get(name, 0)) != (1, 1):
            told = f"{name}: {before.get(name, 0)} after warming, {count} after sessions"
            sys.stdout.write(f"{told}\n")
    sys.stdout.write(f"loops: {len(before)}\n")
