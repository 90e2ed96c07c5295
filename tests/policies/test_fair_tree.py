"""With `usage_weight = 1`, clients of a role tree are served in the order of Slurm's Fair Tree.

Fair Tree sorts siblings by *level fairshare*, their shares divided by their decayed usage, and
ranks users in the order of a depth-first traversal (https://slurm.schedmd.com/fair_tree.html).
"""

import math
import random
from collections.abc import Iterator, Sequence

import pytest

from allocator.core import DEMAND_LABEL, PolicySpec, Revive, Suppress
from tests.core.session import Session
from tests.tiers import some

HALF_LIFE_S = 600
WHOLE = {DEMAND_LABEL: "cpus:8;mem:16"}


class Users:
    """One framework per leaf of a tree of roles; each job holds the whole cluster."""

    def __init__(self, leaves: Sequence[str], weights: dict[str, float]) -> None:
        roles = dict(enumerate(sorted({*leaves, *weights}), 1))
        self.leaves = {number: path for number, path in roles.items() if path in leaves}
        self.weights = weights
        self.used = dict.fromkeys(leaves, 0.0)
        self.now_s = 1
        self.session = Session(
            PolicySpec("drf", "listed", "characterised", flat=False),
            roles=roles,
            half_life_ms=HALF_LIFE_S * 1000,
            usage_weight=1.0,
            patience_cycles=0,
        )
        self.session.agent(1, 8, 16, capabilities=("HIERARCHICAL_ROLE",))
        self.session.world.weights(**weights)
        for number in self.leaves:
            self.session.framework(number, number, labels=WHOLE)
            self.session.allocator.step(Suppress(number, ()))

    def run(self, leaf: str, seconds: int) -> None:
        """Let one user alone run a job."""
        (number,) = (each for each, path in self.leaves.items() if path == leaf)
        self.session.allocator.step(Revive(number, ()))
        (offer,) = self.session.cycle(self.now_s * 1000)
        self.session.use(offer)
        self.session.allocator.step(Suppress(number, ()))
        self.now_s += seconds
        self.session.allocator.advance(self.now_s * 1000)
        self.session.give_back(offer)
        left = 0.5 ** (seconds / HALF_LIFE_S)
        self.used = {path: used * left for path, used in self.used.items()}
        self.used[leaf] += 1 - left

    def served(self) -> list[str]:
        """Offer the cluster until each user has declined it."""
        for number in self.leaves:
            self.session.allocator.step(Revive(number, ()))
        order = []
        for _ in self.leaves:
            (offer,) = self.session.cycle(self.now_s * 1000)
            self.session.give_back(offer)
            self.session.allocator.step(Suppress(offer[0], ()))
            order.append(self.leaves[offer[0]])
        return order

    def ranked(self, parent: str = "") -> Iterator[str]:
        """Rank the users below a role by Fair Tree."""
        prefix = f"{parent}/" if parent else ""
        below = [leaf for leaf in self.used if leaf.startswith(prefix)]
        children = {prefix + leaf.removeprefix(prefix).split("/")[0] for leaf in below}
        for child in sorted(children, key=self._level_fairshare, reverse=True):
            if child in self.used:
                yield child
            else:
                yield from self.ranked(child)

    def _level_fairshare(self, role: str) -> float:
        below = (used for leaf, used in self.used.items() if f"{leaf}/".startswith(f"{role}/"))
        usage = math.fsum(below)
        return self.weights.get(role, 1.0) / usage if usage else math.inf


def test_all_users_of_a_higher_account_come_first():
    """Even if one of them used more than any user of the other account."""
    users = Users(["a/x", "a/y", "b/x", "b/y"], {"a": 3.0, "b": 1.0})
    for leaf, seconds in (("a/x", 300), ("b/x", 200), ("b/y", 100), ("a/y", 10)):
        users.run(leaf, seconds)
    assert users.served() == list(users.ranked()) == ["a/y", "a/x", "b/y", "b/x"]


@pytest.mark.parametrize("seed", some(range(100), range(3)))
def test_random_trees_are_served_in_the_order_of_fair_tree(seed):
    chance = random.Random(seed)
    accounts = [f"{name}" for name in "abc"[: chance.randint(2, 3)]]
    accounts += [f"{name}/{part}" for name in accounts for part in "pq" if chance.random() < 0.5]
    inner = {each.rpartition("/")[0] for each in accounts}
    leaves = [
        f"{account}/{user}"
        for account in accounts
        for user in "xyz"[: chance.randint(account not in inner, 3)]
    ]
    roles = {*leaves, *accounts}
    users = Users(leaves, {each: chance.choice([0.5, 1.0, 2.0, 5.0]) for each in sorted(roles)})
    for leaf in chance.sample(leaves, len(leaves)):
        users.run(leaf, chance.randint(20, 400))
    assert users.served() == list(users.ranked())
