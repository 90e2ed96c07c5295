"""PS-DSF by its definition: plans for a fluid allocation that meets the definition.

`ps-dsf` only approximates the definition, because it never takes back an early grant when another
agent would have been better. Here the allocation is computed outside the cycles. An agent is
offered to the clients to which the allocation gives some of its group, the client furthest below
its target first.

References
----------
.. [1] Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao. "Per-Server Dominant-Share Fairness
   (PS-DSF): A Multi-Resource Fair Allocation Mechanism for Heterogeneous Servers." ICC 2017,
   Definition 1.
"""

import numpy as np

from allocator.core import Plan, PlanProblem
from allocator.policies.plan_guided import affordable, dominant_shares, merged, plan_of

_NEAR = 1e-3  # tolerance of the definition: enough for whole tasks, and better than no plan
_SOME = 1e-6  # a smaller fraction of a client's tasks on a group counts as none
_PART = 0.2  # the fraction of the work limit for the usual number of sweeps


def plan_per_server_fairness(problem: PlanProblem) -> Plan:
    """Compute the allocation; targets are dominant shares.

    Raises NotOptimal if no allocation was found that meets the definition, GivenUp if the
    computation takes too much work.
    """
    from allocator.solvers import WORK_MAX
    from allocator.solvers.fluid.per_server_fairness import SWEEPS_USUAL, solve, work_of_sweep

    def cost(sorts: int, groups: int) -> float:
        return SWEEPS_USUAL * work_of_sweep(sorts, groups, len(problem.total))

    groups = affordable(problem, cost, _PART * WORK_MAX)
    first, of_client, weight = merged(groups)
    tasks = np.zeros((len(first), len(groups.count)))
    known = groups.direction[first].max(axis=1, initial=0) > 0
    tasks[known] = solve(
        groups.direction[first][known],
        groups.capacity * groups.count[:, None],
        groups.eligible[first][known],
        weight[known],
        tolerance=_NEAR,
        work_max=WORK_MAX,
    ).tasks
    total = tasks.sum(axis=1)
    allowed = tasks > _SOME * total[:, None]
    # Divide what equal clients have together by their weights: shares, not tasks, because their
    # tasks have the same ratios of resources but different sizes.
    size = dominant_shares(problem, groups)[first] / weight
    part = (tasks * size[:, None])[of_client] * groups.weight[:, None]
    return plan_of(problem, groups, part.sum(axis=1), allowed[of_client], part=part)
