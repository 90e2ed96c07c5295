"""A queue of decisions whose outcome is not known yet; outcomes arrive in the same order."""

from typing import NamedTuple

import numpy as np

from allocator.core.books import sparse_rows
from allocator.core.books.sparse_rows import SparseRows
from allocator.core.snapshot import Ints


class DecisionRows(NamedTuple):
    """Consecutive decisions.

    `client` (N,): row; 0: the decision is void.
    `agent` (N,): handle.
    """

    client: Ints
    agent: Ints
    amounts: SparseRows


class OpenDecisions:
    """A queue of decisions, stored as one `DecisionRows` per cycle.

    `first`: number of the oldest decision in the queue.
    """

    def __init__(self) -> None:
        self.first = 1
        self._pieces: list[DecisionRows] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def next(self) -> int:
        return self.first + len(self)

    def append(self, client: Ints, agent: Ints, amounts: SparseRows) -> None:
        if len(client):
            self._pieces.append(DecisionRows(client.copy(), agent, amounts))
            self._count += len(client)

    def oldest(self, count: int) -> DecisionRows:
        taken, left = [], count
        for client, agent, amounts in self._pieces:
            if not left:
                break
            size = min(len(client), left)
            taken.append(DecisionRows(client[:size], agent[:size], amounts.cut(0, size)))
            left -= size
        empty = np.empty(0, np.int64)
        return DecisionRows(
            client=np.concatenate([empty, *(piece.client for piece in taken)]),
            agent=np.concatenate([empty, *(piece.agent for piece in taken)]),
            amounts=sparse_rows.joined([piece.amounts for piece in taken]),
        )

    def drop(self, count: int) -> None:
        self.first += count
        self._count -= count
        while count:
            client, agent, amounts = self._pieces.pop(0)
            size = len(client)
            if size > count:
                rest = DecisionRows(client[count:], agent[count:], amounts.cut(count, size))
                self._pieces.insert(0, rest)
            count -= min(size, count)

    def void_agent(self, agent: int) -> None:
        for piece in self._pieces:
            piece.client[piece.agent == agent] = 0

    def void_client(self, client: int) -> None:
        for piece in self._pieces:
            piece.client[piece.client == client] = 0

    def has_client(self, client: int) -> bool:
        return any((piece.client == client).any() for piece in self._pieces)
