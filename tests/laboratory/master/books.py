"""An allocator's state in the terms of the master's books."""

from collections.abc import Iterator

from allocator.core import State
from laboratory.master.ledger import OfferFilter
from laboratory.random_cluster.checks import Books, essential, short


def of_state(state: State, now_ms: int) -> Books:
    """Convert an allocator's state, which must have no open decision."""
    assert not len(state.open_decisions), f"{len(state.open_decisions)} decisions are not settled"
    return {
        **dict(_of_state(state)),
        **dict(_filters_of_state(state, now_ms)),
        "holds_back": state.paused,
    }


def _of_state(state: State) -> Iterator[tuple[str, object]]:
    """The facts of an allocator's state, without its filters."""
    agents, frameworks, clients = state.agents, state.frameworks, state.clients
    books = state.ledger.books
    for handle, kind in enumerate(state.space.kinds):
        yield f"kind {handle}", kind
    for path, quota in state.quotas.items():
        yield f"quota {path}", (dict(quota.guarantees), dict(quota.limits))
    yield "whitelist", state.whitelist
    for agent, info in enumerate(agents.info):
        if info is not None and agents.bound[agent]:
            capacity, held = agents.capacity[:, agent].tolist(), books.agent_held[:, agent].tolist()
            active = bool(agents.active[agent])
            yield f"agent {agent}", (info.agent_id, active, short(capacity), short(held))
    for framework, told in enumerate(frameworks.info):
        if told is not None and frameworks.bound[framework]:
            yield f"framework {framework}", (told.framework_id, bool(frameworks.active[framework]))
    for client in clients.subscribed.nonzero()[0].tolist():
        who = f"{clients.framework[client]} {clients.role[client]}"
        yield f"subscription {who}", bool(clients.suppressed[client])
    for row in state.ledger.rows().tolist():
        client = int(books.client[row])
        where = f"{clients.framework[client]} {clients.role[client]} {books.agent[row]}"
        yield f"held {where}", short(books.held[:, row].tolist())
        if books.kinds_offered[row]:
            yield f"offered {where}", short(books.offered[:, row].tolist())


def _filters_of_state(state: State, now_ms: int) -> Iterator[tuple[str, object]]:
    """The active filters, by framework, role and agent."""
    rows, clients = state.filters.rows, state.clients
    found: dict[str, list[OfferFilter]] = {}
    for row in (rows.agent > 0).nonzero()[0].tolist():
        expires_ms = int(rows.expires_ms[row])
        if expires_ms >= now_ms:
            client = int(rows.client[row])
            where = f"{clients.framework[client]} {clients.role[client]} {rows.agent[row]}"
            refusal = OfferFilter(short(rows.amount[:, row].tolist()), expires_ms)
            found.setdefault(f"filters {where}", []).append(refusal)
    for name, refusals in found.items():
        yield name, essential(refusals)
