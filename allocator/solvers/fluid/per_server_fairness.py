"""Per-server dominant-share fairness (PS-DSF), exact, in the fluid model.

A framework's *level* on an agent is its number of tasks on all agents, divided by its weight and by
the number of tasks that it could run alone on that agent. An allocation is PS-DSF if no framework
can get more of an agent without taking from a framework whose level there is not higher ([1]_,
Definition 1). Because tasks need resources in fixed proportions, this is equivalent: every
framework that may use an agent needs some resource of the agent that is used up, and no holder of
that resource has a higher level.

If the tasks on all other agents are fixed, one agent is divided by water filling: every framework
starts at the level that its tasks on other agents give it, and all rise together; a framework stops
when a resource that it needs is used up. The solver fills one agent after another, and repeats this
until nothing changes. One pass over all agents is a *sweep*. If weights differ by orders of
magnitude, sweeps may approach the solution slowly, each by the same small part of the remaining
distance; after many sweeps the solver therefore extrapolates from time to time.

Some properties are proven, others only observed:

- *A PS-DSF allocation exists* (proven). The filling of one agent is unique, and its conditions are
  closed under limits, so it depends continuously on the tasks on other agents. By Brouwer's theorem
  a continuous map of a compact convex set (the tasks that fit on each agent) to itself has a fixed
  point; that is a PS-DSF allocation.
- *There may be several*, with different numbers of tasks: a test shows two for a small cluster. The
  solver returns the one that it reaches by filling empty agents in the order of their rows.
- *Termination* is proven only for one resource and without extrapolation: then all agents order
  frameworks in the same way, and each filling makes the vector of levels lexicographically larger.
  With several resources, sweeps alone cycle in one of 400 random clusters with two resources;
  extrapolation ended all such cycles that were tried. If the solver cycles, or rounding interferes,
  it raises `NotOptimal`.

Shapes: F frameworks, A agents, R resources.

References
----------
.. [1] Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao. "Per-Server Dominant-Share Fairness
   (PS-DSF): A Multi-Resource Fair Allocation Mechanism for Heterogeneous Servers." ICC 2017.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, part
from allocator.solvers import GivenUp, NotOptimal
from allocator.solvers.fluid.proportional_fairness_agents import equal_agents

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

TOLERANCE = 1e-9
"""The default of the largest residual of a returned solution."""

SWEEPS_USUAL = 30
"""Most problems take no more sweeps than this."""

_SWEEPS_MAX = 5000
_DAMPED_AFTER = 500  # sweeps after which each filling changes an agent only half way
_CHECKED_EVERY = 100  # sweeps after which the residual is computed
_EXTRAPOLATED_AFTER, _EXTRAPOLATED_EVERY = 100, 20  # sweeps
_STILL = 1e-13  # a smaller change, relative to a framework's tasks, counts as none


@dataclass(frozen=True, slots=True)
class PerServerSolution:
    """A PS-DSF allocation, and how far it is from the definition.

    `tasks` (F, A): tasks of each framework on each agent; 0 for a framework that no agent suits.
    `residual`: as returned by the function `residual`.
    `sweeps`: how often each agent was filled.
    """

    tasks: Floats
    residual: float
    sweeps: int


def solve(
    demand: Floats,
    capacity: Floats,
    eligible: Bools | None = None,
    weight: Floats | None = None,
    tolerance: float = TOLERANCE,
    work_max: float = np.inf,
) -> PerServerSolution:
    """Find a PS-DSF allocation.

    A sweep is O(A * F * (F + A) * R), where equal agents count once; tens of sweeps are usual.

    `demand` (F, R), >= 0: needs of one task; each framework needs some resource.
    `capacity` (A, R), >= 0: of each agent, in the same units. An agent does not suit a framework
        that needs a resource of which the agent has none.
    `eligible` (F, A): whether the framework may use the agent; all by default.
    `weight` (F,), > 0: 1 by default.
    `work_max`: maximum number of operations, as `work_of_sweep` counts them.
    Raises ValueError on invalid arrays, such as a framework without any need.
    Raises NotOptimal if the residual exceeds `tolerance`.
    Raises GivenUp instead if `work_max` did not allow more sweeps.

    Examples
    --------
    Two agents like those of Kesidis et al., Table I: each framework gets the agent that suits it.

    >>> solution = solve(np.array([[5.0, 1], [1, 5]]), np.array([[100.0, 30], [30, 100]]))
    >>> solution.tasks.round(3).tolist()
    [[20.0, 0.0], [0.0, 20.0]]
    """
    demand, capacity = np.asarray(demand, np.float64), np.asarray(capacity, np.float64)
    able, weight = _checked(demand, capacity, eligible, weight)
    tasks = np.zeros(able.shape)
    if not able.any():
        return PerServerSolution(tasks, 0.0, 0)
    # Equal agents are merged into one. Dividing its tasks equally among them is PS-DSF, too.
    first, of_agent, copies = equal_agents(capacity, able)
    need, rate = _needs(demand, capacity[first], able[:, first], weight)
    found = np.zeros(rate.shape)
    may = int(min(work_max / work_of_sweep(len(demand), *need.shape[::2]), _SWEEPS_MAX))
    need /= copies[:, None, None]
    sweeps, until, wrong = 0, 0, np.inf
    while sweeps == until < may and not wrong <= tolerance:
        until = min(until + _CHECKED_EVERY, may)
        sweeps = int(_settle(need, rate, found, sweeps, until))
        tasks = (found / copies[:, None])[of_agent].T.copy()
        wrong = residual(tasks, demand, capacity, able, weight)
    if not wrong <= tolerance:
        problem = "per-server dominant-share fairness"
        if sweeps == may < _SWEEPS_MAX:
            raise GivenUp(problem, work_max)
        raise NotOptimal(problem, wrong, tolerance)
    return PerServerSolution(tasks, wrong, sweeps)


def work_of_sweep(frameworks: int, agents: int, resources: int) -> float:
    """Estimate the operations of a sweep; equal agents count once."""
    return float(agents) * frameworks * resources * (frameworks + agents)


def residual(
    tasks: Floats,
    demand: Floats,
    capacity: Floats,
    eligible: Bools | None = None,
    weight: Floats | None = None,
    least: float = TOLERANCE,
) -> float:
    """Compute how far an allocation is from the definition of PS-DSF, in O(F * A * R).

    A framework's gap at a resource of an agent is the larger of two numbers: the part of the
    resource that is unused; and the part by which the framework's level is below the highest level
    of a holder of the resource. Its gap on the agent is the smallest over the resources that it
    needs.

    `tasks` (F, A): tasks of each framework on each agent; other arguments are as in `solve`.
    `least`: a framework that holds less than this part of an agent's resource is no holder. For
        whole tasks, use a part of what one task takes.
    Returns the largest gap of a framework on an agent that suits it, or, if larger, the largest
        excess over a capacity, relative to the capacity. Infinite if a framework has tasks on an
        agent that does not suit it, or a number is not finite.
    """
    demand, capacity = np.asarray(demand, np.float64), np.asarray(capacity, np.float64)
    able, weight = _checked(demand, capacity, eligible, weight)
    if not np.isfinite(tasks).all() or tasks[~able].any():
        return np.inf
    need, rate = _needs(demand, capacity, able, weight)
    level = np.divide(tasks.sum(axis=1), rate, out=np.zeros(rate.shape), where=rate > 0)
    worst = max(0.0, float(-tasks.min(initial=0)))
    for agent in range(len(capacity)):
        held = tasks[:, agent, None] * need[agent]
        used = held.sum(axis=0)
        highest = np.where(held > least, level[agent, :, None], 0.0).max(axis=0, initial=0)
        below = 1 - level[agent, :, None] / np.where(highest > 0, highest, 1.0)
        short = np.maximum(np.where(highest > 0, below, 0.0), 1 - used)
        nearest = np.where(need[agent] > 0, short, np.inf).min(axis=1)
        worst = max(worst, float((used - 1).max()), float(nearest[able[:, agent]].max(initial=0)))
    return worst


def _checked(
    demand: Floats, capacity: Floats, eligible: Bools | None, weight: Floats | None
) -> tuple[Bools, Floats]:
    """Validate the arrays; return which agents suit each framework, and the weights."""
    shape = len(demand), len(capacity)
    able = np.ones(shape, np.bool_) if eligible is None else np.asarray(eligible, np.bool_)
    weight = np.ones(len(demand)) if weight is None else np.asarray(weight, np.float64)
    fits = demand.ndim == 2 and capacity.ndim == 2 and demand.shape[1] == capacity.shape[1]
    if not fits or able.shape != shape or weight.shape != shape[:1]:
        raise ValueError(f"demands {demand.shape} do not fit capacities {capacity.shape}")
    if not ((weight > 0) & (weight < np.inf)).all():
        raise ValueError("weights must be positive and finite")
    for amounts in (demand, capacity):
        if not ((amounts >= 0) & (amounts < np.inf)).all():
            raise ValueError("demands and capacities must be finite, and 0 or more")
    if not (demand > 0).any(axis=1).all():
        at = int((~(demand > 0).any(axis=1)).argmax())
        raise ValueError(f"framework {at} needs nothing at all")
    # An agent that lacks a resource suits no framework that needs it.
    for r in range(demand.shape[1]):
        able = able & ~((demand[:, None, r] > 0) & (capacity[None, :, r] <= 0))
    return able, weight


def _needs(demand: Floats, capacity: Floats, able: Bools, weight: Floats) -> tuple[Floats, Floats]:
    """Return the parts of each agent that a task takes, (A, F, R), and tasks per level, (A, F)."""
    need = np.divide(
        demand[None], capacity[:, None], out=np.zeros((len(capacity), *demand.shape)),
        where=capacity[:, None] > 0,
    )  # fmt: skip
    size = need.max(axis=2, initial=0)
    rate = np.divide(weight[None], size, out=np.zeros(size.shape), where=able.T & (size > 0))
    return need, rate


@loop
def _settle(need: Floats, rate: Floats, tasks: Floats, sweeps: int, until: int) -> int:
    """Fill one agent after another until nothing changes, or up to sweep `until`.

    `need`, `rate`: as returned by `_needs`, for merged agents.
    `tasks` (A, F): the allocation after the first `sweeps`; changed to the result.
    Returns the number of sweeps, which is below `until` if nothing changed in the last one.
    """
    agents, frameworks = rate.shape
    outside, given = np.zeros(frameworks), np.zeros(frameworks)
    before, last = np.zeros(tasks.shape), np.zeros(tasks.shape)
    for sweep in range(sweeps, until):
        change, step = 0.0, 1.0 if sweep < _DAMPED_AFTER else 0.5
        last[:] = tasks - before
        before[:] = tasks
        for agent in range(agents):
            for n in range(frameworks):
                outside[n] = 0.0
                for other in range(agents):
                    if other != agent:
                        outside[n] += tasks[other, n]
            _fill(need[agent], rate[agent], outside, given)
            for n in range(frameworks):
                more = step * (given[n] - tasks[agent, n])
                if abs(more) > change * (outside[n] + given[n]):
                    change = abs(more) / (outside[n] + given[n])
                tasks[agent, n] += more
        if change <= _STILL:
            return sweep + 1
        if sweep > _EXTRAPOLATED_AFTER and sweep % _EXTRAPOLATED_EVERY == 0:
            _extrapolate(rate, tasks, tasks - before, last)
    return until


@part()
def _extrapolate(rate: Floats, tasks: Floats, change: Floats, last: Floats) -> None:
    """Add the changes of all further sweeps if each is the same part of the one before it.

    The next sweep makes the allocation feasible again.

    `change`, `last` (A, F): changes by the latest sweep, and by the one before.
    """
    product, square = 0.0, 0.0
    for agent in range(len(rate)):
        for n in range(rate.shape[1]):
            if rate[agent, n] > 0:  # compare levels: those of light frameworks are as exact
                level = last[agent, n] / rate[agent, n]
                product += change[agent, n] / rate[agent, n] * level
                square += level * level
    if 0 < product < square:
        tasks[:] = np.maximum(tasks + change * (product / (square - product)), 0.0)


@part()
def _fill(need: Floats, rate: Floats, outside: Floats, given: Floats) -> None:
    """Divide one agent by water filling, with the tasks on other agents fixed.

    `need` (F, R): parts of the agent that a task takes.
    `rate` (F,): tasks per unit of level; 0 for frameworks that the agent does not suit.
    `outside` (F,): tasks on other agents.
    `given` (F,): receives the tasks on this agent.
    """
    frameworks, resources = need.shape
    # Only differences of levels matter.
    lowest = np.inf
    for n in range(frameworks):
        given[n] = 0.0
        if rate[n] > 0:
            lowest = min(lowest, outside[n] / rate[n])
    begin = np.full(frameworks, np.inf)
    for n in range(frameworks):
        if rate[n] > 0:
            begin[n] = outside[n] / rate[n] - lowest
    order = np.argsort(begin)
    rising = np.zeros(frameworks, np.bool_)
    used, speed, full = np.zeros(resources), np.zeros(resources), np.zeros(resources, np.bool_)
    level, met, count = 0.0, 0, 0
    while True:
        # The next event: the rising level reaches another framework's initial level, or a resource
        # is used up.
        meeting = begin[order[met]] if met < frameworks else np.inf
        if count == 0 and meeting == np.inf:
            return
        first, until = -1, np.inf
        for r in range(resources):
            if not full[r] and speed[r] > 0:
                end = level + max(0.0, 1 - used[r]) / speed[r]
                if end < until:
                    first, until = r, end
        upto = min(meeting, until)
        for r in range(resources):
            if speed[r] > 0:
                used[r] += speed[r] * (upto - level)
        for n in range(frameworks):
            if rising[n]:
                given[n] += rate[n] * (upto - level)
        level = upto
        if meeting <= until:
            # That framework rises from here on, unless a resource that it needs is used up.
            n, met = order[met], met + 1
            rising[n] = True
            for r in range(resources):
                if need[n, r] > 0 and full[r]:
                    rising[n] = False
        else:
            full[first] = True
            for n in range(frameworks):
                if need[n, first] > 0:
                    rising[n] = False
        count = 0
        speed[:] = 0.0
        for n in range(frameworks):
            if rising[n]:
                count += 1
                for r in range(resources):
                    speed[r] += need[n, r] * rate[n]
