"""Corollary 1 of Kesidis et al.: proportional fairness of any fairness criterion.

A criterion weighs a framework's tasks by their agents, ``U = sum over i of u x / phi``; the optimum
is the largest sum of ``phi log(U)``. By the corollary, for any other feasible allocation the
relative gains of U, weighted by the priorities, sum to at most zero. That sum is linear in the
allocation, so a linear program finds its maximum over *all* feasible ones.

Source: section III of the paper, eqs. 1 and 2, and Corollary 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from allocator.core import Floats, Ints
from allocator.solvers.fluid.proportional_fairness_agents import relative_path
from laboratory.papers.kesidis.fluid import FluidCluster, draw, optimum
from laboratory.papers.report import PaperReport, Row, TableCell, counter_examples, paragraphs

SLACK = 1e-5
"""Relative tolerance for the solvers' rounding."""

ELSEWHERE = 0.01
"""Fraction of an agent's tasks beyond which two optima differ by more than rounding."""

_NEAR = 1e-4  # of tasks: their error is the root of the error of the sum of logarithms


@dataclass(frozen=True, slots=True)
class CorollaryProblem:
    """A cluster and a criterion, over the eligible pairs of a framework and an agent.

    of (P,): the framework of each pair.
    worth (F, P): what a task of each pair adds to its framework's U.
    need (Q, P): parts of each agent's resources that it takes.
    priority (F,)
    """

    of: Ints
    worth: Floats
    need: Floats
    priority: Floats


def problem(cluster: FluidCluster, worth: Floats) -> CorollaryProblem:
    """Weight tasks by ``worth``, (F, A), the u of eq. 2."""
    of, on = np.nonzero(cluster.eligible)
    agents, resources = cluster.capacity.shape
    need = np.zeros((agents, resources, len(of)))
    need[on, :, np.arange(len(of))] = cluster.demand[of] / cluster.capacity[on]
    criterion = np.zeros((len(cluster.demand), len(of)))
    criterion[of, np.arange(len(of))] = worth[of, on] / cluster.weight[of]
    return CorollaryProblem(of, criterion, need.reshape(agents * resources, -1), cluster.weight)


def solve(given: CorollaryProblem) -> Floats:
    """Find the optimum's tasks of each pair, (P,).

    Uses the solver of eq. 8 on tasks times their worth, which it adds up for each framework.
    """
    worth = given.worth.sum(axis=0)
    need = given.need / worth
    begin = 0.5 / need.sum(axis=1).max() * np.ones(need.shape[1])
    priority = given.priority / given.priority.sum()
    return relative_path(need, given.of, begin, priority, alpha=1.0)[0] / worth


def most_gained(given: CorollaryProblem, tasks: Floats) -> float:
    """The corollary's largest sum over all feasible allocations, over the sum of priorities."""
    price = given.worth.T @ (given.priority / (given.worth @ tasks))
    best = linprog(-price, A_ub=given.need, b_ub=np.ones(len(given.need)), method="highs")
    assert best.fun is not None, best.message
    return float(-best.fun / given.priority.sum() - 1)


def elsewhere(given: CorollaryProblem, tasks: Floats, rng: np.random.Generator) -> float:
    """How far tasks can move between agents without changing any U, as a fraction of an agent."""
    largest = given.need.max(axis=0)
    direction = rng.standard_normal(len(tasks)) * largest
    utility = given.worth @ tasks
    # Require slightly less utility, to allow for rounding.
    ends = [
        linprog(
            sign * direction,
            A_ub=np.vstack([given.need, -given.worth]),
            b_ub=np.concatenate([np.ones(len(given.need)), -utility * (1 - 1e-7)]),
            method="highs",
        )
        for sign in (1, -1)
    ]
    one, other = (end.x for end in ends)
    assert one is not None
    assert other is not None
    return float((np.abs(one - other) * largest).max())


def server_specific(cluster: FluidCluster, _rng: np.random.Generator) -> Floats:
    """PS-DSF: what one task adds to the criterion of each agent alone, eqs. 4 and 5."""
    part = cluster.demand[:, None, :] / cluster.capacity[None]
    return np.asarray(part.max(axis=2))


def drawn(cluster: FluidCluster, rng: np.random.Generator) -> Floats:
    """Any positive numbers, from 0.2 to 5."""
    return 5.0 ** rng.uniform(-1, 1, cluster.eligible.shape)


def of_framework(cluster: FluidCluster, rng: np.random.Generator) -> Floats:
    """One number for each framework, as in DRF: the same on all agents."""
    return np.broadcast_to(drawn(cluster, rng)[:, :1], cluster.eligible.shape)


CRITERIA = {
    "u by framework, as for DRF": of_framework,
    "u by framework and agent: PS-DSF's": server_specific,
    "u by framework and agent: drawn": drawn,
}


def corollary_1(seed: int = 0, trials: int = 50) -> PaperReport:
    """Corollary 1 on random clusters, and its special case, Proposition 2."""
    rows = []
    for name, criterion in CRITERIA.items():
        rng = np.random.default_rng(seed)
        gained, apart, moved, other = [], [], [], []
        for _ in range(trials):
            cluster = draw(rng)
            given = problem(cluster, criterion(cluster, rng))
            best = solve(given)
            gained.append(most_gained(given, best))
            moved.append(elsewhere(given, best, rng) > ELSEWHERE)
            utility = given.worth @ best
            turned = rng.permutation(len(best))
            again = solve(_turned(given, turned))
            apart.append(_apart(utility, given.worth[:, turned] @ again))
            if criterion is of_framework:
                tasks = np.bincount(given.of, best, len(utility)).astype(np.float64)
                other.append(_apart(tasks, optimum(cluster, 1.0).sum(axis=1)))
        cells = [TableCell(max(each), 0.0, SLACK, at_most=True) for each in (gained, apart)]
        percent = 100 * float(np.mean(moved))
        cells.append(TableCell(percent) if criterion is drawn else counter_examples(percent))
        cells += [TableCell(max(other), 0.0, _NEAR, at_most=True)] if other else []
        rows.append(Row(name, tuple(cells)))
    return PaperReport(
        name="kesidis-corollary-1",
        title="Corollary 1: the largest violation found",
        source="Kesidis et al., MASCOTS 2018, sec. III, Corollary 1",
        columns=("sum of gains", "U not unique", "x not unique (%)", "from Prop. 2"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            {trials} random clusters with priorities from 0.5 to 4 and server preferences, as for
            Propositions 1 and 2. 'Sum of gains': the sum in the corollary, divided by the sum of
            the priorities; its largest value over all feasible allocations, computed by a linear
            program. 'U not unique': the fraction by which U differs if the unknowns are listed in
            another order.

            'x not unique': the text says that tasks may be placed differently with the same U. The
            number is the percentage of clusters with two allocations of the same U that differ by
            more than {100 * ELSEWHERE:g} % of an agent; a linear program finds them as the extremes
            in a random direction. If u is drawn for each pair, 0 is expected, because two agents
            suit two frameworks equally well only by chance.

            'From Prop. 2': the fraction by which tasks differ from the optimum of eq. 8 with a = 1.
            By the text they are the same if u depends only on the framework.
        """),
    )


def _turned(given: CorollaryProblem, order: Ints) -> CorollaryProblem:
    return CorollaryProblem(
        given.of[order], given.worth[:, order], given.need[:, order], given.priority
    )


def _apart(one: Floats, other: Floats) -> float:
    return float((np.abs(one - other) / one).max())
