"""No decision is larger than the module's gates let it be, which judge one after the other.

Seen where agents hold more than they have, and several roles lack their guarantees: a client is
then given what it is owed, and later in the cycle more of the same agent.
"""

import os

import numpy as np
import pytest

from allocator.core import PolicySpec
from allocator.core.books.quota import bounds_of, quota_tree
from allocator.core.cycle.decisions import Decisions
from tests.world.world import World

CASES = int(os.environ.get("GATE_CASES", "40"))
POLICIES = ("drf", "choosy", "ps-dsf", "tsf", "bf-drf", "asset")


def random_world(chance: np.random.Generator, spec: PolicySpec) -> World:
    """Few agents, three roles, guarantees that are met or not, agents that shrank."""
    world = World(spec)
    roles = ("a", "b", "c")

    def some(most: int) -> str:
        return f"cpus:{chance.integers(0, most + 1)};mem:{chance.integers(0, most + 1)}"

    def pick(most: int) -> str:
        return f"cpus:{chance.integers(1, most)};mem:{chance.integers(1, most)}"

    agents = [world.agent(pick(16)) for _ in range(chance.integers(1, 4))]
    shrunk = world.agent("cpus:12;mem:12")
    frameworks = []
    for _ in range(chance.integers(2, 6)):
        role = str(chance.choice(roles))
        frameworks.append((world.framework(role), role))
        if spec.mode == "characterised":
            world.demand(frameworks[-1][0], pick(3))
    for agent in (*agents, shrunk):
        for framework, role in frameworks:
            if chance.random() < 0.3:
                world.hold(framework, role, agent, some(3))
    world.update_agent(shrunk, "")
    for role in roles[: chance.integers(1, 4)]:
        world.quota(role, some(6), "")
    return world


def cut_off(world: World, made: Decisions, before: dict) -> list[str]:
    """Judge decisions one after the other, as the module's gates do: which would be made smaller?

    The slow obvious twin: the guarantees of Mesos are for roles at the top.
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
    """What gates know before the first decision."""
    state = world.allocator.state
    tree, columns = quota_tree(state), list(state.space.names)
    bounds = bounds_of(state, tree)
    return {
        "names": [kind.name for kind in state.space.kinds if kind],
        "free": dict(zip(columns, bounds.available.tolist(), strict=True)),
        "lacks": {
            path: dict(zip(columns, bounds.owed[row].tolist(), strict=True))
            for row, path in enumerate(tree.path)
        },
        "top": {role: path.partition("/")[0] for role, path in enumerate(state.roles.path)},
    }


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
@pytest.mark.parametrize("name", POLICIES)
def test_gates_make_no_decision_smaller(name, mode):
    chance = np.random.default_rng(len(name))
    spec = PolicySpec(name, mode=mode)
    seen = 0
    for case in range(CASES):
        world = random_world(chance, spec)
        before = books(world)
        made = world.allocator.allocate(world.now_ms + 1000)
        seen += len(made)
        assert not cut_off(world, made, before), case
    assert seen
