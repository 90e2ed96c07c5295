"""PS-DSF by its definition: a fluid allocation that meets it is the target.

`ps-dsf` ranks clients on each agent by the level that they have there, and so comes near the
definition, but meets it rarely: what it gave first on one agent it does not take back when another
would have been better. Here the allocation is worked out beside the cycles, and offers go to those
who have something of such an agent in it, whoever has got the smallest part of its own first.

References
----------
.. [1] Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao. "Per-Server Dominant-Share Fairness
   (PS-DSF): A Multi-Resource Fair Allocation Mechanism for Heterogeneous Servers." ICC 2017,
   Definition 1.
"""

import numpy as np

from allocator.core import Plan, Problem
from allocator.policies.plan_guided import affordable, dominant_shares, merged, plan_of

_NEAR = 1e-3  # of the definition: for whole tasks that is near enough, and better than no plan
_SOME = 1e-6  # of its tasks: what a client has less of on a group is none
_PART = 0.2  # of the work that may be: so much a usual number of sweeps may take


def plan_per_server_fairness(problem: Problem) -> Plan:
    """Work out the allocation; targets are dominant shares.

    Raises NotOptimal where none was found that meets the definition.
    Raises GivenUp where that takes too much work.
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
    # Of what a sort of clients has, each client has its part by weight. Tasks of a sort are of one
    # direction, but not of one size: shares are what they have in common.
    size = dominant_shares(problem, groups)[first] / weight
    part = (tasks * size[:, None])[of_client] * groups.weight[:, None]
    return plan_of(problem, groups, part.sum(axis=1), allowed[of_client], part=part)
