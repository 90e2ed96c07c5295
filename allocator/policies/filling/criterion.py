"""Criteria: arrays by which clients are ranked.

All criteria of the papers are the same formula over arrays, so the compiled loops serve all of them
without distinguishing policies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from allocator.core.numba.memo import constant, fixed, memoize
from allocator.core.snapshot import Bools, Floats, Snapshot


@dataclass(frozen=True, slots=True)
class Criterion:
    """What each node has, and the denominators that turn it into a score.

    The score of a node on an agent combines, over K = R + 1 columns (one per resource and a final
    count column), the parts ``measure[node, k] / (denominator[agent or 0, k] * weight[node])``.
    A measure of 0 contributes 0 whatever its denominator; a column that does not count has an
    infinite denominator.

    A score must not decrease when its client receives a grant, because the loops cache smallest
    scores. Therefore gains and measures must be at least 0, and residual denominators at least what
    is free (`check`).

    - `measure` (N, K), >= 0: what each node of the tree has; additive over the tree.
    - `denominator` (1, K) or (A, K), >= 0: one row for all agents, or one per agent.
    - `amount_gain`, `task_gain`, `agent_gain` (C,), >= 0: a grant of `t` tasks and amount `g` to
      client c adds ``amount_gain[c] * g`` to the resource columns and ``task_gain[c] * t`` to the
      count column, plus ``agent_gain[c]`` if the client held nothing on that agent.
    - `residual`: whether the denominator is what is free on the agent; each grant then reduces the
      agent's row by its amount.
    - `additive`: whether the parts are summed; otherwise the largest one is the score.
    - `priority` (C,), > 0: multiplies a client's weight: the priorities of frameworks in [1]_,
      eq. 2 to 4, in addition to the weights of roles.
    - `preference` (C, A), > 0: how much each client prefers each agent; divides its score there, as
      the coefficients of [1]_, eq. 2, allow. Use a constraint to exclude an agent.
    - `weight_power`, >= 0: exponent of weights: 1 / a for the (weighted) a-fairness of [1]_, eq. 8
      and 9, whose optimum gives clients with equal demands tasks in proportion to their weights to
      the power 1 / a. 1: proportional; 0: weights do not count.

    References
    ----------
    .. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed
       Resources in Heterogeneous Private Clouds." MASCOTS 2018, sec. II and III.
    """

    measure: Floats
    denominator: Floats
    amount_gain: Floats
    task_gain: Floats
    agent_gain: Floats
    residual: bool = False
    additive: bool = False
    priority: Floats | None = None
    preference: Floats | None = None
    weight_power: float = 1.0


class CriterionError(ValueError):
    """A criterion is invalid; the message says which part, why, and how to fix it."""


def check(snapshot: Snapshot, criterion: Criterion) -> None:
    """Verify what the compiled loops rely on without checking it. Raises CriterionError."""
    clients, agents = len(snapshot.held), len(snapshot.capacity)
    nodes, columns = len(snapshot.tree.parent), len(snapshot.total) + 1
    gains = {
        "amount_gain": criterion.amount_gain,
        "task_gain": criterion.task_gain,
        "agent_gain": criterion.agent_gain,
    }
    # The loops read arrays without bounds checks.
    _check_shape("measure", criterion.measure, (nodes, columns))
    rows = 1 if len(criterion.denominator) == 1 else agents
    _check_shape("denominator", criterion.denominator, (rows, columns))
    for name, gain in gains.items():
        _check_shape(name, gain, (clients,))
        if not _is_finite_and_positive(gain):
            raise CriterionError(f"{name}: a grant would reduce a score; it must be 0 or more")
    measure = criterion.measure
    if measure.size and not (measure.min() >= 0 and measure.max() < np.inf):
        raise CriterionError("measure: must be finite, and 0 or more")
    if not (criterion.denominator >= 0).all():  # false for NaN too
        raise CriterionError("denominator: must be 0 or more, or infinite")
    if criterion.residual:
        _check_residual(snapshot, criterion, rows)
    if not (np.isfinite(criterion.weight_power) and criterion.weight_power >= 0):
        raise CriterionError(f"weight_power: {criterion.weight_power} must be 0 or more")
    for name, array, shape in (
        ("priority", criterion.priority, (clients,)),
        ("preference", criterion.preference, (clients, agents)),
    ):
        if array is not None:
            _check_shape(name, array, shape)
            if not (np.isfinite(array) & (array > 0)).all():
                mend = "; exclude agents by a constraint" if name == "preference" else ""
                raise CriterionError(f"{name}: must be above 0 and finite{mend}")


@memoize(size=8)
def _is_finite_and_positive(gain: Floats) -> bool:
    return bool((np.isfinite(gain) & (gain >= 0)).all())


def _check_shape(name: str, array: Floats, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise CriterionError(f"{name}: has the shape {array.shape}; it must be {shape}")


def _check_residual(snapshot: Snapshot, criterion: Criterion, rows: int) -> None:
    if rows != len(snapshot.capacity):
        raise CriterionError("residual: free amounts differ by agent; give one row per agent")
    if criterion.preference is not None:
        raise CriterionError(
            "preference: grants reduce free amounts regardless of preferences; leave residual out"
        )
    at = snapshot.agents
    if (criterion.denominator[at, :-1] < snapshot.free_by_column[at]).any():
        raise CriterionError(
            "residual: a denominator below what is free would become negative, and the score"
            " with it; begin with what is free, or more"
        )


CriterionFunction: TypeAlias = Callable[[Snapshot], Criterion]


def leaf_scores(criterion: Criterion, weight: Floats) -> Floats:
    """Return the scores of the leaves, (L,), if there is one row of denominators.

    `weight` (L,): weights after priorities and powers are applied.
    """
    measure = criterion.measure[: len(weight)]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = measure / (criterion.denominator * weight[:, None])
    parts[measure == 0] = 0.0  # a measure of 0 contributes 0, whatever its denominator
    combined: Floats = parts.sum(axis=1) if criterion.additive else parts.max(axis=1)
    return combined


def of_amounts(
    snapshot: Snapshot, denominator: Floats, *, residual: bool = False, additive: bool = False
) -> Criterion:
    """Make a criterion that measures what clients hold.

    `denominator` (1, R) or (A, R), in thousandths.
    `residual`, `additive`: as in `Criterion`.
    """
    everybody, nothing = constant(1, len(snapshot.held)), constant(0, len(snapshot.held))
    return mixed(snapshot, everybody, denominator, nothing, residual, additive=additive)


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
    """Make a criterion that measures amounts for some clients, and a count for others.

    `amount_gain` (C,): 1 if a client is measured by amounts, else 0.
    `denominator` (1, R) or (A, R), in thousandths: of the resource columns.
    `count` (C,): what each client has in the count column.
    `count_denominator`: denominator of the count column.
    `task_gain`, `agent_gain` (C,): zeros by default.
    """
    nothing = constant(0, len(count))
    with_count = np.empty((len(denominator), len(snapshot.total) + 1))
    with_count[:, :-1], with_count[:, -1] = denominator, count_denominator
    return Criterion(
        measure=snapshot.held_over_tree(amount_gain, count),
        denominator=with_count,
        amount_gain=amount_gain,
        task_gain=nothing if task_gain is None else task_gain,
        agent_gain=nothing if agent_gain is None else agent_gain,
        residual=residual,
        additive=additive,
    )


def cluster_total(snapshot: Snapshot) -> Floats:
    """Return the cluster's capacity as a denominator (1, R).

    It is infinite for resources that do not count, or of which the cluster has none.
    """
    takes_part = snapshot.counted & (snapshot.total > 0)
    return np.where(takes_part, snapshot.total, np.inf)[None, :]


def characterised(snapshot: Snapshot) -> Bools:
    """Return which clients (C,) are served in whole tasks: those with a known demand above zero."""
    return _both(snapshot.characterised, snapshot.has_demand)


@memoize()
def _both(one: Bools, other: Bools) -> Bools:
    return fixed(one & other)
