"""The master's end of the session: batches out, decisions in, a snapshot after each break."""

import time
from collections.abc import Callable

from allocator.core import Decisions
from allocator.lab.links.base import Batch, Link, LinkDownError, Opening
from allocator.lab.master.outbox import Outbox
from allocator.lab.reports.run_record import Record
from allocator.wire import ModuleFigures

PAUSE_S = 0.1

FIGURES_MS = 5000
"""How long it takes at least until the module says again how it stands."""


class Session:
    """One module's sessions, one after the other.

    opening: makes the opening of a session, from the sequence number that it is to begin with.
    patience_s: how long to go on trying to open a session, in wall time.
    """

    def __init__(
        self,
        link: Link,
        outbox: Outbox,
        record: Record,
        opening: Callable[[int], Opening],
        patience_s: float = 30.0,
    ) -> None:
        self.sequence = 0
        self.number = 0
        self._told_ms = -FIGURES_MS
        self._link = link
        self._outbox = outbox
        self._record = record
        self._opening = opening
        self.patience_s = patience_s

    def open(self) -> None:
        """Begin a session, trying until patience ends. What is queued is part of the snapshot."""
        deadline_s = time.monotonic() + self.patience_s
        # What is queued is in the books already, and so in the snapshot.
        self._outbox.drain()
        self.number += 1
        while True:
            try:
                self._link.open(self._opening(self.sequence))
            except LinkDownError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def send(self, clock_ms: int) -> None:
        """Send what is queued, and do not wait; where the session breaks, begin another."""
        batch = self._batch(clock_ms)
        try:
            self._link.send(batch)
        except LinkDownError:
            self._begin_again()

    def settle(self, clock_ms: int) -> None:
        """Send what is queued, and wait until all is applied."""
        self.send(clock_ms)
        try:
            self._link.settle()
        except LinkDownError:
            self._begin_again()

    def exchange(self, clock_ms: int, agents: tuple[int, ...] = ()) -> Decisions:
        """Send what is queued and run a cycle; where the session breaks, begin another.

        agents: which agents the cycle is about; empty: all.
        """
        while True:
            batch = self._batch(clock_ms, agents)
            begin_s = time.perf_counter()
            try:
                decisions = self._link.exchange(batch)
            except LinkDownError:
                # What the batch said is part of the snapshot; ask again for the cycle alone.
                self._begin_again()
                continue
            self._record.latency_s.append(time.perf_counter() - begin_s)
            return decisions

    def _batch(self, clock_ms: int, agents: tuple[int, ...] = ()) -> Batch:
        messages = self._outbox.drain()
        self.sequence += 1
        self._record.batches += 1
        self._record.events += len(messages)
        return Batch(self.sequence, clock_ms, messages, agents, self._figures(clock_ms))

    def _figures(self, clock_ms: int) -> ModuleFigures | None:
        """Say now and then how the module stands."""
        if clock_ms < self._told_ms + FIGURES_MS:
            return None
        self._told_ms = clock_ms
        record = self._record
        return ModuleFigures(
            cycles=len(record.latency_s),
            fallback_offers=record.fallbacks,
            attempts=self.number,
            sessions=self.number,
            resyncs=record.resyncs,
            outcomes={reason.name.lower(): n for reason, n in record.outcomes.items()},
        )

    def _begin_again(self) -> None:
        self._record.resyncs += 1
        self.open()

    def close(self) -> None:
        """End the session."""
        self._link.close()
