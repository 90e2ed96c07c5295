"""No decision exceeds the module's gates, which judge decisions one after the other.

Agents hold more than they have: a client receives its guarantee, and later in the cycle more of the
same agent. Between cycles offers are returned or used, and quotas change.
"""

import numpy as np
import pytest

from allocator.core import PolicySpec
from allocator.core.books.quota import bounds_of, quota_tree
from tests.tiers import long
from tests.world.rows import given_back, holdings_of, settled
from tests.world.world import World

POLICIES = ("drf", "choosy", "ps-dsf", "tsf", "bf-drf", "asset")
MODES = ("oblivious", "characterised")
CYCLES = 10
ROLES = ("a", "b", "c")
EXCEEDED = (102, 314, 432, 589, 590)
"""Seeds whose policies grant more than the gates let through."""


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


class Gates:
    """A naive implementation of the gates for guarantees, which apply to roles at the top."""

    def __init__(self, world: World) -> None:
        state = world.allocator.state
        self.paths, self.names = state.roles.path, [each.name for each in state.space.kinds if each]
        tree, columns = quota_tree(state), list(state.space.names)
        bounds, _ = bounds_of(state, tree)
        self.free = dict(zip(columns, bounds.available.tolist(), strict=True))
        self.lacks = {
            path: dict(zip(columns, owed, strict=True))
            for path, owed in zip(tree.path, bounds.owed.tolist(), strict=True)
        }

    def pass_whole(self, role: int, amounts: dict[str, int]) -> bool:
        """Judge a decision, and charge it."""
        own = self.lacks.get(self.paths[role], dict.fromkeys(self.names, 0))
        whole = True
        for name, amount in amounts.items():
            required = sum(each[name] for each in self.lacks.values())
            most = own[name] + max(0, self.free[name] - required)
            whole &= required <= own[name] or amount <= most
        for name, amount in amounts.items():
            self.free[name] -= amount
            own[name] = max(0, own[name] - amount)
        return whole


@pytest.mark.parametrize("seed", [*EXCEEDED, *long(*range(100))])
def test_gates_make_no_decision_smaller(seed):
    chance = np.random.default_rng(seed)
    mode, name = MODES[seed % 2], POLICIES[seed // 2 % len(POLICIES)]
    world = random_world(chance, PolicySpec(name, mode=mode))
    for _ in range(CYCLES):
        gates = Gates(world)
        world.now_ms += world.interval_ms
        made = world.allocator.allocate(world.now_ms)
        assert not world.allocator.last_cycle.policy_error
        for row in range(len(made)):
            names = [gates.names[kind] for kind in made.kind.tolist()]
            amounts = dict(zip(names, made.amount[row].tolist(), strict=True))
            assert gates.pass_whole(int(made.role[row]), amounts), row
        if len(made):
            world.tell(settled(made))
            back = chance.random(len(made)) < 0.8
            world.tell(given_back(holdings_of(made).cut(back)))
        if chance.random() < 0.3:
            world.quota(str(chance.choice(ROLES)), some(chance, 0, 6), "")
