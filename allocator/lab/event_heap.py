"""The event heap: what happens when, in simulated milliseconds.

Actions at the same moment run in the order of their priority, then in the order in which they were
planned; so a seed fixes the whole run.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from itertools import count

Action = Callable[[], object]


class Priority(IntEnum):
    """What comes first at the same moment."""

    FACT = 0
    ANSWER = 1
    CYCLE = 2
    OBSERVE = 3


class EventHeap:
    """Simulated time, and what is planned in it."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._heap: list[tuple[int, int, int, Action]] = []
        self._counter = count()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_ms(self) -> int | None:
        """When the next action is; None where there is none."""
        return self._heap[0][0] if self._heap else None

    def at(self, time_ms: int, action: Action, priority: Priority = Priority.FACT) -> None:
        """Plan an action; what is planned for the past happens now."""
        when = max(time_ms, self.now_ms)
        heapq.heappush(self._heap, (when, priority, next(self._counter), action))

    def after(self, delay_ms: int, action: Action, priority: Priority = Priority.FACT) -> None:
        self.at(self.now_ms + delay_ms, action, priority)

    def step(self) -> bool:
        """Do the next action; False where there is none."""
        if not self._heap:
            return False
        self.now_ms, _, _, action = heapq.heappop(self._heap)
        action()
        return True
