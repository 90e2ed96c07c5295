"""A link to an allocator in the same process, without wire or socket: for sweeps of many runs."""

from collections.abc import Callable

import numpy as np

from allocator import policies
from allocator.core import Allocator, Decisions, Ints, Policy, PolicySpec, Settings
from allocator.lab.links.base import Batch, Opening


class DirectLink:
    """Drives an `Allocator` as the session's loop would.

    allocator: that of the session; another one after each `open`.
    """

    def __init__(self, build_policy: Callable[[PolicySpec], Policy], settings: Settings) -> None:
        """Take what operators set; it outlives sessions."""
        self._build = build_policy
        self._settings = settings
        self.allocator = self._fresh()

    def open(self, opening: Opening) -> None:
        """Begin with a fresh allocator, told all there is; what was learnt stays."""
        before = self.allocator
        self.allocator = self._fresh()
        self.allocator.remember(before)
        self.allocator.step(opening.options)
        self.allocator.advance(opening.clock_ms)
        for event in opening.state(self.allocator.state.session_limits.kinds):
            self.allocator.step(event)

    def send(self, batch: Batch) -> None:
        self.allocator.advance(batch.clock_ms)
        for message in batch.messages:
            self.allocator.step(message)

    def settle(self) -> None:
        """Nothing is ever under way."""

    def exchange(self, batch: Batch) -> Decisions:
        self.send(batch)
        agents: Ints | None = np.array(batch.agents, np.int64) if batch.agents else None
        return self.allocator.allocate(batch.clock_ms, agents)

    def close(self) -> None:
        """Keep what operators set."""
        self._settings = self.allocator.settings

    def _fresh(self) -> Allocator:
        fallback = policies.fallback()
        return Allocator(self._build, self._settings, fallback=fallback, plans=True)
