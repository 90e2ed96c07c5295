"""Proportional fairness, and the alpha-fair family, over many agents with constraints, fluid.

Maximise the sum of ``weight * g(tasks)``, where g is the logarithm for alpha 1 and ``tasks **
(1 - alpha) / (1 - alpha)`` otherwise, over what frameworks run on the agents that they can use,
each agent within its own capacity. The task volumes are unique ([1]_, Proposition 2); their
distribution over agents need not be. With one agent that all can use, it is the pooled model of
`proportional_fairness`.

A primal-dual interior-point method; equal agents are merged first.

If numbers differ by many orders of magnitude, a variant is used [3]_. The usual method eliminates
the volumes from each step, which leaves a small system. If marginal utilities differ by many orders
(an alpha well above 1 does that at ordinary sizes), this system is so nearly singular that float64
cannot solve it. The variant keeps the volumes, and every unknown is a *relative* change of a volume
or a price: then no coefficient is far above 1, whatever the sizes. Its system is larger, so it is
for problems with few frameworks and agents.

Marginal utilities are unknowns too, because their logarithms are linear in those of the volumes.

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
    # Order by first row.
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return EqualAgents(first[order], place[of_agent.reshape(-1)], copies[order])


Floats = NDArray[np.float64]

UNKNOWNS_MAX = 400
"""Limit for `relative_path`, beyond which a step takes too long: pairs plus agents' resources."""

STEPS_MAX = 200
PATH_END = 1e-10
"""Mean complementarity, relative to the smallest income, at which the method stops."""

_TO_BOUNDARY = 0.99  # largest part of the way to the boundary per step


def relative_path(
    matrix: Floats, of: Ints, volume: Floats, weight: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Volumes of each pair, (P,), and prices of each resource, (Q,).

    If rounding stops the iteration, the certificate judges the result.

    `matrix` (Q, P), >= 0: the part of each resource that a task of each pair takes; capacities are
        1.
    `of` (P,): the framework of each pair.
    `volume` (P,), > 0: the start; it must fit.
    `weight` (F,), with sum 1.
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
    """Derivatives of the conditions by relative changes of volumes and prices, each normalised."""
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
    """Solve with rows and columns scaled to a maximum of 1; None if that fails."""
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
    """Take a step, shortened to keep all values positive."""
    length = min(1.0, _TO_BOUNDARY * min(map(_room, values, steps)))
    return (value + length * step for value, step in zip(values, steps, strict=True))


def _room(value: Floats, step: Floats) -> float:
    """How many steps from positive values to the boundary."""
    falling = step < 0
    return float((value[falling] / -step[falling]).min(initial=np.inf))


Bools = NDArray[np.bool_]

_PROBLEM = "alpha-fairness over agents"

STEPS_USUAL = 20
"""Usual number of steps."""

TOLERANCE = 1e-7
"""The largest residual of a returned answer."""


class _Beginning(NamedTuple):
    """The starting point of the method, and how convergence is measured.

    `part`: of the capacity.
    `by_income`: measure each framework by its own income, which at an alpha well above 1 may be
        many orders smaller than another's; otherwise use one measure for all, which is faster.
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
"""Tried in turn until the certificate holds."""


@dataclass(frozen=True, slots=True)
class ProportionalAgentsSolution:
    """The fluid optimum and its certificate.

    `tasks` (F, A): of each framework on each agent; 0 for a framework that no agent suits.
    `prices` (A, R): Lagrange multipliers: the cost of a unit of the resource on the agent. Where a
        framework runs, a task costs its marginal utility ``weight * tasks ** -alpha``, and nowhere
        less.
    `residual`: largest violation of the optimality conditions, each relative.
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

    A step solves a system with one equation per resource of each distinct agent. With an alpha well
    above 1 and sizes far apart, incomes (``weight * tasks ** (1 - alpha)``) differ so much that
    rounding spoils it; then, with few frameworks and agents, `relative_path` solves its larger
    system. Some twenty orders of magnitude may spoil even that: `NotOptimal`.

    `demand` (F, R), >= 0: one task's needs; each framework needs something.
    `capacity` (A, R), >= 0: of each agent, in the same units.
    `eligible` (F, A); `weight` (F,), > 0.
    `alpha`, > 0: 1 for proportional fairness; the larger, the nearer to max-min fairness of tasks.
    `work_max`: operations, as `work_of_step` counts them.
    Raises ValueError on a framework without any need, a weight or an alpha that is not positive, or
        arrays that do not fit together.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.
    Raises GivenUp if that takes more work.

    Examples
    --------
    Two agents like those of Table I in [1]_: each framework takes the agent that suits it.

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
    # Merge equal agents into one of their total size.
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
    """Largest violation of the Karush-Kuhn-Tucker conditions, each relative.

    No task costs less than its framework's marginal utility, nor more where it runs; nothing
    exceeds a capacity, or is given to frameworks that the agent does not suit; what is not used up
    has no price, relative to the agent's total price or the smallest income of the frameworks it
    suits. So frameworks with small incomes count as much as others.
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
    # A task's cost, relative to its utility; by volume, the excess cost where it runs.
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
    """Solve with all numbers near 1: tasks on agents, (F, A), and prices, (A, R)."""
    # Normalise tasks by what each framework could run alone, divided by the frameworks.
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
    """Operations of a step, given the numbers of pairs and of all agents' resources together."""
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
    """Volumes of each pair, (P,), and prices of each agent's resources, (A, R).

    `need` (P, R): parts of its agent that one task takes.
    `of`, `on` (P,): the framework and the agent of each pair.
    `present` (A, R); `weight` (F,), with sum 1.
    """
    frameworks, (agents, resources) = len(weight), present.shape
    step_work = work_of_step(len(of), int(np.count_nonzero(present)), relative=begin.relative)
    # Spend before the matrix of this size is allocated.
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
        # Exact enough even for the framework with the smallest income.
        end = PATH_END * (1.0 if begin.by_income else min(1.0, float((utility * total).min())))
        if middle < end and (np.abs(short * volume) / size).max() < end:
            break
        target, row_target = 0.1 * middle * size, 0.1 * middle * row_size
        # Newton's step. If rounding stops the iteration, the certificate judges.
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
    """The inverse of the second derivative of utilities and barriers, on one number per pair.

    A framework's pairs depend on each other only through its utility, which only their common
    change affects. That is separated from their differences; otherwise the two would nearly cancel
    if a framework is almost free to move.

    `of` (P,).
    `loose` (P,): how far a pair would move by itself.
    `sums` (F,): of `loose`.
    `firm` (F,): part of the common change that the utility leaves.
    """

    of: Ints
    loose: Floats
    sums: Floats
    firm: Floats

    @classmethod
    def made(cls, of: Ints, loose: Floats, bend: Floats) -> "_Inverse":
        """Build it from the curvature of each framework's utility, (F,)."""
        sums: Floats = np.bincount(of, loose, len(bend)).astype(np.float64)
        return cls(of, loose, sums, 1 / (1 + bend * sums))

    def apart(self, rows: Floats) -> tuple[Floats, Floats]:
        """Rows of one number per pair, less their means; and each framework's means."""
        sums = [np.bincount(self.of, row * self.loose, len(self.sums)) for row in rows]
        mean = np.stack(sums) / self.sums
        return rows - mean[:, self.of], mean

    def between(self, one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Floats:
        """The product of rows, the inverse, and other rows; both from `apart`."""
        common = (one[1] * (self.sums * self.firm)) @ other[1].T
        return np.asarray((one[0] * self.loose) @ other[0].T + common)

    def applied(self, change: Floats) -> Floats:
        """The inverse times one row."""
        rest, mean = self.apart(change[None])
        return self.loose * (rest[0] + (mean[0] * self.firm)[self.of])


def _constraints(need: Floats, on: Ints, present: Bools) -> tuple[Floats, Ints]:
    """What a task of each pair takes of each present resource, (Q, P), and which those are.

    Resources are numbered agent by agent.
    """
    agents, resources = present.shape
    rows = np.flatnonzero(present.ravel())
    matrix = np.zeros((agents * resources, len(on)))
    for r in range(resources):
        matrix[on * resources + r, np.arange(len(on))] = need[:, r]
    return matrix[rows], rows


def _solve_even(system: Floats, right: Floats) -> Floats | None:
    """Solve a symmetric system with badly scaled rows; None if that fails."""
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
