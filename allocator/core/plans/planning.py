"""Plans: what is worked out beside the cycles, and what cycles go by until the next one comes.

A policy that plans looks at a *problem*, a copy of the whole cluster as it stands, for as long as
it takes, on whatever thread the host likes; the *plan* that comes of it is told to the core as an
event. It is a target and no decision: a cycle gives what is free, under all rules, and prefers
whom the plan lets have it.

Most plans come as events, worked out beside the cycles. The first plan may be waited for, and hosts
without a thread for plans work them out in the cycle.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from allocator.core.books.competition_tree import Shape
from allocator.core.books.quota import QuotaTree, parts_of_clients
from allocator.core.books.state import State
from allocator.core.events import AgentInfo, EventError, FrameworkInfo
from allocator.core.numba.array_structures import read_only
from allocator.core.numba.memo import fixed
from allocator.core.plan import Plan
from allocator.core.plans.reclaims import asked_to_leave
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Floats, Ints, Tree, Words


@dataclass(frozen=True, slots=True)
class AdoptPlan:
    """Go by this plan from the next cycle on."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Problem:
    """What a plan is about: the whole cluster at one moment; no part of it changes any more.

    `now_ms`: by the master's clock.
    `resources`, R names; `counted` (R,).
    `capacity`, `free` (A, R), in thousandths: of each agent, by its handle; zeros where it may not
        be offered.
    `total` (R,), in thousandths.
    `excluded` (A, W): bit ``c % 64`` of word ``c // 64``: client c may not be served on this agent.
    `holder` (H,): sorted keys ``agent * 2**32 + client`` of who holds something where.
    `holding` (H, R), in thousandths: what each of them holds there.
    `on_offer` (O,): the keys among them of those who use nothing there: what they hold is merely on
        offer.
    `leave`, `refused` (P,): who is asked to leave which agent, keys as in `Plan`, and has not left
        yet: those who have refused stand in the second.
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
        `UNBOUNDED` where there is no limit.
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
    excluded: Words
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

    def asks_the_same(self, other: "Problem") -> bool:
        """Whether only what is held and free differs: then a plan for shares stands."""
        of_cluster = ("capacity", "total", "excluded")
        of_clients = ("demand", "characterised", "client", "wants", "weight", "limit", "guarantee")
        same = of_cluster + of_clients
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in same)


@runtime_checkable
class PlanningPolicy(Policy, Protocol):
    """A policy that plans.

    Its `allocate` finds the plan in force in the snapshot, and decides without one where there is
    none.
    """

    @property
    def about_holders(self) -> bool:
        """Whether plans are about those, too, who hold something and want no more."""
        ...

    def plan(self, problem: Problem) -> Plan:
        """Work a plan out; any thread may.

        Raises Exception where there is none; then the last plan stands.
        """
        ...

    def stands(self, before: Problem, now: Problem) -> bool:
        """Say whether the plan for the problem before is good for the one that there is now."""
        ...


def problem_of(
    state: State,
    shape: Shape,
    tree: Tree,
    quotas: QuotaTree,
    *,
    capacity: Ints,
    free: Ints,
    total: Ints,
    characterised: Bools,
) -> Problem:
    """Copy what a plan is about.

    `shape`, `tree`: of a cycle over all agents.
    `capacity`, `free` (A, R), in thousandths; `total` (R,), in thousandths; `characterised` (C,).
    """
    agents, clients = state.agents, state.clients
    holder = state.ledger.holders(np.arange(len(agents.ready)))
    usable = agents.ready
    info = state.frameworks.info
    weight = weight_of_leaves(tree.parent, tree.weight, len(tree.client))
    of_client = quotas.of_role[clients.role[shape.client]]
    limit, guarantee = parts_of_clients(quotas, of_client, weight)
    return Problem(
        now_ms=state.now_ms,
        resources=tuple(state.space.names),
        counted=fixed(state.space.counted.copy()),
        capacity=fixed(np.where(usable[:, None], capacity, 0)),
        free=fixed(np.where(usable[:, None], free, 0)),
        total=fixed(total.copy()),
        excluded=fixed(state.eligibility.excluded.copy()),
        leave=fixed(asked_to_leave(state)),
        refused=fixed(asked_to_leave(state, refused=True)),
        holder=fixed(holder.copy()),
        holding=fixed(state.space.by_column(state.ledger.held(holder))),
        on_offer=fixed(holder[~state.ledger.uses_something(holder & (2**32 - 1), holder >> 32)]),
        demand=fixed(clients.demand.copy()),
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


def still_true(state: State, problem: Problem, plan: Plan) -> Plan:
    """Leave out of a plan who has gone since the problem was taken, though others have the rows."""
    info, framework = state.frameworks.info, state.clients.framework
    path, role = state.roles.path, state.clients.role
    clients, agents = [], []
    for client, was in enumerate(problem.frameworks):
        known = client < len(framework)
        now = info[framework[client]] if known else None
        moved = known and path[role[client]] != problem.roles[client]
        gone = now is None or was is None or was.framework_id != now.framework_id
        if moved or (was is not now and gone):
            clients.append(client)
    for agent, was_agent in enumerate(problem.agents):
        is_agent = state.agents.info[agent] if agent < len(state.agents.info) else None
        if was_agent is not is_agent and (
            was_agent is None or is_agent is None or was_agent.agent_id != is_agent.agent_id
        ):
            agents.append(agent)
    return _without(plan, clients, agents)


def _without(plan: Plan, clients: Sequence[int], agents: Sequence[int]) -> Plan:
    """Leave these out of a plan; it may be older than they are."""
    target, group = plan.target.copy(), plan.group.copy()
    client, agent = np.array(clients, np.int64), np.array(agents, np.int64)
    target[client[client < len(target)]] = 0.0
    group[agent[agent < len(group)]] = -1
    leaves = ~np.isin(plan.leave & (2**32 - 1), client) & ~np.isin(plan.leave >> 32, agent)
    leave = plan.leave[leaves]
    return replace(plan, target=fixed(target), group=fixed(group), leave=fixed(leave))


def adopt(state: State, event: AdoptPlan) -> None:
    """Take a plan over.

    Raises EventError where its parts do not fit together; then nothing has changed.
    """
    plan = event.plan
    flat = plan.target.ndim == plan.group.ndim == 1 and plan.allowed.ndim == plan.price.ndim == 2
    groups = 0, len(plan.allowed)
    if (
        not flat
        or plan.part.ndim != 2
        or len(plan.price) not in groups
        or len(plan.part) not in groups
    ):
        raise EventError("value", "plan", "its arrays do not fit together")
    if len(plan.part) and plan.part.shape[1] != len(plan.target):
        raise EventError("value", "plan.part", "is of other clients than the target")
    if plan.leave.ndim != 1 or (plan.leave < 0).any():
        raise EventError("value", "plan.leave", "must be keys of 0 or more")
    if plan.group.max(initial=-1) >= len(plan.allowed) or plan.group.min(initial=0) < -1:
        raise EventError("value", "plan.group", "names a group that there is not")
    if not ((plan.target >= 0) & (plan.target < np.inf)).all():
        raise EventError("value", "plan.target", "must be 0 or more, and finite")
    state.plan = plan


def forget_client(state: State, client: int) -> None:
    """Leave a client whose row becomes free out of the plan."""
    if state.plan is not None:
        state.plan = _without(state.plan, [client], [])


def forget_agent(state: State, agent: int) -> None:
    """Leave an agent that has gone out of the plan."""
    if state.plan is not None:
        state.plan = _without(state.plan, [], [agent])


def shown(plan: Plan, handle: Ints, clients: int, words: int) -> Plan:
    """Show a plan as a snapshot has it: by the snapshot's agents, for as many clients as it has."""
    target = np.zeros(clients)
    count = min(clients, len(plan.target))
    target[:count] = plan.target[:count]
    known = handle < len(plan.group)
    group = np.where(known, plan.group[np.where(known, handle, 0)] if len(plan.group) else -1, -1)
    allowed = np.zeros((len(plan.allowed), words), np.uint64)
    count = min(words, plan.allowed.shape[1])
    allowed[:, :count] = plan.allowed[:, :count]
    part = np.zeros((len(plan.part), clients))
    count = min(clients, plan.part.shape[1])
    part[:, :count] = plan.part[:, :count]
    return Plan(target, group, read_only(allowed), plan.price, part)


def held_by_group(state: State, plan: Plan, handle: Ints) -> tuple[Ints, Ints]:
    """What each client holds on the agents of each group, of a plan with parts.

    Only of groups that the agents (handles) are of; O(holdings), in a few steps.

    Returns `held` (G, C, R), in thousandths; `agents_held` (G, C).
    """
    books, groups = state.ledger.books, len(plan.part)
    clients = len(state.clients.framework)
    held = np.zeros((groups, clients, len(state.space.names)), np.int64)
    agents_held = np.zeros((groups, clients), np.int64)
    if not groups:
        return held, agents_held
    # The last entry is that of agents in no group.
    group = np.full(max(len(state.agents.bound), len(plan.group)), -1)
    group[: len(plan.group)] = plan.group
    wanted = np.zeros(groups + 1, np.bool_)
    wanted[group[handle]] = True
    wanted[-1] = False
    of_row = group[books.agent]
    rows = np.flatnonzero(wanted[of_row])
    rows = rows[books.held[rows].any(axis=1)]  # the others are free
    where = of_row[rows], books.client[rows]
    np.add.at(held, where, state.space.by_column(books.held[rows]))
    np.add.at(agents_held, where, 1)
    return held, agents_held


FirstPlan: TypeAlias = Callable[[PlanningPolicy, Ints | None], AdoptPlan | None]
"""Waits for the first plan, for a cycle over these agents (None: all); None: it has not come."""


class PlanSource:
    """Makes plans that do not come as events: the first one, and those made within cycles.

    `began_with`: the first plan, where the last cycle waited for it.
    `plans_here`: whether plans are worked out in cycles.
    """

    def __init__(self, first_plan: FirstPlan | None, *, plans_here: bool) -> None:
        """Take the host's ways; see `Allocator`."""
        self.began_with: AdoptPlan | None = None
        self._first_plan = first_plan
        self.plans_here = plans_here
        self._foretold: AdoptPlan | None = None
        self._planned: Problem | None = None

    def renew(self) -> None:
        """Forget what the plan before was about: there is another policy, or another state."""
        self._planned = None

    def foretell(self, first_plan: AdoptPlan | None) -> None:
        """Let the next cycle begin with this plan."""
        self._foretold = first_plan

    def first(
        self, planning_policy: PlanningPolicy | None, agents: Ints | None, *, wanted: bool
    ) -> AdoptPlan | None:
        """Wait for the first plan, where there is none and a cycle wants one."""
        plan, self._foretold = self._foretold, None
        if planning_policy is None or not wanted:
            plan = None
        elif plan is None and self._first_plan is not None:
            plan = self._first_plan(planning_policy, agents)
        self.began_with = plan
        return plan

    def here(
        self,
        planning_policy: PlanningPolicy | None,
        agents: Ints | None,
        problem_now: Callable[[], Problem | None],
    ) -> AdoptPlan | None:
        """Plan before a cycle over all agents, where the last plan does not stand any more.

        A failure leaves that.
        """
        if not self.plans_here or agents is not None or planning_policy is None:
            return None
        problem = problem_now()
        if problem is None:
            return None
        before, planned = self._planned, None
        if before is None or not planning_policy.stands(before, problem):
            self._planned = problem
            with suppress(Exception):
                planned = AdoptPlan(planning_policy.plan(problem))
        return planned
