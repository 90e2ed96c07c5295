"""A simulated cluster, connected to the brain by script lines: events go in, offers come out.

Subclasses add behaviour: `Master` plays an honest, busy cluster and checks every offer against its
own record of holdings; `tests.hostile.world` plays tenants that send harmful input. Each has its
own type of amounts, because those of tenants may be too large to count.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

A = TypeVar("A")

_OFFER = re.compile(r"offer (\S+) in (\S+) on (\S+): (.*)", re.DOTALL)


@dataclass(eq=False)
class Held(Generic[A]):
    """An offer, or a task."""

    framework: str
    role: str
    agent: str
    amounts: A


class World(Generic[A]):
    """A world, as the simulation uses it.

    offers: outstanding ones.
    facts, offers_made: lines that the brain received, and offers that it made.
    """

    def __init__(self, tell: Callable[[str], list[str]]) -> None:
        """Start empty; the brain receives lines."""
        self.offers: list[Held[A]] = []
        self.facts = self.offers_made = 0
        self._run = tell

    def begin(self) -> None:
        """Start a master."""
        raise NotImplementedError

    def read(self, text: str) -> A:
        """Parse amounts from the brain."""
        raise NotImplementedError

    def write(self, amounts: A) -> str:
        """Format amounts for the brain."""
        raise NotImplementedError

    def on_line(self, line: str) -> None:
        """Handle an effect of the brain; AssertionError if an invariant is violated."""
        assert not line.startswith("broken"), line
        if found := _OFFER.fullmatch(line):
            framework, role, agent, amounts = found.groups()
            offer = Held(framework, role, agent, self.read(amounts))
            self.offers.append(offer)
            self.offers_made += 1
            self.on_offer(offer)
        else:
            self.on_other(line)

    def on_offer(self, offer: Held[A]) -> None:
        """Handle a new offer, which is now outstanding."""

    def on_other(self, line: str) -> None:
        """Handle any other effect."""

    def _tell(self, line: str) -> list[str]:
        """Pass the brain a line; returns its effects."""
        self.facts += 1
        return self._run(line)

    def give_back(self, held: Held[A], refuse_ms: int = -1, *, allocated: bool = False) -> None:
        """Release an offer, or the resources of a task."""
        self._tell(
            f"release {held.agent} {held.framework} @{self.written_role(held)}="
            f"{self.write(held.amounts)} refuse={refuse_ms} allocated={int(allocated)}"
        )

    def written_role(self, held: Held[A]) -> str:
        """Format a role for the brain."""
        return held.role

    def convert(self, held: Held[A], *changes: str) -> list[str]:
        """Apply an operation to an offer, as pairs of resources before and after."""
        return self._tell(
            f"convert {held.agent} {held.framework} {self.written_role(held)}"
            f" offered={self.write(held.amounts)} {' '.join(changes)}"
        )
