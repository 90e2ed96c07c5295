"""Max-min fairness in the fluid model of one pool of resources, by water filling.

In the fluid model, task volumes are real numbers. All task volumes grow together, each at its own
rate, until some resource is saturated. Then the frameworks that need it stop. The rates determine
what is equalised, see `rate`: dominant shares (DRF), sums of shares (asset fairness), or task
volumes. A framework's *level* is its task volume divided by its rate.

Shapes: F frameworks, R resources.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4 and 5.1.
.. [2] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 2.3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.solvers import NotOptimal

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""The largest residual of a returned solution."""


@dataclass(frozen=True, slots=True)
class FillingSolution:
    """The fluid optimum and its certificate.

    `tasks` (F,): task volumes; 0 for a framework that needs a resource without capacity.
    `residual`: relative violation of the condition that characterises the optimum ([2]_, sec. 2.3),
        for the worst framework: it needs a saturated resource on which no other framework has a
        higher level.
    """

    tasks: Floats
    residual: float


def rate(
    demand: Floats,
    capacity: Floats,
    weight: Floats,
    combine: Callable[[Floats], Floats] = lambda need: need.max(axis=1),
) -> Floats:
    """Compute the rates (F,) at which task volumes must grow so that weighted shares grow equally.

    `demand` (F, R), >= 0; `capacity` (R,), >= 0; `weight` (F,), > 0.
    `combine`: a function from the parts of the capacity that one task needs, (F, R), to the task's
        share, (F,): their maximum for DRF, their sum for asset fairness.
    """
    need = np.divide(demand, capacity, out=np.zeros(np.shape(demand)), where=capacity > 0)
    size = combine(need)
    return np.divide(weight, size, out=np.zeros(len(size)), where=size > 0)


def solve(demand: Floats, capacity: Floats, rate: Floats) -> FillingSolution:
    """Find the task volumes that are max-min fair in ``tasks / rate``.

    It takes O(F * R**2), because each of at most R rounds saturates at least one resource.

    `demand` (F, R), >= 0: needs of one task; each framework needs some resource.
    `capacity` (R,), >= 0.
    `rate` (F,), >= 0: rates of growth; a framework with the rate 0 gets nothing.
    Raises ValueError on a framework without any need.
    Raises NotOptimal if the residual exceeds `TOLERANCE`.

    Examples
    --------
    Section 4.1 of [1]_: 9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>.

    >>> demand, capacity = np.array([[1.0, 4.0], [3.0, 1.0]]), np.array([9.0, 18.0])
    >>> solve(demand, capacity, rate(demand, capacity, np.ones(2))).tasks.round(6).tolist()
    [3.0, 2.0]
    """
    demand, capacity, speed = (np.asarray(a, np.float64) for a in (demand, capacity, rate))
    if not (demand > 0).any(axis=1).all():
        message = f"framework {int((demand <= 0).all(axis=1).argmax())} needs nothing at all"
        raise ValueError(message)
    present = capacity > 0
    needs = demand > 0
    rising = ~needs[:, ~present].any(axis=1) & (speed > 0)
    need = np.divide(demand, capacity, out=np.zeros(demand.shape), where=present)
    need[~rising] = 0.0
    level = np.zeros(len(demand))
    left = present.astype(np.float64)
    served = rising.copy()
    while rising.any():
        flow = np.where(rising, speed, 0.0) @ need
        time = np.divide(left, flow, out=np.full(len(left), np.inf), where=flow > 0)
        first = int(time.argmin())
        level[rising] += time[first]
        left = np.maximum(left - time[first] * flow, 0.0)
        left[first] = 0.0
        rising &= ~needs[:, left <= np.finfo(np.float64).eps].any(axis=1)
    residual = _residual(need[served], level[served], level[served] * speed[served])
    if not residual <= TOLERANCE:
        problem = "water filling"
        raise NotOptimal(problem, residual, TOLERANCE)
    return FillingSolution(level * speed, residual)


def _residual(need: Floats, level: Floats, tasks: Floats) -> float:
    """Return how far the worst framework is from having a bottleneck.

    A bottleneck is a used-up resource that the framework needs and on which no other framework has
    a higher level.
    """
    if not len(need):
        return 0.0
    used = tasks @ need
    highest = np.where(need > 0, level[:, None], 0.0).max(axis=0)
    lower = 1 - level[:, None] / np.where(highest > 0, highest, 1.0)
    short = np.where(need > 0, np.maximum(1 - used, lower), np.inf).min(axis=1)
    return float(max(short.max(), (used - 1).max(), 0.0))
