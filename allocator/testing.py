"""Hand-made snapshots for tests, such as the papers' static problems.

Agent row 0 is never bound, so the first agent of a problem is row 1; its first client is row 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from allocator.core.filters.coverage import offerable_of
from allocator.core.filters.table import FilterTable
from allocator.core.numba.array_structures import distinct_rows
from allocator.core.numba.bit_tables import empty_table, set_pairs, width
from allocator.core.numba.shared_bits import SharedBits, no_bits, shared_some_on
from allocator.core.plans.problems import PlanningPolicy, PlanProblem, weight_of_leaves
from allocator.core.policy import Policy
from allocator.core.snapshot import (
    UNBOUNDED,
    AgentClasses,
    BitTable,
    Bools,
    Bounds,
    Filters,
    Floats,
    Grants,
    Ints,
    Snapshot,
    Specials,
    Tree,
)

Numbers: TypeAlias = ArrayLike

_THOUSANDTHS = 1000


def static_snapshot(
    capacity: Numbers,
    demand: Numbers | None = None,
    *,
    clients: int | None = None,
    weight: Numbers | None = None,
    allowed: Numbers | None = None,
    role: Numbers | None = None,
    role_parent: Sequence[int] = (-1,),
    role_weight: Numbers | None = None,
    **more: Any,  # noqa: ANN401  (each array has its own type, in `Snapshot`)
) -> Snapshot:
    """Build a paper's static problem: everything is free, no client holds anything.

    `capacity` (A, R), in whole units (CPUs, not thousandths): agent `a` gets row ``a + 1``.
    `demand` (C, R), in whole units: one task. A row of zeros, or None, means unknown: offered all
    that is free.
    `clients`: number of clients if `demand` is None.
    `weight` (C,): 1 by default.
    `allowed` (C, A) bool: the agents that each client may use; all by default.
    `role` (C,): role of each client; 0 is the root, and the default.
    `role_parent` (Q,): parent of each role, lower than the role; -1 for role 0. Flat by default.
    `role_weight` (Q,): 1 by default.
    `more`: arrays that replace the snapshot's defaults; see `make_snapshot`.

    >>> static_snapshot(capacity=[[9, 18]], demand=[[1, 4], [3, 1]]).free.tolist()
    [[0, 0], [9000, 18000]]
    """
    capacity = thousandths(capacity)
    capacity = np.vstack([np.zeros_like(capacity[:1]), capacity])
    if demand is None:
        demand = np.zeros((clients or 0, capacity.shape[1]))
    if allowed is not None:
        more["excluded"] = excluded_pairs(~np.asarray(allowed, np.bool_))
    tree = make_tree(
        role=[0] * len(thousandths(demand)) if role is None else role,
        role_parent=role_parent,
        weight=weight,
        role_weight=role_weight,
        served=more.pop("served", None),
        live=more.pop("live", None),
    )
    return make_snapshot(capacity=capacity, demand=thousandths(demand), **tree, **more)


def make_snapshot(
    *,
    capacity: Ints,
    demand: Ints,
    tree: Tree,
    leaf_of_client: Ints,
    parent_of_client: Ints,
    **more: Any,  # noqa: ANN401  (each array has its own type, in `Snapshot`)
) -> Snapshot:
    """Build a snapshot from arrays in thousandths, with defaults for those not given.

    `capacity` (A, R), in thousandths: row 0 is unused.
    `demand` (C, R), in thousandths.
    `tree`, `leaf_of_client`, `parent_of_client`: as from `make_tree`.
    `more`: any other array of the snapshot. By default everything is free, nothing is held,
        excluded or filtered, every resource counts, every agent is a candidate, and clients with a
        demand are served in whole tasks.
    """
    agents, resources = capacity.shape
    count = len(demand)
    none = np.empty(0, np.int64)
    classes = distinct_rows(capacity[1:])
    usual: dict[str, Any] = {
        "resources": ("cpus", "mem", "disk", "gpus")[:resources]
        if resources <= 4
        else tuple(f"r{r}" for r in range(resources)),
        "counted": np.ones(resources, np.bool_),
        "free": capacity.copy(),
        "total": capacity.sum(axis=0),
        "agents": np.arange(1, agents),
        "minimum": np.empty((0, resources), np.int64),
        "held": np.zeros((count, resources), np.int64),
        "agents_held": np.zeros(count, np.int64),
        "characterised": (demand > 0).any(axis=1),
        "overdue": np.zeros(count, np.bool_),
        "excluded": no_bits(agents, count + 1),
        "filters": no_filters(agents, count, resources),
        "specials": Specials.none(agents, width(empty_table(0, count + 1))),
        "minimum_rows": np.tile([0, len(more.get("minimum", ()))], (count, 1)),
        "bounds": Bounds.none(count, resources),
        "holder": none,
        "handle": np.arange(agents),
        "classes": AgentClasses(classes.rows, classes.times),
    }
    arrays = usual | more
    return Snapshot(
        capacity=capacity,
        demand=demand,
        tree=tree,
        leaf_of_client=leaf_of_client,
        parent_of_client=parent_of_client,
        **({"excluding": shared_some_on(arrays["excluded"])} | arrays),
    )


def no_filters(agents: int, clients: int, resources: int) -> Filters:
    """Build empty filters; kinds are columns."""
    none = np.empty(0, np.int32)
    return Filters(
        head=np.full(agents, -1, np.int32),
        next=none,
        client=none,
        amount=np.empty((resources, 0), np.int64),
        plain_kind=np.arange(resources),
        largest=np.zeros((resources, agents), np.int64),
        covered=empty_table(agents, clients + 1),
    )


def problem_of(snapshot: Snapshot) -> PlanProblem:
    """Derive the planning problem from a snapshot of all agents."""
    tree, nobody = snapshot.tree, (None,)
    return PlanProblem(
        now_ms=0,
        resources=snapshot.resources,
        counted=snapshot.counted,
        capacity=snapshot.capacity,
        free=snapshot.free,
        total=snapshot.total,
        excluded=snapshot.excluded,
        holder=snapshot.holder,
        holding=np.zeros((len(snapshot.holder), len(snapshot.total)), np.int64),
        on_offer=np.zeros(0, np.int64),
        leave=np.zeros(0, np.int64),
        refused=np.zeros(0, np.int64),
        demand=snapshot.demand,
        held=snapshot.held,
        characterised=snapshot.characterised,
        agents_held=snapshot.agents_held.astype(np.int64),
        waiting_s=np.zeros(len(snapshot.demand)),
        client=tree.client,
        wants=np.ones(len(tree.client), np.bool_),
        weight=weight_of_leaves(tree.parent, tree.weight, len(tree.client)),
        limit=np.full((len(tree.client), len(snapshot.resources)), UNBOUNDED),
        guarantee=np.zeros((len(tree.client), len(snapshot.resources)), np.int64),
        agents=nobody * len(snapshot.capacity),
        frameworks=nobody * len(snapshot.demand),
        roles=("",) * len(snapshot.demand),
    )


def planned(snapshot: Snapshot, policy: Policy) -> Snapshot:
    """Add the policy's plan, if it makes one, for a cluster in which no client holds anything."""
    if not isinstance(policy, PlanningPolicy):
        return snapshot
    plan = policy.plan(problem_of(snapshot))
    shape = (len(plan.part), *snapshot.demand.shape)
    held, agents_held = np.zeros(shape, np.int64), np.zeros(shape[:2], np.int64)
    return replace(snapshot, plan=replace(plan, held=held, agents_held=agents_held))


def with_refusals(
    snapshot: Snapshot, client: Numbers, agent: Numbers, refused: Numbers
) -> Snapshot:
    """Add refused offers as filters.

    `client`, `agent` (X,): rows.
    `refused` (X, K), in whole units, by kind.
    """
    amount = thousandths(refused)
    table = FilterTable(2 * len(amount))
    agents, clients = len(snapshot.free), len(snapshot.demand)
    table.reserve(agents=agents, clients=clients + 1, kinds=amount.shape[1])
    rows = np.asarray(client, np.int64), np.asarray(agent, np.int64)
    framework = np.arange(clients + 1)
    kind = np.arange(amount.shape[1])
    table.add(*rows, kind, amount, np.ones(len(amount), np.int64), framework)
    offerable = offerable_of(snapshot, snapshot.characterised)
    touched = np.ones(len(table.rows.stale), np.bool_)
    filters = table.show(offerable, np.zeros(clients, np.int64), np.arange(agents), touched)
    blocks, _, words = snapshot.filters.covered.shape
    covered = filters.covered[:blocks, :agents, :words]
    shown = filters._replace(
        head=filters.head[:agents], largest=filters.largest[:, :agents], covered=covered
    )
    return replace(snapshot, filters=shown)


def make_tree(
    role: Numbers,
    role_parent: Sequence[int] = (-1,),
    *,
    weight: Numbers | None = None,
    role_weight: Numbers | None = None,
    served: Numbers | None = None,
    live: Numbers | None = None,
) -> dict[str, Any]:
    """Build a tree of roles and clients.

    `role` (C,).
    `role_parent` (Q,): lower than the role; -1 for role 0, the root.
    `weight` (C,), `role_weight` (Q,).
    `served` (C,): how often each client was served before; 0 by default.
    `live` (C,) bool: the clients that have a leaf; all by default.

    Returns ``tree``, ``leaf_of_client`` and ``parent_of_client`` of a snapshot, as a dict.
    """
    of_role = np.asarray(role, np.int64)
    roles, count = len(role_parent), len(of_role)
    alive = np.ones(count, np.bool_) if live is None else np.asarray(live, np.bool_)
    client = np.flatnonzero(alive)
    root = len(client) + roles - 1  # role q is node root - q, so children precede parents
    above = np.append(root - of_role[client], root - np.asarray(role_parent, np.int64)[::-1])
    parent = np.where(np.arange(root + 1) == root, -1, above)
    child = np.argsort(parent[:-1], kind="stable")
    start = np.searchsorted(parent[:-1][child], np.arange(root + 2))
    often = np.zeros(root + 1, np.int64)
    times = np.zeros(count, np.int64) if served is None else np.asarray(served, np.int64)
    np.add.at(often, root - of_role, times)
    for node in range(len(client), root):
        often[parent[node]] += often[node]
    often[: len(client)] = times[client]
    leaf_of_client = np.full(count, -1)
    leaf_of_client[client] = np.arange(len(client))
    leaf_weight = np.ones(count) if weight is None else np.asarray(weight, np.float64)
    inner_weight = np.ones(roles) if role_weight is None else np.asarray(role_weight, np.float64)
    weights = np.append(leaf_weight[client], inner_weight[::-1])
    return {
        "tree": Tree(client, parent, start, child, weights, often, np.zeros_like(parent)),
        "leaf_of_client": leaf_of_client,
        "parent_of_client": root - of_role,
    }


def excluded_pairs(barred: Bools) -> SharedBits:
    """Make the table of excluded pairs, (C, A) bool, for agent rows 0 to A."""
    return shared(table_of(barred))


def table_of(pairs: Bools) -> BitTable:
    """Make a table of pairs, (C, A) bool, for agent rows 0 to A."""
    clients, agents = pairs.shape
    table = empty_table(agents + 1, clients + 1)
    client, agent = np.nonzero(pairs)
    set_pairs(table, agent + 1, client)
    return table


def shared(table: BitTable) -> SharedBits:
    """Return a table with the same bits; each agent has a row of its own."""
    blocks, agents, words = table.shape
    row = np.arange(1, blocks * agents + 1, dtype=np.int32).reshape(blocks, agents)
    return SharedBits(row, np.vstack([np.zeros((1, words), np.uint64), table.reshape(-1, words)]))


def thousandths(amounts: Numbers) -> Ints:
    return np.rint(np.asarray(amounts, np.float64) * _THOUSANDTHS).astype(np.int64)


def placement(snapshot: Snapshot, grants: Grants) -> NDArray[np.int64]:
    """Number of tasks of each client on each agent, (C, A); column 0 is agent row 1."""
    result = np.zeros((len(snapshot.demand), len(snapshot.capacity)), np.int64)
    np.add.at(result, (grants.client, grants.agent), grants.tasks)
    return result[:, 1:]


def amounts_granted(snapshot: Snapshot, grants: Grants) -> Floats:
    """Sum what each client is granted, (C, R), in whole units."""
    result = np.zeros_like(snapshot.demand)
    np.add.at(result, grants.client, grants.amount)
    return result / _THOUSANDTHS
