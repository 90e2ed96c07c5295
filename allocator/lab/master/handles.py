"""Small numbers for ids, as the module binds them: the lowest free one first."""

import heapq


class Handles:
    """Free and taken handles of one sort."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self._free: list[int] = []

    def take(self) -> int:
        """The lowest free handle."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, handle: int) -> None:
        """Let the handle be bound again."""
        heapq.heappush(self._free, handle)
