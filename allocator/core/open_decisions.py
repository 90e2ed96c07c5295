"""Decisions whose outcome is not known yet, first come first settled."""

import numpy as np

from allocator.core.snapshot import Ints


class Tentative:
    """A queue of decisions in arrays.

    Attributes
    ----------
    first : int
        Number of the oldest decision that is not settled.
    """

    def __init__(self) -> None:
        """Begin with decision 1."""
        self.first = 1
        self._client: Ints = np.empty(0, np.int64)
        self._agent: Ints = np.empty(0, np.int64)
        self._amount: Ints = np.empty((0, 0), np.int64)

    def __len__(self) -> int:
        return len(self._client)

    @property
    def next(self) -> int:
        """Number of the next decision."""
        return self.first + len(self)

    def append(self, client: Ints, agent: Ints, amount: Ints) -> None:
        """Queue decisions: clients (N,), agents (N,), amounts (N, K)."""
        held = self._amount
        if held.shape[1] < amount.shape[1]:
            wider = np.zeros((len(held), amount.shape[1]), np.int64)
            wider[:, : held.shape[1]] = held
            held = wider
        self._client = np.concatenate([self._client, client])
        self._agent = np.concatenate([self._agent, agent])
        self._amount = np.concatenate([held, amount])

    def oldest(self, count: int) -> tuple[Ints, Ints, Ints]:
        """Client, agent and amount of the oldest decisions; client 0 where it is void."""
        return self._client[:count], self._agent[:count], self._amount[:count]

    def drop(self, count: int) -> None:
        """Forget the oldest decisions."""
        self._client = self._client[count:]
        self._agent = self._agent[count:]
        self._amount = self._amount[count:]
        self.first += count

    def void_agent(self, agent: int) -> None:
        """The agent is gone: whatever was decided on it is."""
        self._client[self._agent == agent] = 0

    def void_client(self, client: int) -> None:
        """The client is gone: whatever was decided for it is."""
        self._client[self._client == client] = 0

    def has_client(self, client: int) -> bool:
        """Whether a decision for the client is open."""
        return bool((self._client == client).any())
