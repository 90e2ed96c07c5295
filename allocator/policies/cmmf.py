"""Constrained max-min fairness (CMMF): the offline optimum of the current constraint graph.

Choosy comes within a bounded number of machines of the optimum. Here the optimum is computed as a
plan, outside the cycles, and offers are steered towards it in one of two ways.

``flow``: of all optimal allocations, use the one nearest to the current holdings, over groups of
agents that the same clients may use, and recompute it as holdings change. So offers do not wait for
the machines of one arbitrary optimum, and no client gets a machine that another client needs while
it could use others. If there are too few machines for all clients and every share is small, clients
alternate instead: the client furthest below its share is served next, within the saturated sets of
clients and machines that prove optimality (every optimum assigns them to each other).

``machines``: the hybrid of [1]_, sec. 7.2, for clusters with many agents. One allocation of whole
machines is chosen; each agent has a single owner, which gets all of it when it becomes free. If
tasks are smaller than agents, and whole agents deviate too far from the shares, there is no plan,
and Choosy's filling decides.

The unit is tasks if all clients have the same demand, agents if whole agents are offered, and
otherwise fractions of agents.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2, 5 and 7.2.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from allocator.core import UNBOUNDED, Bools, Floats, Ints, Plan, PlanProblem, Snapshot
from allocator.policies.filling import Criterion, characterised, cluster_total, mixed
from allocator.policies.plan_guided import (
    Groups,
    PlanFunction,
    distinct_agents,
    dominant_shares,
    group_agents,
    grouped,
    plan_of,
    sole_owners,
)

if TYPE_CHECKING:
    from allocator.solvers.max_min.max_min import MaxMinSolution

STEER = ("flow", "machines")

OFF_MAX = 0.1
"""Maximum deviation of whole agents from a client's share, relative to the share."""

_PAIRS_MAX = 20_000  # with more pairs (client, group of agents), any optimal allocation is taken
_FEW = 3  # machines or tasks: if all shares are smaller, and some below 1, clients take turns
_NEARER = 0.5  # switch to a plan if it needs less than this part of the current plan's changes
_FINE = 2**20  # number of parts of an agent, if neither tasks nor agents are counted


def cmmf(steer: str = "flow") -> PlanFunction:
    """Make the function that plans; `steer`: ``flow`` or ``machines``."""
    return {"flow": plan_by_flow, "machines": plan_by_machines}[steer]


def as_it_stands(before: PlanProblem, now: PlanProblem) -> bool:
    """Whether a plan is still valid: neither the problem nor any holding has changed."""
    same = np.array_equal(before.holder, now.holder)
    return same and np.array_equal(before.holding, now.holding) and now.asks_the_same(before)


@dataclass(frozen=True, slots=True)
class _Rooms:
    """The capacity to divide, in units: tasks, agents, or small fractions of agents.

    `groups`: as `_by_clients` makes them.
    `room` (G,): units of each group, minus holdings of clients that do not take part.
    `held` (n, G): units that each client holds.
    `size` (n,): units per grant to a client: the size of its task, or 1.
    `worth` (n,): the value of a unit in agents, as `machines` measures it.
    `limit` (n,): maximum units by the client's part of its roles' limits; None without limits.
    `whole`: whether units are tasks or agents.
    """

    groups: Groups
    room: Ints
    held: Ints
    size: Floats
    worth: Floats
    limit: Floats | None
    whole: bool


def plan_by_flow(problem: PlanProblem) -> Plan:
    """Plan for the optimum nearest to the holdings; targets are numbers of machines.

    Raises NotOptimal if the solver found no optimum that it can prove.
    """
    from allocator.solvers.max_min import max_min, nearest
    from allocator.solvers.max_min import whole as max_min_whole

    rooms = _rooms(problem)
    groups, room = rooms.groups, rooms.room
    found = max_min.solve(groups.eligible, room, groups.weight, rooms.limit)
    share = found.machines
    if rooms.whole and share.max(initial=0) < _FEW and ((share > 0) & (share < 1)).any():
        together = groups.eligible & _together(found)
        return plan_of(problem, groups, share * rooms.worth, together)
    if groups.eligible.size <= _PAIRS_MAX:
        given = nearest.solve(groups.eligible, room, share, rooms.held)
    elif rooms.whole:
        given = max_min_whole.solve(groups.eligible, room, groups.weight, rooms.limit).given
    else:
        given = found.given.astype(np.int64)
    given = _in_tasks(given, rooms)
    before = _before(problem, rooms)
    if before is not None and _is_as_near(before, given, share, rooms):
        assert problem.plan is not None
        return problem.plan
    part = given * rooms.worth[:, None]
    return plan_of(problem, groups, part.sum(axis=1), given > 0, part=part)


def _together(found: "MaxMinSolution") -> Bools:
    """Return which clients and groups belong to the same cut, (n, G)."""
    graph = found.classes.graph
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count), -2)
    for at, cut in enumerate(found.classes.cuts):
        of_class[cut.classes], of_group[cut.groups] = at, at
    types = graph.group_of_type
    of_type = np.where(types >= 0, of_group[types] if len(of_group) else -2, -2)
    together: Bools = of_class[graph.class_of_user][:, None] == of_type[None]
    return together


@dataclass(frozen=True, slots=True)
class _Held:
    """Holdings by client and group, and the capacity left for clients that take part.

    `left` (A, R), in thousandths: capacity of each agent that clients outside the problem do not
        hold; zeros for agents that must not be offered.
    `amount` (n, G, R), in thousandths; `agents` (n, G): held amounts, and agents they are on.
    `there` (A,): whether a client that takes part holds something on the agent.
    """

    left: Ints
    amount: Ints
    agents: Ints
    there: Bools


def _rooms(problem: PlanProblem) -> _Rooms:
    """Choose the unit, and count the capacity to divide in it."""
    groups = _by_clients(problem)
    held, clients = _held(problem, groups), problem.client
    known = problem.characterised[clients] & (problem.demand[clients] > 0).any(axis=1)
    if not known.any():
        return _of_agents(problem, groups, held)
    demand = problem.demand[clients]
    if known.all() and (demand == demand[0]).all():
        return _of_tasks(problem, groups, held, demand[0])
    return _of_parts(problem, groups, held, known)


def _by_clients(problem: PlanProblem) -> Groups:
    """Group agents that the same clients may use, whatever their capacity."""
    usable = np.flatnonzero(problem.capacity.any(axis=1))
    anything = np.zeros((len(usable), 0), np.int64)
    agents = distinct_agents(anything, problem.excluded, usable, problem.client)
    group, count, eligible = grouped(problem, usable, agents)
    capacity = np.zeros((len(count), len(problem.total)))
    return replace(
        group_agents(problem), group=group, capacity=capacity, count=count, eligible=eligible
    )


def _held(problem: PlanProblem, groups: Groups) -> _Held:
    row = np.full(len(problem.demand), -1)
    row[groups.clients] = np.arange(len(groups.clients))
    agent, client = problem.holder >> 32, row[problem.holder & (2**32 - 1)]
    left = problem.capacity.copy()
    np.subtract.at(left, agent[client < 0], problem.holding[client < 0])
    mine = (client >= 0) & (groups.group[agent] >= 0)
    place = client[mine], groups.group[agent[mine]]
    amount = np.zeros((*groups.eligible.shape, len(problem.total)), np.int64)
    np.add.at(amount, place, problem.holding[mine])
    agents = np.zeros(groups.eligible.shape, np.int64)
    np.add.at(agents, place, 1)
    there = np.zeros(len(groups.group), np.bool_)
    there[agent[mine]] = True
    return _Held(np.maximum(left, 0), amount, agents, there)


def _sum_of_groups(groups: Groups, units: Ints) -> Ints:
    result = np.zeros(len(groups.count), np.int64)
    known = groups.group >= 0
    np.add.at(result, groups.group[known], units[known])
    return result


def _of_agents(problem: PlanProblem, groups: Groups, held: _Held) -> _Rooms:
    """Count whole agents, without those that other clients hold entirely."""
    ours = held.there | (held.left[:, problem.counted] > 0).any(axis=1)
    room = _sum_of_groups(groups, ours.astype(np.int64))
    one = np.ones(len(groups.clients))
    return _Rooms(groups, room, held.agents, one, one, None, whole=True)


def _of_tasks(problem: PlanProblem, groups: Groups, held: _Held, demand: Ints) -> _Rooms:
    """Count tasks, if all clients have the same demand."""
    room = _sum_of_groups(groups, _tasks(held.left, demand))
    worth = dominant_shares(problem, groups) * groups.count.sum()
    one, limit = np.ones(len(groups.clients)), _limit(problem, np.ones(len(groups.clients)))
    return _Rooms(groups, room, _tasks(held.amount, demand), one, worth, limit, whole=True)


def _of_parts(problem: PlanProblem, groups: Groups, held: _Held, known: Bools) -> _Rooms:
    """Count fractions of agents; for clients without a demand, whole agents of the average size.

    The value of an agent is a weighted sum of its resources. The weight of a resource is the total
    weight of the clients for which it is dominant.
    """
    total = np.where(problem.counted & (problem.total > 0), problem.total, np.inf)
    agents = int(groups.count.sum())
    most = (groups.direction / total).argmax(axis=1)[known]
    counts = np.bincount(most, groups.weight[known], len(total)) / groups.weight[known].sum()
    size = dominant_shares(problem, groups) * agents
    shares = (held.amount / total).max(axis=2, initial=0) * agents
    own = np.where(known[:, None], shares, held.agents)
    return _Rooms(
        groups,
        room=_sum_of_groups(groups, _fine((held.left / total) @ counts * agents)),
        held=_fine(own),
        size=np.where(known, _FINE * size, 1.0),
        worth=np.full(len(known), 1 / _FINE),
        limit=_limit(problem, _FINE * size),
        whole=False,
    )


def _limit(problem: PlanProblem, size: Floats) -> Floats | None:
    """Return the units that limits allow each client, (n,), infinite without a limit.

    None if no client is limited. Without a known demand, a client is not limited.

    `size` (n,): units of a task.
    """
    demand = problem.demand[problem.client]
    known = problem.characterised[problem.client] & (demand > 0).any(axis=1)
    bounded = (problem.limit < UNBOUNDED) & (demand > 0) & known[:, None]
    if not bounded.any():
        return None
    tasks = np.full(demand.shape, UNBOUNDED)
    np.floor_divide(problem.limit, demand, out=tasks, where=bounded)
    return np.where(bounded.any(axis=1), np.ceil(tasks.min(axis=1) * size), np.inf)


def _fine(agents: Floats) -> Ints:
    return np.floor(_FINE * agents).astype(np.int64)


def _tasks(amounts: Ints, demand: Ints) -> Ints:
    needed = demand > 0
    return (amounts[..., needed] // demand[needed]).min(axis=-1)


def _in_tasks(given: Ints, rooms: _Rooms) -> Ints:
    """Round down to whole tasks; in each group the remainder goes to clients that lack most."""
    if rooms.whole:
        return given
    size = np.maximum(rooms.size, 1)
    tasks = np.floor(given / size[:, None])
    lacks = np.floor(given.sum(axis=1) / size + 0.5) - tasks.sum(axis=1)
    # Rounding down to units took less than one unit from each agent, and from each share.
    left = rooms.room + rooms.groups.count + 1 - (tasks * size[:, None]).sum(axis=0)
    for group in np.flatnonzero(left > 0).tolist():
        for client in np.argsort(-lacks * size, kind="stable").tolist():
            if rooms.groups.eligible[client, group] and lacks[client] > 0:
                more = min(lacks[client], np.floor(left[group] / size[client]))
                tasks[client, group] += more
                lacks[client] -= more
                left[group] -= more * size[client]
    return np.floor(tasks * size[:, None]).astype(np.int64)


def _before(problem: PlanProblem, rooms: _Rooms) -> Ints | None:
    """Return what the current plan gives, (n, G); None if its groups differ or it does not fit."""
    plan, groups = problem.plan, rooms.groups
    if plan is None or plan.part.shape[0] != len(groups.count):
        return None
    of_agent = np.full(len(groups.group), -1)
    known = min(len(plan.group), len(of_agent))
    of_agent[:known] = plan.group[:known]
    if not np.array_equal(of_agent, groups.group) or plan.part.shape[1] < groups.clients.max() + 1:
        return None
    given = np.rint(plan.part[:, groups.clients].T / rooms.worth[:, None]).astype(np.int64)
    fits = (given.sum(axis=0) <= rooms.room).all() and not given[~groups.eligible].any()
    return given if fits else None


def _is_as_near(before: Ints, given: Ints, share: Floats, rooms: _Rooms) -> bool:
    """Whether the previous plan gives the same shares, with a similar number of changes.

    Holdings have changed towards that plan, and another plan would undo these changes, so a small
    improvement is no reason to switch.
    """
    off, now_off = (np.abs(each.sum(axis=1) - share) for each in (before, given))
    if (off >= np.maximum(rooms.size, now_off + rooms.size / 2)).any():
        return False
    if before.sum() < given.sum() - rooms.size.max(initial=0) / 2:
        return False
    moved, would_move = (np.maximum(each - rooms.held, 0).sum() for each in (before, given))
    return bool(moved <= would_move / _NEARER)


def plan_by_machines(problem: PlanProblem) -> Plan:
    """Choose each agent's owner in one optimum of whole machines; targets are numbers of machines.

    Raises NotOptimal as `plan_by_flow` does.
    Raises ValueError if tasks are smaller than agents and whole agents deviate too far from the
        shares.
    """
    from allocator.solvers.max_min import max_min
    from allocator.solvers.max_min.whole import solve

    groups = group_agents(problem)
    found = solve(groups.eligible, groups.count, groups.weight)
    if problem.characterised[groups.clients].any():
        share = max_min.solve(groups.eligible, groups.count, groups.weight).machines
        _check_enough(share, found.machines, int(groups.count.sum()))
    owner = _owners(problem, groups, found.given)
    return sole_owners(problem, groups, found.machines.astype(np.float64), owner)


def _check_enough(share: Floats, machines: Ints, agents: int) -> None:
    off = np.divide(np.abs(machines - share), share, out=np.zeros(len(share)), where=share > 0)
    if off.max(initial=0) > OFF_MAX:
        raise ValueError(
            f"parameters.steer: machines gives every agent to a single owner; with {agents} agents"
            f" a client would be {100 * off.max():.0f} % off its share: use steer=flow, or more"
            " agents"
        )


def _owners(problem: PlanProblem, groups: Groups, given: Ints) -> Ints:
    """Choose each agent's owner, (A,), as a row of the groups' clients; -1: none.

    Clients first get agents on which they already run, so that few agents change hands.
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
    """Count machines: agents if whole agents are offered, otherwise the fraction that tasks take.

    The fraction is relative to the average agent, in the task's dominant resource.
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
