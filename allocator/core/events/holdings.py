"""Events about held resources, and about offers.

Amounts of several rows are a table: `kind` has the columns, `amount` the rows. The wire checks each
value before it makes an event; the classes here check that columns match each other.
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

    `framework`, `role`, `agent` (N,): handles.
    `kind` (K,): distinct.
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
    """Resources in use that the books do not contain yet."""

    holdings: Holdings


@dataclass(frozen=True, slots=True)
class Release:
    """Resources are returned: by declined and rescinded offers, and by ended tasks.

    `released`: rows with an unknown agent or framework are ignored, because its removal already
        released them.
    `refuse_ms` (N,): how long the resources must not be offered again; -1: no filter.
    `allocated` (N,): whether the resources were in use (a task ended), rather than only on offer.
    """

    released: Holdings
    refuse_ms: Ints
    allocated: Bools

    def __post_init__(self) -> None:
        assert _equally_long(self.released.framework, self.refuse_ms, self.allocated)


@dataclass(frozen=True, slots=True)
class Transition:
    """Offered resources come into use. Framework 0: the host does not know the framework."""

    used: Holdings


class Move(IntEnum):
    """The type of a row of `Moves`: a `Hold`, a `Transition` or a `Release`."""

    HOLD = 0
    USE = 1
    RELEASE = 2


@dataclass(frozen=True, slots=True)
class Moves:
    """Consecutive holds, transitions and releases, merged into one table.

    Not an event itself: each row is applied as if it were a separate event.

    `what` (N,): values of `Move`.
    `holdings`: zeros for kinds that a row's event does not name.
    `refuse_ms`, `allocated` (N,): as in `Release`; -1 and False for rows of other types.
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
        one = slice(row, row + 1)
        holdings = self.holdings.cut(one)
        if self.what[row] == Move.RELEASE:
            return Release(holdings, self.refuse_ms[one], self.allocated[one])
        return Hold(holdings) if self.what[row] == Move.HOLD else Transition(holdings)


@dataclass(frozen=True, slots=True)
class UpdateAllocation:
    """Conversion of resources by an operation; framework 0: an operator's, on free resources."""

    framework: int
    role: int
    agent: int
    consumed: Amounts
    converted: Amounts


@dataclass(frozen=True, slots=True)
class Exclude:
    """Agents that frameworks' offer constraints exclude, as evaluated by the host.

    `excluded` (N,): False ends an exclusion.
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
    """Filters in force, from a snapshot of the module."""

    refused: Holdings
    expires_ms: Ints

    def __post_init__(self) -> None:
        assert _equally_long(self.refused.framework, self.expires_ms)


@dataclass(frozen=True, slots=True)
class InverseOffer:
    """A framework's answer to an inverse offer; `status` as in the protocol."""

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

    `reason` (N,): values of `Reason`.
    `kind` (K,): distinct.
    `amount` (P, K), in thousandths: what was actually offered, one row for each PARTIAL decision,
        in order.
    """

    first_decision: int
    reason: Ints
    kind: Ints
    amount: Ints

    def __post_init__(self) -> None:
        assert self.amount.shape == (int(self.partial.sum()), len(self.kind))

    @classmethod
    def all_or_nothing(cls, first_decision: int, offered: Bools) -> "Outcomes":
        """Make outcomes: each decision was offered as made, or not at all."""
        reason = np.where(offered, Reason.OFFERED, Reason.NOTHING_AVAILABLE).astype(np.int64)
        return cls(first_decision, reason, np.empty(0, np.int64), np.empty((0, 0), np.int64))

    @property
    def offered(self) -> Bools:
        """Which decisions became offers, at least in part, (N,)."""
        return self.partial | (self.reason == Reason.OFFERED)

    @property
    def partial(self) -> Bools:
        """Which decisions became offers only in part, (N,)."""
        partial: Bools = self.reason == Reason.PARTIAL
        return partial
