"""The topic of a client: the name under which demands and durations are remembered."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.demand.durations import BUCKETS, ends_within_ms
from allocator.core.demand.topics import Topic, name_topic
from allocator.core.snapshot import Ints


def topic_of(state: State, client: int) -> Topic | None:
    """Return the topic of a client; None if its framework is unknown."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    role = state.roles.path[int(state.clients.role[client])]
    return None if info is None else name_topic(role, info)


def ends_within(state: State, client: int) -> int | None:
    """Return the p95 of the durations of tasks in a client's topic, in ms; None: unknown."""
    topic, memory = topic_of(state, client), state.memory
    counts = topic and memory.durations.counts(state.settings, topic, memory.elapsed_ms)
    if counts is None:
        return None
    return ends_within_ms(counts, np.zeros(BUCKETS, np.int64))


def learnt(state: State, clients: Ints) -> tuple[Ints, Ints]:
    """Return the learnt durations of tasks of clients (n,).

    Returns (C,): the row of each client's topic, -1: unknown; (T, BUCKETS): the number of ended
    tasks of each topic, by duration.
    """
    row = np.full(len(state.clients.framework), -1)
    found, number, memory = list[Ints](), dict[Topic, int](), state.memory
    for client in clients.tolist():
        topic = topic_of(state, client)
        if topic is not None and topic not in number:
            counts = memory.durations.counts(state.settings, topic, memory.elapsed_ms)
            number[topic] = -1 if counts is None else len(found)
            found += [] if counts is None else [counts]
        row[client] = -1 if topic is None else number[topic]
    return row, np.array(found, np.int64).reshape(-1, BUCKETS)
