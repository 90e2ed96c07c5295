"""What the emulated master's ledger is made of: amounts, rows, refusals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Amount = tuple[int, ...]
"""Thousandths of every kind, in the order of the ledger's kinds."""

Place = tuple[int, int]
"""Role and agent."""


class LedgerError(ValueError):
    """The emulated master broke its own rules: a defect of the simulator, not of the sidecar."""


@dataclass(slots=True)
class AgentRow:
    """An agent as the ledger keeps it.

    Attributes
    ----------
    bound_sequence : int
        Number of the batch that tells the sidecar of this bearer of the handle.
    capacity, held : list of int, thousandths
        One entry a kind. More may be held than the capacity after the capacity shrank.
    """

    agent_id: str
    hostname: str
    attributes: Mapping[str, str]
    bound_sequence: int
    capacity: list[int]
    held: list[int]
    active: bool = True

    def available(self) -> list[int]:
        """What nobody holds; never negative."""
        return [c - h if c > h else 0 for c, h in zip(self.capacity, self.held, strict=True)]


@dataclass(slots=True)
class FrameworkRow:
    """A framework as the ledger keeps it.

    Attributes
    ----------
    bound_sequence : int
        Number of the batch that tells the sidecar of this bearer of the handle.
    roles, suppressed : set of int
    allowed : mapping of str to frozenset of str
        For each attribute named here, the values that an agent may have.
    """

    framework_id: str
    bound_sequence: int
    roles: set[int]
    suppressed: set[int] = field(default_factory=set)
    capabilities: frozenset[str] = frozenset()
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    active: bool = True


@dataclass(slots=True)
class Holding:
    """What one framework holds in one role on one agent, by kind."""

    offered: list[int]
    used: list[int]

    @property
    def empty(self) -> bool:
        """Whether nothing is held."""
        return not any(self.offered) and not any(self.used)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A filter: nothing that it covers is offered up to and including `expires_ms`."""

    amount: Amount
    expires_ms: int

    def covers(self, amount: Sequence[int]) -> bool:
        """Whether every entry of `amount` is at most the refused one."""
        return reaches(self.amount, amount)


def reaches(amount: Sequence[int], least: Sequence[int]) -> bool:
    """Whether every entry of `amount` is at least the other's."""
    # A loop: this is asked several times for each offer, and a generator takes twice as long.
    for has, needs in zip(amount, least, strict=True):
        if has < needs:
            return False
    return True


def add(row: list[int], amount: Sequence[int], sign: int = 1) -> None:
    """Add an amount to a row, or take it away (sign -1), in place."""
    for kind, value in enumerate(amount):
        row[kind] += sign * value
