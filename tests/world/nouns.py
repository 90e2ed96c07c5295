"""Agents, frameworks and offers of the scenarios."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.world.amounts import Amounts, Text, describe, resources


class Agent:
    """An agent of the world."""

    def __init__(self, handle: int, has: Amounts) -> None:
        self.handle = handle
        self.resources = has

    def __repr__(self) -> str:
        return f"agent-{self.handle}"


class Framework:
    """A framework of the world."""

    def __init__(self, handle: int, roles: tuple[str, ...], capabilities: frozenset[str]) -> None:
        self.handle = handle
        self.roles = roles
        self.capabilities = capabilities

    def __repr__(self) -> str:
        return f"framework-{self.handle}"

    def gets(self, agent: Agent, what: Text | None = None, role: str = "") -> "Offer":
        """The offer of all or part of an agent's resources, in the first role by default."""
        has = agent.resources if what is None else resources(what)
        return Offer(self, role or self.roles[0], agent, +Counter(has))


class Offer(NamedTuple):
    """An offer to one framework in one role on one agent."""

    framework: Framework
    role: str
    agent: Agent
    resources: Amounts

    def __repr__(self) -> str:
        return f"{self.framework} in {self.role} on {self.agent}: {describe(self.resources)}"


def total(offers: Iterable[Offer]) -> Amounts:
    """Add up offers."""
    amounts: Amounts = Counter()
    for offer in offers:
        amounts += offer.resources
    return amounts
