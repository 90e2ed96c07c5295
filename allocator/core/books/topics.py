"""The topics of clients: what is learnt from a client is remembered under its topic."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.demand.durations import BUCKETS, ends_within_ms
from allocator.core.demand.topics import Topic, name_topic


def topic_of(state: State, client: int) -> Topic | None:
    """The topic of a client's role and name; None if its framework is not known yet."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    role = state.roles.path[int(state.clients.role[client])]
    return None if info is None else name_topic(role, info)


def ends_within(state: State, client: int) -> int | None:
    """The time within which tasks of a client's topic ended (p95), in ms; None: it is not known."""
    topic, memory = topic_of(state, client), state.memory
    counts = topic and memory.durations.counts(state.settings, topic, memory.elapsed_ms)
    if counts is None:
        return None
    return ends_within_ms(counts, np.zeros(BUCKETS, np.int64))
