"""Problems: the input of policies that plan, which run in the background.

A policy that plans works on a *problem*, a copy of the whole cluster, without a time limit and on
any thread of the host. The core receives the resulting *plan* as an event (`adopted`). A plan is a
target, not a decision: cycles prefer clients that have less than the plan gives them, under all
rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from allocator.core.books.caps import CapTable, task_sizes, within_caps
from allocator.core.books.competition_tree import Shape
from allocator.core.books.quota import QuotaTree, parts_of_clients
from allocator.core.books.state import State
from allocator.core.events import AgentInfo, FrameworkInfo
from allocator.core.numba.memo import fixed
from allocator.core.numba.shared_bits import SharedBits, same_bits, shared_rows_of
from allocator.core.plan import Plan
from allocator.core.plans.reclaims import asked_to_leave
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Floats, Ints, Tree


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """The input of a plan: an immutable copy of the whole cluster at one moment.

    `now_ms`: time by the master's clock.
    `resources`: R names; `counted` (R,): as in `Snapshot`.
    `capacity`, `free` (A, R), in thousandths: of each agent, by handle; zeros if it may not be
        offered.
    `total` (R,), in thousandths.
    `excluded`: a bit for each pair: the client may not be served there.
    `holder` (H,): sorted keys ``agent * 2**32 + client`` of all holdings.
    `holding` (H, R), in thousandths: their amounts.
    `on_offer` (O,): keys of the holdings with nothing in use.
    `leave`, `refused` (P,): unfulfilled requests to clients to leave agents, keys as in `Plan`;
        those that were refused are in `refused`, the others in `leave`.
    `demand`, `held` (C, R), in thousandths.
    `characterised` (C,): as in `Snapshot`.
    `agents_held` (C,).
    `waiting_s` (C,): time since the client was last offered something, came, was suppressed or was
        revived, whichever was latest.
    `client` (L,): clients that take part: those that may be served and, if the policy plans for
        holders, those that only hold something.
    `wants` (L,): which of them may be served.
    `weight` (L,): the fraction of the cluster that weights give each of them.
    `limit`, `guarantee` (L, R), in thousandths: its part of its roles' limits and guarantees, by
        weight; a limit of `UNBOUNDED`: none.
    `agents`, `frameworks`, `roles`: by handle; by client; paths by client.
    """

    now_ms: int
    resources: tuple[str, ...]
    counted: Bools
    capacity: Ints
    free: Ints
    total: Ints
    excluded: SharedBits
    holder: Ints
    holding: Ints
    on_offer: Ints
    leave: Ints
    refused: Ints
    demand: Ints
    held: Ints
    characterised: Bools
    agents_held: Ints
    waiting_s: Floats
    client: Ints
    wants: Bools
    weight: Floats
    limit: Ints
    guarantee: Ints
    agents: tuple[AgentInfo | None, ...]
    frameworks: tuple[FrameworkInfo | None, ...]
    roles: tuple[str, ...]
    plan: Plan | None = None

    def rows(self) -> "PlanRows":
        agents = ["" if each is None else each.agent_id for each in self.agents]
        ids = ("" if each is None else each.framework_id for each in self.frameworks)
        return PlanRows(agents, list(zip(ids, self.roles, strict=True)))

    def asks_the_same(self, other: "PlanProblem") -> bool:
        """Whether only held and free amounts differ, so that a plan for shares is still valid."""
        of_cluster = ("capacity", "total")
        of_clients = ("demand", "characterised", "client", "wants", "weight", "limit", "guarantee")
        same = of_cluster + of_clients
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in same
        ) and same_bits(self.excluded, other.excluded)


class PlanRows(NamedTuple):
    """The identities of the rows when a problem was copied; empty texts for unused rows.

    `agents` (A,): ids, by handle.
    `clients` (C,): ids of frameworks and paths of roles.
    """

    agents: Sequence[str]
    clients: Sequence[tuple[str, str]]


@runtime_checkable
class PlanningPolicy(Policy, Protocol):
    """A policy that plans; its `allocate` must decide with and without a plan in the snapshot."""

    @property
    def about_holders(self) -> bool:
        """Whether plans also cover clients that hold something but take no offers."""
        ...

    def plan(self, problem: PlanProblem) -> Plan:
        """Compute a plan; may run on any thread.

        Raises Exception if there is no plan; then the last one stays in force.
        """
        ...

    def stands(self, before: PlanProblem, now: PlanProblem) -> bool:
        """Whether the plan for the problem `before` is still valid for `now`."""
        ...


def has_free(state: State, agents: Ints | None) -> bool:
    """Whether some client can be served and one of these agents (None: any) has free resources."""
    if not state.live_clients().any():
        return False
    free = state.space.by_column(state.free_on(None)).any(axis=1) & state.agents.ready
    if agents is not None:
        free = free[agents[(agents >= 0) & (agents < len(free))]]
    return bool(free.any())


def problem_of(
    state: State,
    shape: Shape,
    tree: Tree,
    quotas: QuotaTree,
    caps: CapTable,
    *,
    capacity: Ints,
    free: Ints,
    total: Ints,
    demand: Ints,
    characterised: Bools,
) -> PlanProblem:
    """Copy the input of a plan.

    `shape`, `tree`: as for a cycle over all agents; other arguments are as in a snapshot.
    """
    agents, clients = state.agents, state.clients
    holder = state.ledger.holders(np.arange(len(agents.ready)))
    usable = agents.ready
    capacity = np.where(usable[:, None], capacity, 0)
    info = state.frameworks.info
    weight = weight_of_leaves(tree.parent, tree.weight, len(tree.client))
    of_client = quotas.of_role[clients.role[shape.client]]
    limit, guarantee = parts_of_clients(quotas, of_client, weight)
    size = task_sizes(state)[shape.client]
    excluded = shared_rows_of(state.eligibility.excluded)
    limit = within_caps(caps, shape.client, size, weight, capacity, limit)
    return PlanProblem(
        now_ms=state.now_ms,
        resources=tuple(state.space.names),
        counted=fixed(state.space.counted.copy()),
        capacity=fixed(capacity),
        free=fixed(np.where(usable[:, None], free, 0)),
        total=fixed(total.copy()),
        excluded=SharedBits(fixed(excluded.row), fixed(excluded.bits)),
        leave=fixed(asked_to_leave(state)),
        refused=fixed(asked_to_leave(state, refused=True)),
        holder=fixed(holder.copy()),
        holding=fixed(state.space.by_column(state.ledger.books.held, state.ledger.at(holder))),
        on_offer=fixed(holder[~state.ledger.uses_something(holder & (2**32 - 1), holder >> 32)]),
        demand=fixed(demand.copy()),
        held=fixed(state.held_by_column().copy()),
        characterised=fixed(characterised.copy()),
        agents_held=fixed(state.ledger.books.agents_held.copy()),
        waiting_s=fixed((state.now_ms - np.maximum(clients.offered_ms, clients.changed_ms)) / 1000),
        client=shape.client,
        wants=fixed(state.live_clients()[shape.client]),
        weight=weight,
        limit=fixed(limit),
        guarantee=fixed(guarantee),
        agents=tuple(agents.info),
        frameworks=tuple(info[framework] for framework in clients.framework.tolist()),
        roles=tuple(map(state.roles.path.__getitem__, clients.role.tolist())),
        plan=state.plan,
    )


def weight_of_leaves(parent: Ints, weight: Floats, leaves: int) -> Floats:
    """Return the fraction of the whole that each leaf has by weights, (L,)."""
    below = np.bincount(parent[:-1], weight[:-1], minlength=len(parent))
    share = np.ones(len(parent))
    share[:-1] = weight[:-1] / below[parent[:-1]]
    for node in range(len(share) - 2, leaves - 1, -1):
        share[node] *= share[parent[node]]
    return fixed(share[:leaves] * share[parent[:leaves]])
