"""Events about held resources, and about offers.

Amounts of many rows are a table everywhere: `kind` says what its columns are, `amount` has its
rows. The wire checks each value before an event is made; here columns are checked against each
other.
"""

from collections.abc import Sized
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from allocator.core.events.base import Amounts
from allocator.core.snapshot import Bools, Ints


def _equally_long(*columns: Sized) -> bool:
    return len(set(map(len, columns))) == 1


@dataclass(frozen=True, slots=True)
class Holdings:
    """Amounts by (framework, role, agent), in columns.

    `framework`, `role`, `agent` (N,).
    `kind` (K,): each once.
    `amount` (N, K), in thousandths: from 0 to `AMOUNT_MAX`.
    """

    framework: Ints
    role: Ints
    agent: Ints
    kind: Ints
    amount: Ints

    def __post_init__(self) -> None:
        assert _equally_long(self.framework, self.role, self.agent)
        assert self.amount.shape == (len(self.framework), len(self.kind))

    def cut(self, rows: slice | Bools) -> "Holdings":
        return Holdings(
            self.framework[rows], self.role[rows], self.agent[rows], self.kind, self.amount[rows]
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources in use that are new to the allocator."""

    holdings: Holdings


@dataclass(frozen=True, slots=True)
class Release:
    """Resources that come back: declined and rescinded offers, ended tasks.

    `released`: rows that name an unknown agent or framework are ignored: what they held went with
        them.
    `refuse_ms` (N,): how long the released resources must not be offered again; -1: no filter.
    `allocated` (N,): whether the resources were in use (a task ended) rather than offered.
    """

    released: Holdings
    refuse_ms: Ints
    allocated: Bools

    def __post_init__(self) -> None:
        assert _equally_long(self.released.framework, self.refuse_ms, self.allocated)


@dataclass(frozen=True, slots=True)
class Transition:
    """Offered resources come into use. Framework 0: unknown to the host."""

    used: Holdings


class Move(IntEnum):
    """What a row does with its amounts: as in `Hold`, `Transition` and `Release`."""

    HOLD = 0
    USE = 1
    RELEASE = 2


@dataclass(frozen=True, slots=True)
class Moves:
    """Holds, transitions and releases of few rows each, in order.

    Not an event itself, but several merged ones, each row as if it had come on its own.

    `what` (N,): of `Move`.
    `holdings`: kinds that an event does not name are zeros in its rows.
    `refuse_ms`, `allocated` (N,): as in `Release`; -1 and False for all others.
    `event` (N,): index of the event of each row, ascending.
    """

    what: Ints
    holdings: Holdings
    refuse_ms: Ints
    allocated: Bools
    event: Ints

    def __post_init__(self) -> None:
        columns = self.what, self.holdings.framework, self.refuse_ms, self.allocated, self.event
        assert _equally_long(*columns)

    def __len__(self) -> int:
        return len(self.what)

    def cut(self, rows: slice) -> "Moves":
        return Moves(
            self.what[rows],
            self.holdings.cut(rows),
            self.refuse_ms[rows],
            self.allocated[rows],
            self.event[rows],
        )

    def row(self, row: int) -> "Hold | Transition | Release":
        """Return one row as an event."""
        one = slice(row, row + 1)
        holdings = self.holdings.cut(one)
        if self.what[row] == Move.RELEASE:
            return Release(holdings, self.refuse_ms[one], self.allocated[one])
        return Hold(holdings) if self.what[row] == Move.HOLD else Transition(holdings)


@dataclass(frozen=True, slots=True)
class UpdateAllocation:
    """An operation on resources; framework 0: on free ones, by an operator."""

    framework: int
    role: int
    agent: int
    consumed: Amounts
    converted: Amounts


@dataclass(frozen=True, slots=True)
class Exclude:
    """Excluded pairs, as the host evaluated offer constraints.

    `framework`, `role`, `agent` (N,).
    `excluded` (N,): False takes an exclusion back.
    """

    framework: Ints
    role: Ints
    agent: Ints
    excluded: Bools

    def __post_init__(self) -> None:
        assert _equally_long(self.framework, self.role, self.agent, self.excluded)

    def cut(self, rows: slice | Bools) -> "Exclude":
        return Exclude(self.framework[rows], self.role[rows], self.agent[rows], self.excluded[rows])


@dataclass(frozen=True, slots=True)
class AddFilters:
    """Filters in force, as a snapshot carries them.

    `expires_ms` (N,).
    """

    refused: Holdings
    expires_ms: Ints

    def __post_init__(self) -> None:
        assert _equally_long(self.refused.framework, self.expires_ms)


@dataclass(frozen=True, slots=True)
class InverseOffer:
    """A framework answered an inverse offer (status as the wire has it)."""

    framework: int
    agent: int
    status: str
    refuse_ms: int


class Reason(IntEnum):
    """The outcome of a decision; the numbers are those of the protocol's OutcomeReason."""

    OFFERED = 1
    PARTIAL = 2
    PAUSED = 3
    UNKNOWN_FRAMEWORK = 4
    INACTIVE_FRAMEWORK = 5
    BAD_ROLE = 6
    SUPPRESSED = 7
    UNKNOWN_AGENT = 8
    INACTIVE_AGENT = 9
    CONSTRAINT = 10
    CAPABILITY = 11
    NOTHING_AVAILABLE = 12
    BELOW_MINIMUM = 13
    FILTERED = 14
    LIMIT = 15
    HEADROOM = 16
    MALFORMED = 17
    STALE = 18
    SHADOW = 19
    INCOMPLETE_GANG = 20


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of consecutive decisions.

    `reason` (N,): numbers of `Reason`.
    `kind` (K,): each once.
    `amount` (P, K), in thousandths: what was actually offered, one row for each decision whose
        reason is PARTIAL, in order.
    """

    first_decision: int
    reason: Ints
    kind: Ints
    amount: Ints

    def __post_init__(self) -> None:
        assert self.amount.shape == (int(self.partial.sum()), len(self.kind))

    @classmethod
    def all_or_nothing(cls, first_decision: int, offered: Bools) -> "Outcomes":
        """Report that each decision was offered as made, or that nothing was available."""
        reason = np.where(offered, Reason.OFFERED, Reason.NOTHING_AVAILABLE).astype(np.int64)
        return cls(first_decision, reason, np.empty(0, np.int64), np.empty((0, 0), np.int64))

    @property
    def offered(self) -> Bools:
        """Which decisions became offers, at least in part, (N,); the others are free again."""
        return self.partial | (self.reason == Reason.OFFERED)

    @property
    def partial(self) -> Bools:
        """Decisions with any other outcome than full offers, (N,)."""
        partial: Bools = self.reason == Reason.PARTIAL
        return partial
