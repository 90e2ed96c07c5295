"""Bonald and Roberts: properties of PF, DRF and other allocations, each by experiment.

Propositions 1 to 7, Remark 1, and the text's statements on other utilities: of the
allocations that maximize a sum of utilities, only that of the logarithm, PF, gives users equal
parts of a single resource, whatever their tasks' sizes.

Source: sections 2.2 to 2.5 of the paper.
"""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import brentq

from allocator.core import Floats
from allocator.solvers.fluid import proportional_fairness_agents
from laboratory.papers.drf import (
    DrfCase,
    Policy,
    Properties,
    ceei,
    drf,
    pareto_efficiency,
    property_rows,
    sharing_incentive,
)
from laboratory.papers.report import PaperReport, Row, TableCell, beside, paragraphs
from laboratory.solvers import water_filling

SOURCE = "Bonald and Roberts, Performance Evaluation 2014"

SLACK = 1e-5
"""Relative tolerance for the solvers' rounding."""

LIES = 20
"""Number of false claims that a job tries on each cluster."""


def max_min(demand: Floats, capacity: Floats) -> Floats:
    """Raise tasks equally; jobs that need an exhausted resource stop."""
    return water_filling.solve(demand, capacity, np.ones(len(demand))).tasks


def fair(alpha: float) -> Policy:
    """Maximize the sum of ``tasks ** (1 - alpha) / (1 - alpha)``."""

    def allocate(demand: Floats, capacity: Floats) -> Floats:
        solution = proportional_fairness_agents.solve(demand, capacity[None], alpha=alpha)
        return np.asarray(solution.tasks[:, 0])

    return allocate


POLICIES: Mapping[str, Policy] = {
    "PF": ceei,
    "DRF": drf,
    "max-min": max_min,
    "alpha 1/2": fair(0.5),
    "alpha 2": fair(2.0),
}
_OTHERS = frozenset({"max-min", "alpha 1/2", "alpha 2"})


def scale_invariance(policy: Policy, case: DrfCase) -> float:
    """If jobs claim tasks of another size, some job's part of a resource changes."""
    claim = case.demand * 10 ** case.rng.uniform(-1, 1, (len(case.demand), 1))
    before = policy(case.demand, case.capacity)[:, None] * case.demand
    after = policy(claim, case.capacity)[:, None] * claim
    return float(np.abs(after / before - 1).max())


def local_fairness(policy: Policy, case: DrfCase) -> float:
    """Some job's part of a single resource is not an equal one."""
    demand, capacity = case.demand[:, :1], case.capacity[:1]
    part = policy(demand, capacity) * demand[:, 0] / capacity[0]
    return float(np.abs(part * len(demand) - 1).max())


def strategy_proofness(policy: Policy, case: DrfCase) -> float:
    """A job can run more of its true tasks if it claims larger or smaller needs."""
    honest, most = policy(case.demand, case.capacity), 0.0
    for _ in range(LIES):
        user = int(case.rng.integers(len(honest)))
        claim = case.demand.copy()
        claim[user] *= 3 ** case.rng.uniform(-1, 1, claim.shape[1])
        given = policy(claim, case.capacity)[user] * claim[user]
        most = max(most, float((given / case.demand[user]).min() / honest[user]) - 1)
    return most


PROPERTIES: Properties = {
    "Pareto efficiency": (pareto_efficiency, frozenset()),
    "sharing incentive (Prop. 1, 4)": (sharing_incentive, _OTHERS),
    "strategy-proofness (Prop. 2, 5)": (strategy_proofness, _OTHERS | {"PF"}),
    "scale invariance (Prop. 3, 6)": (scale_invariance, _OTHERS),
    "local fairness (Prop. 7)": (local_fairness, _OTHERS),
}
"""The test of each property, and the allocations the paper says lack it."""


def properties(seed: int = 0, trials: int = 100) -> PaperReport:
    """Section 2: in how many percent of random clusters each property fails."""
    return PaperReport(
        name="pf-properties",
        title="Properties of allocations: in how many percent of random clusters each fails",
        source=f"{SOURCE}, sec. 2.2 to 2.5, Propositions 1 to 7, Remark 1",
        columns=tuple(POLICIES),
        rows=property_rows(PROPERTIES, POLICIES, seed, trials, SLACK),
        notes=paragraphs(f"""
            {trials} random clusters of two to four jobs and two or three resources, fluid optima.
            Published 0: the text proves the property. 'Refused': it says that the allocation lacks
            it, and each cluster that fails is a counter-example. {LIES} lies a cluster: up to three
            times as much of each resource, or as little.
        """),
    )


# Proposition 7: of the allocations by utility, only PF is locally fair.


Marginal = Callable[[float], float]
"""Derivative of a utility by tasks, a decreasing function."""

UTILITIES: Mapping[str, Marginal] = {
    "log(x)": lambda tasks: 1 / tasks,
    "3 log(x) + 5": lambda tasks: 3 / tasks,
    "alpha 1/2": lambda tasks: tasks**-0.5,
    "alpha 0.99": lambda tasks: tasks**-0.99,
    "alpha 1.01": lambda tasks: tasks**-1.01,
    "alpha 2": lambda tasks: tasks**-2.0,
    "log(1 + x)": lambda tasks: 1 / (1 + tasks),
    "1 - exp(-x)": lambda tasks: float(np.exp(-tasks)),
    "log(x) + x / 10": lambda tasks: 1 / tasks + 0.1,
}
LOGARITHMS = ("log(x)", "3 log(x) + 5")

SIZES = (1 / 4, 1 / 2, 2.0, 4.0)
"""The number x of the proof: job 2 needs 1/x of what job 1 needs."""

SEEN = 1e-3
"""A share further from one half is not due to rounding."""


def share(marginal: Marginal, size: float) -> float:
    """Part of the resource that job 1 has, of two that need 1/2 and 1/(2 size) of it per task.

    At the maximum of the utilities a unit of the resource has the same value for both, or a job for
    which its value is always lower has nothing.
    """

    def more_worth_to_1(part: float) -> float:
        return 2 * marginal(2 * part) - 2 * size * marginal(2 * size * (1 - part))

    low, high = 1e-12, 1 - 1e-12
    if more_worth_to_1(low) <= 0:
        return 0.0
    if more_worth_to_1(high) >= 0:
        return 1.0
    return float(brentq(more_worth_to_1, low, high, xtol=1e-14))


def proposition_7() -> PaperReport:
    """Proposition 7: the part of job 1 of a single resource, by utility."""
    rows = []
    for name, marginal in UTILITIES.items():
        shares = [share(marginal, size) for size in SIZES]
        expected = [0.5] * len(SIZES) if name in LOGARITHMS else []
        rows.append(Row(name, beside(shares, expected, 1e-9)))
    unfair = sum(
        max(abs(share(marginal, size) - 0.5) for size in SIZES) > SEEN
        for name, marginal in UTILITIES.items()
        if name not in LOGARITHMS
    )
    others = len(UTILITIES) - len(LOGARITHMS)
    rows.append(Row("other utilities that are not fair", (TableCell(unfair, others),)))
    return PaperReport(
        name="pf-proposition-7",
        title="Part of a single resource that job 1 of two has, by utility and sizes of tasks",
        source=f"{SOURCE}, sec. 2.5, Proposition 7",
        columns=tuple(f"x = {size:g}" for size in SIZES),
        rows=tuple(rows),
        notes=paragraphs(f"""
            As in the proof, there are two jobs: a task of job 1 needs 1/2 of the resource, one of
            job 2 needs 1 / (2 x). A fair part is 1/2. A utility counts as not fair if some part
            differs from it by more than {SEEN:g}.

            Examples cannot prove that no other utility is fair; each listed one is an example that
            is not. The proof is short: only the logarithm gives equal parts for every x.
        """),
    )
