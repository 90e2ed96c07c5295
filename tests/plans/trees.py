"""Small clusters with a tree of roles, weights, constraints and limits, and the optima of plans.

The clients' holdings after one cycle on an empty cluster are compared with independent optima.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from allocator.core import DEMAND_LABEL, PolicySpec, SetQuota
from allocator.policies.quincy import PREFERENCE_LABEL
from tests.plans.clusters import Cluster
from tests.world.world import World

WEIGHTS = (1.0, 1.0, 1.5, 2.0, 0.025, 40.0)
NAMES = ("cpus", "mem")
FAR, WAITS, BELOW_LEAST = 200, 300, 1_000_000
"""Quincy's costs by default: of a task away from its data, of a task without a place, and the
surcharge below the lower bound.
"""


@dataclass(frozen=True)
class Roles:
    """Frameworks with their roles, and the rules of the roles.

    path: the role of each framework.
    weight: of roles; 1 if a role is not named.
    limit: tasks that a role may have; each limited role has one framework.
    """

    path: Sequence[str]
    weight: dict[str, float]
    limit: dict[str, int]


def draw_roles(
    rng: np.random.Generator, frameworks: int, limits: float, weights: Sequence[float]
) -> Roles:
    """A role for each framework, at most three deep; some have a limit."""
    deep = [1 + int(rng.integers(0, 3)) for _ in range(frameworks)]
    path = ["/".join(rng.choice(["a", "b", "c"], depth)) for depth in deep]
    limit = {}
    for number, role in enumerate(path):
        if rng.random() < limits:
            path[number] = f"{role}/own{number}"
            limit[path[number]] = int(rng.integers(1, 40))
    nodes = {each.rsplit("/", up)[0] for each in path for up in range(each.count("/") + 1)}
    weight = {each: float(rng.choice(weights)) for each in sorted(nodes)}
    return Roles(path, weight, limit)


def shares(roles: Roles) -> list[Fraction]:
    """The exact fraction of the cluster for each framework, by the weights of its role's ancestors.

    The frameworks of a role that also has child roles form one more child, of weight 1.
    """
    weight = {each: Fraction(value) for each, value in roles.weight.items()}

    def of(path: str) -> Fraction:
        if not path:
            return Fraction(1)
        above = path.rpartition("/")[0]
        siblings = {each for each in weight if each.rpartition("/")[0] == above and each != ""}
        whole = sum((weight[each] for each in siblings), Fraction(0))
        return of(above) * weight[path] / (whole + (above in roles.path))

    result = []
    for path in roles.path:
        below = {each for each in weight if each.rpartition("/")[0] == path}
        own = Fraction(1)
        if below:
            own = 1 / (1 + sum((weight[each] for each in below), Fraction(0)))
        result.append(of(path) * own / roles.path.count(path))
    return result


def draw(
    seed: int,
    resources: int,
    tasks: tuple[int, int],
    limits: float = 0.0,
    weights: Sequence[float] = WEIGHTS,
) -> tuple[Cluster, Roles]:
    """A cluster and its roles; `tasks`: range of the number of smallest tasks on an agent."""
    rng = np.random.default_rng(seed)
    frameworks, agents = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    eligible = rng.random((frameworks, agents)) < 0.6
    eligible[np.arange(frameworks), rng.integers(0, agents, frameworks)] = True
    roles = draw_roles(rng, frameworks, limits, weights)
    weight = np.array([float(share) for share in shares(roles)])
    room = rng.integers(*tasks, (agents, resources))
    if resources == 1:
        return Cluster(np.ones((frameworks, 1), np.int64), room, eligible, weight), roles
    return Cluster(rng.integers(1, 6, (frameworks, 2)), 3 * room, eligible, weight), roles


def filled(
    cluster: Cluster,
    roles: Roles,
    policy: PolicySpec,
    near: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Tasks of each framework on each agent, (F, A), after the first cycle on an empty cluster.

    `near` (F, A) bool: which agents each prefers.
    """
    world = World(policy, settings={"learn_demand": False, "seed": seed})
    world.allocator.plan_source.plans_here = True
    names = NAMES[: cluster.capacity.shape[1]]
    for number, capacity in enumerate(cluster.capacity.tolist()):
        has = ";".join(f"{name}:{amount}" for name, amount in zip(names, capacity, strict=True))
        world.agent(has, hostname=f"h{number}")
    world.weights(**roles.weight)
    for path, most in roles.limit.items():
        row = list(roles.path).index(path)
        world.tell(SetQuota(path, {}, {names[0]: 1000 * most * int(cluster.demand[row, 0])}))
    for row, path in enumerate(roles.path):
        need = zip(names, cluster.demand[row].tolist(), strict=True)
        allowed = "|".join(f"h{at}" for at in np.flatnonzero(cluster.eligible[row]))
        labels = {
            DEMAND_LABEL: ";".join(f"{name}:{amount}" for name, amount in need),
            "allocator.constraint": f"hostname={allowed}",
        }
        if near is not None and near[row].any():
            some = "|".join(f"h{at}" for at in np.flatnonzero(near[row]))
            labels[PREFERENCE_LABEL] = f"hostname={some}"
        world.framework(path, labels=labels)
    made = world.allocator.allocate(1000)
    tasks = np.zeros(cluster.eligible.shape, np.int64)
    amount = made.amount[:, made.kind.tolist().index(0)]
    need = 1000 * cluster.demand[made.framework - 1, 0]
    np.add.at(tasks, (made.framework - 1, made.agent - 1), amount // need)
    return tasks


def placing_costs(
    cluster: Cluster, share: Sequence[Fraction], limit: Sequence[int], near: np.ndarray, within=None
) -> float:
    """The minimum cost of placing Quincy's tasks: an integer program over all pairs.

    All tasks need one unit. `within` (F, A): upper bounds on places.
    """
    frameworks, agents = cluster.eligible.shape
    places = cluster.capacity[:, 0] * cluster.eligible.any(axis=0)  # others are places for no task
    total = int(places.sum())
    least = [int(each * total / 2) for each in share]  # LEAST is 0.5, and MOST is 1
    most = [-int(-(each * total) // 1) for each in share]
    most = [min(max(one, other), total, bound) for one, other, bound in
            zip(most, least, limit, strict=True)]  # fmt: skip
    least = [min(one, other) for one, other in zip(least, most, strict=True)]
    # Variables: places by pair; tasks that wait, and those that wait below the lower bound.
    far = np.where(near.any(axis=1, keepdims=True) & ~near, FAR, 0)
    waits = np.full(frameworks, WAITS)
    cost = np.concatenate([far.ravel(), waits, waits + BELOW_LEAST])
    room = cluster.eligible * (places if within is None else np.minimum(within, places))
    spare = [one - other for one, other in zip(most, least, strict=True)]
    upper = np.concatenate([room.ravel(), spare, least])
    each_task = np.hstack([np.kron(np.eye(frameworks), np.ones(agents)), np.eye(frameworks),
                           np.eye(frameworks)])  # fmt: skip
    each_agent = np.hstack(
        [np.kron(np.ones(frameworks), np.eye(agents)), np.zeros((agents, 2 * frameworks))]
    )
    found = milp(
        cost,
        integrality=np.ones(len(cost), np.int64),
        bounds=Bounds(0, upper),
        constraints=[
            LinearConstraint(each_task, most, most),
            LinearConstraint(each_agent, 0, places),
        ],
    )
    assert found.status == 0, found.message
    return float(found.fun)
