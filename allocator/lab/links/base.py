"""What stands between the emulated master and whatever decides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from allocator.core import Decisions, Event, Options
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
