"""Random cycles with unmet guarantees: do the module's gates reduce any decision?

``python -m tests.core.random_gates [--cycles 1000000] [--seconds 1500] [--first 0]`` plays small
clusters, ten cycles each, and prints counts. It stops at the first decision that a gate would
reduce, and prints the number of that cluster; ``--first N`` starts with it.

Agents hold more than they have: a client receives its guarantee, and later in the cycle more of the
same agent. Between cycles offers are returned or used, and quotas change.
"""

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np

from allocator.core import PolicySpec
from allocator.core.books.quota import bounds_of, quota_tree
from allocator.core.cycle.decisions import Decisions
from tests.world.rows import given_back, holdings_of, settled
from tests.world.world import World

POLICIES = ("drf", "choosy", "ps-dsf", "tsf", "bf-drf", "asset")
MODES = ("oblivious", "characterised")
CYCLES = 10
ROLES = ("a", "b", "c")


def some(chance: np.random.Generator, least: int, most: int) -> str:
    """Random amounts of both resources, from `least` to `most`."""
    cpus, mem = chance.integers(least, most + 1, 2)
    return f"cpus:{cpus};mem:{mem}"


def random_world(chance: np.random.Generator, spec: PolicySpec) -> World:
    """Few agents, three roles, guarantees met or unmet, agents that shrank."""
    world = World(spec)
    agents = [world.agent(some(chance, 1, 15)) for _ in range(chance.integers(1, 4))]
    shrunk = world.agent("cpus:12;mem:12")
    frameworks = []
    for _ in range(chance.integers(2, 6)):
        role = str(chance.choice(ROLES))
        frameworks.append((world.framework(role), role))
        if spec.mode == "characterised":
            world.demand(frameworks[-1][0], some(chance, 1, 2))
    for agent in (*agents, shrunk):
        for framework, role in frameworks:
            if chance.random() < 0.3:
                world.hold(framework, role, agent, some(chance, 0, 3))
    world.update_agent(shrunk, "")
    for role in ROLES[: chance.integers(1, 4)]:
        world.quota(role, some(chance, 0, 6), "")
    return world


def cut_off(made: Decisions, before: dict) -> list[str]:
    """Decisions that the module's gates would reduce, judged one after the other.

    A naive implementation; guarantees of Mesos apply to roles at the top.
    """
    names, free, lacks = before["names"], before["free"].copy(), before["lacks"]
    found = []
    for row in range(len(made)):
        top = before["top"][int(made.role[row])]
        for kind, amount in zip(made.kind.tolist(), made.amount[row].tolist(), strict=True):
            name = names[kind]
            required = sum(each[name] for each in lacks.values())
            own = lacks[top][name] if top in lacks else 0
            if required > own and amount > own + max(0, free[name] - required):
                found.append(f"{row}: {amount} of {name}, {own=} {required=} {free[name]=}")
        for kind, amount in zip(made.kind.tolist(), made.amount[row].tolist(), strict=True):
            name = names[kind]
            free[name] -= amount
            if top in lacks:
                lacks[top][name] = max(0, lacks[top][name] - amount)
    return found


def books(world: World) -> dict:
    """State of the gates before the first decision."""
    state = world.allocator.state
    tree, columns = quota_tree(state), list(state.space.names)
    bounds, _ = bounds_of(state, tree)
    return {
        "names": [kind.name for kind in state.space.kinds if kind],
        "free": dict(zip(columns, bounds.available.tolist(), strict=True)),
        "lacks": {
            path: dict(zip(columns, bounds.owed[row].tolist(), strict=True))
            for row, path in enumerate(tree.path)
        },
        "top": {role: path.partition("/")[0] for role, path in enumerate(state.roles.path)},
    }


def several_lack(before: dict) -> bool:
    """Whether the guarantees of several roles are unmet."""
    return sum(any(owed.values()) for owed in before["lacks"].values()) > 1


def cycles(seed: int) -> Iterator[tuple[bool, Decisions, list[str]]]:
    """Play a cluster; returns for each cycle whether several guarantees were unmet, and its result.

    A result consists of the decisions, and those of them that a gate would reduce.
    """
    chance = np.random.default_rng(seed)
    mode, name = MODES[seed % 2], POLICIES[seed // 2 % len(POLICIES)]
    world = random_world(chance, PolicySpec(name, mode=mode))
    for _ in range(CYCLES):
        before = books(world)
        lack = several_lack(before)
        world.now_ms += world.interval_ms
        made = world.allocator.allocate(world.now_ms)
        assert not world.allocator.last_cycle.policy_error
        yield lack, made, cut_off(made, before)
        if len(made):
            world.tell(settled(made))
            back = chance.random(len(made)) < 0.8
            world.tell(given_back(holdings_of(made).cut(back)))
        if chance.random() < 0.3:
            world.quota(str(chance.choice(ROLES)), some(chance, 0, 6), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    ends_s = time.monotonic() + options.seconds
    played = lacking = decisions = 0
    seed = options.first
    while played < options.cycles and time.monotonic() < ends_s:
        for lack, made, wrong in cycles(seed):
            played += 1
            lacking += lack
            decisions += len(made)
            if wrong:
                print(f"cluster {seed}: {wrong}")
                return 1
        seed += 1
    print(f"{played} cycles, {lacking} of them where several roles lack guarantees;", end=" ")
    print(f"{decisions} decisions, none that a gate makes smaller")
    return 0


if __name__ == "__main__":
    sys.exit(main())
