"""The example of Dominant Resource Fairness, and of the policies that it is compared with.

9 CPUs and 18 GB; A's tasks need <1 CPU, 4 GB>, B's <3 CPU, 1 GB>. So A's dominant resource is
memory (4/18 a task) and B's is CPU (3/9).

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4.1 and 4.3.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from allocator import measures
from allocator.core import Floats
from allocator.solvers.fluid import proportional_fairness
from allocator.testing import static_snapshot
from laboratory.papers.online import fill
from laboratory.papers.report import (
    PaperReport,
    Row,
    TableCell,
    beside,
    counter_examples,
    paragraphs,
)
from laboratory.solvers import water_filling

SOURCE = "Ghodsi et al., NSDI 2011, sec. 4.1 and 4.3"

CAPACITY = np.array([9.0, 18.0])
DEMAND = np.array([[1.0, 4.0], [3.0, 1.0]])

ASSET = (63 / 25, 54 / 25)
CEEI = (45 / 11, 18 / 11)
SCALE = 275
"""With this many clusters in one, every optimum is a whole number of tasks."""


def filled(policy: str, scale: int = 1) -> list[int]:
    """Tasks of A and B when a policy fills an empty cluster, `scale` times as large."""
    snapshot = static_snapshot(capacity=[CAPACITY * scale], demand=DEMAND)
    return [int(n) for n in fill(snapshot, policy).sum(axis=1)]


def example() -> PaperReport:
    """DRF's own example, and asset fairness and CEEI on the same cluster."""
    rows = [
        Row("DRF, whole tasks", beside(filled("drf"), (3, 2))),
        Row("DRF, dominant shares", beside(_dominant_shares(), (2 / 3, 2 / 3))),
        Row("DRF, fluid", beside(drf(DEMAND, CAPACITY), (3, 2), 1e-6)),
        Row("asset fairness, fluid", beside(asset(DEMAND, CAPACITY), ASSET, 1e-6)),
        Row("CEEI, fluid", beside(ceei(DEMAND, CAPACITY), CEEI, 1e-6)),
    ]
    for policy, expected in (("drf", (3, 2)), ("asset", ASSET), ("ceei", CEEI)):
        cells = beside(np.array(filled(policy, SCALE)) / SCALE, expected, 1 / SCALE)
        rows.append(Row(f"{policy}, whole tasks, {SCALE} clusters in one", cells))
    return PaperReport(
        name="drf-example",
        title="9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>: tasks",
        source=SOURCE,
        columns=("A", "B"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Whole tasks of a cluster {SCALE} times as large come within one task of the fluid
            optimum: the tolerance is 1/{SCALE}.
        """),
    )


def _dominant_shares() -> list[float]:
    held = np.array(filled("drf"))[:, None] * DEMAND
    return measures.dominant_share(held, CAPACITY).tolist()


# The table of properties of asset fairness, CEEI and DRF: each cell by experiment.
#
# Each policy is its fluid optimum. Properties are tested on random clusters: one that the paper
# asserts must hold on all of them, one that it denies must fail on some, and the first cluster on
# which it fails is the counter-example.
#
# Source: sec. 3 and 5, Table 2.

Policy = Callable[[Floats, Floats], Floats]
"""Computes tasks (U,) from demands (U, R) and capacities (R,)."""

LIES = 20
"""Number of false claims that a user tries on each cluster."""

_SLACK = 1e-6  # solvers' rounding


def drf(demand: Floats, capacity: Floats) -> Floats:
    """Raise dominant shares equally; users of an exhausted resource stop."""
    rate = water_filling.rate(demand, capacity, np.ones(len(demand)))
    return water_filling.solve(demand, capacity, rate).tasks


def asset(demand: Floats, capacity: Floats) -> Floats:
    """The same for the sum of the shares."""
    ones = np.ones(len(demand))
    rate = water_filling.rate(demand, capacity, ones, lambda need: need.sum(axis=1))
    return water_filling.solve(demand, capacity, rate).tasks


def ceei(demand: Floats, capacity: Floats) -> Floats:
    """Maximize the product of tasks."""
    return proportional_fairness.solve(demand, capacity, np.ones(len(demand))).tasks


POLICIES: Mapping[str, Policy] = {"asset": asset, "CEEI": ceei, "DRF": drf}


@dataclass(frozen=True, slots=True)
class DrfCase:
    """A random cluster with its users."""

    demand: Floats
    capacity: Floats
    rng: np.random.Generator


def draw(rng: np.random.Generator) -> DrfCase:
    """Draw two to four users of two or three resources."""
    users, resources = rng.integers(2, 5), rng.integers(2, 4)
    demand = rng.integers(1, 11, (users, resources)).astype(np.float64)
    return DrfCase(demand, rng.integers(20, 101, resources).astype(np.float64), rng)


# Each returns the violation of a property, relative to the allocation; at most 0 if it holds.


def sharing_incentive(policy: Policy, case: DrfCase) -> float:
    """A user would run more tasks on an equal part of the cluster."""
    alone = (case.capacity / case.demand).min(axis=1) / len(case.demand)
    return float((alone / policy(case.demand, case.capacity) - 1).max())


def strategy_proofness(policy: Policy, case: DrfCase) -> float:
    """A user runs more tasks if it claims larger needs than its own."""
    honest, most = policy(case.demand, case.capacity), 0.0
    for _ in range(LIES):
        user = int(case.rng.integers(len(honest)))
        claim = case.demand.copy()
        claim[user] *= case.rng.uniform(1, 3, claim.shape[1])
        given = policy(claim, case.capacity)[user] * claim[user]
        most = max(most, float((given / case.demand[user]).min() / honest[user]) - 1)
    return most


def envy_freeness(policy: Policy, case: DrfCase) -> float:
    """A user could run more tasks with another one's allocation."""
    tasks = policy(case.demand, case.capacity)
    has = tasks[:, None] * case.demand
    could = (has[None, :, :] / case.demand[:, None, :]).min(axis=2)
    return float((could / tasks[:, None] - 1).max())


def pareto_efficiency(policy: Policy, case: DrfCase) -> float:
    """Some of every resource is left, so a user could run more."""
    used = policy(case.demand, case.capacity) @ case.demand
    return float((1 - used / case.capacity).min())


def single_resource_fairness(policy: Policy, case: DrfCase) -> float:
    """Users get different amounts of a single resource."""
    demand, capacity = case.demand[:, :1], case.capacity[:1]
    return _spread(policy(demand, capacity) * demand[:, 0])


def bottleneck_fairness(policy: Policy, case: DrfCase) -> float:
    """All users have the same dominant resource, and get different amounts of it."""
    demand = case.demand.copy()
    share = (demand / case.capacity).max(axis=1)
    demand[:, 0] = 1.1 * share * case.capacity[0]
    return _spread(policy(demand, case.capacity) * demand[:, 0])


def population_monotonicity(policy: Policy, case: DrfCase) -> float:
    """When a user leaves, another one runs fewer tasks."""
    before = policy(case.demand, case.capacity)[1:]
    after = policy(case.demand[1:], case.capacity)
    return float((1 - after / before).max())


def resource_monotonicity(policy: Policy, case: DrfCase) -> float:
    """When there is more of a resource, a user runs fewer tasks."""
    more = case.capacity.copy()
    more[0] *= 1.5
    before, after = policy(case.demand, case.capacity), policy(case.demand, more)
    return float((1 - after / before).max())


def _spread(amounts: Floats) -> float:
    return float(amounts.max() / amounts.min() - 1)


Properties = Mapping[str, tuple[Callable[[Policy, DrfCase], float], frozenset[str]]]
"""The test of each property, which returns by how much it fails, and the policies said to lack
it."""

PROPERTIES: Properties = {
    "sharing incentive": (sharing_incentive, frozenset({"asset"})),
    "strategy-proofness": (strategy_proofness, frozenset({"CEEI"})),
    "envy-freeness": (envy_freeness, frozenset()),
    "Pareto efficiency": (pareto_efficiency, frozenset()),
    "single resource fairness": (single_resource_fairness, frozenset()),
    "bottleneck fairness": (bottleneck_fairness, frozenset({"asset"})),
    "population monotonicity": (population_monotonicity, frozenset({"CEEI"})),
    "resource monotonicity": (resource_monotonicity, frozenset({"asset", "CEEI", "DRF"})),
}
"""The test of each property, and the policies that lack it by Table 2."""


def property_rows(
    tests: Properties,
    policies: Mapping[str, Policy],
    seed: int,
    trials: int,
    slack: float = _SLACK,
) -> tuple[Row, ...]:
    """In how many percent of random clusters each property fails; all get the same clusters.

    `slack`: violations up to this are rounding.
    """
    rows = []
    for name, (test, refused) in tests.items():
        cells = []
        for policy, allocate in policies.items():
            rng = np.random.default_rng(seed)
            failed = [test(allocate, draw(rng)) > slack for _ in range(trials)]
            percent = 100 * float(np.mean(failed))
            cells.append(
                counter_examples(percent) if policy in refused else TableCell(percent, 0.0)
            )
        rows.append(Row(name, tuple(cells)))
    return tuple(rows)


def properties(seed: int = 0, trials: int = 200) -> PaperReport:
    """Table 2: in how many percent of the clusters each property fails."""
    return PaperReport(
        name="drf-properties",
        title="Properties: in how many percent of random clusters each fails",
        source="Ghodsi et al., NSDI 2011, sec. 3 and 5, Table 2",
        columns=tuple(POLICIES),
        rows=property_rows(PROPERTIES, POLICIES, seed, trials),
        notes=paragraphs(f"""
            {trials} random clusters of two to four users and two or three resources, fluid optima.
            A published 0 means that, by the table, the policy has the property. 'Refused' means
            that, by the table, it does not have it; each cluster in which it fails is a
            counter-example. Strategy-proofness is tested with {LIES} false claims for each cluster,
            resource monotonicity with one and a half times as much of one resource.
        """),
    )
