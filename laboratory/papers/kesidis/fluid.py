"""Proportional fairness over agents (eq. 8): fillings compared with it; Propositions 1 and 2.

Source: section III of the paper, eqs. 1, 8 and 9.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from allocator.core import Bools, Floats, Ints
from allocator.solvers.fluid.proportional_fairness_agents import solve
from allocator.testing import static_snapshot
from laboratory.papers.online import fill
from laboratory.papers.report import PaperReport, Row, TableCell, beside, paragraphs

# Distance of progressive filling from proportional fairness over agents (eq. 8), by experiment.


POLICIES = ("pf", "pf-exact")
SELECTIONS = ("random", "round_robin", "joint")

_TASKS = 100  # tasks of a framework that fit on an agent, roughly


def random_cluster(rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Two to four frameworks and agents, two resources: demands (F, R) and capacities (A, R)."""
    demand = rng.integers(1, 6, (rng.integers(2, 5), 2))
    capacity = rng.integers(1, 11, (rng.integers(2, 5), 2)) * _TASKS
    return demand, capacity


def shortfall(demand: Ints, capacity: Ints, selection: str, seed: int, policy: str = "pf") -> float:
    """How far the geometric mean of the tasks is below the optimum, in percent."""
    best = solve(demand.astype(float), capacity.astype(float)).tasks.sum(axis=1)
    cluster = static_snapshot(capacity=capacity.tolist(), demand=demand.tolist())
    tasks = fill(cluster, policy, selection, seed, flat=False).sum(axis=1)
    return 100 * (1 - float(np.exp(np.mean(np.log(tasks / best)))))


def proportional_fairness_of_filling(seed: int = 0, trials: int = 20) -> PaperReport:
    """The policies `pf` and `pf-exact` against the optimum over agents, on random clusters."""
    rng = np.random.default_rng(seed)
    clusters = [random_cluster(rng) for _ in range(trials)]
    rows = []
    for policy, selection in product(POLICIES, SELECTIONS):
        off = [shortfall(*each, selection, seed, policy) for each in clusters]
        rows.append(Row(f"{policy} {selection}", beside((float(np.mean(off)), max(off)))))
    return PaperReport(
        name="kesidis-pf",
        title="By how many percent fillings fall short of the optimum, geometric mean of tasks",
        source="Kesidis et al., MASCOTS 2018, eq. 8; the text gives no numbers",
        columns=("mean", "largest"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            {trials} random clusters of two to four frameworks and agents, two resources.

            `pf` computes prices as if all agents were one, so it does not take into account which
            framework an agent suits: two frameworks with equal spending share an agent that is
            worth more to one of them. With a single agent `pf` reaches the optimum. `pf-exact` has
            prices for each agent, and follows the optimal shares on each; the remaining difference
            is less than a task.
        """),
    )


# Propositions 1 and 2, with priorities and server preferences.


EXPONENTS = (0.5, 1.0, 2.0)
"""The parameter a of eq. 8; 1: proportional fairness."""

OTHERS = 200
"""Number of random feasible allocations compared with each optimum."""

_SLACK = 1e-5


@dataclass(frozen=True, slots=True)
class FluidCluster:
    """Demands (F, R), capacities (A, R), eligible pairs (F, A), priorities (F,)."""

    demand: Floats
    capacity: Floats
    eligible: Bools
    weight: Floats


def draw(rng: np.random.Generator) -> FluidCluster:
    """Draw two to five frameworks and agents; each has at least one eligible partner."""
    frameworks, agents = rng.integers(2, 6), rng.integers(2, 6)
    eligible = rng.random((frameworks, agents)) < 0.6
    eligible[np.arange(frameworks), rng.integers(0, agents, frameworks)] = True
    eligible[rng.integers(0, frameworks, agents), np.arange(agents)] = True
    return FluidCluster(
        rng.uniform(0.5, 5, (frameworks, 2)),
        rng.uniform(20, 100, (agents, 2)),
        eligible,
        rng.uniform(0.5, 4, frameworks),
    )


def optimum(cluster: FluidCluster, exponent: float) -> Floats:
    """Tasks of the solution of eq. 8, (F, A)."""
    return solve(cluster.demand, cluster.capacity, cluster.eligible, cluster.weight, exponent).tasks


def unbooked(cluster: FluidCluster, tasks: Floats) -> float:
    """Proposition 1: the maximum fraction that some agent has left of every resource."""
    used = np.einsum("fa,fr->ar", tasks, cluster.demand)
    return float((1 - used / cluster.capacity).min(axis=1).max())


def feasible(cluster: FluidCluster, rng: np.random.Generator) -> Floats:
    """Draw an allocation that satisfies (1) and exhausts a resource of each agent, (F, A)."""
    tasks = cluster.eligible * rng.dirichlet(np.ones(len(cluster.demand)), len(cluster.capacity)).T
    used = np.einsum("fa,fr->ar", tasks, cluster.demand)
    return tasks / np.maximum((used / cluster.capacity).max(axis=1), 1e-12)


def gain(cluster: FluidCluster, best: Floats, other: Floats, exponent: float) -> float:
    """Phi of eq. 9, relative to the subtracted sum; above 0 refutes the proposition."""
    mine, its = best.sum(axis=1), other.sum(axis=1)
    scale = cluster.weight / mine**exponent
    return float((scale * (its - mine)).sum() / (scale * mine).sum())


def propositions(seed: int = 0, trials: int = 50) -> PaperReport:
    rows = []
    for exponent in EXPONENTS:
        rng = np.random.default_rng(seed)
        left, gained, apart = [], [], []
        for _ in range(trials):
            cluster = draw(rng)
            best = optimum(cluster, exponent)
            left.append(unbooked(cluster, best))
            gained += [gain(cluster, best, feasible(cluster, rng), exponent) for _ in range(OTHERS)]
            order = rng.permutation(len(cluster.capacity))
            turned = replace(
                cluster, capacity=cluster.capacity[order], eligible=cluster.eligible[:, order]
            )
            one, two = best.sum(axis=1), optimum(turned, exponent).sum(axis=1)
            apart.append(float((np.abs(one - two) / one).max()))
        worst = (max(left), max(gained), max(apart))
        cells = tuple(TableCell(each, 0.0, _SLACK, at_most=True) for each in worst)
        rows.append(Row(f"a = {exponent:g}", cells))
    return PaperReport(
        name="kesidis-propositions",
        title="Propositions 1 and 2: the largest violation found",
        source="Kesidis et al., MASCOTS 2018, sec. III",
        columns=("1: agent not booked", "2: Phi", "2: not unique"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            {trials} random clusters with priorities from 0.5 to 4 and server preferences, and
            {OTHERS} random feasible allocations for each. Phi is divided by the sum of its positive
            terms. 'Not unique': the fraction by which tasks differ if the agents are listed in
            another order.
        """),
    )
