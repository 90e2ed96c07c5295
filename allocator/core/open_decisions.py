"""Decisions whose outcome is not known yet, first come first settled."""

from typing import NamedTuple

import numpy as np

from allocator.core import sparse_rows
from allocator.core.snapshot import Ints
from allocator.core.sparse_rows import SparseRows


class OpenDecisions(NamedTuple):
    """Some decisions in their order.

    Attributes
    ----------
    client : (N,) int64
        0 where the decision is void.
    agent : (N,) int64
    amounts : SparseRows of N rows
    """

    client: Ints
    agent: Ints
    amounts: SparseRows


class Tentative:
    """A queue of decisions in arrays, one piece a cycle.

    Attributes
    ----------
    first : int
        Number of the oldest decision that is not settled.
    """

    def __init__(self) -> None:
        """Begin with decision 1."""
        self.first = 1
        self._pieces: list[OpenDecisions] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def next(self) -> int:
        """Number of the next decision."""
        return self.first + len(self)

    def append(self, client: Ints, agent: Ints, amounts: SparseRows) -> None:
        """Queue decisions: clients (N,), agents (N,), N rows of amounts."""
        if len(client):
            self._pieces.append(OpenDecisions(client.copy(), agent, amounts))
            self._count += len(client)

    def take(self, count: int) -> OpenDecisions:
        """Take the oldest decisions out of the queue."""
        taken, left = [], count
        while left:
            client, agent, amounts = self._pieces.pop(0)
            size = len(client)
            if size > left:
                rest = OpenDecisions(client[left:], agent[left:], amounts.cut(left, size))
                self._pieces.insert(0, rest)
                client, agent, amounts = client[:left], agent[:left], amounts.cut(0, left)
            taken.append(OpenDecisions(client, agent, amounts))
            left -= len(client)
        self.first += count
        self._count -= count
        empty = np.empty(0, np.int64)
        return OpenDecisions(
            client=np.concatenate([empty, *(piece.client for piece in taken)]),
            agent=np.concatenate([empty, *(piece.agent for piece in taken)]),
            amounts=sparse_rows.joined([piece.amounts for piece in taken]),
        )

    def void_agent(self, agent: int) -> None:
        """The agent is gone: whatever was decided on it is."""
        for piece in self._pieces:
            piece.client[piece.agent == agent] = 0

    def void_client(self, client: int) -> None:
        """The client is gone: whatever was decided for it is."""
        for piece in self._pieces:
            piece.client[piece.client == client] = 0

    def has_client(self, client: int) -> bool:
        """Whether a decision for the client is open."""
        return any((piece.client == client).any() for piece in self._pieces)
