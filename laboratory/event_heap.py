"""A queue of future actions, in simulated milliseconds.

Actions due at the same moment run by priority, then in the order of scheduling, so that a run
depends on its seed alone.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from itertools import count

Action = Callable[[], object]


class Priority(IntEnum):
    """Order of actions due at the same moment."""

    FACT = 0
    ANSWER = 1
    CYCLE = 2
    OBSERVE = 3


class EventHeap:
    """Simulated time and the actions scheduled in it."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._heap: list[tuple[int, int, int, Action]] = []
        self._counter = count()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_ms(self) -> int | None:
        """Time of the next action; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def at(self, time_ms: int, action: Action, priority: Priority = Priority.FACT) -> None:
        """Schedule an action; a time in the past means now."""
        when = max(time_ms, self.now_ms)
        heapq.heappush(self._heap, (when, priority, next(self._counter), action))

    def after(self, delay_ms: int, action: Action, priority: Priority = Priority.FACT) -> None:
        self.at(self.now_ms + delay_ms, action, priority)

    def step(self) -> bool:
        """Run the next action; False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, _, action = heapq.heappop(self._heap)
        action()
        return True
