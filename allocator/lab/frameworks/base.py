"""Simulated frameworks: what they are told, and what they may answer.

A framework is a set of reactions. It never sees the ledger: it knows its offers and its tasks, as a
scheduler that talks to Mesos does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol, runtime_checkable

from allocator.core import format_quantities
from allocator.lab.event_heap import EventHeap
from allocator.lab.resources import Amount, Resource

REFUSE_DEFAULT_MS = 5_000
"""Mesos's `Filters.refuse_seconds` where a framework sends none."""

Quantities = dict[str, int]
"""Thousandths by resource name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a framework says of itself when it subscribes.

    demand: thousandths; needs of one task, put on the label that the sidecar reads; empty: not
        said.
    allowed: for each attribute named here, the values that an agent may have.
    capabilities: beside MULTI_ROLE.
    minimum: thousandths; by role: what an offer must reach at least, any one of them; nothing: any
        offer will do.
    several_roles: whether it has the capability MULTI_ROLE; without it `roles` is one.
    more_labels: beside those of its demand and of what it allows.
    """

    name: str
    roles: tuple[str, ...]
    demand: Quantities = field(default_factory=dict)
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()
    minimum: Mapping[str, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    several_roles: bool = True
    user: str = "sim"
    principal: str = ""
    more_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def announced(self) -> frozenset[str]:
        """Its capabilities, as it tells the master."""
        return self.capabilities | ({"MULTI_ROLE"} if self.several_roles else set())

    def labels(self) -> dict[str, str]:
        labels = dict(self.more_labels)
        if self.demand:
            labels["allocator.demand"] = format_quantities(self.demand)
        if self.allowed:
            labels["allocator.constraint"] = ";".join(
                f"{name}={'|'.join(sorted(values))}" for name, values in self.allowed.items()
            )
        return labels


@dataclass(slots=True, eq=False)
class Offer:
    """Resources of one agent, offered to one framework in one role."""

    framework: int
    role: int
    agent: int
    amount: Amount
    live: bool = True


@dataclass(slots=True, eq=False)
class Task:
    """What a framework runs on an agent; in Spark's coarse-grained mode, an executor."""

    framework: int
    role: int
    agent: int
    amount: Amount
    live: bool = True


@dataclass(frozen=True, slots=True)
class Conversion:
    """An operation: what of an offer is turned into what (reserve, create, grow, ...)."""

    consumed: Mapping[Resource, int]
    converted: Mapping[Resource, int]


class Master(Protocol):
    """What a framework may ask of the master."""

    event_heap: EventHeap

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Thousandths by name as a row of the plain resources."""

    def resources_of(self, amount: Amount) -> dict[Resource, int]:
        """A row by resource, without zeros."""

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        """Thousandths by resource as a row."""

    def path(self, role: int) -> str:
        """Path of a role."""

    def attributes(self, agent: int) -> Mapping[str, str]:
        """The attributes of an agent, as each of its offers shows them."""

    def accept(
        self,
        offer: Offer,
        amounts: Sequence[Amount],
        refuse_ms: int,
        conversions: Sequence[Conversion] = (),
    ) -> list[Task]:
        """Carry operations out, then launch one task for each amount; the rest is declined."""

    def decline(self, offers: Sequence[Offer], refuse_ms: int) -> None:
        """Give offers back."""

    def end(self, task: Task) -> None:
        """A task ends; its resources come back."""

    def suppress(self, framework: "Framework", roles: Sequence[str] = ()) -> None:
        """No more offers in these roles; none named: in all."""

    def revive(self, framework: "Framework", roles: Sequence[str] = ()) -> None:
        """Offers again in these roles, and none of the filters; none named: in all."""

    def unsubscribe(self, framework: "Framework") -> None:
        """Leave for good."""

    def answer_inverse_offer(
        self, framework: "Framework", agent: int, *, accept: bool, refuse_ms: int
    ) -> None:
        """Say whether it leaves an agent."""


class Framework(Protocol):
    """The reactions of a framework."""

    identity: Identity

    def subscribed(self, master: Master) -> None:
        """It is registered, for the first time or again."""

    def offered(self, offers: list[Offer]) -> None:
        """Offers of one cycle, those that are still live; each must be answered."""

    def lost(self, tasks: list[Task]) -> None:
        """These tasks are gone, with their agent."""


@runtime_checkable
class Leaver(Protocol):
    """A framework that takes inverse offers."""

    def asked_to_leave(self, agent: int) -> None:
        """An agent is wanted for others; it is to be answered."""


def fit(available: Amount, need: Amount) -> int:
    """How many times the need fits; at least one resource must be needed."""
    both = zip_longest(available, need, fillvalue=0)
    return min(a // n for a, n in both if n > 0)
