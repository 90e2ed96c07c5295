"""Learns how long a framework's tasks run, from amounts that its clients release after use."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.demand.durations import bucket_of
from allocator.core.demand.topics import Topic
from allocator.core.snapshot import Bools, Ints


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
