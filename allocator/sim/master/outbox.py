"""Events on their way to the sidecar, in the order in which Mesos causes them.

Neighbours of the same sort become one columnar event. Order is never changed.
"""

import numpy as np

from allocator.core import Event, Holdings, Ints, Release, SetPaused, Transition
from allocator.sim.master.gates import Reason, Verdict
from allocator.sim.master.ledger_rows import Amount, padded
from allocator.wire import Outcomes

Message = Event | Outcomes

Row = tuple[int, int, int, Amount]
"""Framework, role, agent, amount."""


class Outbox:
    """What the sidecar has not been told yet.

    Parameters
    ----------
    kinds : int
        The first of them are columns of every event; of the others those that occur.
    """

    def __init__(self, kinds: int) -> None:
        self._kinds = kinds
        self._messages: list[Message] = []
        self._releases: list[tuple[Row, int, bool]] = []
        self._transitions: list[Row] = []
        self._verdicts: list[Verdict] = []
        self._first_decision = 0

    def __len__(self) -> int:
        pending = len(self._releases) + len(self._transitions) + len(self._verdicts)
        return len(self._messages) + pending

    def add(self, event: Event) -> None:
        """Queue an event that stands alone."""
        self._close()
        self._messages.append(event)

    def pause(self) -> None:
        """Open the bracket of an accept; two brackets in a row become one."""
        self._close()
        if self._messages and self._messages[-1] == SetPaused(paused=False):
            self._messages.pop()
        else:
            self._messages.append(SetPaused(paused=True))

    def resume(self, *, held: bool = False) -> None:
        """Close the bracket; `held`: nothing may be offered all the same."""
        self.add(SetPaused(paused=held))

    def release(self, row: Row, *, refuse_ms: int = -1, used: bool = False) -> None:
        """Queue resources that come back."""
        if self._transitions or self._verdicts:
            self._close()
        self._releases.append((row, refuse_ms, used))

    def transition(self, row: Row) -> None:
        """Queue offered resources that come into use."""
        if self._releases or self._verdicts:
            self._close()
        self._transitions.append(row)

    def outcome(self, decision: int, verdict: Verdict) -> None:
        """Queue what became of a decision."""
        following = self._first_decision + len(self._verdicts)
        if self._releases or self._transitions or decision != following:
            self._close()
        if not self._verdicts:
            self._first_decision = decision
        self._verdicts.append(verdict)

    def drain(self) -> list[Message]:
        """Hand out everything queued, and forget it."""
        self._close()
        messages, self._messages = self._messages, []
        return messages

    def _close(self) -> None:
        """Turn the open column into an event."""
        if self._releases:
            rows, refuse_ms, used = zip(*self._releases, strict=True)
            self._messages.append(
                Release(
                    self._holdings(list(rows)),
                    np.array(refuse_ms, np.int64),
                    np.array(used, np.bool_),
                )
            )
            self._releases = []
        if self._transitions:
            self._messages.append(Transition(self._holdings(self._transitions)))
            self._transitions = []
        if self._verdicts:
            reasons = np.array([verdict.reason for verdict in self._verdicts], np.int64)
            partial = [v.amount for v in self._verdicts if v.reason == Reason.PARTIAL]
            kinds, amounts = columns(partial, self._kinds)
            self._messages.append(Outcomes(self._first_decision, reasons, kinds, amounts))
            self._verdicts = []

    def _holdings(self, rows: list[Row]) -> Holdings:
        return holdings(rows, self._kinds)


def holdings(rows: list[Row], kinds: int) -> Holdings:
    """Rows as columns: those of the first so many kinds, and of others that occur."""
    place = np.array([row[:3] for row in rows], np.int64).reshape(len(rows), 3)
    return Holdings(
        place[:, 0], place[:, 1], place[:, 2], *columns([row[3] for row in rows], kinds)
    )


def columns(amounts: list[Amount], kinds: int) -> tuple[Ints, Ints]:
    """Kinds (K,) and amounts (N, K): of the first so many kinds, and of others that occur."""
    width = max(kinds, *map(len, amounts), 0)
    table = np.array([padded(amount, width) for amount in amounts], np.int64)
    table = table.reshape(len(amounts), width)
    some = (np.arange(width) < kinds) | table.any(axis=0)
    return np.flatnonzero(some), table[:, some]
