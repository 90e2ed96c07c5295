"""Events on their way to the sidecar, in the order in which Mesos causes them.

As in the module, releases and uses of offers wait, as rows of one event, until something else is
sent; then uses are sent before releases. Rows of resources are sent by kind, and kinds are defined
before they are used.
"""

from collections.abc import Sequence

import numpy as np

from allocator.core import Define, Event, Holdings, Ints, Outcomes, Reason, Release, Transition
from allocator.lab.master.gates import Verdict
from allocator.lab.master.kinds import KindTable
from allocator.lab.master.ledger_rows import Amount, minus, padded

Row = tuple[int, int, int, Amount]
"""Framework, role, agent, amount by resource."""


class Outbox:
    """What is pending for the sidecar.

    kinds: the first of them, the plain ones, are columns of every event; of the others those that
        occur.
    """

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds
        self._defined = len(kinds)
        self._messages: list[Event] = []
        self._releases: list[tuple[Row, int, bool]] = []
        self._transitions: list[Row] = []
        self._verdicts: list[tuple[Reason, Amount]] = []
        self._first_decision = 0

    def __len__(self) -> int:
        pending = len(self._releases) + len(self._transitions) + len(self._verdicts)
        return len(self._messages) + pending

    def begin(self) -> None:
        """A session begins: the snapshot defined all kinds that are bound."""
        self._defined = len(self._kinds)

    def by_kind(self, amount: Sequence[int]) -> Amount:
        """A row of resources by kind; kinds that are new are defined."""
        by_kind = self._kinds.by_kind(amount)
        # A kind is defined before the first event that names it.
        fresh = self._kinds.kinds[self._defined :]
        if fresh:
            self.add(Define(kinds=dict(enumerate(fresh, self._defined))))
            self._defined = len(self._kinds)
        return by_kind

    def sparse(self, amount: Sequence[int]) -> dict[int, int]:
        """A row of resources by kind, without zeros."""
        return {kind: value for kind, value in enumerate(self.by_kind(amount)) if value}

    def change(self, gone: Amount, made: Amount) -> tuple[dict[int, int], dict[int, int]]:
        """What there is less and more of by kind where some resources became others."""
        gone, made = self.by_kind(gone), self.by_kind(made)
        net = enumerate(minus(made, gone))
        changes = {kind: value for kind, value in net if value}
        return (
            {kind: -value for kind, value in changes.items() if value < 0},
            {kind: value for kind, value in changes.items() if value > 0},
        )

    def holdings(self, rows: list[Row]) -> Holdings:
        """Rows as columns by kind."""
        return holdings([(*row[:3], self.by_kind(row[3])) for row in rows], self._kinds.usual)

    def add(self, event: Event) -> None:
        """Queue an event that stands alone."""
        self._close()
        self._messages.append(event)

    def release(self, row: Row, *, refuse_ms: int = -1, used: bool = False) -> None:
        """Queue resources that come back."""
        by_kind = (*row[:3], self.by_kind(row[3]))
        # Outcomes that wait belong before this release: they go first.
        if self._verdicts:
            self._close()
        self._releases.append((by_kind, refuse_ms, used))

    def transition(self, row: Row) -> None:
        """Queue offered resources that come into use."""
        by_kind = (*row[:3], self.by_kind(row[3]))
        if self._verdicts:
            self._close()
        self._transitions.append(by_kind)

    def outcome(self, decision: int, verdict: Verdict) -> None:
        """Queue what became of a decision."""
        by_kind = self.by_kind(verdict.amount) if verdict.reason == Reason.PARTIAL else ()
        following = self._first_decision + len(self._verdicts)
        # One event is about consecutive decisions, with nothing in between.
        if self._releases or self._transitions or decision != following:
            self._close()
        if not self._verdicts:
            self._first_decision = decision
        self._verdicts.append((verdict.reason, by_kind))

    def drain(self) -> list[Event]:
        """Hand out everything queued, and forget it."""
        self._close()
        messages, self._messages = self._messages, []
        return messages

    def _close(self) -> None:
        """Turn the rows that wait into events."""
        # Uses before releases, as the module sends them.
        if self._transitions:
            self._messages.append(Transition(holdings(self._transitions, self._kinds.usual)))
            self._transitions = []
        if self._releases:
            rows, refuse_ms, used = zip(*self._releases, strict=True)
            self._messages.append(
                Release(
                    holdings(list(rows), self._kinds.usual),
                    np.array(refuse_ms, np.int64),
                    np.array(used, np.bool_),
                )
            )
            self._releases = []
        if self._verdicts:
            reasons = np.array([reason for reason, _ in self._verdicts], np.int64)
            partial = [by_kind for reason, by_kind in self._verdicts if reason == Reason.PARTIAL]
            kinds, amounts = columns(partial, self._kinds.usual)
            self._messages.append(Outcomes(self._first_decision, reasons, kinds, amounts))
            self._verdicts = []


def holdings(rows: list[Row], kinds: int) -> Holdings:
    """Rows by kind as columns: of the first so many kinds, and of others that occur."""
    place = np.array([row[:3] for row in rows], np.int64).reshape(len(rows), 3)
    return Holdings(
        place[:, 0], place[:, 1], place[:, 2], *columns([row[3] for row in rows], kinds)
    )


def columns(amounts: list[Amount], kinds: int) -> tuple[Ints, Ints]:
    """Kinds (K,) and amounts (N, K): of the first so many kinds, and of others that occur."""
    # Rows may be of different lengths: fill them up with zeros.
    width = max(kinds, *map(len, amounts), 0)
    table = np.array([padded(amount, width) for amount in amounts], np.int64)
    table = table.reshape(len(amounts), width)
    some = (np.arange(width) < kinds) | table.any(axis=0)
    return np.flatnonzero(some), table[:, some]
