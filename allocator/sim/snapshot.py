"""The master's whole state as events, for the beginning of a session."""

import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    Event,
    Exclude,
    FrameworkInfo,
    Hold,
    Kind,
    Refuse,
    SetWeights,
)
from allocator.sim.books import AgentRow, add
from allocator.sim.framework import Identity
from allocator.sim.ledger import Ledger
from allocator.sim.outbox import Row, holdings
from allocator.sim.roles import Roles

AGENT_CAPABILITIES = frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"})


def agent_event(agent: int, row: AgentRow) -> AddAgent:
    """An agent as it is announced."""
    info = AgentInfo(
        agent_id=row.agent_id,
        hostname=row.hostname,
        attributes=dict(row.attributes),
        capabilities=AGENT_CAPABILITIES,
    )
    return AddAgent(agent, info, dict(enumerate(row.capacity)), active=row.active)


def framework_info(framework_id: str, identity: Identity) -> FrameworkInfo:
    """What Mesos would say of a framework."""
    return FrameworkInfo(
        framework_id=framework_id,
        name=identity.name,
        user="sim",
        labels=identity.labels(),
        capabilities=identity.capabilities | {"MULTI_ROLE"},
    )


def snapshot(
    ledger: Ledger,
    roles: Roles,
    identities: dict[int, Identity],
    weights: dict[str, float],
    now_ms: int,
) -> tuple[Event, ...]:
    """Everything, in an order in which nothing is named before it is bound."""
    kinds = {kind: Kind(name) for kind, name in enumerate(ledger.kinds)}
    paths = dict(sorted(roles.path.items(), key=lambda item: item[1].count("/")))
    events: list[Event] = [Define(kinds=kinds, roles=paths)]
    if weights:
        events.append(SetWeights(weights))
    for framework, row in ledger.frameworks.items():
        info = framework_info(row.framework_id, identities[framework])
        suppressed = tuple(sorted(row.suppressed))
        events.append(
            AddFramework(framework, info, tuple(sorted(row.roles)), suppressed, active=row.active)
        )
    events += [agent_event(agent, row) for agent, row in ledger.agents.items()]
    columns = np.arange(len(ledger.kinds), dtype=np.int64)
    held: list[Row] = []
    for framework, role, agent, holding in ledger.rows():
        both = list(holding.offered)
        add(both, holding.used)
        held.append((framework, role, agent, tuple(both)))
    if held:
        events.append(Hold(holdings(columns, held)))
    refused = [
        ((framework, role, agent, refusal.amount), refusal.expires_ms)
        for framework, places in ledger.filters.items()
        for (role, agent), refusals in places.items()
        for refusal in refusals
        if refusal.expires_ms >= now_ms
    ]
    if refused:
        rows, expires_ms = zip(*refused, strict=True)
        events.append(Refuse(holdings(columns, list(rows)), np.array(expires_ms, np.int64)))
    excluded = [(f, *place) for f, places in ledger.excluded.items() for place in sorted(places)]
    if excluded:
        events.append(exclusions(excluded))
    return tuple(events)


def exclusions(places: list[tuple[int, int, int]], *, excluded: bool = True) -> Exclude:
    """Pairs (framework, role, agent) that may not meet, or may again."""
    table = np.array(places, np.int64).reshape(len(places), 3)
    return Exclude(table[:, 0], table[:, 1], table[:, 2], np.full(len(places), excluded))
