"""Random small clusters for plans, and the optima on them.

Two to five frameworks, two to four agents of some 3,000 tasks each, weights, and eligibility. The
optima come from slow and independent methods: linear programs, conic programs, and definitions.
"""

from dataclasses import dataclass

import numpy as np

from tests.solvers.oracles import clarabel_tasks, linear_programs

WEIGHTS = (1.0, 1.0, 1.5, 2.0, 3.0)
ALLOWED = 0.6


@dataclass(frozen=True)
class Cluster:
    """Frameworks and agents.

    demand (F, R): one task's needs, in whole units.
    """

    demand: np.ndarray
    capacity: np.ndarray
    eligible: np.ndarray
    weight: np.ndarray


def _frame(rng: np.random.Generator) -> tuple[int, int, np.ndarray, np.ndarray]:
    """Numbers, eligibility and weights; every client may use at least one agent."""
    frameworks, agents = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    eligible = rng.random((frameworks, agents)) < ALLOWED
    eligible[np.arange(frameworks), rng.integers(0, agents, frameworks)] = True
    return frameworks, agents, eligible, rng.choice(WEIGHTS, frameworks)


def of_slots(seed: int) -> Cluster:
    """A cluster of one resource, and tasks of one unit of it: slots."""
    rng = np.random.default_rng(seed)
    frameworks, agents, eligible, weight = _frame(rng)
    slots = rng.integers(2_000, 4_000, (agents, 1))
    return Cluster(np.ones((frameworks, 1), np.int64), slots, eligible, weight)


def of_two_resources(seed: int) -> Cluster:
    """A cluster of two resources, and tasks of different shapes."""
    rng = np.random.default_rng(seed)
    frameworks, agents, eligible, weight = _frame(rng)
    demand = rng.integers(1, 6, (frameworks, 2))
    return Cluster(demand, 3 * rng.integers(2_000, 4_000, (agents, 2)), eligible, weight)


EXAMPLE = Cluster(
    demand=np.ones((3, 1), np.int64),
    capacity=np.array([[2_328], [2_679], [2_359]]),
    eligible=np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1]], np.bool_),
    weight=np.array([1.0, 1.0, 1.5]),
)
"""Only the third may use the second agent: 2,104.6 for each unit of weight is best."""


def fairest(cluster: Cluster) -> np.ndarray:
    """The constrained max-min fair numbers of tasks, (F,), of a cluster of slots."""
    return linear_programs(cluster.eligible, cluster.capacity[:, 0], cluster.weight, None)


def proportional(cluster: Cluster) -> np.ndarray:
    """The numbers of tasks, (F,), with the maximum weighted sum of logarithms."""
    demand, capacity = cluster.demand.astype(float), cluster.capacity.astype(float)
    return clarabel_tasks(demand, capacity, cluster.eligible, cluster.weight, 1.0)
