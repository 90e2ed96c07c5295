"""Events about resources that somebody holds, and about offers."""

from dataclasses import dataclass

from allocator.core.events.base import Amounts
from allocator.core.snapshot import Bools, Ints


@dataclass(frozen=True, slots=True)
class Holdings:
    """Amounts by (framework, role, agent), in columns.

    Attributes
    ----------
    framework, role, agent : (N,) int64
    kind : (K,) int64
    amount : (N, K) int64, thousandths
    """

    framework: Ints
    role: Ints
    agent: Ints
    kind: Ints
    amount: Ints


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources in use that the allocator learns of now."""

    holdings: Holdings


@dataclass(frozen=True, slots=True)
class Release:
    """Resources that come back: declined and rescinded offers, ended tasks.

    Attributes
    ----------
    released : Holdings
        Rows that name an unknown agent or framework are ignored: what they held went with them.
    refuse_ms : (N,) int64
        How long what is given back must not be offered again; -1 for no filter.
    allocated : (N,) bool
        Whether the resources were in use (a task ended) rather than offered.
    """

    released: Holdings
    refuse_ms: Ints
    allocated: Bools


@dataclass(frozen=True, slots=True)
class Transition:
    """Offered resources come into use. A framework of 0 is one that the host cannot tell."""

    used: Holdings


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
    """Pairs that may not meet, as the host evaluated offer constraints.

    Attributes
    ----------
    framework, role, agent : (N,) int64
    excluded : (N,) bool
        False takes an exclusion back.
    """

    framework: Ints
    role: Ints
    agent: Ints
    excluded: Bools


@dataclass(frozen=True, slots=True)
class Refuse:
    """Filters in force, as a snapshot carries them.

    Attributes
    ----------
    refused : Holdings
    expires_ms : (N,) int64
    """

    refused: Holdings
    expires_ms: Ints


@dataclass(frozen=True, slots=True)
class InverseOffer:
    """A framework answered an inverse offer (status as the wire has it)."""

    framework: int
    agent: int
    status: str
    refuse_ms: int


@dataclass(frozen=True, slots=True)
class Settle:
    """What became of consecutive decisions.

    Attributes
    ----------
    first_decision : int
    offered : (N,) bool
        False: nothing was offered; all of it is free again.
    partial : (N,) bool
        Offered, but as `amount` says.
    kind : (K,) int64
    amount : (P, K) int64, thousandths
        One row for each partial decision, in order.
    """

    first_decision: int
    offered: Bools
    partial: Bools
    kind: Ints
    amount: Ints
