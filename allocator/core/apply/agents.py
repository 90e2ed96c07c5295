"""Applies events about agents to the state."""

from dataclasses import replace

import numpy as np

from allocator.core.books import usage_over_time
from allocator.core.books.agent_rules import AgentTraits
from allocator.core.books.gang_offers import forget_collected, forget_lent
from allocator.core.books.state import State
from allocator.core.bounds import CAPACITY_MAX
from allocator.core.constraints import attributes_of
from allocator.core.events import (
    ActivateAgent,
    AddAgent,
    AddAgents,
    AgentInfo,
    EventError,
    RemoveAgent,
    SetUnavailability,
    SetWhitelist,
    UpdateAgent,
)
from allocator.core.plans.adopted import forget_agent, forget_client
from allocator.core.plans.reclaims import forget_asked
from allocator.core.resources import GPUS
from allocator.core.snapshot import Ints


def check_agent(state: State, agent: int, field: str = "agent") -> None:
    if not state.agents.is_bound(agent):
        message = f"agent {agent} is not bound; add it before it is used"
        raise EventError("handle", field, message)


def add_agent(state: State, event: AddAgent) -> None:
    # `max` of a dictionary is faster than `max` of an array with one element.
    _add_agents(state, AddAgents.of(event), max(event.capacity.values(), default=0))


def add_agents(state: State, event: AddAgents) -> None:
    _add_agents(state, event, int(event.capacity.max(initial=0)))


def _add_agents(state: State, event: AddAgents, most: int) -> None:
    """Bind agents; `most`: the largest amount of each kind on any of them."""
    handles, table = event.agent.tolist(), state.agents
    _check_new(state, handles)
    state.space.check_bound(event.kind.tolist(), "capacity")
    state.reserve(agents=max(handles) + 1)
    table.bind(event.agent, event.info, active=event.active)
    table.changed_ms[event.agent] = state.now_ms
    amount = event.capacity
    if most > CAPACITY_MAX:
        for row in np.flatnonzero((amount > CAPACITY_MAX).any(axis=1)).tolist():
            table.note_too_large(handles[row])
        amount = np.minimum(amount, CAPACITY_MAX)
    table.add_capacity(event.agent, event.kind, amount)
    state.ledger.books.touched[event.agent] = True
    table.unavailable_from_ms[event.agent] = event.unavailable_from_ms
    table.unavailable_for_ms[event.agent] = event.unavailable_for_ms
    refresh_agents(state, event.agent)


def _check_new(state: State, handles: list[int]) -> None:
    limit, seen = state.session_limits.agents, set[int]()
    for agent in handles:
        if not 1 <= agent <= limit:
            message = f"agent {agent} is out of range; handles of agents are 1 to {limit}"
            raise EventError("limit", "agent", message)
        if agent in seen or state.agents.is_bound(agent):
            message = f"agent {agent} is bound already; remove it first, or take a free handle"
            raise EventError("handle", "agent", message)
        seen.add(agent)


def update_agent(state: State, event: UpdateAgent) -> None:
    agent = event.agent
    check_agent(state, agent)
    info = state.agents.info[agent]
    assert info is not None
    capacity = None
    if event.capacity is not None:
        capacity = state.space.vector(event.capacity, "capacity")
    new = _updated(info, event)
    if capacity is not None:
        before = state.agents.capacity[:, agent].copy()
        state.set_capacity(agent, np.minimum(capacity, CAPACITY_MAX))
        if (state.agents.capacity[:, agent] < before).any():
            forget_lent(state, agent)
    # A framework that refused the agent may accept it with its new attributes, so drop filters.
    if new.attributes != info.attributes:
        state.filters.drop_agent(agent)
    state.agents.set_info(agent, new)
    if (state.agents.capacity[:, agent] >= CAPACITY_MAX).any():
        state.agents.note_too_large(agent)
    refresh_agents(state, np.array([agent]))


def _updated(info: AgentInfo, event: UpdateAgent) -> AgentInfo:
    if event.attributes is not None:
        info = replace(
            info,
            hostname=info.hostname if event.hostname is None else event.hostname,
            attributes=event.attributes,
            region=event.region,
            zone=event.zone,
            set_aside=event.set_aside,
        )
    if event.capabilities is not None:
        info = replace(info, capabilities=event.capabilities)
    return info


def remove_agent(state: State, event: RemoveAgent) -> None:
    agent = event.agent
    check_agent(state, agent)
    rows = state.ledger.rows_of_agent(agent)
    # Find the holders before dropping rows; some of them may not need a client's row afterwards.
    held_by = np.unique(state.ledger.books.client[rows])
    state.ledger.drop(rows)
    state.filters.drop_agent(agent)
    state.open_decisions.void_agent(agent)
    state.accepted.forget(agent=agent)
    state.eligibility.drop_agent(agent)
    state.agents.unbind(agent)
    forget_agent(state, agent)
    forget_asked(state, agent=agent)
    forget_collected(state, agent)
    for client in held_by.tolist():
        close_client_if_idle(state, client)


def activate_agent(state: State, event: ActivateAgent) -> None:
    check_agent(state, event.agent)
    if state.agents.active[event.agent] != event.active:
        state.agents.changed_ms[event.agent] = state.now_ms
    state.agents.active[event.agent] = event.active


def set_whitelist(state: State, event: SetWhitelist) -> None:
    state.whitelist = event.hostnames
    for agent in np.flatnonzero(state.agents.bound).tolist():
        info = state.agents.info[agent]
        assert info is not None
        state.agents.whitelisted[agent] = _whitelisted(state, info)


def set_unavailability(state: State, event: SetUnavailability) -> None:
    check_agent(state, event.agent)
    state.agents.unavailable_from_ms[event.agent] = event.start_ms
    state.agents.unavailable_for_ms[event.agent] = event.duration_ms


def holds_nothing(state: State, client: int) -> bool:
    held = state.ledger.books.agents_held[client]
    return not held and not state.open_decisions.has_client(client)


def close_client_if_idle(state: State, client: int) -> None:
    """Free a client's row, unless it is subscribed, holds something or has an open decision."""
    clients = state.clients
    if (
        clients.framework[client] == 0
        or clients.subscribed[client]
        or not holds_nothing(state, client)
    ):
        return
    state.filters.drop_client(client)
    state.eligibility.set_rule(client, None)
    state.accepted.forget(client=client)
    state.frameworks.clients[int(clients.framework[client])].discard(client)
    usage_over_time.leave(state, client)
    clients.close(client)
    forget_client(state, client)


def refresh_agents(state: State, agents: Ints) -> None:
    """Recompute what is derived from the information and capacity of agents (N,)."""
    table, home, infos = state.agents, state.options.region, []
    for agent in agents.tolist():
        info = table.info[agent]
        assert info is not None
        infos.append(info)
    table.whitelisted[agents] = [_whitelisted(state, info) for info in infos]
    from_ms = np.array([_drained_from(state, info) for info in infos], np.int64)
    table.drained[agents], table.drained_from_ms[agents] = from_ms == 0, np.maximum(from_ms, 0)
    gpus = _with_gpus(state, agents)
    traits = [_traits(info, home, gpus=has) for info, has in zip(infos, gpus, strict=True)]
    state.eligibility.set_agents(agents, traits)


def refresh_drained(state: State, agent: int) -> None:
    info, table = state.agents.info[agent], state.agents
    from_ms = -1 if info is None else _drained_from(state, info)
    table.drained[agent], table.drained_from_ms[agent] = from_ms == 0, max(from_ms, 0)


def _drained_from(state: State, info: AgentInfo) -> int:
    """Return when an agent is drained; 0: now; -1: never."""
    drains = state.settings.drains
    if not drains:
        return -1
    found = (drains[name] for name in (info.agent_id, info.hostname) if name in drains)
    return min(found, default=-1)


def _whitelisted(state: State, info: AgentInfo) -> bool:
    return state.whitelist is None or info.hostname in state.whitelist


def _with_gpus(state: State, agents: Ints) -> list[bool]:
    kinds = [row for row, kind in enumerate(state.space.kinds) if kind and kind.name == GPUS]
    if not kinds:
        return [False] * len(agents)
    found = np.any(state.agents.capacity[kinds][:, agents], axis=0)
    return [bool(has) for has in found]


def _traits(info: AgentInfo, home: str, *, gpus: bool) -> AgentTraits:
    return AgentTraits(
        attributes=attributes_of(info),
        gpus=gpus,
        # An agent is remote only if both the master and the agent have a region.
        remote=bool(home and info.region and info.region != home),
        many_roles="MULTI_ROLE" in info.capabilities,
        nested_roles="HIERARCHICAL_ROLE" in info.capabilities,
    )
