"""Groups the agents and clients of a problem for solvers, and makes plans of their results."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats, Ints, Plan, PlanProblem, shared_width
from allocator.core.numba.memo import fixed
from allocator.policies.plan_guided.sorts import (
    AgentSorts,
    alike,
    any_of_groups,
    distinct_agents,
    sorts_of,
)

GROUPS_MAX = 256
"""Maximum number of groups of agents in a plan; each costs a full cycle about 0.2 ms."""

_BITS = 64
_PARTS_MAX = 2**18  # numbers of a plan by agent: stored with the plan, and read in each cycle
_FEW = 16  # number of groups that any solver can afford
_FINE = 1e12  # directions are equal if they differ by less than 1 / _FINE of their largest part


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of agents that are equal, or similar, for the same clients; and clients' directions.

    `group` (A,): the group of each agent; -1 if it must not be offered.
    `capacity` (G, R), in thousandths: of one agent of each group; the mean if sizes differ.
    `count` (G,): number of agents.
    `clients` (n,): the clients that take part.
    `eligible` (n, G): which clients may use some agent of each group; that means all of its agents,
        unless groups had to be merged.
    `direction` (n, R), in thousandths: the size of one task of each client; its holdings if the
        demand is unknown; the whole cluster if it also holds nothing.
    `weight` (n,).
    """

    group: Ints
    capacity: Floats
    count: Ints
    clients: Ints
    eligible: Bools
    direction: Floats
    weight: Floats


def group_agents(problem: PlanProblem, most: int = GROUPS_MAX) -> Groups:
    """Group equal agents, and similar ones if there are more than `most` groups, see `sorts_of`."""
    usable, clients = np.flatnonzero(problem.capacity.any(axis=1)), problem.client
    agents = distinct_agents(problem.capacity[usable], problem.excluded, usable, clients)
    group, count, eligible = grouped(problem, usable, agents, most)
    demand, held = problem.demand[clients], problem.held[clients]
    direction = np.where((held > 0).max(axis=1, keepdims=True), held, problem.total)
    direction = np.where((demand > 0).max(axis=1, keepdims=True), demand, direction)
    counts = problem.counted & (problem.total > 0)
    mean = _mean_of_groups(problem.capacity[usable], group[usable], count)
    return Groups(
        group=group,
        capacity=np.where(counts, mean, 0),
        count=count,
        clients=clients,
        eligible=eligible,
        direction=np.where(counts, direction, 0).astype(np.float64),
        weight=problem.weight,
    )


def grouped(
    problem: PlanProblem, usable: Ints, agents: AgentSorts, most: int = GROUPS_MAX
) -> tuple[Ints, Ints, Bools]:
    """Return `group`, `count` and `eligible` as in `Groups`, for the usable agents (n,)."""
    which = sorts_of(agents, problem.weight, most)
    groups = int(which.max(initial=-1)) + 1
    group = np.full(len(problem.capacity), -1)
    group[usable] = which[agents.of_agent]
    count = np.bincount(which, agents.times, groups).astype(np.int64)
    return group, count, any_of_groups(agents, which, groups).T.copy()


def affordable(problem: PlanProblem, cost: Callable[[int, int], float], most: float) -> Groups:
    """Group agents as finely as a solver can afford.

    `cost`: the work of the solver, given the number of sorts of clients (see `merged`) and of
        groups of agents; it should be at most `most`.
    """
    groups = group_agents(problem)
    while len(groups.count) > _FEW and cost(len(merged(groups)[0]), len(groups.count)) > most:
        groups = group_agents(problem, max(len(groups.count) // 2, _FEW))
    return groups


def _mean_of_groups(capacity: Ints, group: Ints, count: Ints) -> Floats:
    """Return the mean capacity of each group's agents, (G, R)."""
    total = np.zeros((len(count), capacity.shape[1]))
    np.add.at(total, group, capacity)
    return total / count[:, None]


def words_of(bits: Bools, clients: Ints, count: int) -> np.ndarray:
    words = np.zeros((len(bits), count), np.uint64)
    for row, client in enumerate(clients.tolist()):
        words[bits[:, row], client // _BITS] |= np.uint64(1 << client % _BITS)
    return words


def merged(groups: Groups) -> tuple[Ints, Ints, Floats]:
    """Group clients that want the same proportions of resources from the same agents.

    Returns `first` (k,): the first client of each sort; `of_client` (n,): the sort of each client;
    `weight` (k,): the total weight of each sort.
    """
    size = groups.direction.max(axis=1, keepdims=True, initial=0)
    way = np.divide(groups.direction, size, out=np.zeros(groups.direction.shape), where=size > 0)
    first, of_client = alike(np.round(_FINE * way).astype(np.int64), groups.eligible)
    weight = np.bincount(of_client, groups.weight, len(first)).astype(np.float64)
    return first, of_client, weight


def dominant_shares(problem: PlanProblem, groups: Groups) -> Floats:
    """Return the fraction of the cluster that one task of each client takes, (n,)."""
    counts = problem.counted & (problem.total > 0)
    share: Floats = (groups.direction[:, counts] / problem.total[counts]).max(axis=1, initial=0)
    return share


def plan_of(
    problem: PlanProblem,
    groups: Groups,
    target: Floats,
    allowed: Bools,
    price: Floats | None = None,
    part: Floats | None = None,
) -> Plan:
    """Make a plan of a solver's result.

    `target` (n,).
    `allowed` (n, G): which clients should have something of which group.
    `price` (G, R).
    `part` (n, G): the part of the target that each client should have in each group; None: any.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = np.where(allowed.any(axis=1), target, 0)
    words = words_of(allowed.T, groups.clients, shared_width(problem.excluded))
    costs = np.zeros((0, len(problem.total))) if price is None else price
    parts = np.zeros((0, len(problem.demand)))
    if part is not None:
        parts = np.zeros((len(groups.count), len(problem.demand)))
        parts[:, groups.clients] = np.where(allowed, part, 0).T
    return Plan(fixed(of_client), fixed(groups.group), fixed(words), fixed(costs), fixed(parts))


def plan_by_agent(problem: PlanProblem, groups: Groups, given: Ints, worth: Floats) -> Plan:
    """Make a plan of places per agent.

    Agents with places for the same clients form a group. If several clients share a group, each has
    a part of it, so that none gets places that another needs. Parts cost time in each cycle, so
    only the largest groups have them.

    `given` (n, B): places by agent handle; agents beyond B have none.
    `worth` (n,): what a place adds to the progress towards the target.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = given.sum(axis=1) * worth
    some = np.flatnonzero(given.any(axis=0))
    clients_there = given[:, some].T > 0
    first, of_agent = alike(np.zeros((len(some), 0), np.int64), clients_there)
    # Groups with parts come first, by size.
    count = np.bincount(of_agent, minlength=len(first))
    count[clients_there[first].sum(axis=1) < 2] = 0
    order = np.argsort(-count, kind="stable")
    most = min(GROUPS_MAX, _PARTS_MAX // max(len(problem.demand), 1))
    part = np.zeros((min(int((count > 0).sum()), most), len(problem.demand)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    group = np.full(len(problem.capacity), -1)
    group[some] = place[of_agent]
    for row in range(len(part)):
        mine = given[:, np.flatnonzero(group[: given.shape[1]] == row)].sum(axis=1)
        part[row, groups.clients] = mine * worth
    allowed = clients_there[first[order]]
    words = words_of(allowed, groups.clients, shared_width(problem.excluded))
    none = np.zeros((0, len(problem.total)))
    return Plan(fixed(of_client), fixed(group), fixed(words), fixed(none), fixed(part))


def sole_owners(problem: PlanProblem, groups: Groups, target: Floats, owner: Ints) -> Plan:
    """Make a plan in which each agent has a single owner.

    `target` (n,).
    `owner` (A,): a row of the groups' clients; -1: none.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = target
    rows = np.arange(len(groups.clients))
    words = words_of(rows[:, None] == rows, groups.clients, shared_width(problem.excluded))
    none = np.zeros((0, len(problem.total)))
    return Plan(fixed(of_client), fixed(owner.copy()), fixed(words), fixed(none))
