"""A master's world as the brain's script knows it: lines go in, offers come out.

What happens in it is added by behaviours: `Master` plays an honest, busy cluster and checks every
offer against its own account of who holds what; `tests.hostile.world` plays tenants that say
whatever might do harm. Each has its own amounts, for those of tenants may be too large to count.
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
    """The interface of a world for the simulation.

    Attributes
    ----------
    offers : list of Held
        Outstanding ones.
    facts, offers_made : int
        Lines that the brain received, and offers that it made.
    """

    def __init__(self, tell: Callable[[str], list[str]]) -> None:
        """Begin empty; the brain receives lines."""
        self.offers: list[Held[A]] = []
        self.facts = self.offers_made = 0
        self._run = tell

    def begin(self) -> None:
        """Start a master."""
        raise NotImplementedError

    def read(self, text: str) -> A:
        """Amounts as the brain wrote them."""
        raise NotImplementedError

    def write(self, amounts: A) -> str:
        """Amounts as the brain reads them."""
        raise NotImplementedError

    def on_line(self, line: str) -> None:
        """Take an effect of the brain; anything that must never be is an AssertionError."""
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
        """Look at an offer, which is outstanding now."""

    def on_other(self, line: str) -> None:
        """Take any other effect."""

    def _tell(self, line: str) -> list[str]:
        """Tell the brain a line; returns what it did."""
        self.facts += 1
        return self._run(line)

    def give_back(self, held: Held[A], refuse_ms: int = -1, *, allocated: bool = False) -> None:
        """Give back an offer or what a task used."""
        self._tell(
            f"release {held.agent} {held.framework} @{self.written_role(held)}="
            f"{self.write(held.amounts)} refuse={refuse_ms} allocated={int(allocated)}"
        )

    def written_role(self, held: Held[A]) -> str:
        """A role as the brain reads it."""
        return held.role

    def convert(self, held: Held[A], *changes: str) -> list[str]:
        """Apply an operation to an offer: each change turns something into something else."""
        return self._tell(
            f"convert {held.agent} {held.framework} {self.written_role(held)}"
            f" offered={self.write(held.amounts)} {' '.join(changes)}"
        )
