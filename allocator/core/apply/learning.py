"""Learns the size of a framework's tasks, and how long they run, from its own behaviour."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from allocator.core.apply.clients import refresh_demands
from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.demand.demand_memory import common_unit
from allocator.core.demand.durations import bucket_of
from allocator.core.demand.topics import Topic, wide_topics
from allocator.core.events import Holdings
from allocator.core.numba.array_structures import some
from allocator.core.snapshot import Bools, Floats, Ints


def learn_from_acceptances(state: State, client: Ints, holdings: Holdings, here: Bools) -> None:
    """Learn the demands of clients from the parts of offers that they accept.

    `client` (N,): row; 0: unknown.
    `holdings`: the accepted resources, N rows.
    `here` (N,): whether the client already used something on the agent.
    """
    taken = Taken.of(state, holdings)
    for row in np.flatnonzero((client > 0) & taken.something).tolist():
        learn_from_acceptance(state, int(client[row]), taken, row, here=bool(here[row]))


class Taken(NamedTuple):
    """The accepted amounts of each row (N), by resource, without shared volumes.

    `amounts` (N, R), in thousandths; `lists`: the same as lists.
    `total` (R,): the cluster's capacity, at least 1.
    `share` (N,): the dominant share of the row's amounts in `total`.
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
    """Learn from one row with at least one amount above 0."""
    clients, settings = state.clients, state.settings
    amounts = taken.lists[row]
    hasty = bool(clients.declines[client] >= settings.probe_after)
    clients.declines[client] = 0
    clients.accepts[client] += 1
    accepts, changed = int(clients.accepts[client]), False
    if accepts <= settings.learn_after:
        changed = _judge_prior(state, client, taken.amounts[row], declined=hasty)
    # Equal amounts do not change the learnt demand, but their number decides when it is used.
    if clients.learned[client].tolist() != amounts:
        share_and_total = taken.share[row], taken.total
        changed |= _compare(state, client, taken.amounts[row], share_and_total, here=here)
    _teach(state, client, amounts)
    if changed or accepts == settings.learn_after:
        refresh_demands(state, [client])


def _compare(
    state: State, client: int, taken: Ints, share_and_total: tuple[float, Ints], *, here: bool
) -> bool:
    """Learn from amounts that differ from the learnt demand; return whether that changes it."""
    clients, (share, total) = state.clients, share_and_total
    known = clients.learned[client]
    unit = common_unit(known.tolist(), taken.tolist())
    if here and ((taken == 0) & (known > 0)).any():
        # The client's executor runs there already, so its tasks take less than its first one.
        changed = not clients.mixed[client]
        clients.mixed[client] = True
        return changed
    if unit is not None:
        # Several tasks of one size were accepted; learn the size of one.
        changed = unit != tuple(known.tolist())
        clients.learned[client] = unit
        return changed
    if not known.any() or share < (known / total).max():
        clients.learned[client] = taken
        return True
    return False


def _judge_prior(state: State, client: int, taken: Ints, *, declined: bool) -> bool:
    """Keep or drop a client's prior after an acceptance; return whether its demand changes.

    `taken` (R,): the accepted amounts, in thousandths.
    `declined`: whether the client declined many offers before. If so, the prior is too small even
        if `taken` is a multiple of it.
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
    """Learn the size of one task from tasks that ended.

    An acceptance may have been for several tasks. If amounts of the same ratio but smaller come
    back, these are the size of one task. Amounts of another ratio teach nothing, because an
    executor and its tasks end separately.

    `client` (N,): row; 0: unknown.
    `holdings`: the released amounts, N rows; each is one task, or an executor.
    `ended` (N,): whether the amounts were in use, rather than only on offer.
    """
    clients = state.clients
    rows = np.flatnonzero(ended)  # usually few
    rows = rows[clients.learned[client[rows]].any(axis=1)]
    if not len(rows):
        return
    every = zip(client[rows].tolist(), _by_column(state, holdings)[rows].tolist(), strict=True)
    different = Counter((one, *amounts) for one, amounts in every)
    for (one, *amounts), times in different.items():
        learn_from_end(state, one, amounts, times=times)


def learn_from_end(state: State, client: int, amounts: list[int], *, times: int = 1) -> None:
    """Learn from `times` ended tasks of a client that have equal amounts."""
    known = state.clients.learned[client].tolist()
    # Usually a task is as large as the learnt demand.
    unit = tuple(known) if known == amounts and any(known) else common_unit(known, amounts)
    if unit is None:
        return
    # A task larger than the remembered demand shows that this demand is too small.
    _teach(state, client, amounts, times=times, one_task=True)
    if unit == tuple(amounts) != tuple(known):
        state.clients.learned[client] = amounts
        refresh_demands(state, [client])


def _teach(
    state: State, client: int, amounts: list[int], *, times: int = 1, one_task: bool = False
) -> None:
    """Remember amounts for frameworks of the same name that subscribe later."""
    topic = topic_of(state, client)
    if topic is not None:
        every = zip(state.space.names, amounts, strict=True)
        named = {name: amount for name, amount in every if amount}
        state.memory.teach(state.settings, topic, named, times=times, one_task=one_task)


def teach_others(state: State, client: int) -> None:
    """When a framework leaves, remember its demand for frameworks of the same principal or user."""
    clients = state.clients
    info = state.frameworks.info[int(clients.framework[client])]
    learned = state.space.named(clients.learned[client])
    if info is not None and learned:
        for topic in wide_topics(state.roles.path[int(clients.role[client])], info):
            state.memory.teach(state.settings, topic, learned)


def learn_durations(state: State, client: Ints, began_ms: Ints, ended: Bools) -> None:
    """Learn from rows (N,) of released amounts.

    `client` (N,): row; 0: unknown.
    `began_ms` (N,): since when the client has used the agent without a break; -1: unknown.
    `ended` (N,): whether the amounts were in use, rather than only on offer.
    """
    rows = np.flatnonzero(ended & (client > 0) & (began_ms >= 0))
    if not len(rows) or not state.settings.priors_max:
        return
    # Clients of one topic learn together. Topics learn in the order of their last ended tasks.
    topics: dict[int, Topic | None] = {}
    lesson: dict[Topic, dict[int, int]] = {}
    last: dict[Topic, int] = {}
    buckets = bucket_of(state.now_ms - began_ms[rows])
    pairs = zip(client[rows].tolist(), buckets.tolist(), strict=True)
    for row, (one, bucket) in enumerate(pairs):
        if one not in topics:
            topics[one] = topic_of(state, one)
        topic = topics[one]
        if topic is None:
            continue
        if topic not in lesson:
            lesson[topic] = {}
        ends = lesson[topic]
        ends[bucket] = ends[bucket] + 1 if bucket in ends else 1
        last[topic] = row
    memory = state.memory
    for topic in sorted(lesson, key=last.__getitem__):
        memory.durations.teach(state.settings, topic, lesson[topic], memory.elapsed_ms)


def _by_column(state: State, holdings: Holdings) -> Ints:
    """Add up the amounts of each row by resource (N, R), over all kinds but shared volumes."""
    space = state.space
    found = np.zeros((len(holdings.framework), len(space.names)), np.int64)
    for place, kind in enumerate(holdings.kind.tolist()):
        if not space.shared_kind[kind]:
            found[:, space.column_of_kind[kind]] += holdings.amount[:, place]
    return found
