"""A set of agents that saves memory: a Python set if it has few members, else an array of flags."""

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from allocator.core.snapshot import Ints

_MEMBER_BYTES = 64
"""Approximate memory of one member of a Python set; the array takes one byte per possible agent."""


class AgentSet(Collection[int]):
    """A set of agents, by row, in no particular order."""

    __slots__ = ("_count", "_few", "_flags")

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._flags: bytearray | None = None
        self._count = 0

    def update(self, agents: Iterable[int], rows: int) -> None:
        """Add agents; `rows` is the number of rows of the table of agents."""
        if self._flags is None:
            self._few.update(agents)
            self._count = len(self._few)
            if self._count * _MEMBER_BYTES <= rows:
                return
            self._flags, agents, self._few, self._count = bytearray(rows), self._few, set(), 0
        if rows > len(self._flags):
            self._flags.extend(bytes(rows - len(self._flags)))
        for agent in agents:
            self._count += not self._flags[agent]
            self._flags[agent] = 1

    def discard(self, agent: int) -> None:
        if self._flags is None:
            self._few.discard(agent)
            self._count = len(self._few)
        elif agent in self:
            self._flags[agent] = 0
            self._count -= 1

    def rows(self) -> Ints:
        if self._flags is None:
            return np.fromiter(self._few, np.int64)
        return np.flatnonzero(np.frombuffer(self._flags, np.uint8))

    def __contains__(self, agent: object) -> bool:
        if self._flags is None:
            return agent in self._few
        return isinstance(agent, int) and agent < len(self._flags) and bool(self._flags[agent])

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows().tolist())

    def __len__(self) -> int:
        return self._count
