"""What a criterion is: the four arrays that say who comes next.

A criterion is a function from a snapshot to a `Criterion`. Every criterion of the papers is the
same formula over these arrays, so one compiled loop serves them all and branches on no name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from allocator.core.array_structures import some
from allocator.core.snapshot import Bools, Floats, Snapshot


@dataclass(frozen=True, slots=True)
class Criterion:
    """How much each node has, and what that is measured against.

    The score of a node on an agent combines, over K = R + 1 columns (one a resource, and the last
    one that counts), the parts ``measure[node, k] / (denominator[agent or 0, k] * weight[node])``.
    A measure of 0 contributes 0 whatever its denominator; a column that plays no part has an
    infinite denominator.

    Attributes
    ----------
    measure : (N, K) float64, >= 0
        What each node of the tree has; additive over the tree.
    denominator : (1, K) or (A, K) float64, >= 0
        One row for all agents, or one an agent.
    amount_gain, task_gain, agent_gain : (C,) float64, >= 0
        A grant of `t` tasks and amount `g` to client c adds ``amount_gain[c] * g`` to the resource
        columns, and ``task_gain[c] * t`` to the count column, and there ``agent_gain[c]`` more if
        the client holds nothing on that agent yet.
    residual : bool
        The denominator is what is free on the agent: every grant lessens its row by the amount.
    additive : bool
        The parts are added up; otherwise the largest counts.
    """

    measure: Floats
    denominator: Floats
    amount_gain: Floats
    task_gain: Floats
    agent_gain: Floats
    residual: bool = False
    additive: bool = False


CriterionFunction: TypeAlias = Callable[[Snapshot], Criterion]


def leaf_scores(criterion: Criterion, weight: Floats) -> Floats:
    """Scores of the leaves, (L,), where there is one row of denominators."""
    measure = criterion.measure[: len(weight)]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = measure / (criterion.denominator * weight[:, None])
    parts[measure == 0] = 0.0  # a measure of nothing counts nothing, whatever it is measured by
    combined: Floats = parts.sum(axis=1) if criterion.additive else parts.max(axis=1)
    return combined


def of_amounts(
    snapshot: Snapshot, denominator: Floats, *, residual: bool = False, additive: bool = False
) -> Criterion:
    """Measure what clients hold.

    Parameters
    ----------
    snapshot : Snapshot
    denominator : (1, R) or (A, R) float64, thousandths
    residual, additive : bool
        As in `Criterion`.
    """
    everybody = np.ones(len(snapshot.held))
    return mixed(
        snapshot, everybody, denominator, np.zeros_like(everybody), residual, additive=additive
    )


def mixed(
    snapshot: Snapshot,
    amount_gain: Floats,
    denominator: Floats,
    count: Floats,
    residual: bool = False,
    *,
    count_denominator: float = np.inf,
    task_gain: Floats | None = None,
    agent_gain: Floats | None = None,
    additive: bool = False,
) -> Criterion:
    """Measure amounts for some clients and a count for others.

    Parameters
    ----------
    snapshot : Snapshot
    amount_gain : (C,) float64
        How much of what each client holds counts: 1 or 0.
    denominator : (1, R) or (A, R) float64, thousandths
        Of the resource columns.
    count : (C,) float64
        What each client has in the count column.
    residual, additive : bool
        As in `Criterion`.
    count_denominator : float
        Of the count column.
    task_gain, agent_gain : (C,) float64
        As in `Criterion`; zeros by default.
    """
    nothing = np.zeros_like(count)
    measure = np.column_stack([snapshot.held * amount_gain[:, None], count])
    last = np.full((len(denominator), 1), count_denominator)
    return Criterion(
        measure=snapshot.sum_over_tree(measure),
        denominator=np.hstack([denominator, last]),
        amount_gain=amount_gain,
        task_gain=nothing if task_gain is None else task_gain,
        agent_gain=nothing if agent_gain is None else agent_gain,
        residual=residual,
        additive=additive,
    )


def cluster_total(snapshot: Snapshot) -> Floats:
    """Return the whole cluster's amounts as a denominator (1, R).

    Infinite for what does not count, and for what there is none of any more.
    """
    takes_part = snapshot.counted & (snapshot.total > 0)
    return np.where(takes_part, snapshot.total, np.inf)[None, :]


def characterised(snapshot: Snapshot) -> Bools:
    """Say which clients (C,) are served in whole tasks: a demand of nothing is no demand."""
    return snapshot.characterised & some(snapshot.demand)
