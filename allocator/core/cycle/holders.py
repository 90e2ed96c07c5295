"""All holdings, and when each is likely to end, by learnt durations."""

from typing import NamedTuple

import numpy as np

from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.demand.durations import BUCKETS, bucket_of, ends_after_ms, ends_within_ms
from allocator.core.demand.topics import Topic
from allocator.core.snapshot import Bools, Ints

NEVER = np.iinfo(np.int64).max


class Holders(NamedTuple):
    """N holdings.

    `agent`, `client` (n,): handle and row.
    `amount` (n, R), in thousandths.
    `middle_ms`, `late_ms` (n,): when each ends, by the median and the p95 of learnt durations,
        given how long it has run; in ms of the master's clock. `NEVER`: unknown.
    """

    agent: Ints
    client: Ints
    amount: Ints
    middle_ms: Ints
    late_ms: Ints

    def some(self, rows: Ints | Bools) -> "Holders":
        return Holders._make(column[rows] for column in self)


class Outlook(NamedTuple):
    """All holdings, and how long tasks of each topic run.

    `topic`: topics of clients that hold something or want offers.
    `within_ms`: the p95 of durations by topic, in ms.
    """

    holders: Holders
    topic: dict[int, Topic]
    within_ms: dict[Topic, int]

    def ends_within_ms(self, clients: Ints) -> Ints:
        """Return the p95 of durations of clients (n,); `NEVER`: unknown."""
        known = {client: self.within_ms.get(topic) for client, topic in self.topic.items()}
        return np.array([known.get(each) or NEVER for each in clients.tolist()], np.int64)


def look(state: State, clients: Ints) -> Outlook:
    """Collect all holdings, and the durations of their clients and of `clients` (N,)."""
    books, rows = state.ledger.books, state.ledger.rows()
    agent, client = books.agent[rows], books.client[rows]
    used = books.kinds_used[rows] > 0
    began_ms = np.where(used, books.used_ms[rows], state.now_ms)
    bucket = bucket_of(state.now_ms - began_ms)
    holding = np.flatnonzero(np.bincount(client))
    topic = _topics(state, np.union1d(holding, clients))
    number = {each: at for at, each in enumerate(dict.fromkeys(topic.values()))}
    of_client = np.full(len(state.clients.framework), len(number))  # the last row: unknown
    of_client[list(topic)] = [number[each] for each in topic.values()]
    row = of_client[client]
    cell, size = row * BUCKETS + bucket, (len(number) + 1) * BUCKETS
    running = np.bincount(cell[used & (began_ms >= 0)], minlength=size).reshape(-1, BUCKETS)
    # By topic and bucket: how long tasks run after the bucket's time.
    middle, late = np.full((2, len(number) + 1, BUCKETS), -1)
    within_ms = dict[Topic, int]()
    memory = state.memory
    for each, at in number.items():
        counts = memory.durations.counts(state.settings, each, memory.elapsed_ms)
        if counts is None:
            continue
        middle[at], late[at] = ends_after_ms(counts, 50), ends_after_ms(counts, 95, up=True)
        within = ends_within_ms(counts, running[at])
        if within is not None:
            within_ms[each] = within
    known = (began_ms >= 0) & (middle[row, bucket] >= 0)
    ends = (
        np.where(known, np.maximum(began_ms + table[row, bucket], state.now_ms), NEVER)
        for table in (middle, late)
    )
    amount = state.space.by_column(books.held, rows)
    return Outlook(Holders(agent, client, amount, *ends), topic, within_ms)


def _topics(state: State, clients: Ints) -> dict[int, Topic]:
    every = ((each, topic_of(state, each)) for each in clients.tolist())
    return {each: topic for each, topic in every if topic is not None}
