"""Quotas: what roles consume, how much more they may get, and what is kept free for them.

A role consumes all that is reserved to it or its descendants, offered or not, and the unreserved,
non-revocable resources that clients in these roles hold. Only scalars are bounded. A limit also
applies to all descendants of the role; as in Mesos, only top-level roles have guarantees.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from allocator.core.books.state import State
from allocator.core.events import SetQuota
from allocator.core.resources import GPUS, MILLI
from allocator.core.snapshot import UNBOUNDED, Bools, Bounds, Floats, Ints
from allocator.core.task_counts import whole_below


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """The Q roles with a quota, deepest first, and what each of them covers.

    `above` (Q,): index of the nearest ancestor with a quota; -1: none.
    `limit`, `guarantee` (Q, R), in thousandths; a limit of `UNBOUNDED`: none.
    `claim` (Q, R), in thousandths: what operators' rules promise beyond the guarantee; -1: nothing.
    `of_kind` (K,): index of the innermost role with a quota that contains the role to which the
        kind is reserved; -1: none.
    `of_role` (n,): index of the innermost role with a quota that contains or is each role; -1:
        none.
    """

    path: list[str]
    above: Ints
    limit: Ints
    guarantee: Ints
    claim: Ints
    of_kind: Ints
    of_role: Ints


@dataclass(frozen=True, slots=True)
class QuotaUse(QuotaTree):
    """What the Q roles of a `QuotaTree` consume and may still get.

    `consumed`, `left` (Q, R), in thousandths.
    `available` (R,), in thousandths: free amounts on all agents that count against quota.
    """

    consumed: Ints
    left: Ints
    available: Ints


def quota_tree(state: State) -> QuotaTree:
    space, quotas, limits = state.space, state.quotas, state.settings.limits
    # Deepest first, so that one pass over the rows adds up children before their parents.
    claims = {rule.role: rule.claim or {} for rule in state.settings.claims.values()}
    path = sorted({*quotas, *limits, *claims}, key=lambda each: (-each.count("/"), each))
    row = {each: index for index, each in enumerate(path)}
    limit = np.full((len(path), len(space.names)), UNBOUNDED)
    guarantee = np.zeros((len(path), len(space.names)), np.int64)
    claim = np.full_like(guarantee, -1)
    scalar = space.scalar
    for index, each in enumerate(path):
        quota = quotas.get(each, SetQuota(each, {}, {}))
        # Of the master's limit and the operators' limit, the smaller one applies.
        for name, amount in (*quota.limits.items(), *limits.get(each, {}).items()):
            column = space.column(name)
            limit[index, column] = min(limit[index, column], amount)
        for name, amount in quota.guarantees.items():
            guarantee[index, space.column(name)] = amount
        for name, amount in claims.get(each, {}).items():
            claim[index, space.column(name)] = amount
    # Only scalars are bounded.
    limit[:, ~scalar] = UNBOUNDED
    guarantee[:, ~scalar] = 0
    claim[:, ~scalar] = -1
    return QuotaTree(
        path=path,
        above=innermost(row, (each.rpartition("/")[0] for each in path)),
        limit=limit,
        guarantee=guarantee,
        claim=claim,
        of_kind=_of_kind(state, row),
        of_role=_of_role(state, row),
    )


def with_roles_of(state: State, tree: QuotaTree) -> QuotaTree:
    row = {each: index for index, each in enumerate(tree.path)}
    return replace(tree, of_role=_of_role(state, row))


def _of_kind(state: State, row: dict[str, int]) -> Ints:
    return innermost(row, (kind.reserved_role if kind else "" for kind in state.space.kinds))


def _of_role(state: State, row: dict[str, int]) -> Ints:
    return state.roles.inherit(row, -1)


def innermost(row: dict[str, int], paths: Iterable[str]) -> Ints:
    """Return the index of the deepest role in `row` that contains or is each path; -1: none."""
    # Compute the depth once for all paths, because there may be thousands.
    deepest = max((each.count("/") for each in row), default=0)
    return np.array([_innermost_of(row, path, deepest) for path in paths], np.int64)


def _innermost_of(row: dict[str, int], path: str, deepest: int) -> int:
    # Shorten the path to the depth of the deepest role with a quota, then one level at a time.
    path = "/".join(path.split("/", deepest + 1)[: deepest + 1])
    while path:
        if path in row:
            return row[path]
        path = path.rpartition("/")[0]
    return -1


def consumed(state: State, tree: QuotaTree) -> Ints:
    """Return the consumption of each role with a quota, (Q, R), in thousandths."""
    space, clients = state.space, state.clients
    result = np.zeros_like(tree.guarantee)
    reserved = np.flatnonzero((tree.of_kind >= 0) & space.scalar_kind)
    total = state.total_by_kind()
    np.add.at(result, (tree.of_kind[reserved], space.column_of_kind[reserved]), total[reserved])
    # Of clients' holdings, only what is unreserved and not revocable counts.
    held = space.by_column(state.ledger.books.client_held, kinds=space.bounded_kind)
    row = tree.of_role[clients.role]
    inside = np.flatnonzero(row >= 0)
    np.add.at(result, row[inside], held[inside])
    # A role also consumes what its descendants consume; deepest first, so each sum is complete.
    for index in range(len(tree.path)):
        if tree.above[index] >= 0:
            result[tree.above[index]] += result[index]
    return result


def consumed_in(state: State, path: str) -> Ints:
    """Return the consumption of a role, (R,), in thousandths, whether or not it has a quota."""
    row, none = {path: 0}, np.zeros((1, len(state.space.names)), np.int64)
    of = _of_kind(state, row), _of_role(state, row)
    tree = QuotaTree([path], np.array([-1]), none, none, none, *of)
    return consumed(state, tree)[0]


def quota_use(state: State, tree: QuotaTree) -> QuotaUse:
    used = consumed(state, tree)
    rows: dict[str, Any] = {each.name: getattr(tree, each.name) for each in fields(tree)}
    return QuotaUse(**rows, consumed=used, left=left_of(tree, used), available=available(state))


def bounds_of(state: State, tree: QuotaTree) -> tuple[Bounds, Ints | None]:
    """Return the bounds of roles, and `Snapshot.claimed`."""
    space, clients = state.space, state.clients
    if not tree.path:
        return Bounds.none(len(clients.framework), len(space.names)), None
    used = consumed(state, tree)
    owed = np.maximum(tree.guarantee - used, 0)
    bounds = Bounds(
        of_client=tree.of_role[clients.role],
        further=np.empty((len(clients.framework), 0), np.int64),
        above=tree.above,
        left=left_of(tree, used),
        owed=owed,
        available=np.where(space.scalar, available(state), UNBOUNDED),
        required=owed.sum(axis=0),
    )
    if not state.settings.claims:
        return bounds, None
    left = np.maximum(tree.guarantee + tree.claim - used, 0)
    return bounds, np.where(tree.claim >= 0, left, -1)


def is_owed(bounds: Bounds, client: Ints) -> Bools:
    owed = np.append(bounds.owed.any(axis=1), False)
    if not owed.any():
        return np.zeros(len(client), np.bool_)
    # From the top down, so that each role inherits from its ancestors.
    for row in range(len(bounds.above) - 1, -1, -1):
        owed[row] |= owed[bounds.above[row]]
    found: Bools = owed[bounds.of_client[client]]
    return found


def left_of(tree: QuotaTree, used: Ints) -> Ints:
    """Return how much more each role may be granted, (Q, R); `UNBOUNDED`: no limit."""
    return np.where(tree.limit < UNBOUNDED, tree.limit - used, UNBOUNDED)


def available(state: State) -> Ints:
    """Return the free amounts on all agents that count against quota, by name, (R,).

    An agent that holds more than its capacity counts as negative. Free resources of drained agents
    do not count.
    """
    capacity, held = state.agents.capacity, state.ledger.books.agent_held
    drained = np.flatnonzero(state.agents.drained)
    kept_back = np.maximum(capacity[:, drained] - held[:, drained], 0).sum(axis=1)
    left = state.total_by_kind() - held.sum(axis=1) - kept_back
    return state.space.by_column(left[:, None], kinds=state.space.bounded_kind)[0]


def _cap(state: State) -> Ints:
    """Return the most that one framework may have on offer, (R,), in thousandths.

    Ports, GPUs and indivisible disks are rounded down to whole pieces, but to no less than one if
    the cluster has any.
    """
    space = state.space
    total = state.total_by_column()
    most = whole_below(total * state.settings.outstanding_max).astype(np.int64)
    in_pieces = ~space.scalar | (np.array(space.names, object) == GPUS)
    pieces = np.where(total > 0, np.maximum(most // MILLI, 1) * MILLI, most)
    most = np.where(in_pieces, pieces, most)
    whole = [each for each, kind in enumerate(space.kinds) if kind and kind.whole and kind.bounded]
    largest = state.agents.capacity[whole].max(axis=1, initial=0)
    np.maximum.at(most, space.column_of_kind[whole], largest)
    return most


def parts_of_clients(tree: QuotaTree, of_client: Ints, weight: Floats) -> tuple[Ints, Ints]:
    """Divide limits and guarantees of roles among their clients, by weight.

    `of_client` (n,): index of the innermost role with a quota that each client is in; -1: none.
    `weight` (n,): the weight of each client within its roles.
    Returns `limit`, `guarantee` (n, R), in thousandths; a limit of `UNBOUNDED`: none.
    """
    below = np.bincount(of_client[of_client >= 0], weight[of_client >= 0], len(tree.path))
    for at, above in enumerate(tree.above.tolist()):
        if above >= 0:
            below[above] += below[at]
    limit = np.full((len(of_client), tree.limit.shape[1]), UNBOUNDED)
    guarantee = np.zeros_like(limit)
    # From the innermost role outwards: the smallest limit and the largest guarantee apply.
    role = of_client.copy()
    while (inside := np.flatnonzero(role >= 0)).size:
        here = role[inside]
        part = (weight[inside] / below[here])[:, None]
        bounded = tree.limit[here] < UNBOUNDED
        most = whole_below(np.where(bounded, tree.limit[here], 0) * part).astype(np.int64)
        limit[inside] = np.minimum(limit[inside], np.where(bounded, most, UNBOUNDED))
        least = whole_below(tree.guarantee[here] * part).astype(np.int64)
        guarantee[inside] = np.maximum(guarantee[inside], least)
        role[inside] = tree.above[here]
    return limit, guarantee


def with_outstanding(state: State, bounds: Bounds, first_grant: Ints) -> Bounds:
    """Add a bound for each framework: the amount on offer, and not in use, in all its roles.

    Existing offers of any kind count; those of this cycle count as for quotas.

    `first_grant` (C, R), in thousandths: the amount that any offer to the client begins with;
        zeros if its demand is unknown.
    """
    clients, frameworks = state.clients, len(state.frameworks.bound)
    # The maximum of a framework is its part of the cluster, but at least one client's first grant.
    offered = np.zeros((frameworks, len(state.space.names)), np.int64)
    np.add.at(offered, clients.framework, state.offered_by_column())
    most = np.tile(_cap(state), (frameworks, 1))
    np.maximum.at(most, clients.framework, first_grant)
    # Role and framework bounds are not nested, so each client is under both.
    return bounds.with_further(most - offered, clients.framework[:, None])
