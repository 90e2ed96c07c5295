"""Learning how long a framework's tasks run from what comes back from use."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.books.topics import topic_of
from allocator.core.demand.durations import bucket_of
from allocator.core.snapshot import Bools, Ints


def learn_durations(state: State, client: Ints, began_ms: Ints, ended: Bools) -> None:
    """Learn from amounts that came back.

    `client` (N,): 0 if it is unknown.
    `began_ms` (N,): since when the client had used something on the agent; -1 if that is not known.
    `ended` (N,): which of them were in use.
    """
    rows = np.flatnonzero(ended & (client > 0) & (began_ms >= 0))
    if not len(rows) or not state.settings.priors_max:
        return
    lesson: dict[int, dict[int, int]] = {}
    buckets = bucket_of(state.now_ms - began_ms[rows])
    for one, bucket in zip(client[rows].tolist(), buckets.tolist(), strict=True):
        ends = lesson.pop(one, {})
        ends[bucket] = ends.get(bucket, 0) + 1
        lesson[one] = ends  # who ended something last comes last
    memory = state.memory
    for one, ends in lesson.items():
        topic = topic_of(state, one)
        if topic is not None:
            memory.durations.teach(state.settings, topic, ends, memory.elapsed_ms)
