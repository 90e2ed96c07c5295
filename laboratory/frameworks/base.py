"""Interfaces of simulated frameworks and of the master they talk to.

A framework is a set of callbacks. Like a Mesos scheduler it never sees the ledger, only its offers
and tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol, runtime_checkable

from allocator.core import format_quantities
from laboratory.event_heap import EventHeap
from laboratory.resources import Amount, Resource

REFUSE_DEFAULT_MS = 5_000
"""Mesos's default of `Filters.refuse_seconds`."""

Quantities = dict[str, int]
"""Thousandths by resource name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a framework declares when it subscribes.

    demand: thousandths that one task needs, sent in the label that the sidecar reads; empty: none
        is sent.
    allowed: values that an agent may have, for each attribute named.
    capabilities: in addition to MULTI_ROLE.
    minimum: thousandths by role: alternative amounts, one of which an offer must reach; empty: any
        offer will do.
    several_roles: whether it has the capability MULTI_ROLE; without it `roles` is one.
    more_labels: in addition to those of `demand` and `allowed`.
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
        """Its capabilities, as the master sees them."""
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
    """An operation on an offer, such as reserve or create: the resources before and after."""

    consumed: Mapping[Resource, int]
    converted: Mapping[Resource, int]


class Master(Protocol):
    """The calls of a framework to the master."""

    event_heap: EventHeap

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Convert thousandths by name into a row of the plain resources."""

    def resources_of(self, amount: Amount) -> dict[Resource, int]:
        """Convert a row into amounts by resource, without zeros."""

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        """Convert thousandths by resource into a row."""

    def path(self, role: int) -> str:
        """Path of a role."""

    def attributes(self, agent: int) -> Mapping[str, str]:
        """Attributes of an agent, which each of its offers carries."""

    def accept(
        self,
        offer: Offer,
        amounts: Sequence[Amount],
        refuse_ms: int,
        conversions: Sequence[Conversion] = (),
    ) -> list[Task]:
        """Apply the conversions, launch one task for each amount, and decline the rest."""

    def decline(self, offers: Sequence[Offer], refuse_ms: int) -> None:
        """Return offers unused."""

    def end(self, task: Task) -> None:
        """End a task and recover its resources."""

    def suppress(self, framework: "Framework", roles: Sequence[str] = ()) -> None:
        """Stop offers in these roles; in all roles if none is named."""

    def revive(self, framework: "Framework", roles: Sequence[str] = ()) -> None:
        """Resume offers in these roles, without filters; in all roles if none is named."""

    def request(self, framework: "Framework", *needs: Quantities) -> None:
        """State what each of several tasks needs that start together (Mesos's REQUEST)."""

    def unsubscribe(self, framework: "Framework") -> None:
        """Leave for good."""

    def answer_inverse_offer(
        self, framework: "Framework", agent: int, *, accept: bool, refuse_ms: int
    ) -> None:
        """Accept or decline an inverse offer for an agent."""


class Framework(Protocol):
    """Callbacks of a framework."""

    identity: Identity

    def subscribed(self, master: Master) -> None:
        """Called when it is registered, for the first time or again."""

    def offered(self, offers: list[Offer]) -> None:
        """Called with the live offers of one cycle; each must be answered."""

    def lost(self, tasks: list[Task]) -> None:
        """Called when tasks are lost with their agent."""


@runtime_checkable
class Leaver(Protocol):
    """A framework that responds to inverse offers."""

    def asked_to_leave(self, agent: int) -> None:
        """Called with an inverse offer for an agent; it must be answered."""


def fit(available: Amount, need: Amount) -> int:
    """How many times the need fits; it must be positive for at least one resource."""
    both = zip_longest(available, need, fillvalue=0)
    return min(a // n for a, n in both if n > 0)
