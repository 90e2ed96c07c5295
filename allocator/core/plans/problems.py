"""Problems: the input of policies that plan, which run in the background.

A policy that plans works on a *problem*, a copy of the whole cluster, without a time limit and on
any thread of the host. The core receives the resulting *plan* as an event (`adopted`). A plan is a
target, not a decision: a cycle gives what is free, under all rules, and prefers clients to which
the plan allots it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from allocator.core.books.competition_tree import Shape
from allocator.core.books.quota import QuotaTree, parts_of_clients
from allocator.core.books.state import State
from allocator.core.events import AgentInfo, FrameworkInfo
from allocator.core.numba.memo import fixed
from allocator.core.numba.wide_tables import copied
from allocator.core.plan import Plan
from allocator.core.plans.reclaims import asked_to_leave
from allocator.core.policy import Policy
from allocator.core.snapshot import BitWords, Bools, Floats, Ints, Tree


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """The input of a plan: an immutable copy of the whole cluster at one moment.

    `now_ms`: by the master's clock.
    `resources`, R names; `counted` (R,).
    `capacity`, `free` (A, R), in thousandths: of each agent, by its handle; zeros if it may not
        be offered.
    `total` (R,), in thousandths.
    `excluded` (A, W): bit ``c % 64`` of word ``c // 64``: client c may not be served on this agent.
    `holder` (H,): sorted keys ``agent * 2**32 + client`` of all holdings.
    `holding` (H, R), in thousandths: their amounts.
    `on_offer` (O,): keys of the holdings that are only on offer and not in use.
    `leave`, `refused` (P,): clients that are asked to leave agents and have not left yet, keys as
        in `Plan`; `refused` has those that refused.
    `demand`, `held` (C, R), in thousandths.
    `characterised` (C,): as in `Snapshot`.
    `agents_held` (C,).
    `waiting_s` (C,): how long ago each client was offered something last, or came, or was
        suppressed or revived, whichever was latest.
    `client` (L,): clients that take part: those that may be served, and, for a policy that plans
        for them, those that only hold something.
    `wants` (L,): which may be served.
    `weight` (L,): the part of the whole that each has by the weights along its branch of the tree.
    `limit`, `guarantee` (L, R), in thousandths: its part of what bounds its roles, by weight;
        `UNBOUNDED` if there is no limit.
    `agents`: by handle.
    `frameworks`: by client.
    `roles`: paths, by client.
    `plan`: the plan in force.
    """

    now_ms: int
    resources: tuple[str, ...]
    counted: Bools
    capacity: Ints
    free: Ints
    total: Ints
    excluded: BitWords
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
        """Return the identities of its rows."""
        agents = ["" if each is None else each.agent_id for each in self.agents]
        ids = ("" if each is None else each.framework_id for each in self.frameworks)
        return PlanRows(agents, list(zip(ids, self.roles, strict=True)))

    def asks_the_same(self, other: "PlanProblem") -> bool:
        """Whether only held and free amounts differ: then a plan for shares is still valid."""
        of_cluster = ("capacity", "total", "excluded")
        of_clients = ("demand", "characterised", "client", "wants", "weight", "limit", "guarantee")
        same = of_cluster + of_clients
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in same)


class PlanRows(NamedTuple):
    """The identities of a plan's rows when its problem was taken; empty if a row was free.

    `agents` (A,): ids, by handle.
    `clients` (C,): ids of frameworks and paths of roles.
    """

    agents: Sequence[str]
    clients: Sequence[tuple[str, str]]


@runtime_checkable
class PlanningPolicy(Policy, Protocol):
    """A policy that plans.

    Its `allocate` finds the plan in force in the snapshot, and decides without one if there is
    none.
    """

    @property
    def about_holders(self) -> bool:
        """Whether plans also cover clients that hold something and want no more."""
        ...

    def plan(self, problem: PlanProblem) -> Plan:
        """Compute a plan; may run on any thread.

        Raises Exception if there is none; then the last plan stays in force.
        """
        ...

    def stands(self, before: PlanProblem, now: PlanProblem) -> bool:
        """Return whether the plan for the previous problem is still valid for the current one."""
        ...


def has_free(state: State, agents: Ints | None) -> bool:
    """Whether something is free for a client on one of these agents (None: on any)."""
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
    *,
    capacity: Ints,
    free: Ints,
    total: Ints,
    demand: Ints,
    characterised: Bools,
) -> PlanProblem:
    """Copy the input of a plan.

    `shape`, `tree`: of a cycle over all agents.
    `capacity`, `free` (A, R), in thousandths; `total` (R,), in thousandths.
    `demand` (C, R), `characterised` (C,): as in a snapshot.
    """
    agents, clients = state.agents, state.clients
    holder = state.ledger.holders(np.arange(len(agents.ready)))
    usable = agents.ready
    info = state.frameworks.info
    weight = weight_of_leaves(tree.parent, tree.weight, len(tree.client))
    of_client = quotas.of_role[clients.role[shape.client]]
    limit, guarantee = parts_of_clients(quotas, of_client, weight)
    return PlanProblem(
        now_ms=state.now_ms,
        resources=tuple(state.space.names),
        counted=fixed(state.space.counted.copy()),
        capacity=fixed(np.where(usable[:, None], capacity, 0)),
        free=fixed(np.where(usable[:, None], free, 0)),
        total=fixed(total.copy()),
        excluded=fixed(copied(state.eligibility.excluded)),
        leave=fixed(asked_to_leave(state)),
        refused=fixed(asked_to_leave(state, refused=True)),
        holder=fixed(holder.copy()),
        holding=fixed(state.space.by_column(state.ledger.held(holder))),
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
    """Part of the whole that the weights along its branch of the tree give each leaf, (L,)."""
    below = np.bincount(parent[:-1], weight[:-1], minlength=len(parent))
    share = np.ones(len(parent))
    share[:-1] = weight[:-1] / below[parent[:-1]]
    for node in range(len(share) - 2, leaves - 1, -1):
        share[node] *= share[parent[node]]
    return fixed(share[:leaves] * share[parent[:leaves]])
