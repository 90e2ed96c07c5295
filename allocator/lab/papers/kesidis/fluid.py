"""How near progressive filling comes to proportional fairness over agents (eq. 8), by experiment.

References
----------
.. [1] Kesidis, Shan, Wang, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 8 and Proposition 2.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from allocator.core import PolicySpec
from allocator.lab.papers.report import Cell, Report, Row
from allocator.policies import build
from allocator.solvers.fluid.proportional_fairness_agents import solve
from allocator.testing import placement, planned, static_snapshot

Ints = NDArray[np.int64]

POLICIES = ("pf", "pf-exact")
SELECTIONS = ("random", "round_robin", "joint")

_TASKS = 100  # an agent holds about so many of a framework's tasks


def random_cluster(rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Two to four frameworks and agents, two resources: demands (F, R) and capacities (A, R)."""
    demand = rng.integers(1, 6, (rng.integers(2, 5), 2))
    capacity = rng.integers(1, 11, (rng.integers(2, 5), 2)) * _TASKS
    return demand, capacity


def shortfall(demand: Ints, capacity: Ints, selection: str, seed: int, policy: str = "pf") -> float:
    """By how much the geometric mean of the tasks falls short of the optimum, in percent."""
    best = solve(demand.astype(float), capacity.astype(float)).tasks.sum(axis=1)
    cluster = static_snapshot(capacity=capacity.tolist(), demand=demand.tolist())
    ours = build(PolicySpec(policy, selection, mode="characterised"))
    grants = ours.allocate(planned(cluster, ours), seed=seed)
    tasks = placement(cluster, grants).sum(axis=1)
    return 100 * (1 - float(np.exp(np.mean(np.log(tasks / best)))))


def proportional_fairness_of_filling(seed: int = 0, trials: int = 20) -> Report:
    """The policies `pf` and `pf-exact` against the optimum over agents, on random clusters."""
    rng = np.random.default_rng(seed)
    clusters = [random_cluster(rng) for _ in range(trials)]
    rows = []
    for policy, selection in product(POLICIES, SELECTIONS):
        off = [shortfall(*each, selection, seed, policy) for each in clusters]
        cells = Cell(float(np.mean(off))), Cell(float(np.max(off)))
        rows.append(Row(f"{policy} {selection}", cells))
    return Report(
        name="kesidis-pf",
        title="By how many percent fillings fall short of the optimum, geometric mean of tasks",
        source="Kesidis et al., MASCOTS 2018, eq. 8; the text gives no numbers",
        columns=("mean", "largest"),
        rows=tuple(rows),
        notes=(
            f"{trials} random clusters of two to four frameworks and agents, two resources.",
            (
                "The prices of `pf` are those of all agents pooled, so it does not know which "
                "framework an agent suits: two frameworks whose spending is equal share an agent "
                "that is worth more to one of them. With one agent nothing is missing. `pf-exact` "
                "has prices for each agent, and goes by the optimum's shares of each; what is left "
                "are parts of a task."
            ),
        ),
    )
