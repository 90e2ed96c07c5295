"""Learning a framework's demand from acceptances, declines and ended tasks."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from allocator.core.apply.clients import refresh_demands
from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.demand.demand_memory import common_unit
from allocator.core.events import Holdings
from allocator.core.numba.array_structures import some
from allocator.core.snapshot import Bools, Floats, Ints


def learn_from_acceptances(state: State, client: Ints, holdings: Holdings, here: Bools) -> None:
    """Learn the demand of clients from the parts of offers that they accept.

    `client` (N,): 0 if it is unknown.
    `holdings`: the accepted resources, N rows.
    `here` (N,): whether the client uses something on the agent already.
    """
    taken = Taken.of(state, holdings)
    for row in np.flatnonzero((client > 0) & taken.something).tolist():
        learn_from_acceptance(state, int(client[row]), taken, row, here=bool(here[row]))


class Taken(NamedTuple):
    """What was accepted in each row (N), by resource, without shared volumes.

    `amounts` (N, R), in thousandths; `lists`: the same as lists.
    `total` (R,): what the cluster has, at least 1.
    `share` (N,): dominant share of that.
    `something` (N,): whether any amount is more than 0.
    """

    amounts: Ints
    lists: list[list[int]]
    total: Ints
    share: Floats
    something: Bools

    @classmethod
    def of(cls, state: State, holdings: Holdings) -> "Taken":
        amounts = _by_column(state, holdings)
        total = np.maximum(state.total_by_column(), 1)
        share = (amounts / total).max(axis=1, initial=0.0)
        return cls(amounts, amounts.tolist(), total, share, some(amounts))


def learn_from_acceptance(state: State, client: int, taken: Taken, row: int, *, here: bool) -> None:
    """Learn from one row, in which something was accepted."""
    clients, settings = state.clients, state.settings
    amounts = taken.lists[row]
    hasty = bool(clients.declines[client] >= settings.probe_after)
    clients.declines[client] = 0
    clients.accepts[client] += 1
    accepts, changed = int(clients.accepts[client]), False
    if accepts <= settings.learn_after:
        changed = _judge_prior(state, client, taken.amounts[row], declined=hasty)
    # The same amounts change nothing, unless what is learned counts from this acceptance on.
    if clients.learned[client].tolist() != amounts:
        share_and_total = taken.share[row], taken.total
        changed |= _compare(state, client, taken.amounts[row], share_and_total, here=here)
    _teach(state, client, amounts)
    if changed or accepts == settings.learn_after:
        refresh_demands(state, [client])


def _compare(
    state: State, client: int, taken: Ints, share_and_total: tuple[float, Ints], *, here: bool
) -> bool:
    """Learn from an acceptance unlike the learned demand; True if that changes it."""
    clients, (share, total) = state.clients, share_and_total
    known = clients.learned[client]
    unit = common_unit(known.tolist(), taken.tolist())
    if here and ((taken == 0) & (known > 0)).any():
        # Its executor is there already, and its tasks take no more of some resource.
        changed = not clients.mixed[client]
        clients.mixed[client] = True
        return changed
    if unit is not None:
        # Several tasks of one size: what is learned is the size.
        changed = unit != tuple(known.tolist())
        clients.learned[client] = unit
        return changed
    if not known.any() or share < (known / total).max():
        clients.learned[client] = taken
        return True
    return False


def _judge_prior(state: State, client: int, taken: Ints, *, declined: bool) -> bool:
    """Keep or drop a client's prior after an acceptance; True if that changes something.

    `taken` (R,), in thousandths.
    `declined`: whether it declined many offers before. Then the prior is too small, though what was
        taken may be a multiple of it.
    """
    clients, memory = state.clients, state.memory
    prior = clients.prior[client]
    if not prior.any():
        return False
    first = bool(clients.by_prior[client])
    unit = common_unit(prior.tolist(), taken.tolist())
    if unit is None or (declined and (taken != prior).any()):
        prior[:] = 0
        memory.refuted += first
        return True
    if first:
        clients.learned[client] = unit
        memory.confirmed += 1
    return first


def learn_from_ends(state: State, client: Ints, holdings: Holdings, ended: Bools) -> None:
    """Learn from tasks that ended, each in a row of its own, how large a single one is.

    What was accepted at once may have been several tasks. A smaller task that ends, its amounts in
    the same ratio, shows that. Other ratios show nothing: an executor and its tasks end one by one.

    `client` (N,): 0 if it is unknown.
    `holdings`: what came back, N rows.
    `ended` (N,): which of them were in use.
    """
    clients = state.clients
    rows = np.flatnonzero(ended)  # mostly few
    rows = rows[clients.learned[client[rows]].any(axis=1)]
    if not len(rows):
        return
    every = zip(client[rows].tolist(), _by_column(state, holdings)[rows].tolist(), strict=True)
    different = Counter((one, *amounts) for one, amounts in every)
    for (one, *amounts), times in different.items():
        learn_from_end(state, one, amounts, times=times)


def learn_from_end(state: State, client: int, amounts: list[int], *, times: int = 1) -> None:
    """Learn from a number of equal tasks of a client that ended."""
    known = state.clients.learned[client].tolist()
    # Mostly it is as large as what is known, which is its own unit.
    unit = tuple(known) if known == amounts and any(known) else common_unit(known, amounts)
    if unit is None:
        return
    # A task larger than what is remembered says that this is too little.
    _teach(state, client, amounts, times=times, one_task=True)
    if unit == tuple(amounts) != tuple(known):
        state.clients.learned[client] = amounts
        refresh_demands(state, [client])


def _teach(
    state: State, client: int, amounts: list[int], *, times: int = 1, one_task: bool = False
) -> None:
    """Let the frameworks of the same name that come later know."""
    topic = topic_of(state, client)
    if topic is not None:
        every = zip(state.space.names, amounts, strict=True)
        named = {name: amount for name, amount in every if amount}
        state.memory.teach(state.settings, topic, named, times=times, one_task=one_task)


def _by_column(state: State, holdings: Holdings) -> Ints:
    """Amounts of rows by resource, whatever the kinds, (N, R), without shared volumes."""
    wide = np.zeros((len(holdings.framework), len(state.space)), np.int64)
    wide[:, holdings.kind] = holdings.amount
    if state.space.shared_kind.any():
        wide[:, state.space.shared_kind[: wide.shape[1]]] = 0
    return state.space.by_column(wide)
