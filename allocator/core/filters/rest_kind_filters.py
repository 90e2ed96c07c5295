"""Records which clients got nothing of an agent's rest, and are not offered it for a while.

Only the module knows which client may have which part of a rest kind, so the rest is offered to one
client after another. A client that got nothing of it is not offered it again for some time;
otherwise every cycle would offer it to the same client.

Removing a framework's refusals, or expired ones, does not search the refusals of others, because a
framework may refuse the rest of each agent in each of its roles.
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import ClassVar

REFUSALS_MAX = 200_000
"""Maximum number of refusals; beyond it, clients are offered the rest again at once."""

_ENDS_SPARE = 64
"""Maximum number of stale expiry entries, at least, before the heap is rebuilt."""


class RestKindFilters:
    """Refusals of rest kinds, by agent."""

    DERIVED: ClassVar[tuple[str, ...]] = ("_found",)

    def __init__(self) -> None:
        self._of_agent: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
        self._count = 0
        self._next_expiry_ms: int | None = None
        self._found: _Index | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self._of_agent)

    def add(self, client: int, agent: int, kind: int, amount: int, expires_ms: int) -> None:
        """Do not offer a client this amount of a kind, up to and including `expires_ms`."""
        if self._count >= REFUSALS_MAX:
            return
        index, refusals = self._index, self._of_agent.setdefault(agent, {})
        self._count += (client, kind) not in refusals
        refusals[client, kind] = amount, expires_ms
        index.add(client, agent, kind, expires_ms)
        self._trim()
        if self._next_expiry_ms is None or expires_ms < self._next_expiry_ms:
            self._next_expiry_ms = expires_ms

    def clients(self, agent: int, kind: int, free: int) -> list[int]:
        """Return the clients that must not be offered a kind on an agent with this free amount."""
        return [
            client
            for (client, refused), (amount, _) in self._of_agent.get(agent, {}).items()
            if refused == kind and free <= amount
        ]

    def expire(self, now_ms: int) -> list[int]:
        """Drop expired refusals; returns their agents."""
        # The usual case costs one comparison.
        if self._next_expiry_ms is None or self._next_expiry_ms >= now_ms:
            return []
        touched, ends = set[int](), self._index.ends
        while ends and (ends[0][0] < now_ms or not self._is_kept(*ends[0])):
            end = heappop(ends)
            if self._is_kept(*end):
                _, agent, client, kind = end
                self._drop(client, agent, kind)
                self._index.forget(client, agent, kind)
                touched.add(agent)
        self._next_expiry_ms = ends[0][0] if ends else None
        return sorted(touched)

    def drop_agent(self, agent: int) -> None:
        rows = self._of_agent.get(agent, {})
        for client, kind in rows:
            self._index.forget(client, agent, kind)
        self._of_agent.pop(agent, None)
        self._count -= len(rows)
        self._trim()

    def drop_client(self, client: int) -> list[int]:
        pairs = self._index.of_client.pop(client, set())
        for agent, kind in pairs:
            self._drop(client, agent, kind)
        self._trim()
        return sorted({agent for agent, _ in pairs})

    def _drop(self, client: int, agent: int, kind: int) -> None:
        refusals = self._of_agent[agent]
        del refusals[client, kind]
        self._count -= 1
        if not refusals:
            del self._of_agent[agent]

    def _is_kept(self, expires_ms: int, agent: int, client: int, kind: int) -> bool:
        """Whether an entry of the heap still corresponds to a refusal."""
        row = self._of_agent.get(agent, {}).get((client, kind))
        return row is not None and row[1] == expires_ms

    def _trim(self) -> None:
        """Rebuild the heap when most of its entries are stale."""
        if len(self._index.ends) > 2 * self._count + _ENDS_SPARE:
            self._index.ends = _ends(self._of_agent)

    @property
    def _index(self) -> "_Index":
        if self._found is None:
            self._found = _Index(self._of_agent)
        return self._found


_OfAgent = Mapping[int, Mapping[tuple[int, int], tuple[int, int]]]


class _Index:
    """An index of the same refusals, by client and by expiry.

    `of_client`: the pairs (agent, kind) that each client refused.
    `ends`: a heap of (expires_ms, agent, client, kind). Entries of removed refusals are stale; they
        stay until `RestKindFilters._trim`.
    """

    def __init__(self, of_agent: _OfAgent) -> None:
        self.of_client: dict[int, set[tuple[int, int]]] = {}
        self.ends = _ends(of_agent)
        for _, agent, client, kind in self.ends:
            self.of_client.setdefault(client, set()).add((agent, kind))

    def add(self, client: int, agent: int, kind: int, expires_ms: int) -> None:
        self.of_client.setdefault(client, set()).add((agent, kind))
        heappush(self.ends, (expires_ms, agent, client, kind))

    def forget(self, client: int, agent: int, kind: int) -> None:
        """Remove a refusal from its client's pairs, which makes its entry in the heap stale."""
        pairs = self.of_client[client]
        pairs.discard((agent, kind))
        if not pairs:
            del self.of_client[client]


def _ends(of_agent: _OfAgent) -> list[tuple[int, int, int, int]]:
    ends = [
        (expires_ms, agent, client, kind)
        for agent, refusals in of_agent.items()
        for (client, kind), (_, expires_ms) in refusals.items()
    ]
    heapify(ends)
    return ends
