"""Proportional fairness (PF) in the fluid model of one pool of resources.

In the fluid model, task volumes are real numbers: tasks are arbitrarily small. The solver maximises
the sum of ``weight * log(tasks)`` under the capacity of the pool. CEEI (competitive equilibrium
from equal incomes) has the same optimum, since it maximises the product of utilities.

The solver works on the dual problem, which has one variable per resource, a price:

    minimise over prices >= 0    sum(price) - sum(weight * log(need @ price)),

where ``need`` is the demand divided by the capacity. A primal-dual interior-point method finds the
prices. Newton's method on the saturated resources then refines them to float64 precision, and the
prices of the other resources become exactly zero.

Shapes: F frameworks, R resources.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 2.4.
.. [2] Boyd, Vandenberghe. "Convex Optimization." Cambridge University Press 2004, sec. 11.7.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.solvers import NotOptimal

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""The largest residual of a returned solution."""

_STEPS_MAX = 100
_POLISH_STEPS_MAX = 20
_PATH_END = 1e-13  # mean complementarity at which the interior-point method stops
_TO_BOUNDARY = 0.99  # largest part of the way to the boundary per step
_SATURATED = 1e-6  # a price above this part of the sum marks a saturated resource


@dataclass(frozen=True, slots=True)
class ProportionalSolution:
    """The fluid optimum and its certificate.

    `tasks` (F,): task volumes; 0 for a framework that needs a resource without capacity.
    `prices` (R,): Lagrange multipliers of the normalised capacities:
        ``weight[f] / tasks[f] == sum over r of demand[f, r] / capacity[r] * prices[r]``. They sum
        to the weights of the frameworks with any tasks.
    `residual`: largest relative violation of the optimality conditions (1), (3), (4) of [1]_.
    """

    tasks: Floats
    prices: Floats
    residual: float


def solve(demand: Floats, capacity: Floats, weight: Floats) -> ProportionalSolution:
    """Find the proportionally fair task volumes and the prices that prove them.

    A step costs O(F * R**2); 10 to 25 steps are usual. If several price vectors prove the same
    volumes, as with proportional demands, the solution has one in the middle of them.

    `demand` (F, R), >= 0: needs of one task, in the units of the capacity; each framework needs
        some resource.
    `capacity` (R,), >= 0: of the whole pool.
    `weight` (F,), > 0.
    Raises ValueError on a framework without any need, or a weight that is not positive.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.

    Examples
    --------
    Proposition 5 of [1]_: two jobs, a1 = (1/2, 1), a2 = (1, 1/2).

    >>> solution = solve(np.array([[0.5, 1], [1, 0.5]]), np.ones(2), np.ones(2))
    >>> solution.tasks.round(6).tolist(), solution.prices.round(6).tolist()
    ([0.666667, 0.666667], [1.0, 1.0])
    """
    demand, capacity, weight = (np.asarray(a, np.float64) for a in (demand, capacity, weight))
    if not (weight > 0).all():
        message = f"weights must be positive, the smallest is {weight.min()}"
        raise ValueError(message)
    if not (demand > 0).any(axis=1).all():
        message = f"framework {int((demand <= 0).all(axis=1).argmax())} needs nothing at all"
        raise ValueError(message)
    # Resources without capacity are left out; the frameworks that need them get nothing.
    present = capacity > 0
    served = ~(demand[:, ~present] > 0).any(axis=1)
    tasks, prices = np.zeros(len(demand)), np.zeros(len(capacity))
    if not served.any():
        return ProportionalSolution(tasks, prices, 0.0)
    # Normalise: needs are parts of the capacity with a maximum of 1, and weights sum to 1.
    need = demand[np.ix_(served, present)] / capacity[present]
    scale = need.max(axis=1)
    need /= scale[:, None]
    part = weight[served] / weight[served].sum()
    price = _polish(need, part, _interior_point(need, part))
    volume = _volume(need, part, price)
    residual = _residual(need, part, volume, price)
    if not residual <= TOLERANCE:
        problem = "proportional fairness"
        raise NotOptimal(problem, residual, TOLERANCE)
    tasks[served] = volume / scale
    prices[present] = price * weight[served].sum()
    return ProportionalSolution(tasks, prices, residual)


def _interior_point(need: Floats, part: Floats) -> Floats:
    """Find prices (R,), all positive, close to the optimum; arguments normalised as in `solve`."""
    resources = need.shape[1]
    price = np.full(resources, 1 / resources)
    slack = np.full(resources, 1.0)  # the multiplier of price >= 0
    for _ in range(_STEPS_MAX):
        cost = need @ price
        gradient = 1 - need.T @ (part / cost)
        complementarity = float(price @ slack) / resources
        if complementarity < _PATH_END and np.abs(gradient - slack).max() < _PATH_END:
            break
        # Newton's step is towards a tenth of the current mean of each price times its multiplier.
        target = 0.1 * complementarity
        curvature = (need.T * (part / cost**2)) @ need + np.diag(slack / price)
        step = _solve_symmetric(curvature, target / price - gradient)
        slack_step = (target - slack * step) / price - slack
        # Take a full step if possible, but never all the way to the boundary.
        length = min(1.0, _TO_BOUNDARY * min(_room(price, step), _room(slack, slack_step)))
        price = price + length * step
        slack = slack + length * slack_step
    return price


def _polish(need: Floats, part: Floats, price: Floats) -> Floats:
    """Refine prices by Newton's method on the saturated resources; return the better of the two."""
    saturated = price > _SATURATED * price.sum()
    sharp = np.where(saturated, price, 0.0)
    # If a framework needs none of these resources, the guess which are saturated is wrong.
    among = need[:, saturated]
    if not among.any(axis=1).all():
        return price
    for _ in range(_POLISH_STEPS_MAX):
        cost = among @ sharp[saturated]
        gradient = 1 - among.T @ (part / cost)
        step = _solve_symmetric((among.T * (part / cost**2)) @ among, -gradient)
        length = min(1.0, _TO_BOUNDARY * _room(sharp[saturated], step))
        sharp[saturated] += length * step
        if np.abs(step).max() < np.finfo(np.float64).eps:
            break
    residuals = [_residual(need, part, _volume(need, part, p), p) for p in (sharp, price)]
    return sharp if residuals[0] <= residuals[1] else price


def _solve_symmetric(matrix: Floats, right: Floats) -> Floats:
    """Solve a system that may be singular: return its shortest solution, in the scale below."""
    # Diagonal entries range over many orders of magnitude, since they contain the inverse prices of
    # resources that are not saturated. Without scaling, `lstsq` would take a small entry for zero.
    diagonal = matrix.diagonal()
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    scaled = np.linalg.lstsq(matrix * scale * scale[:, None], right * scale, rcond=None)[0]
    return np.asarray(scaled * scale, np.float64)


def _room(value: Floats, step: Floats) -> float:
    """Return how many times the step can be taken before a positive value reaches zero."""
    falling = step < 0
    return float((value[falling] / -step[falling]).min(initial=np.inf))


def _volume(need: Floats, part: Floats, price: Floats) -> Floats:
    """Compute the task volumes that frameworks buy at these prices, scaled down to fit, (F,)."""
    # Each framework spends an income equal to its normalised weight.
    volume = part / (need @ price)
    return volume / max(1.0, float((volume @ need).max()))


def _residual(need: Floats, part: Floats, volume: Floats, price: Floats) -> float:
    """Return the largest violation of stationarity, capacity, complementarity and price >= 0."""
    used = volume @ need
    stationarity = np.abs(volume * (need @ price) / part - 1).max()
    complementarity = np.abs(price * (used - 1)).max()
    return float(max(stationarity, complementarity, (used - 1).max(), (-price).max(), 0.0))
