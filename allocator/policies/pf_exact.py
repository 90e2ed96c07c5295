"""Proportional fairness over agents and constraints, exactly: the fluid optimum is the target.

`pf` has one price for each resource, that of the pooled cluster, and does not know which agent
suits whom. The optimum of [1]_, eq. 8, has prices for each agent: a client has something only of
agents on which its task is cheapest for it, and spends its weight. It is worked out beside the
cycles; offers go to those whose task is cheapest on such an agent, whoever has got the smallest
part of its own first.

References
----------
.. [1] Kesidis, Shan, Wang, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 8 and Proposition 2.
"""

import numpy as np

from allocator.core import Plan, Problem, Snapshot
from allocator.core.numba.memo import fixed
from allocator.policies.filling import Criterion, cluster_total, of_amounts
from allocator.policies.plan_guided import affordable, dominant_shares, merged, plan_of

_SOME = 1e-4  # of its tasks: what a client has less of on a group is none
_PART = 0.2  # of the work that may be: so much the first of several ways may take


def plan_proportional_fairness(problem: Problem) -> Plan:
    """Work out the optimum; targets are dominant shares, and prices go with them.

    Raises NotOptimal where the solver found none that it can prove.
    Raises GivenUp where that takes too much work.
    """
    from allocator.solvers import WORK_MAX
    from allocator.solvers.fluid.proportional_fairness_agents import (
        STEPS_USUAL,
        solve,
        work_of_step,
    )

    def cost(sorts: int, groups: int) -> float:
        return STEPS_USUAL * work_of_step(sorts * groups, groups * len(problem.total))

    groups = affordable(problem, cost, _PART * WORK_MAX)
    first, of_client, weight = merged(groups)
    known = groups.direction[first].max(axis=1, initial=0) > 0
    tasks = np.zeros((len(first), len(groups.count)))
    solution = solve(
        groups.direction[first][known],
        groups.capacity * groups.count[:, None],
        groups.eligible[first][known],
        weight[known] / weight.sum(),
        work_max=WORK_MAX,
    )
    tasks[known] = solution.tasks
    total = tasks.sum(axis=1)
    allowed = tasks > _SOME * total[:, None]
    size = dominant_shares(problem, groups)[first] / weight
    part = (tasks * size[:, None])[of_client] * groups.weight[:, None]
    return plan_of(
        problem, groups, part.sum(axis=1), allowed[of_client], solution.prices, part=part
    )


def spending(snapshot: Snapshot) -> Criterion:
    """Measure what clients hold at each agent's prices; without prices as a share of the cluster.

    This is for what the plan leaves open. A client that would be better off elsewhere has to be
    behind by as much as its task is dearer here before it comes first.
    """
    plan, total = snapshot.plan, cluster_total(snapshot)
    if plan is None or not len(plan.price):
        return of_amounts(snapshot, total, additive=True)
    largest = plan.price.max(initial=0)
    price = np.where(plan.group[:, None] >= 0, plan.price[plan.group], 0.0)
    # What costs nothing plays no part, nor does an agent that the plan does not know.
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(np.isfinite(total) & (price > 0), largest / np.maximum(price, 0), np.inf)
    return of_amounts(snapshot, fixed(rate), additive=True)
