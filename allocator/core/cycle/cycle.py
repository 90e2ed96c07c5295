"""Runs the policy on a snapshot, checks and merges its grants, and charges them to the books."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from allocator.core.books.gang_offers import note_gang_offers
from allocator.core.books.quota import is_owed
from allocator.core.books.sparse_rows import SparseRows, groups_of, rows_of
from allocator.core.books.state import State
from allocator.core.books.turns import take_turn
from allocator.core.cycle import derived, gangs, within_counts, within_gates
from allocator.core.cycle.backfilling import note_lent, with_backfill
from allocator.core.cycle.decisions import Decisions
from allocator.core.cycle.minimums import reaches_own
from allocator.core.events import Holdings
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.numba.shared_bits import SharedBits, for_loops, has_shared_bit
from allocator.core.plans.reclaims import reclaims
from allocator.core.policy import Policy
from allocator.core.snapshot import Bools, Grants, Ints, Snapshot

_INT64 = np.dtype(np.int64)


class BadGrantError(AssertionError):
    """A policy made an invalid grant."""


@dataclass(frozen=True, slots=True)
class CycleReport:
    """A report of the last cycle.

    `candidates`, `clients`: the number of agents that could be offered, and of clients to serve.
    `policy_error`: why the policy could not decide; empty if it did.
    """

    candidates: int = 0
    clients: int = 0
    grants: int = 0
    decisions: int = 0
    policy_error: str = ""


def check_grants(excluded: SharedBits, handle: Ints, snapshot: Snapshot, grants: Grants) -> None:
    """Raise `BadGrantError` if the policy made invalid grants.

    `excluded`: the exclusions by agent's handle, as in the books.
    `handle` (J,): the handle of each agent of the snapshot.
    """
    client, agent = grants.client, grants.agent
    if {each.dtype for each in (client, agent, grants.amount)} != {_INT64}:
        raise BadGrantError("columns that are not int64")
    shape_ok = grants.amount.shape == (len(client), snapshot.free.shape[1])
    if not shape_ok or len(agent) != len(client) or len(grants.tasks) != len(client):
        raise BadGrantError("columns of unequal length")
    if not len(client):
        return
    arrays = (
        *(client, agent, grants.amount, grants.special_grant),
        *(snapshot.leaf_of_client, snapshot.agents, handle),
        snapshot.free,
    )
    wrong = _wrong_grant(for_loops(excluded), *map(loop_view, arrays))
    if wrong:
        raise BadGrantError(_WRONG_GRANTS[wrong])
    _check_specials(snapshot, grants)
    _check_bounds(snapshot, grants)
    if not within_counts.within(snapshot, grants).all():
        raise BadGrantError("more tasks or agents granted than a cap allows")
    if snapshot.gangs is not None and gangs.in_part(snapshot, grants).any():
        raise BadGrantError("a part of a gang granted")


_WRONG_GRANTS = (
    "",
    "a grant to a client that takes no offers",
    "a grant on an agent that is not to be offered",
    "a grant on an agent that is excluded",
    "an empty or negative grant",
    "more granted than is free",
)


@loop
def _wrong_grant(
    excluded: SharedBits,
    client: Ints,
    agent: Ints,
    amount: Ints,
    special_grant: Ints,
    leaf_of_client: Ints,
    candidates: Ints,
    handle: Ints,
    free: Ints,
) -> int:
    """Return the fault of the first invalid grant, as an index of `_WRONG_GRANTS`; 0: none."""
    candidate = np.zeros(len(free), np.bool_)
    candidate[candidates] = True
    something = np.zeros(len(client), np.bool_)
    something[special_grant] = True
    count, several = np.zeros(len(free), np.int64), 0  # grants on each agent
    for row in range(len(client)):
        who, where = client[row], agent[row]
        if who < 0 or who >= len(leaf_of_client) or leaf_of_client[who] < 0:
            return 1
        if where < 0 or where >= len(free) or not candidate[where]:
            return 2
        if has_shared_bit(excluded, handle[where], who):
            return 3
        for r in range(amount.shape[1]):
            if amount[row, r] < 0:
                return 4
            something[row] |= amount[row, r] > 0
        if not something[row]:
            return 4
        count[where] += 1
        several += count[where] == 2
    return 0 if _fit(agent, amount, count, several, free) else 5


@part()
def _fit(agent: Ints, amount: Ints, count: Ints, several: int, free: Ints) -> bool:
    """Whether all grants together take no more of any agent than is free on it.

    `count` (A,): number of grants on each agent.
    `several`: number of agents with more than one grant. Only these need a row of remaining
        amounts; a table of all agents might be large.
    """
    left, place, end = np.empty((several, free.shape[1]), np.int64), np.full(len(free), -1), 0
    for row in range(len(agent)):
        where = agent[row]
        if count[where] > 1 and place[where] < 0:
            place[where] = end
            left[end] = free[where]
            end += 1
        at = place[where]
        for r in range(amount.shape[1]):
            if at < 0:
                if amount[row, r] > free[where, r]:
                    return False
                continue
            left[at, r] -= amount[row, r]
            if left[at, r] < 0:
                return False
    return True


def _check_specials(snapshot: Snapshot, grants: Grants) -> None:
    """Verify that special resources are granted only within reach, and not more than is free."""
    if not len(grants.special):
        return
    specials = snapshot.specials
    agent, client = grants.agent[grants.special_grant], grants.client[grants.special_grant]
    # The client must be allowed to have the kind.
    word = specials.reach[grants.special, client // 64]
    if not ((word >> (client % 64).astype(np.uint64)) & np.uint64(1)).all():
        raise BadGrantError("a grant of resources that the client may not have")
    # Compare free and granted amounts in tables (agents, special kinds).
    shape = (len(snapshot.free), len(specials.kind))
    free, given = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    owner = np.repeat(np.arange(shape[0]), np.diff(specials.start))
    free[owner, specials.row] = specials.free
    np.add.at(given, (agent, grants.special), grants.special_amount)
    if (given > free).any() or (grants.special_amount <= 0).any():
        raise BadGrantError("more granted of a special kind than is free")
    # Indivisible resources are granted as a whole or not at all.
    parted = specials.whole & ((given > 0) & (given < free)).any(axis=0)
    if parted.any():
        raise BadGrantError("a part of an indivisible resource granted")


def _check_bounds(snapshot: Snapshot, grants: Grants) -> None:
    bounds = snapshot.bounds
    if not len(bounds.above):
        return
    counted = derived.counted(snapshot, grants)
    given = np.zeros_like(bounds.left)
    # Each grant counts for the client's role and all its ancestors. Go up one level at a time.
    bound = bounds.of_client[grants.client]
    while (bound >= 0).any():
        inside = bound >= 0
        np.add.at(given, bound[inside], counted[inside])
        bound = np.where(inside, bounds.above[bound], -1)
    for own in bounds.further[grants.client].T:
        np.add.at(given, own[own >= 0], counted[own >= 0])
    if (given > np.maximum(bounds.left, 0)).any():
        raise BadGrantError("more granted than a limit allows")


def coalesce(grants: Grants) -> Grants:
    """Add up grants of the same client and agent; pairs are in the order of their first grants."""
    if len(grants) < 2:
        return grants
    key = grants.pair
    order = np.argsort(key)
    ordered = key[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(begins) == len(key):
        return grants  # the usual case if whole agents are offered
    # Number the pairs by the first grant of each.
    first = np.minimum.reduceat(order, begins)
    number = np.zeros(len(key), np.int64)
    number[first] = 1
    at = np.flatnonzero(number)
    number[at] = np.arange(len(at))
    number[order] = np.repeat(number[first], np.diff(begins, append=len(key)))
    amount, tasks = _added_up(len(at), *map(loop_view, (number, grants.amount, grants.tasks)))
    return Grants(
        client=grants.client[at],
        agent=grants.agent[at],
        tasks=tasks,
        amount=amount,
        special_grant=number[grants.special_grant],
        special=grants.special,
        special_amount=grants.special_amount,
    )


@loop
def _added_up(count: int, number: Ints, amount: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    amounts = np.zeros((count, amount.shape[1]), np.int64)
    several = np.zeros(count, np.int64)
    for grant in range(len(number)):
        several[number[grant]] += tasks[grant]
        for r in range(amount.shape[1]):
            amounts[number[grant], r] += amount[grant, r]
    return amounts, several


def run_policy(state: State, snapshot: Snapshot, policy: Policy, seed: int) -> Grants:
    """Let a policy decide, and check its grants; the caller handles exceptions."""
    return decided(policy, snapshot, seed, state.eligibility.excluded, snapshot.handle)


def decided(
    policy: Policy, snapshot: Snapshot, seed: int, excluded: SharedBits, handle: Ints
) -> Grants:
    """Let a policy decide a snapshot; `excluded` and `handle` are as for `check_grants`."""
    grants = within_counts.allocate(policy, snapshot, seed)
    grants = with_backfill(policy, snapshot, grants, seed)
    grants = within_counts.without_excess(snapshot, grants)
    check_grants(excluded, handle, snapshot, grants)
    return _within_gates(snapshot, grants) if snapshot.bounds.required.any() else grants


def _within_gates(snapshot: Snapshot, grants: Grants) -> Grants:
    """Drop grants that would make a gate reduce a decision, until all decisions pass unchanged."""
    while within_gates.are_at_stake(
        snapshot.bounds, (counted := derived.counted(snapshot, grants)).sum(axis=0)
    ):
        merged, _, rows, _ = _in_order(snapshot, grants)
        place = {pair: at for at, pair in enumerate(merged.pair[rows].tolist())}
        decision = np.array([place.get(pair, -1) for pair in grants.pair.tolist()], np.int64)
        kept = within_gates.kept(snapshot.bounds, decision, grants.client, counted)
        kept &= ~gangs.in_part(snapshot, grants, kept)
        if kept.all():
            break
        # Smaller decisions may be sent in another order, so check again.
        grants = grants.some(kept)
    return grants


def _by_column(snapshot: Snapshot, grants: Grants) -> Ints:
    """Return the granted amounts by resource, over all kinds, (G, R)."""
    if not len(grants.special):
        return grants.amount
    columns = grants.amount.copy()
    at = grants.special_grant, snapshot.specials.column[grants.special]
    np.add.at(columns, at, grants.special_amount)
    return columns


def offers_of(snapshot: Snapshot, grants: Grants) -> tuple[Grants, Ints, Bools]:
    """Merge the grants of each client and agent.

    Returns `merged`: the merged grants; `amount` (G, R), in thousandths: their amounts by resource,
    over all kinds; `enough` (G,): which of them reach the client's minimum. The others are not
    offered, so their amounts stay free.
    """
    merged = coalesce(grants)
    amount = _by_column(snapshot, merged)
    own = snapshot.minimum_rows[merged.client]
    return merged, amount, reaches_own(amount, snapshot.minimum, own)


def _grouped(amounts: SparseRows, owed: Bools, gang: Ints) -> tuple[Ints, Ints]:
    """Group offers by kinds: clients with unmet guarantees first, each gang in groups of its own.

    The module's gates check offers in this order, so what other clients may have depends on what
    clients with unmet guarantees got before.

    `gang` (N,): the client of each offer to a gang; 0 for other offers.
    """
    if not gang.any() and (not owed.any() or owed.all()):
        return groups_of(amounts)
    part = np.where(owed, gang, gang + (np.iinfo(np.int64).max >> 1))
    orders, ends, rows = [], [], 0
    for each in np.unique(part):
        own = np.flatnonzero(part == each)
        order, end = groups_of(amounts.take(own))
        orders.append(own[order])
        ends.append(rows + end)
        rows += len(own)
    return np.concatenate(orders), np.concatenate(ends)


def _gangs_of(snapshot: Snapshot, client: Ints) -> Ints:
    """Return the client of each offer to a gang, (N,); 0 for other offers."""
    if snapshot.gangs is None:
        return np.zeros(len(client), np.int64)
    return np.where(np.isin(client, snapshot.gangs.client), client, 0)


def _runs(gang: Ints) -> tuple[tuple[int, int], ...]:
    """Return the first row and the number of rows of each gang, whose rows are adjacent."""
    rows = np.flatnonzero(gang)
    if not len(rows):
        return ()
    begins = rows[np.flatnonzero(np.diff(gang[rows], prepend=0))]
    return tuple((int(each), int((gang == gang[each]).sum())) for each in begins)


def _in_order(snapshot: Snapshot, grants: Grants) -> tuple[Grants, SparseRows, Ints, Ints]:
    """Merge grants into decisions, in the order in which they are sent.

    Returns `merged`: the merged grants; `amounts`: one row for each of N decisions; `rows` (N,):
    the index of each decision in `merged`; `ends`: the end of each group of decisions with the
    same kinds.
    """
    merged, _, enough = offers_of(snapshot, grants)
    amounts = rows_of(snapshot, merged)
    rows = np.flatnonzero(enough)
    if len(rows) < len(enough):
        amounts = amounts.take(rows)
    client = merged.client[rows]
    order, ends = _grouped(amounts, is_owed(snapshot.bounds, client), _gangs_of(snapshot, client))
    if len(ends) > 1:
        amounts, rows = amounts.take(order), rows[order]
    return merged, amounts, rows, ends


def reclaiming(state: State, decisions: Decisions) -> Decisions:
    """Add the requests to frameworks to leave agents to the decisions of a full cycle."""
    asked = reclaims(state, decisions.cycle)
    return replace(decisions, reclaims=asked) if len(asked.framework) else decisions


class _Charges(NamedTuple):
    """Decisions as they are charged, in the order in which they are sent.

    `client`, `agent` (N,): row and handle.
    `ends`: the end of each group of decisions with the same kinds.
    `gangs`: as in `Decisions`.
    """

    client: Ints
    agent: Ints
    amounts: SparseRows
    ends: Ints
    gangs: tuple[tuple[int, int], ...]


def _charges(snapshot: Snapshot, grants: Grants) -> _Charges:
    merged, amounts, rows, ends = _in_order(snapshot, grants)
    client, agent = merged.client[rows], snapshot.handle[merged.agent[rows]]
    return _Charges(client, agent, amounts, ends, _runs(_gangs_of(snapshot, client)))


def _decisions(state: State, charges: _Charges, cycle: int) -> Decisions:
    client, agent, amounts, ends, gangs = charges
    framework, role = state.clients.framework[client], state.clients.role[client]
    # Cut the rows at the ends of groups.
    groups = []
    for begin, end in pairwise([0, *ends.tolist()]):
        kind, amount = amounts.table(begin, end)
        own = slice(begin, end)
        groups.append(Holdings(framework[own], role[own], agent[own], kind, amount))
    return Decisions(cycle, state.open_decisions.next, tuple(groups), gangs=gangs)


def decisions_of(state: State, snapshot: Snapshot, grants: Grants, cycle: int) -> Decisions:
    """Return the decisions that grants would make, without changing the books."""
    return _decisions(state, _charges(snapshot, grants), cycle)


def commit(state: State, snapshot: Snapshot, grants: Grants, cycle: int) -> Decisions:
    """Charge grants to the books as open decisions, and return the decisions."""
    charges = _charges(snapshot, grants)
    decisions = _decisions(state, charges, cycle)
    client, agent, amounts, *_ = charges
    # Decisions stay open until their outcomes arrive.
    state.ledger.offer(client, agent, amounts, now_ms=state.now_ms)
    state.open_decisions.append(client, agent, amounts)
    take_turn(state, client)
    note_gang_offers(state, client)
    note_lent(state, snapshot, grants)
    state.clients.waited[client] = 0
    state.clients.offered_ms[client] = state.now_ms
    return decisions
