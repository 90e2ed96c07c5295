"""Proportional and alpha-fair allocation of many agents in the fluid model.

The solver maximises the sum of ``weight * g(tasks)`` over all frameworks, where g is the logarithm
for alpha 1 and ``tasks ** (1 - alpha) / (1 - alpha)`` otherwise. Tasks run only on agents that the
framework can use, within the capacity of each agent. The task volumes are unique ([1]_,
Proposition 2); their distribution over agents need not be. With one agent, this is the model of
`proportional_fairness`.

Equal agents are merged first. Then a primal-dual interior-point method [2]_ finds volumes of
*pairs* (a framework and an agent that it can use) and prices of the agents' resources.

The usual method eliminates the volumes from each step, which leaves a small linear system. If
marginal utilities differ by many orders of magnitude, as with an alpha well above 1, this system is
so nearly singular that float64 cannot solve it. Then a variant [3]_, `relative_path`, keeps the
volumes, and its unknowns are *relative* changes of volumes and prices, so no coefficient is far
above 1. Marginal utilities are unknowns too, because their logarithms are linear in those of the
volumes. Its system is larger, so it is used only for few frameworks and agents.

Shapes: F frameworks, A agents, R resources, P pairs, Q resources of all agents together, G classes
of equal agents.

References
----------
.. [1] Kesidis, Shan, Wang, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 8 and Proposition 2.
.. [2] Boyd, Vandenberghe. "Convex Optimization." Cambridge University Press 2004, sec. 11.7.
.. [3] Wright. "Primal-Dual Interior-Point Methods." SIAM 1997, ch. 11 (on the larger system).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.solvers import NotOptimal, Work

Ints = NDArray[np.int64]


class EqualAgents(NamedTuple):
    """Classes of equal agents, in the order of the first agent of each.

    `first` (G,): the first agent of each class.
    `of_agent` (A,): the class of each agent.
    `copies` (G,): the number of agents in each class.
    """

    first: Ints
    of_agent: Ints
    copies: Ints


def equal_agents(capacity: NDArray[np.float64], able: NDArray[np.bool_]) -> EqualAgents:
    """Group agents by their capacity (A, R), and by which frameworks can run on them, (F, A)."""
    rows = np.column_stack([capacity, able.T])
    _, first, of_agent, copies = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return EqualAgents(first[order], place[of_agent.reshape(-1)], copies[order])


Floats = NDArray[np.float64]

UNKNOWNS_MAX = 400
"""Maximum number of pairs plus resources for `relative_path`, which is too slow with more."""

STEPS_MAX = 200
PATH_END = 1e-10
"""Mean complementarity, relative to the smallest income, at which the method stops.

A framework's income is its marginal utility times its task volume.
"""

_TO_BOUNDARY = 0.99  # largest part of the way to the boundary per step


def relative_path(
    matrix: Floats, of: Ints, volume: Floats, weight: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Find the volume of each pair, (P,), and the price of each resource, (Q,).

    If rounding stops the iteration early, the result may not be optimal; check it by `residual`.

    `matrix` (Q, P), >= 0: the part of each resource that a task of each pair takes; capacities are
        1.
    `of` (P,): the framework of each pair.
    `volume` (P,), > 0: the volumes to start from; they must be within the capacities.
    `weight` (F,): the weights; they must sum to 1.
    """
    resources, frameworks = len(matrix), len(weight)
    slack, price = 1 - matrix @ volume, np.full(resources, 1 / resources)
    bar = np.ones(len(of)) / len(of)
    utility = weight * np.bincount(of, volume, frameworks) ** -alpha
    for _ in range(STEPS_MAX):
        total: Floats = np.bincount(of, volume, frameworks).astype(np.float64)
        behind = np.log(weight / utility) - alpha * np.log(total)
        short = utility[of] - price @ matrix + bar
        middle = float((volume @ bar + price @ slack) / (len(of) + resources))
        end = PATH_END * min(1.0, float((utility * total).min()))
        if middle < end and max(np.abs(short * volume).max() / end, np.abs(behind).max()) < 1:
            break
        target, over = 0.1 * middle, 1 - matrix @ volume - slack
        right = -short - target / volume + bar
        found = _solved(
            _system(matrix, of, alpha, (volume, price, bar, slack, utility, total)),
            np.concatenate([right / utility[of] - behind[of], over - target / price + slack]),
        )
        if found is None:
            break
        grown, dearer = found[: len(of)], found[len(of) :]
        step = volume * grown
        steps = (
            step,
            price * dearer,
            target / volume - bar - bar * grown,
            over - matrix @ step,
            utility * (behind - alpha * np.bincount(of, step, frameworks) / total),
        )
        volume, price, bar, slack, utility = moved((volume, price, bar, slack, utility), steps)
    return volume, price


def _system(matrix: Floats, of: Ints, alpha: float, now: tuple[Floats, ...]) -> Floats:
    """Build the derivatives of the optimality conditions by relative changes of the variables."""
    volume, price, bar, slack, utility, total = now
    pairs = len(of)
    system = np.zeros((pairs + len(price), pairs + len(price)))
    system[:pairs, :pairs] = -alpha * (of[:, None] == of) * (volume / total[of])
    system[:pairs, :pairs] -= np.diag(bar / utility[of])
    system[:pairs, pairs:] = -(matrix * price[:, None]).T / utility[of, None]
    system[pairs:, :pairs] = matrix * volume
    system[pairs:, pairs:] = -np.diag(slack)
    return system


def _solved(system: Floats, right: Floats) -> Floats | None:
    """Solve a linear system after scaling rows and columns to a maximum of 1; None if it fails."""
    with np.errstate(all="ignore"):
        by_row = np.abs(system).max(axis=1)
        even = system / by_row[:, None]
        by_column = np.abs(even).max(axis=0)
        even /= by_column
        if not np.isfinite(even).all():
            return None
        try:
            result = np.linalg.solve(even, right / by_row) / by_column
        except np.linalg.LinAlgError:
            return None
    return result if np.isfinite(result).all() else None


def moved(values: tuple[Floats, ...], steps: tuple[Floats, ...]) -> Iterator[Floats]:
    """Return the values after a step, which is shortened to keep all of them positive."""
    length = min(1.0, _TO_BOUNDARY * min(map(_room, values, steps)))
    return (value + length * step for value, step in zip(values, steps, strict=True))


def _room(value: Floats, step: Floats) -> float:
    falling = step < 0
    return float((value[falling] / -step[falling]).min(initial=np.inf))


Bools = NDArray[np.bool_]

_PROBLEM = "alpha-fairness over agents"

STEPS_USUAL = 20
"""Usual number of steps."""

TOLERANCE = 1e-7
"""The largest residual of a returned solution."""


class _Beginning(NamedTuple):
    """A starting point of the method, and a variant of it.

    `part`: the part of the capacity that is used at the start.
    `by_income`: measure convergence for each framework relative to its own income, which at an
        alpha well above 1 may be many orders of magnitude smaller than another's. Otherwise one
        measure is used for all, which is faster.
    `relative`: use `relative_path`, if the problem is small enough.
    """

    part: float
    by_income: bool = False
    relative: bool = False


_BEGINNINGS = (
    _Beginning(0.5),
    _Beginning(0.5, relative=True),
    _Beginning(0.99, relative=True),
    _Beginning(0.01, relative=True),
    _Beginning(0.5, by_income=True),
    _Beginning(0.99),
    _Beginning(0.01, by_income=True),
    _Beginning(0.99, by_income=True),
)
"""Starting points, tried in this order until one leads to a proven optimum."""


@dataclass(frozen=True, slots=True)
class ProportionalAgentsSolution:
    """The fluid optimum and its certificate.

    `tasks` (F, A): tasks of each framework on each agent; 0 for a framework that no agent suits.
    `prices` (A, R): Lagrange multipliers: the price of a unit of the resource on the agent. On an
        agent where a framework runs, its task costs the framework's marginal utility ``weight *
        tasks ** -alpha``; on no agent does it cost less.
    `residual`: largest relative violation of the optimality conditions.
    """

    tasks: Floats
    prices: Floats
    residual: float


def solve(
    demand: Floats,
    capacity: Floats,
    eligible: Bools | None = None,
    weight: Floats | None = None,
    alpha: float = 1.0,
    work_max: float = np.inf,
) -> ProportionalAgentsSolution:
    """Find the alpha-fair task volumes and the prices that prove them.

    A step solves a linear system with one equation per resource of each distinct agent. If incomes
    (``weight * tasks ** (1 - alpha)``) differ by some twenty orders of magnitude, because of a
    large alpha and task sizes far apart, even `relative_path` may fail with `NotOptimal`.

    `demand` (F, R), >= 0: needs of one task; each framework needs some resource.
    `capacity` (A, R), >= 0: of each agent, in the same units.
    `eligible` (F, A): whether the framework may use the agent; all by default.
    `weight` (F,), > 0: 1 by default.
    `alpha`, > 0: 1 for proportional fairness; a larger alpha is closer to max-min fairness of
        tasks.
    `work_max`: maximum number of operations, as `work_of_step` counts them.
    Raises ValueError on a framework without any need, a weight or an alpha that is not positive, or
        arrays that do not fit together.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.
    Raises GivenUp if more than `work_max` operations are needed.

    Examples
    --------
    Two agents like those of Table I in [1]_: each framework gets the agent that suits it.

    >>> solution = solve(np.array([[5.0, 1], [1, 5]]), np.array([[100.0, 30], [30, 100]]))
    >>> solution.tasks.sum(axis=1).round(3).tolist()
    [21.667, 21.667]
    """
    demand, capacity = np.asarray(demand, np.float64), np.asarray(capacity, np.float64)
    able, weight = _checked(demand, capacity, eligible, weight, alpha)
    tasks, prices = np.zeros((len(demand), len(capacity))), np.zeros(capacity.shape)
    served = able.any(axis=1)
    if not served.any():
        return ProportionalAgentsSolution(tasks, prices, 0.0)
    first, of_agent, copies = equal_agents(capacity, able)
    room = capacity[first] * copies[:, None]
    wrong, work = np.inf, Work(_PROBLEM, work_max)
    few = int(able[:, first].sum()) + room.size <= UNKNOWNS_MAX
    for begin in _BEGINNINGS:
        if begin.relative and not few:
            continue
        found, cost = _scaled(
            demand[served], room, able[served][:, first], weight[served], alpha, begin, work
        )
        tasks[served] = (found / copies)[:, of_agent]
        prices = cost[of_agent]
        prices[~np.asarray(able.any(axis=0))] = 0.0
        wrong = residual(tasks, prices, demand, capacity, able, weight, alpha)
        if wrong <= TOLERANCE:
            break
    if not wrong <= TOLERANCE:
        raise NotOptimal(_PROBLEM, wrong, TOLERANCE)
    return ProportionalAgentsSolution(tasks, prices, wrong)


def residual(
    tasks: Floats,
    prices: Floats,
    demand: Floats,
    capacity: Floats,
    eligible: Bools,
    weight: Floats,
    alpha: float = 1.0,
) -> float:
    """Return the largest relative violation of the optimality (Karush-Kuhn-Tucker) conditions.

    - A task costs at least its framework's marginal utility, and no more on agents where the
      framework runs.
    - No capacity is exceeded.
    - Frameworks run only on agents that suit them, and each that can run has tasks; otherwise the
      result is infinite.
    - A resource that is not used up has the price 0. The violation is relative to the price of the
      whole agent, or to the smallest income of a framework that the agent suits if that is larger.

    So frameworks with small incomes count as much as others.
    """
    volume = tasks.sum(axis=1)
    able = eligible & ~((demand[:, None, :] > 0) & (capacity[None] <= 0)).any(axis=2)
    served = able.any(axis=1)
    if tasks[~able].any() or (volume[served] <= 0).any() or not np.isfinite(tasks).all():
        return np.inf
    if not served.any():
        return 0.0
    utility = weight[served] * volume[served] ** -alpha
    cost = demand[served] @ prices.T / utility[:, None]
    used = tasks.T @ demand
    # Costs are relative to the marginal utility; the excess cost is averaged over the tasks.
    cheap = np.where(able[served], 1 - cost, 0.0).max()
    dear = (tasks[served] / volume[served, None] * np.where(able[served], cost - 1, 0.0)).sum(
        axis=1
    )
    over = np.divide(used - capacity, capacity, out=np.zeros(used.shape), where=capacity > 0)
    income = np.where(able[served], (utility * volume[served])[:, None], np.inf).min(axis=0)
    suits = able.any(axis=0)
    worth = np.maximum((prices * capacity).sum(axis=1), income)[suits]
    unsold = np.abs((prices * (capacity - used)).sum(axis=1)[suits] / worth).max()
    useless = prices[~suits].max(initial=0)
    worst = cheap, dear.max(), over.max(), unsold, useless, -prices.min(), -tasks.min(), 0.0
    return float(max(worst))


def _checked(
    demand: Floats,
    capacity: Floats,
    eligible: Bools | None,
    weight: Floats | None,
    alpha: float,
) -> tuple[Bools, Floats]:
    """Validate the arrays; return which agents each framework can use, and the weights."""
    shape = len(demand), len(capacity)
    able = np.ones(shape, np.bool_) if eligible is None else np.asarray(eligible, np.bool_)
    weight = np.ones(len(demand)) if weight is None else np.asarray(weight, np.float64)
    if able.shape != shape or weight.shape != shape[:1] or demand.shape[1:] != capacity.shape[1:]:
        raise ValueError(f"demands {demand.shape} do not fit capacities {capacity.shape}")
    if not ((weight > 0) & (weight < np.inf)).all() or not 0 < alpha < np.inf:
        raise ValueError("weights and alpha must be positive and finite")
    if not (demand > 0).any(axis=1).all():
        at = int((~(demand > 0).any(axis=1)).argmax())
        raise ValueError(f"framework {at} needs nothing at all")
    # An agent that lacks a resource suits no framework that needs it.
    lacking = (demand[:, None, :] > 0) & (capacity[None] <= 0)
    return able & ~lacking.any(axis=2), weight


def _scaled(
    demand: Floats,
    capacity: Floats,
    able: Bools,
    weight: Floats,
    alpha: float,
    begin: "_Beginning",
    work: Work,
) -> tuple[Floats, Floats]:
    """Normalise the problem, solve it, and return tasks on agents, (F, A), and prices, (A, R)."""
    # The unit of a framework's tasks is the number it could run alone, divided by the number of
    # frameworks, so that all volumes are near 1.
    present = capacity > 0
    part = np.divide(
        demand[:, None, :], capacity[None], out=np.zeros((*able.shape, demand.shape[1])),
        where=present[None],
    )  # fmt: skip
    largest = part.max(axis=2)
    alone = np.divide(1, largest, out=np.zeros(able.shape), where=able).sum(axis=1)
    unit = alone / len(alone)
    income = weight * unit ** (1 - alpha)
    scale = income.sum()
    pairs = of, on = np.nonzero(able)
    need = part[pairs] * unit[of, None]
    found, price = _interior_point(need, of, on, present, income / scale, alpha, begin, work)
    tasks = np.zeros(able.shape)
    tasks[pairs] = found * unit[of]
    cost = np.divide(price * scale, capacity, out=np.zeros(capacity.shape), where=present)
    return tasks, cost


def work_of_step(pairs: int, resources: int, *, relative: bool = False) -> float:
    """Estimate the operations of a step, of `relative_path` if `relative`.

    `pairs`: pairs of a framework and an agent that it can use.
    `resources`: resources of all agents together.
    """
    if relative:
        return float(pairs + resources) ** 3 / 3
    return float(resources) ** 2 * (pairs + resources / 3)


def _interior_point(
    need: Floats,
    of: Ints,
    on: Ints,
    present: Bools,
    weight: Floats,
    alpha: float,
    begin: "_Beginning",
    work: Work,
) -> tuple[Floats, Floats]:
    """Find the volume of each pair, (P,), and the prices of each agent's resources, (A, R).

    `need` (P, R): parts of the pair's agent that one task takes.
    `of`, `on` (P,): the framework and the agent of each pair.
    `present` (A, R): whether the agent has some of the resource.
    `weight` (F,): the weights; they must sum to 1.
    """
    frameworks, (agents, resources) = len(weight), present.shape
    step_work = work_of_step(len(of), int(np.count_nonzero(present)), relative=begin.relative)
    # Count the work before the matrix is allocated, so that no huge matrix is.
    work.spend(STEPS_MAX * step_work if begin.relative else step_work)
    matrix, rows = _constraints(need, on, present)

    def found(volume: Floats, price: Floats) -> tuple[Floats, Floats]:
        prices = np.zeros(agents * resources)
        prices[rows] = price
        return volume, prices.reshape(agents, resources)

    volume = begin.part / np.maximum(matrix.sum(axis=0), 1e-12)
    volume /= np.bincount(on, minlength=agents)[on]
    if begin.relative:
        return found(*relative_path(matrix, of, volume, weight, alpha))
    slack = 1 - matrix @ volume
    price, bar = np.full(len(rows), 1 / len(rows)), np.ones(len(of)) / len(of)
    size, row_size = np.ones(len(of)), np.ones(len(rows))
    fresh = begin.by_income
    for _ in range(STEPS_MAX):
        total = np.bincount(of, volume, frameworks)
        utility = weight * total**-alpha
        if begin.by_income:
            size = (utility * total / np.bincount(of, minlength=frameworks))[of]
            row_size = np.maximum(np.where(matrix > 0, size, 0.0).max(axis=1), size.min())
        if fresh:
            price, bar, fresh = row_size.copy(), size / volume, False
        short = utility[of] - price @ matrix + bar
        gap = float((volume * bar / size).sum() + (price * slack / row_size).sum())
        middle = gap / (len(of) + len(rows))
        # The end is exact enough even for the framework with the smallest income.
        end = PATH_END * (1.0 if begin.by_income else min(1.0, float((utility * total).min())))
        if middle < end and (np.abs(short * volume) / size).max() < end:
            break
        target, row_target = 0.1 * middle * size, 0.1 * middle * row_size
        # Newton's step. If rounding makes it impossible, `solve` checks how good the current point
        # is.
        work.spend(step_work)
        inverse = _Inverse.made(of, volume / bar, alpha * utility / total)
        wanted = short + target / volume - bar
        over = 1 - matrix @ volume - slack
        needs = inverse.apart(matrix)
        system = inverse.between(needs, needs) + np.diag(slack / price)
        right = inverse.between(needs, inverse.apart(wanted[None]))[:, 0]
        step_price = _solve_even(system, right + row_target / price - slack - over)
        if step_price is None:
            break
        step = inverse.applied(wanted - step_price @ matrix)
        values = volume, price, bar, slack
        steps = step, step_price, target / volume - bar - bar / volume * step, over - matrix @ step
        volume, price, bar, slack = moved(values, steps)
    return found(volume, price)


class _Inverse(NamedTuple):
    """The inverse of the second derivative of utilities and barriers, a (P, P) matrix.

    The second derivative is block-diagonal: for each framework, a diagonal matrix plus a matrix of
    rank 1 from the utility, which depends only on the sum of the framework's volumes. The inverse
    is applied separately to the mean of a framework's pairs and to the differences from the mean;
    otherwise the two parts would nearly cancel if the diagonal is small.

    `of` (P,): the framework of each pair.
    `loose` (P,): inverse of the diagonal.
    `sums` (F,): sum of `loose` over the framework's pairs.
    `firm` (F,): the factor by which the utility reduces the mean.
    """

    of: Ints
    loose: Floats
    sums: Floats
    firm: Floats

    @classmethod
    def made(cls, of: Ints, loose: Floats, bend: Floats) -> "_Inverse":
        """Build the inverse; `bend` (F,): curvature of each framework's utility."""
        sums: Floats = np.bincount(of, loose, len(bend)).astype(np.float64)
        return cls(of, loose, sums, 1 / (1 + bend * sums))

    def apart(self, rows: Floats) -> tuple[Floats, Floats]:
        """Split rows (X, P) into differences from the framework's mean, and means.

        Returns the differences, (X, P), and the means weighted by `loose`, (X, F).
        """
        sums = [np.bincount(self.of, row * self.loose, len(self.sums)) for row in rows]
        mean = np.stack(sums) / self.sums
        return rows - mean[:, self.of], mean

    def between(self, one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Floats:
        """Multiply rows, the inverse, and other rows transposed; both are split by `apart`."""
        common = (one[1] * (self.sums * self.firm)) @ other[1].T
        return np.asarray((one[0] * self.loose) @ other[0].T + common)

    def applied(self, change: Floats) -> Floats:
        """Multiply the inverse by a vector, (P,)."""
        rest, mean = self.apart(change[None])
        return self.loose * (rest[0] + (mean[0] * self.firm)[self.of])


def _constraints(need: Floats, on: Ints, present: Bools) -> tuple[Floats, Ints]:
    """Build the matrix of the capacity constraints.

    Returns the part of each present resource that a task of each pair takes, (Q, P); and the
        numbers of the present resources, (Q,), where resources are numbered agent by agent.
    """
    agents, resources = present.shape
    rows = np.flatnonzero(present.ravel())
    matrix = np.zeros((agents * resources, len(on)))
    for r in range(resources):
        matrix[on * resources + r, np.arange(len(on))] = need[:, r]
    return matrix[rows], rows


def _solve_even(system: Floats, right: Floats) -> Floats | None:
    """Solve a symmetric linear system with badly scaled rows; None if it fails."""
    with np.errstate(all="ignore"):
        even = 1 / np.sqrt(np.diag(system))
        scaled = system * np.outer(even, even)
        if not np.isfinite(scaled).all():
            return None
        try:
            result = even * np.linalg.solve(scaled, even * right)
        except np.linalg.LinAlgError:
            return None
    return result if np.isfinite(result).all() else None
