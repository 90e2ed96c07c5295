"""The plan in force: adopts it, removes clients and agents that left, shows it to cycles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from allocator.core.books.state import State
from allocator.core.events import EventError
from allocator.core.numba.array_structures import read_only
from allocator.core.numba.memo import fixed
from allocator.core.plan import Plan
from allocator.core.plans.problems import PlanRows
from allocator.core.snapshot import Ints


@dataclass(frozen=True, slots=True)
class AdoptPlan:
    """Use this plan from the next cycle on."""

    plan: Plan


def still_true(state: State, rows: PlanRows, plan: Plan) -> Plan:
    """Remove clients and agents from a plan that left since its problem was copied.

    Others may have their rows now. Raises EventError if the plan refers to rows that the problem
    did not have.
    """
    if len(plan.target) > len(rows.clients):
        raise EventError("value", "plan.target", "names clients that the problem did not have")
    if len(plan.group) > len(rows.agents):
        raise EventError("value", "plan.group", "names agents that the problem did not have")
    leave_client, leave_agent = plan.leave & (2**32 - 1), plan.leave >> 32
    if ((leave_client >= len(rows.clients)) | (leave_agent >= len(rows.agents))).any():
        raise EventError("value", "plan.leave", "names rows that the problem did not have")
    info, framework = state.frameworks.info, state.clients.framework.tolist()
    path, role = state.roles.path, state.clients.role.tolist()
    clients, agents = [], []
    for client, was in enumerate(rows.clients):
        now = info[framework[client]] if client < len(framework) else None
        if now is None or (now.framework_id, path[role[client]]) != was:
            clients.append(client)
    found = state.agents.info
    for agent, name in enumerate(rows.agents):
        is_agent = found[agent] if agent < len(found) else None
        if is_agent is None or is_agent.agent_id != name:
            agents.append(agent)
    return _without(plan, clients, agents)


def _without(plan: Plan, clients: Sequence[int], agents: Sequence[int]) -> Plan:
    """Remove clients and agents from a plan; it may have been made before they came."""
    target, group = plan.target.copy(), plan.group.copy()
    client, agent = np.array(clients, np.int64), np.array(agents, np.int64)
    target[client[client < len(target)]] = 0.0
    group[agent[agent < len(group)]] = -1
    leaves = ~np.isin(plan.leave & (2**32 - 1), client) & ~np.isin(plan.leave >> 32, agent)
    leave = plan.leave[leaves]
    return replace(plan, target=fixed(target), group=fixed(group), leave=fixed(leave))


def check(plan: Plan) -> None:
    """Raise EventError if the parts of a plan are inconsistent."""
    flat = plan.target.ndim == plan.group.ndim == 1 and plan.allowed.ndim == plan.price.ndim == 2
    groups = len(plan.allowed)
    if (
        not flat
        or plan.part.ndim != 2
        or len(plan.price) not in (0, groups)
        or len(plan.part) > groups
    ):
        raise EventError("value", "plan", "its arrays have inconsistent shapes")
    if len(plan.part) and plan.part.shape[1] != len(plan.target):
        raise EventError("value", "plan.part", "has another number of clients than the target")
    if plan.leave.ndim != 1 or (plan.leave < 0).any():
        raise EventError("value", "plan.leave", "must be keys of 0 or more")
    if plan.group.max(initial=-1) >= len(plan.allowed) or plan.group.min(initial=0) < -1:
        raise EventError("value", "plan.group", "names a group that does not exist")
    if not ((plan.target >= 0) & (plan.target < np.inf)).all():
        raise EventError("value", "plan.target", "must be 0 or more, and finite")


def adopt(state: State, event: AdoptPlan) -> None:
    """Adopt a plan. Raises EventError if it is inconsistent; then nothing has changed."""
    check(event.plan)
    state.plan = _as_recorded(event.plan)


def _as_recorded(plan: Plan) -> Plan:
    """Convert a plan's arrays to the types and shapes that a record would give them."""
    target = plan.target.astype(np.float64, copy=False)
    part = plan.part.astype(np.float64, copy=False)
    return replace(
        plan,
        target=target,
        group=plan.group.astype(np.int64, copy=False),
        allowed=plan.allowed.astype(np.uint64, copy=False),
        price=plan.price.astype(np.float64, copy=False),
        part=part if len(part) else np.zeros((0, len(target))),
        leave=plan.leave.astype(np.int64, copy=False),
    )


def forget_client(state: State, client: int) -> None:
    """Remove a client whose row was freed from the plan in force."""
    if state.plan is not None:
        state.plan = _without(state.plan, [client], [])


def forget_agent(state: State, agent: int) -> None:
    """Remove an agent that has left from the plan in force."""
    if state.plan is not None:
        state.plan = _without(state.plan, [], [agent])


def shown(plan: Plan, handle: Ints, clients: int, words: int, columns: int) -> Plan:
    """Convert a plan to the agents' rows, and the numbers of clients and columns, of a snapshot."""
    target = np.zeros(clients)
    count = min(clients, len(plan.target))
    target[:count] = plan.target[:count]
    known = handle < len(plan.group)
    group = np.where(known, plan.group[np.where(known, handle, 0)] if len(plan.group) else -1, -1)
    # Resources that the plan does not know have no price.
    return Plan(
        target,
        group,
        read_only(_of_width(plan.allowed, words)),
        read_only(_of_width(plan.price, columns)),
        _of_width(plan.part, clients),
    )


def _of_width(table: np.ndarray, columns: int) -> np.ndarray:
    """Return the first columns of a table, (n, columns); zeros for those that it lacks."""
    found = np.zeros((len(table), columns), table.dtype)
    count = min(columns, table.shape[1])
    found[:, :count] = table[:, :count]
    return found


def held_by_group(state: State, plan: Plan, handle: Ints) -> tuple[Ints, Ints]:
    """Add up each client's holdings over the agents of each of the P groups in `Plan.part`.

    Takes O(holdings).

    `handle`: the only agents whose groups are computed; the results for other groups are zeros.
    Returns `held` (P, C, R), in thousandths; and `agents_held` (P, C), the number of agents of the
        group on which the client holds something.
    """
    books, groups = state.ledger.books, len(plan.part)
    clients = len(state.clients.framework)
    held = np.zeros((groups, clients, len(state.space.names)), np.int64)
    agents_held = np.zeros((groups, clients), np.int64)
    if not groups:
        return held, agents_held
    # The last entry of `wanted`, -1, stands for agents in no group, or in one without parts.
    group = np.full(max(len(state.agents.bound), len(plan.group)), -1)
    group[: len(plan.group)] = np.where(plan.group < groups, plan.group, -1)
    wanted = np.zeros(groups + 1, np.bool_)
    wanted[group[handle]] = True
    wanted[-1] = False
    of_row = group[books.agent]
    rows = np.flatnonzero(wanted[of_row])
    rows = rows[books.kinds_held[rows] > 0]  # skip unused rows
    where = of_row[rows], books.client[rows]
    np.add.at(held, where, state.space.by_column(books.held, rows))
    np.add.at(agents_held, where, 1)
    return held, agents_held
