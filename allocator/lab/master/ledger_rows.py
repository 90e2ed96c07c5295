"""What the emulated master's ledger is made of: amounts, rows, refusals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

Amount = tuple[int, ...]
"""Thousandths by resource. A row may be shorter than there are resources: the others are 0."""

Place = tuple[int, int]
"""Role and agent."""


AGENT_CAPABILITIES = frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"})


class LedgerError(ValueError):
    """The emulated master broke its own rules: a defect of the simulator, not of the sidecar."""


@dataclass(slots=True)
class AgentRow:
    """An agent as the ledger keeps it.

    bound_sequence: number of the batch that binds the handle to it.
    capacity, held: thousandths; by resource. More may be held than the capacity after the capacity
        shrank.
    region, zone: its fault domain; empty where it has none.
    unavailable_ms: RestoredState and duration of its maintenance.
    """

    agent_id: str
    hostname: str
    attributes: Mapping[str, str]
    bound_sequence: int
    capacity: list[int]
    held: list[int]
    active: bool = True
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = AGENT_CAPABILITIES
    unavailable_ms: tuple[int, int] | None = None

    def available(self) -> list[int]:
        """What nobody holds; never negative."""
        both = zip_longest(self.capacity, self.held, fillvalue=0)
        return [c - h if c > h else 0 for c, h in both]


@dataclass(slots=True)
class FrameworkRow:
    """A framework as the ledger keeps it.

    bound_sequence: number of the batch that binds the handle to it.
    allowed: for each attribute named here, the values that an agent may have.
    minimum: thousandths; by role: what an offer must reach at least, any one of them; nothing: any
        offer will do. For a role that is not named it is the master's minimum.
    """

    framework_id: str
    bound_sequence: int
    roles: set[int]
    suppressed: set[int] = field(default_factory=set)
    capabilities: frozenset[str] = frozenset()
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    minimum: Mapping[int, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class Holding:
    """What one framework holds in one role on one agent, by resource."""

    offered: list[int]
    used: list[int]

    @property
    def empty(self) -> bool:
        return not any(self.offered) and not any(self.used)

    def both(self) -> Amount:
        return plus(self.offered, self.used)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A filter: nothing that it covers is offered up to and including `expires_ms`."""

    amount: Amount
    expires_ms: int

    def covers(self, amount: Sequence[int]) -> bool:
        """Whether every entry of `amount` is at most the refused one."""
        return reaches(self.amount, amount)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a role is to have at least and at most, in thousandths by name."""

    guarantees: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.guarantees or self.limits)


def reaches(amount: Sequence[int], least: Sequence[int]) -> bool:
    """Whether every entry of `amount` is at least the other's; neither has negative ones."""
    # A loop: this is asked several times for each offer, and a generator takes twice as long.
    for has, needs in zip(amount, least, strict=False):
        if has < needs:
            return False
    return len(least) <= len(amount) or not any(least[len(amount) :])


def add(row: list[int], amount: Sequence[int], sign: int = 1) -> None:
    """Add an amount to a row, or take it away (sign -1), in place."""
    if len(amount) > len(row):
        row.extend([0] * (len(amount) - len(row)))
    for kind, value in enumerate(amount):
        row[kind] += sign * value


def plus(one: Sequence[int], other: Sequence[int]) -> Amount:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))


def minus(one: Sequence[int], other: Sequence[int]) -> Amount:
    """Take one row from another, entry by entry."""
    return tuple(a - b for a, b in zip_longest(one, other, fillvalue=0))


def least(one: Sequence[int], other: Sequence[int]) -> Amount:
    """The smaller entries of two rows."""
    return tuple(map(min, zip_longest(one, other, fillvalue=0)))


def padded(row: Sequence[int], width: int) -> Amount:
    return (*row, *[0] * (width - len(row)))


def same(one: Sequence[int], other: Sequence[int]) -> bool:
    return not any(minus(one, other))
