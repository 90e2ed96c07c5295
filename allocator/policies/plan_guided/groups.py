"""What solvers take and give, for the agents and clients of a problem: equal ones together."""

from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats, Ints, Plan, Problem, distinct_rows
from allocator.core.numba.memo import fixed

_BITS = 64
_FINE = 1e12  # directions that differ by less than 1 / _FINE of their largest part are the same


@dataclass(frozen=True, slots=True)
class Groups:
    """Agents of equal capacity that the same clients may use; and clients that want the same.

    `group` (A,): of each agent; -1 for one that may not be offered.
    `capacity` (G, R), in thousandths: of one agent of each group.
    `count` (G,).
    `clients` (n,): the clients that take part.
    `eligible` (n, G).
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


def group_agents(problem: Problem) -> Groups:
    """Take equal agents together."""
    usable = np.flatnonzero(problem.capacity.any(axis=1))
    clients = problem.client
    allowed = ~bits_of(problem.excluded[usable], clients)
    first, of_row = alike(problem.capacity[usable], allowed)
    group = np.full(len(problem.capacity), -1)
    group[usable] = of_row
    demand, held = problem.demand[clients], problem.held[clients]
    direction = np.where((held > 0).max(axis=1, keepdims=True), held, problem.total)
    direction = np.where((demand > 0).max(axis=1, keepdims=True), demand, direction)
    counts = problem.counted & (problem.total > 0)
    return Groups(
        group=group,
        capacity=np.where(counts, problem.capacity[usable][first], 0).astype(np.float64),
        count=np.bincount(of_row, minlength=len(first)),
        clients=clients,
        eligible=allowed[first].T.copy(),
        direction=np.where(counts, direction, 0).astype(np.float64),
        weight=problem.weight,
    )


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


def plan_by_agent(problem: Problem, groups: Groups, target: Floats, there: Bools) -> Plan:
    """Make a plan that says of every agent who may have something of it.

    `target` (n,).
    `there` (n, B): by agent's handle; nobody is to have anything of the agents beyond B.
    """
    of_client = np.zeros(len(problem.demand))
    of_client[groups.clients] = target
    some = np.flatnonzero(there.any(axis=0))
    clients_there = there[:, some].T
    first, of_agent = alike(np.zeros((len(some), 0), np.int64), clients_there)
    group = np.full(len(problem.capacity), -1)
    group[some] = of_agent
    words = words_of(clients_there[first], groups.clients, max(problem.excluded.shape[1], 1))
    none = np.zeros((0, len(problem.total)))
    return Plan(fixed(of_client), fixed(group), fixed(words), fixed(none))


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
