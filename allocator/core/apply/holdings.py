"""Applies events about offered and used resources to the state."""

import numpy as np

from allocator.core.apply.agents import check_agent, close_client_if_idle, refresh_agents
from allocator.core.apply.frameworks import (
    check_framework,
    check_framework_handle,
    check_roles,
    open_client,
    room_for,
)
from allocator.core.apply.learning import (
    learn_durations,
    learn_from_acceptances,
    learn_from_ends,
)
from allocator.core.books.gang_offers import note_unmade
from allocator.core.books.open_decisions import DecisionRows
from allocator.core.books.state import State
from allocator.core.bounds import CAPACITY_MAX
from allocator.core.events import (
    AddFilters,
    Amounts,
    EventError,
    Exclude,
    Hold,
    Holdings,
    InverseOffer,
    Outcomes,
    Release,
    Transition,
    UpdateAllocation,
)
from allocator.core.plans.reclaims import note_answer
from allocator.core.resources import GPUS, Kind
from allocator.core.snapshot import Bools, Ints

REST_REFUSED_MS = 60_000
"""How long a client is not offered a kind of the rest on an agent after getting nothing of it."""


def refuse_rest(state: State, event: Outcomes, decided: DecisionRows) -> None:
    """Stop offering clients a kind of the rest (see `Kind`) on an agent if they got nothing of it.

    `decided`: the decisions that these outcomes settle.
    """
    client, agent, amounts = decided
    columns = {kind: column for column, kind in enumerate(event.kind.tolist())}
    for kind in state.space.rest:
        part = np.flatnonzero(amounts.kind == kind)
        # The decisions that offered nothing of this kind.
        nothing = ~event.offered
        if kind in columns:
            nothing[event.partial] = event.amount[:, columns[kind]] == 0
        else:
            nothing |= event.partial
        # Map parts to the decisions that they belong to.
        row = np.searchsorted(amounts.start, part, "right") - 1
        kept = nothing[row] & (client[row] > 0)
        for one, much in zip(row[kept].tolist(), amounts.amount[part[kept]].tolist(), strict=True):
            until_ms = state.now_ms + REST_REFUSED_MS
            state.filters.refuse_rest(int(client[one]), int(agent[one]), kind, much, until_ms)


def hold(state: State, event: Hold) -> None:
    """Record resources in use; their framework need not have been added yet."""
    holdings = event.holdings
    state.space.check_bound(holdings.kind.tolist(), "holdings.kind")
    for framework in set(holdings.framework.tolist()):
        check_framework_handle(state, framework, "holdings.framework")
    check_roles(state, set(holdings.role.tolist()), "holdings.role")
    for agent in set(holdings.agent.tolist()):
        check_agent(state, agent, "holdings.agent")
    # Resources of roles or clients beyond a limit are not recorded; the module ensures that they
    # are not granted twice. Create rows for clients only after checking everything.
    pairs = list(zip(holdings.framework.tolist(), holdings.role.tolist(), strict=True))
    known = room_for(state, [pair for pair in pairs if pair[1] <= state.session_limits.roles])
    if len(known) < len(set(pairs)):
        kept = np.array([pair in known for pair in pairs], np.bool_)
        holdings, pairs = holdings.cut(kept), [pair for pair in pairs if pair in known]
    client = np.array([open_client(state, framework, role) for framework, role in pairs], np.int64)
    state.ledger.charge(
        client, holdings.agent, holdings.kind, holdings.amount, as_offer=False, now_ms=state.now_ms
    )
    # A holding of zeros needs no client row, so free the row again.
    close_idle(state, client)


def release(state: State, event: Release) -> None:
    """Release resources, and add the filters that the framework gave with them."""
    holdings = event.released
    state.space.check_bound(holdings.kind.tolist(), "released.kind")
    # Unknown clients and agents have row 0 here, which the ledger skips.
    client, agent = known_rows(state, holdings)
    failed, began_ms = state.ledger.release(
        client, agent, holdings.kind, holdings.amount, event.allocated
    )
    if failed >= 0:
        message = (
            f"framework {holdings.framework[failed]} gives back more on agent "
            f"{holdings.agent[failed]} than it holds; send a new snapshot"
        )
        raise EventError("books", f"released.amount[{failed * len(holdings.kind)}]", message)
    keep_filters(state, client, agent, holdings, event.refuse_ms)
    # A decline returns an offer in full. Many consecutive declines suggest that the assumed demand
    # is wrong. Returning the rest of a partly accepted offer is no decline; if it comes back before
    # the tasks are launched, some of the offer is still on offer.
    over = (client > 0) & ~state.ledger.is_offered_something(client, agent)
    whole = over & ~event.allocated & (event.refuse_ms >= 0)
    taken = state.accepted.take(client, agent, over)
    np.add.at(state.clients.declines, client[whole & ~taken], 1)
    learn_from_ends(state, client, holdings, event.allocated)
    learn_durations(state, client, began_ms, event.allocated & holdings.amount.any(axis=1))
    close_idle(state, client)


def close_idle(state: State, client: Ints) -> None:
    """Free the rows of clients (N,) that are not subscribed and no longer hold anything."""
    idle = (client > 0) & ~state.clients.subscribed[client]
    for row in sorted(set(client[idle].tolist())):
        close_client_if_idle(state, row)


def known_rows(state: State, holdings: Holdings) -> tuple[Ints, Ints]:
    """Return the rows of clients and agents of holdings (N,); both 0 if one of them is unknown."""
    client = state.clients.rows(holdings.framework, holdings.role)
    agent = holdings.agent
    # Use row 0 for handles out of range, so that the index is always valid.
    inside = (agent > 0) & (agent < len(state.agents.bound))
    known = inside & state.agents.bound[np.where(inside, agent, 0)] & (client > 0)
    return np.where(known, client, 0), np.where(known, agent, 0)


def keep_filters(
    state: State, client: Ints, agent: Ints, holdings: Holdings, refuse_ms: Ints
) -> None:
    """Add filters. Each is in force in the next batch, however short it is (MESOS-4302)."""
    framework = state.clients.framework[client]
    kept = (
        (client > 0)
        & (refuse_ms > 0)
        & state.clients.subscribed[client]
        & state.frameworks.active[framework]
    )
    if not kept.any():
        return
    life_ms = np.maximum(refuse_ms[kept] - 1, state.options.allocation_interval_ms)
    expires_ms = state.now_ms + life_ms
    refused = holdings.kind, holdings.amount[kept]
    state.filters.add(client[kept], agent[kept], *refused, expires_ms, state.clients.framework)


def add_filters(state: State, event: AddFilters) -> None:
    state.space.check_bound(event.refused.kind.tolist(), "refused.kind")
    client, agent = known_rows(state, event.refused)
    unserved = _unserved(state, event.refused.framework, event.refused.role, client == 0)
    if not (client.astype(np.bool_) | unserved).all():
        row = int(np.argmin((client > 0) | unserved))
        message = f"row {row} names no framework in a role, or no agent; add them before"
        raise EventError("handle", "refused", message)
    kept = np.flatnonzero(client)
    refused = event.refused.kind, event.refused.amount[kept]
    expires_ms, framework = event.expires_ms[kept], state.clients.framework
    state.filters.add(client[kept], agent[kept], *refused, expires_ms, framework)


def transition(state: State, event: Transition) -> None:
    """Move offered resources into use, and learn demands from them."""
    holdings = event.used
    state.space.check_bound(holdings.kind.tolist(), "used.kind")
    client, agent = known_rows(state, holdings)
    _find_offers(state, holdings, client, agent)
    here = state.ledger.uses_something(client, agent)
    state.ledger.use(client, agent, holdings.kind, holdings.amount, now_ms=state.now_ms)
    some = (client > 0) & holdings.amount.any(axis=1)
    state.accepted.note(client, agent, some & state.ledger.is_offered_something(client, agent))
    learn_from_acceptances(state, client, holdings, here)


def _find_offers(state: State, holdings: Holdings, client: Ints, agent: Ints) -> None:
    """Find the clients that were offered these amounts, where the host knows no framework."""
    inside = (holdings.agent > 0) & (holdings.agent < len(state.agents.bound))
    rows = np.flatnonzero((holdings.framework == 0) & inside)
    if len(rows):
        client[rows] = state.ledger.find_offers(
            state.clients.role,
            holdings.role[rows],
            holdings.agent[rows],
            holdings.kind,
            holdings.amount[rows],
        )
        agent[rows] = np.where(client[rows] > 0, holdings.agent[rows], 0)


def update_allocation(state: State, event: UpdateAllocation) -> None:
    """Convert resources of an agent to other kinds, whether a framework holds them or not."""
    check_agent(state, event.agent)
    consumed = state.space.vector(event.consumed, "consumed")
    converted = state.space.vector(event.converted, "converted")
    capacity = state.agents.capacity[:, event.agent]
    after = capacity - consumed + converted
    # Amounts at the maximum are not known exactly, so they are not checked and stay there.
    counted = capacity < CAPACITY_MAX
    if (counted & (after < 0)).any():
        message = f"agent {event.agent} has less than {_named(event.consumed)} to convert"
        raise EventError("books", "consumed", message)
    # Change holdings in the ledger first, then the agent's capacity.
    if event.framework:
        _convert_held(state, event, consumed, converted)
    state.set_capacity(
        event.agent, np.where(counted, np.minimum(after, CAPACITY_MAX), CAPACITY_MAX)
    )
    if any(kind is not None and kind.name == GPUS for kind in _changed(state, consumed, converted)):
        refresh_agents(state, np.array([event.agent]))


def _changed(state: State, consumed: Ints, converted: Ints) -> list[Kind | None]:
    return [state.space.kinds[handle] for handle in np.flatnonzero(consumed != converted)]


def _convert_held(state: State, event: UpdateAllocation, consumed: Ints, converted: Ints) -> None:
    client = state.clients.row(event.framework, event.role)
    rows = np.array([client]), np.array([event.agent])
    kind = np.arange(len(consumed))
    found = int(state.ledger.find(*rows)[0])
    if not client or found < 0 or (state.ledger.books.held[kind, found] < consumed).any():
        message = f"framework {event.framework} does not hold {_named(event.consumed)} there"
        raise EventError("books", "consumed", message)
    # Charge before releasing, so that the holding is never empty and keeps its row. If all that is
    # converted was on offer, the result is on offer too.
    as_offer = bool((state.ledger.books.offered[kind, found] >= consumed).all())
    state.ledger.charge(*rows, kind, converted[None], as_offer=as_offer, now_ms=state.now_ms)
    state.ledger.release(*rows, kind, consumed[None], np.array([not as_offer]))


def _named(amounts: Amounts) -> str:
    return ", ".join(f"{amount} of kind {kind}" for kind, amount in amounts.items())


def exclude(state: State, event: Exclude) -> None:
    client = state.clients.rows(event.framework, event.role)
    subscribed = state.clients.subscribed[client]
    unserved = _unserved(state, event.framework, event.role, ~subscribed)
    if not (subscribed | unserved).all():
        row = int(np.argmin(subscribed | unserved))
        message = f"framework {event.framework[row]} is not in role {event.role[row]}"
        raise EventError("handle", f"framework[{row}]", message)
    for agent in set(event.agent.tolist()):
        check_agent(state, agent)
    rows = np.flatnonzero(~unserved)
    state.eligibility.tell(client[rows], event.agent[rows], event.excluded[rows])


def _unserved(state: State, framework: Ints, role: Ints, doubtful: Bools) -> Bools:
    """Find the rows among `doubtful` (N,) whose role the framework has, but is not served in."""
    found, unserved = np.zeros(len(framework), np.bool_), state.frameworks.unserved
    for row in np.flatnonzero(doubtful).tolist():
        found[row] = int(role[row]) in unserved.get(int(framework[row]), ())
    return found


def inverse_offer(state: State, event: InverseOffer) -> None:
    """Record the answer to an inverse offer; the module does not ask again after a refusal."""
    check_framework(state, event.framework)
    check_agent(state, event.agent)
    note_answer(state, event)


def settle(state: State, event: Outcomes) -> None:
    """Correct the books by the module's report of what it offered of each decision."""
    count, queue = len(event.reason), state.open_decisions
    if event.first_decision != queue.first or count > len(queue):
        message = (
            f"{event.first_decision} to {event.first_decision + count - 1} are not the oldest open "
            f"decisions; these are {queue.first} to {queue.next - 1}"
        )
        raise EventError("value", "first_decision", message)
    state.space.check_bound(event.kind.tolist(), "kind")
    decided = queue.oldest(count)
    client, agent, amounts = decided
    # Release what was not offered. A partial decision is released in full, and then charged with
    # what was actually offered. Skip void decisions (client 0).
    told_partial = event.partial
    partial = told_partial & (client > 0)
    undone = np.flatnonzero(partial | (~event.offered & (client > 0)))
    if not state.ledger.withdraw(client[undone], agent[undone], amounts.take(undone)):
        message = "resources of a decision were released before its outcome; send a new snapshot"
        raise EventError("books", "first_decision", message)
    queue.drop(count)
    if state.space.rest:
        refuse_rest(state, event, decided)
    state.ledger.charge(
        client[partial],
        agent[partial],
        event.kind,
        event.amount[partial[told_partial]],
        as_offer=True,
        now_ms=state.now_ms,
    )
    note_unmade(state, np.setdiff1d(client[undone], client[event.offered]))
    close_idle(state, client[undone])
