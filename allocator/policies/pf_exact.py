"""Exact proportional fairness over agents and constraints: plans for the fluid optimum.

`pf` has one price per resource, that of the pooled cluster, and ignores which clients may use an
agent. The optimum of [1]_, eq. 8, has prices per agent: a client spends its weight only on the
agents where its task is cheapest. The optimum is computed outside the cycles. An agent is offered
to clients for which it is one of the cheapest, the client furthest below its target first.

References
----------
.. [1] Kesidis, Shan, Wang, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 8 and Proposition 2.
"""

import numpy as np

from allocator.core import Plan, PlanProblem, Snapshot
from allocator.core.numba.memo import fixed
from allocator.policies.filling import Criterion, cluster_total, of_amounts
from allocator.policies.plan_guided import affordable, dominant_shares, merged, plan_of

_SOME = 1e-4  # a smaller fraction of a client's tasks on a group counts as none
_PART = 0.2  # the fraction of the work limit for the first of several methods


def plan_proportional_fairness(problem: PlanProblem) -> Plan:
    """Compute the optimum; targets are dominant shares, with prices.

    Raises NotOptimal if the solver cannot prove an optimum, GivenUp if it takes too much work.
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
    """Measure holdings at each agent's prices; without prices, as a share of the cluster.

    Ranks clients where the plan does not decide. A client whose task is dearer on this agent than
    elsewhere comes first only if it is behind by a larger factor.
    """
    plan, total = snapshot.plan, cluster_total(snapshot)
    if plan is None or not len(plan.price):
        return of_amounts(snapshot, total, additive=True)
    largest = plan.price.max(initial=0)
    price = np.where(plan.group[:, None] >= 0, plan.price[plan.group], 0.0)
    # Neither resources without a price nor agents outside the plan count.
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(np.isfinite(total) & (price > 0), largest / np.maximum(price, 0), np.inf)
    return of_amounts(snapshot, fixed(rate), additive=True)
