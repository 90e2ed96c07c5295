"""The interface between the emulated master and an allocator, and the in-process link."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from allocator import policies
from allocator.core import Allocator, Decisions, Event, Ints, Options, Policy, PolicySpec, Settings
from allocator.wire import ModuleFigures


class LinkDownError(ConnectionError):
    """The session has ended; a new one begins with a snapshot."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a session: the master's options, then the whole state.

    state: returns the events that build up the ledger's state, given the number of kinds that the
        allocator distinguishes (0: not stated).
    sequence: number of the last batch that the state includes.
    """

    options: Options
    state: Callable[[int], tuple[Event, ...]]
    sequence: int
    clock_ms: int
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Events, and the agents to decide about after them.

    sequence: one more than that of the previous batch.
    agents: the agents of the cycle, if one is run; none means all.
    figures: state of the master's module.
    """

    sequence: int
    clock_ms: int
    messages: list[Event]
    agents: tuple[int, ...] = ()
    figures: ModuleFigures | None = None


class Link(Protocol):
    """A session with an allocator."""

    def open(self, opening: Opening) -> None:
        """Begin a new session; raises LinkDownError if that fails."""

    def send(self, batch: Batch) -> None:
        """Send events without a cycle, and do not wait."""

    def settle(self) -> None:
        """Wait until everything sent is applied."""

    def exchange(self, batch: Batch) -> Decisions:
        """Send events with a cycle, and wait for the decisions."""

    def close(self) -> None:
        """End the session."""


# An allocator in the same process, without wire or socket: for sweeps of many runs.


class PolicyFailedError(RuntimeError):
    """The policy under test failed: the substitute's decisions say nothing about it."""

    def __init__(self, name: str, failure: str) -> None:
        super().__init__(name, failure)
        self.name = name
        self.failure = failure

    def __str__(self) -> str:
        return f"the policy {self.name!r} failed: {self.failure}"


class DirectLink:
    """Drives an `Allocator` as the server's session loop does.

    `exchange` raises PolicyFailedError if the policy fails.

    allocator: the current session's; each `open` makes a new one.
    """

    def __init__(self, build_policy: Callable[[PolicySpec], Policy], settings: Settings) -> None:
        """Take the operators' settings, which outlive sessions."""
        self._build = build_policy
        self._settings = settings
        self.allocator = self._fresh()

    def open(self, opening: Opening) -> None:
        """Give a new allocator the whole state; demands learned by the previous one are kept."""
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
        """Return at once: nothing is ever in flight."""

    def exchange(self, batch: Batch) -> Decisions:
        self.send(batch)
        agents: Ints | None = np.array(batch.agents, np.int64) if batch.agents else None
        decisions = self.allocator.allocate(batch.clock_ms, agents)
        if failure := self.allocator.last_cycle.policy_error:
            raise PolicyFailedError(self._settings.policy.name, failure)
        return decisions

    def close(self) -> None:
        """Keep the operators' settings."""
        self._settings = self.allocator.settings

    def _fresh(self) -> Allocator:
        substitute = policies.substitute()
        return Allocator(self._build, self._settings, substitute=substitute, plans=True)
