"""What stands between the emulated master and whatever decides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from allocator import policies
from allocator.core import Allocator, Decisions, Event, Ints, Options, Policy, PolicySpec, Settings
from allocator.wire import ModuleFigures


class LinkDownError(ConnectionError):
    """The session is over; a new one begins with a snapshot."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session begins: the master's options, then the whole state.

    state: gives the events from nothing to what the ledger holds, of the number of kinds that are
        kept apart (0: the other side does not say).
    sequence: number of the last batch that the state includes.
    """

    options: Options
    state: Callable[[int], tuple[Event, ...]]
    sequence: int
    clock_ms: int
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Events, and what to decide about after them.

    sequence: one more than that of the batch before.
    agents: where a cycle is run: which agents it is about; none named: all.
    figures: how the master's module stands.
    """

    sequence: int
    clock_ms: int
    messages: list[Event]
    agents: tuple[int, ...] = ()
    figures: ModuleFigures | None = None


class Link(Protocol):
    """A session with something that decides."""

    def open(self, opening: Opening) -> None:
        """Begin a new session; `LinkDownError` where that fails."""

    def send(self, batch: Batch) -> None:
        """Tell it what happened, without a cycle, and do not wait."""

    def settle(self) -> None:
        """Wait until all that was told is applied."""

    def exchange(self, batch: Batch) -> Decisions:
        """Tell it what happened, and wait for what it decides."""

    def close(self) -> None:
        """End the session."""


# To an allocator in the same process, without wire or socket: for sweeps of many runs.


class PolicyFailedError(RuntimeError):
    """The policy that is played failed: what the substitute decides says nothing of it."""

    def __init__(self, name: str, failure: str) -> None:
        super().__init__(name, failure)
        self.name = name
        self.failure = failure

    def __str__(self) -> str:
        return f"the policy {self.name!r} failed: {self.failure}"


class DirectLink:
    """Drives an `Allocator` as the session's loop would.

    `exchange` raises a PolicyFailedError where the policy fails.

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
        decisions = self.allocator.allocate(batch.clock_ms, agents)
        if failure := self.allocator.last_cycle.policy_error:
            raise PolicyFailedError(self._settings.policy.name, failure)
        return decisions

    def close(self) -> None:
        """Keep what operators set."""
        self._settings = self.allocator.settings

    def _fresh(self) -> Allocator:
        substitute = policies.substitute()
        return Allocator(self._build, self._settings, substitute=substitute, plans=True)
