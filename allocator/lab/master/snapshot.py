"""The master's whole state as events, for the beginning of a session."""

from collections.abc import Mapping

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
    Refuse,
    SetQuota,
    SetWeights,
    SetWhitelist,
)
from allocator.lab.frameworks.base import Identity
from allocator.lab.master.ledger import Ledger
from allocator.lab.master.ledger_rows import AgentRow, FrameworkRow
from allocator.lab.master.outbox import Row, holdings


def agent_event(agent: int, row: AgentRow, capacity: Mapping[int, int]) -> AddAgent:
    """An agent as it is announced, with its capacity by kind."""
    info = AgentInfo(
        agent_id=row.agent_id,
        hostname=row.hostname,
        attributes=dict(row.attributes),
        region=row.region,
        zone=row.zone,
        capabilities=row.capabilities,
    )
    start_ms, duration_ms = row.unavailable_ms or (-1, 0)
    return AddAgent(agent, info, capacity, row.active, start_ms, duration_ms)


def framework_info(identity: Identity, row: FrameworkRow) -> FrameworkInfo:
    """What Mesos would say of a framework."""
    return FrameworkInfo(
        framework_id=row.framework_id,
        name=identity.name,
        user=identity.user,
        principal=identity.principal,
        labels=identity.labels(),
        capabilities=row.capabilities,
        minimum=dict(row.minimum),
    )


def snapshot(
    ledger: Ledger,
    identities: Mapping[int, Identity],
    weights: Mapping[str, float],
    now_ms: int,
) -> tuple[Event, ...]:
    """Everything, in an order in which nothing is named before it is bound."""
    # Roles after those above them.
    paths = dict(sorted(ledger.path.items(), key=lambda item: item[1].count("/")))
    kinds = ledger.kinds
    events: list[Event] = []
    if weights:
        events.append(SetWeights(dict(weights)))
    events += [SetQuota(path, q.guarantees, q.limits) for path, q in ledger.quotas.items()]
    # Frameworks and agents, then what is between them: holdings, filters, exclusions.
    for framework, row in ledger.frameworks.items():
        info = framework_info(identities[framework], row)
        suppressed = tuple(sorted(row.suppressed))
        events.append(
            AddFramework(framework, info, tuple(sorted(row.roles)), suppressed, active=row.active)
        )
    for agent, there in ledger.agents.items():
        capacity = enumerate(kinds.by_kind(there.capacity))
        has = {kind: amount for kind, amount in capacity if amount}
        events.append(agent_event(agent, there, has))
    held: list[Row] = [
        (framework, role, agent, kinds.by_kind(holding.both()))
        for framework, role, agent, holding in ledger.rows()
    ]
    if held:
        events.append(Hold(holdings(held, kinds.usual)))
    refused: list[tuple[Row, int]] = [
        ((framework, role, agent, kinds.by_kind(refusal.amount)), refusal.expires_ms)
        for framework, places in ledger.filters.items()
        for (role, agent), refusals in places.items()
        for refusal in refusals
        if refusal.expires_ms >= now_ms
    ]
    if refused:
        rows, expires_ms = zip(*refused, strict=True)
        events.append(Refuse(holdings(list(rows), kinds.usual), np.array(expires_ms, np.int64)))
    excluded = [(f, *place) for f, places in ledger.excluded.items() for place in sorted(places)]
    if excluded:
        events.append(exclusions(excluded))
    if ledger.whitelist is not None:
        events.append(SetWhitelist(ledger.whitelist))
    return (Define(kinds=dict(enumerate(kinds.kinds)), roles=paths), *events)


def exclusions(places: list[tuple[int, int, int]], *, excluded: bool = True) -> Exclude:
    """Pairs (framework, role, agent) that may not meet, or may again."""
    table = np.array(places, np.int64).reshape(len(places), 3)
    return Exclude(table[:, 0], table[:, 1], table[:, 2], np.full(len(places), excluded))
