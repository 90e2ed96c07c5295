"""What solvers take and give, for the agents and clients of a problem: equal ones together."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats, Ints, Plan, Problem, distinct_rows
from allocator.core.numba.memo import fixed

GROUPS_MAX = 256
"""Of agents, that a plan tells apart. Each costs a cycle over all agents some 0.2 ms."""

_BITS = 64
_PARTS_MAX = 2**18  # numbers of a plan by agent: each is kept with every plan, and looked at
_FEW = 16  # groups, that any solver can pay for
_OF_SIZES = 4  # groups, for each size of agents: so there is room to tell them apart by clients
_FINEST = 64  # steps for sizes, of one that is twice as large
_FINE = 1e12  # directions that differ by less than 1 / _FINE of their largest part are the same


@dataclass(frozen=True, slots=True)
class Groups:
    """Agents that are equal, or nearly, for the same clients; and clients that want the same.

    `group` (A,): of each agent; -1 for one that may not be offered.
    `capacity` (G, R), in thousandths: of one agent of each group; where sizes differ, their mean.
    `count` (G,).
    `clients` (n,): the clients that take part.
    `eligible` (n, G): who may use some agent of each group; where there are not too many groups,
        all of it.
    `direction` (n, R), in thousandths: what one task of each needs; where the demand is unknown,
        what it holds; and where it holds nothing, the whole cluster, which is to say anything.
    `weight` (n,).
    """

    group: Ints
    capacity: Floats
    count: Ints
    clients: Ints
    eligible: Bools
    direction: Floats
    weight: Floats


def group_agents(problem: Problem, most: int = GROUPS_MAX) -> Groups:
    """Take equal agents together.

    `most`: groups; where there would be more, agents that differ little are taken together, too:
        see `sorts_of`.
    """
    usable = np.flatnonzero(problem.capacity.any(axis=1))
    clients = problem.client
    allowed = ~bits_of(problem.excluded[usable], clients)
    first, of_row = sorts_of(problem.capacity[usable], allowed, problem.weight, most)
    group = np.full(len(problem.capacity), -1)
    group[usable] = of_row
    demand, held = problem.demand[clients], problem.held[clients]
    direction = np.where((held > 0).max(axis=1, keepdims=True), held, problem.total)
    direction = np.where((demand > 0).max(axis=1, keepdims=True), demand, direction)
    counts = problem.counted & (problem.total > 0)
    count = np.bincount(of_row, minlength=len(first))
    return Groups(
        group=group,
        capacity=np.where(counts, _mean_of_groups(problem.capacity[usable], of_row, first), 0),
        count=count,
        clients=clients,
        eligible=any_of_groups(allowed, of_row, first).T.copy(),
        direction=np.where(counts, direction, 0).astype(np.float64),
        weight=problem.weight,
    )


def affordable(problem: Problem, cost: Callable[[int, int], float], most: float) -> Groups:
    """Take as many agents together as a solver can pay for.

    `cost`: of so many sorts of clients (see `merged`) and groups of agents; it may be `most`.
    """
    groups = group_agents(problem)
    while len(groups.count) > _FEW and cost(len(merged(groups)[0]), len(groups.count)) > most:
        groups = group_agents(problem, max(len(groups.count) // 2, _FEW))
    return groups


def sorts_of(
    capacity: Ints, allowed: Bools, weight: Floats, most: int = GROUPS_MAX
) -> tuple[Ints, Ints]:
    """Take agents together, those first that are equal, then such as differ little.

    Twelve constraints of strangers tell 4,096 groups apart. Where there are too many, sizes are
    looked at first, if need be roughly. Then comes client by client, and whether it may use an
    agent: the largest weight first, and of equal ones whoever sets fewest agents apart. A client
    that would tell too many apart is not looked at.

    `capacity` (n, R), in thousandths, of each agent; `allowed` (n, C); `weight` (C,).
    `most`: groups, at least 1.

    Returns `first` (G,): the first agent of each group; `which` (n,): the group of each agent.
    """
    first, which = alike(capacity, allowed)
    if len(first) <= most:
        return first, which
    which = _sizes(capacity, max(most // _OF_SIZES, 1))
    columns, of_client = distinct_columns(allowed)
    weights = np.bincount(of_client, weight, len(columns))
    apart = np.minimum(columns.sum(axis=1), len(capacity) - columns.sum(axis=1))
    for each in np.lexsort((apart, -weights)).tolist():
        finer = np.unique(2 * which + columns[each], return_inverse=True)[1].reshape(-1)
        if finer.max() < most:
            which = finer
    return np.unique(which, return_index=True)[1], which


def distinct_columns(allowed: Bools) -> tuple[Bools, Ints]:
    """Columns (K, n) of bits (n, C) that differ, and which of them each is, (C,)."""
    first, which = alike(np.zeros((allowed.shape[1], 0), np.int64), allowed.T)
    return allowed.T[first], which


def _sizes(capacity: Ints, most: int) -> Ints:
    """Tell sizes of agents apart, (n,), as finely as makes so many of them at most."""
    rows, step = capacity, 1 / _FINEST
    while True:
        sizes = distinct_rows(rows)
        if len(sizes.rows) <= most:
            return sizes.which
        # By how many steps of the same factor each is larger than 1.
        rows = np.floor(np.log2(np.maximum(capacity, 0) + 1) / step).astype(np.int64)
        step *= 2


def _mean_of_groups(capacity: Ints, of_row: Ints, first: Ints) -> Floats:
    """What the average agent of each group has, (G, R)."""
    total = np.zeros((len(first), capacity.shape[1]))
    np.add.at(total, of_row, capacity)
    return total / np.bincount(of_row, minlength=len(first))[:, None]


def any_of_groups(allowed: Bools, of_row: Ints, first: Ints) -> Bools:
    """Who may use some agent of each group, (G, C); cycles bar whom the agent itself excludes."""
    if len(first) == 0:
        return allowed[:0]
    order = np.argsort(of_row, kind="stable")
    begin = np.searchsorted(of_row[order], np.arange(len(first)))
    result: Bools = np.logical_or.reduceat(allowed[order], begin, axis=0)
    return result


def alike(numbers: Ints, bits: Bools) -> tuple[Ints, Ints]:
    """Take rows together that are equal in numbers (n, K) and in bits (n, W).

    Returns `first` (k,): the first row of each sort; `which` (n,): the sort of each row.
    """
    # Bits as words: what is sorted by has a column for 64 of them.
    packed = np.packbits(bits, axis=1)
    words = np.zeros((len(bits), -(-bits.shape[1] // _BITS)), np.int64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    sorts = distinct_rows(np.concatenate([numbers, words], axis=1))
    first = np.empty(len(sorts.rows), np.int64)
    first[sorts.which[::-1]] = np.arange(len(bits))[::-1]
    return first, sorts.which


def bits_of(words: np.ndarray, clients: Ints) -> Bools:
    """Look up the bits of some clients (n,) in words (A, W): (A, n)."""
    missing = clients // _BITS >= words.shape[1]
    found = words[:, np.where(missing, 0, clients // _BITS)] >> (clients % _BITS).astype(np.uint64)
    return (found & np.uint64(1)).astype(np.bool_) & ~missing


def words_of(bits: Bools, clients: Ints, width: int) -> np.ndarray:
    """Pack bits (G, n) of some clients into words, (G, width)."""
    words = np.zeros((len(bits), width), np.uint64)
    for row, client in enumerate(clients.tolist()):
        words[bits[:, row], client // _BITS] |= np.uint64(1 << client % _BITS)
    return words


def merged(groups: Groups) -> tuple[Ints, Ints, Floats]:
    """Take clients together that want the same things from the same agents.

    Returns `first` (k,): one of each sort; `of_client` (n,): the sort of each client;
    `weight` (k,): of all clients of the sort.
    """
    size = groups.direction.max(axis=1, keepdims=True, initial=0)
    way = np.divide(groups.direction, size, out=np.zeros(groups.direction.shape), where=size > 0)
    first, of_client = alike(np.round(_FINE * way).astype(np.int64), groups.eligible)
    weight = np.bincount(of_client, groups.weight, len(first)).astype(np.float64)
    return first, of_client, weight


def dominant_shares(problem: Problem, groups: Groups) -> Floats:
    """Part of the cluster that a task of each client is, (n,)."""
    counts = problem.counted & (problem.total > 0)
    share: Floats = (groups.direction[:, counts] / problem.total[counts]).max(axis=1, initial=0)
    return share


def plan_of(
    problem: Problem,
    groups: Groups,
    target: Floats,
    allowed: Bools,
    price: Floats | None = None,
    part: Floats | None = None,
) -> Plan:
    """Make a plan of what a solver found.

    `target` (n,).
    `allowed` (n, G): who is to have something of which group.
    `price` (G, R).
    `part` (n, G): how much of which group.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = np.where(allowed.any(axis=1), target, 0)
    words = words_of(allowed.T, groups.clients, max(problem.excluded.shape[1], 1))
    costs = np.zeros((0, len(problem.total))) if price is None else price
    parts = np.zeros((0, len(problem.demand)))
    if part is not None:
        parts = np.zeros((len(groups.count), len(problem.demand)))
        parts[:, groups.clients] = np.where(allowed, part, 0).T
    return Plan(fixed(of_client), fixed(groups.group), fixed(words), fixed(costs), fixed(parts))


def plan_by_agent(problem: Problem, groups: Groups, given: Ints, worth: Floats) -> Plan:
    """Make a plan that says of every agent who may have something of it, and mostly how much.

    Agents of the same clients are a group. Where these are several, each has a part of the group,
    or some client would be given places there that another has to have. Only of the largest such
    groups, where there are very many, for parts cost each cycle time.

    `given` (n, B): places by agent's handle; nobody is to have anything of the agents beyond B.
    `worth` (n,): what a place is of the target.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = given.sum(axis=1) * worth
    some = np.flatnonzero(given.any(axis=0))
    clients_there = given[:, some].T > 0
    first, of_agent = alike(np.zeros((len(some), 0), np.int64), clients_there)
    # Those with parts come first, the largest ones before the others.
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
    words = words_of(allowed, groups.clients, max(problem.excluded.shape[1], 1))
    none = np.zeros((0, len(problem.total)))
    return Plan(fixed(of_client), fixed(group), fixed(words), fixed(none), fixed(part))


def sole_owners(problem: Problem, groups: Groups, target: Floats, owner: Ints) -> Plan:
    """Make a plan in which every agent is one client's.

    `target` (n,).
    `owner` (A,): a row of the groups' clients; -1: nobody's.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = target
    rows = np.arange(len(groups.clients))
    words = words_of(rows[:, None] == rows, groups.clients, max(problem.excluded.shape[1], 1))
    none = np.zeros((0, len(problem.total)))
    return Plan(fixed(of_client), fixed(owner.copy()), fixed(words), fixed(none))
