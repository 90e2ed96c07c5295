"""Constrained max-min fairness (CMMF): the offline optimum of the present constraint graph.

Choosy serves whoever has the fewest machines, and comes to within a bounded number of the optimum.
Here the optimum is worked out beside the cycles, and offers are steered towards it, in one of two
ways. ``machines`` is the hybrid of [1]_, sec. 7.2: one allocation of whole machines is chosen,
every agent is one client's, and goes to it when it falls free. It does worse than Choosy there,
for there are many optimal allocations, and it waits for the machines of one. ``cuts`` goes by what
all of them have in common: the shares, and the sets of clients and machines that any optimum gives
to each other (the saturated sets that prove it). Within such a set whoever has the smallest part
of its share is next.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2, 5 and 7.2.
"""

import numpy as np

from allocator.core import Ints, Plan, Problem, Snapshot
from allocator.policies.filling import Criterion, characterised, cluster_total, mixed
from allocator.policies.plan_guided import Groups, Planner, group_agents, plan_of, sole_owners

STEER = ("cuts", "machines")


def cmmf(steer: str = "cuts") -> Planner:
    """Choose by what offers are steered.

    Parameters
    ----------
    steer : str
        ``cuts`` or ``machines``.
    """
    return {"cuts": plan_by_cuts, "machines": plan_by_machines}[steer]


def plan_by_cuts(problem: Problem) -> Plan:
    """Let clients have what any optimum gives them; targets are machines.

    Raises
    ------
    NotOptimal
        Where the solver found no optimum that it can prove.
    """
    from allocator.solvers.max_min.max_min import solve

    groups = group_agents(problem)
    found = solve(groups.eligible, groups.count, groups.weight)
    graph = found.classes.graph
    # Clients and machines of the same cut belong together.
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count), -2)
    for at, cut in enumerate(found.classes.cuts):
        of_class[cut.classes], of_group[cut.groups] = at, at
    types = graph.group_of_type
    of_type = np.where(types >= 0, of_group[types] if len(of_group) else -2, -2)
    together = of_class[graph.class_of_user][:, None] == of_type[None]
    return plan_of(problem, groups, found.machines, groups.eligible & together)


def plan_by_machines(problem: Problem) -> Plan:
    """Say whose each agent is, in one optimum of whole machines; targets are machines.

    Raises
    ------
    NotOptimal
        As `plan_by_cuts`.
    """
    from allocator.solvers.max_min.whole import solve

    groups = group_agents(problem)
    found = solve(groups.eligible, groups.count, groups.weight)
    owner = _owners(problem, groups, found.given)
    return sole_owners(problem, groups, found.machines.astype(np.float64), owner)


def _owners(problem: Problem, groups: Groups, given: Ints) -> Ints:
    """Whose each agent is, (A,), as a row of the groups' clients; -1: nobody's.

    Parameters
    ----------
    given : (n, G) int64
        Agents of each group that each client is to have.

    Notes
    -----
    Agents on which a client runs already are counted as its own first, so that few change hands.
    """
    owner, left = np.full(len(groups.group), -1), given.copy()
    row_of = np.full(len(problem.demand), -1)
    row_of[groups.clients] = np.arange(len(groups.clients))
    for agent, client in zip(
        (problem.holder >> 32).tolist(), (problem.holder & (2**32 - 1)).tolist(), strict=True
    ):
        row, group = row_of[client], groups.group[agent]
        if row >= 0 and group >= 0 and owner[agent] < 0 and left[row, group] > 0:
            owner[agent] = row
            left[row, group] -= 1
    for group in range(len(groups.count)):
        free = np.flatnonzero((groups.group == group) & (owner < 0))
        rows = np.repeat(np.arange(len(left)), left[:, group])
        owner[free[: len(rows)]] = rows
    return owner


def machines(snapshot: Snapshot) -> Criterion:
    """Count machines: agents, where whole agents are offered, else what tasks take of an agent.

    Notes
    -----
    What tasks take is measured by the average agent, in the resource of which it is most.
    """
    known = characterised(snapshot)
    whole = (~known).astype(np.float64)
    return mixed(
        snapshot,
        amount_gain=known.astype(np.float64),
        denominator=cluster_total(snapshot) / max(int(snapshot.classes.count.sum()), 1),
        count=snapshot.agents_held * whole,
        count_denominator=1.0,
        agent_gain=whole,
    )
