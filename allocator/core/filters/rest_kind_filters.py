"""Clients that are not offered the rest of an agent for a while, because they got nothing of it.

Nobody but the module knows who may have which part of a rest kind. So it is offered to one client
after another. A client that got nothing of it is not offered it again for some time. Otherwise the
first client would be offered it in every cycle, and the client that may have it never.
"""

from collections.abc import Callable, Iterator

REFUSALS_MAX = 200_000
"""How many refusals are kept at most; a client whose refusal is not kept is asked again."""


class RestKindFilters:
    """Refusals of rest kinds, by agent."""

    def __init__(self) -> None:
        self._of_agent: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
        self._count = 0
        self._next_expiry_ms: int | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        """Agents on which something is refused."""
        return iter(self._of_agent)

    def add(self, client: int, agent: int, kind: int, amount: int, expires_ms: int) -> None:
        """Keep a client from so much of a kind, up to and including `expires_ms`."""
        if self._count >= REFUSALS_MAX:
            return
        refusals = self._of_agent.setdefault(agent, {})
        self._count += (client, kind) not in refusals
        refusals[client, kind] = amount, expires_ms
        if self._next_expiry_ms is None or expires_ms < self._next_expiry_ms:
            self._next_expiry_ms = expires_ms

    def clients(self, agent: int, kind: int, free: int) -> list[int]:
        """Who is kept from a kind on an agent where so much of it is free."""
        return [
            client
            for (client, refused), (amount, _) in self._of_agent.get(agent, {}).items()
            if refused == kind and free <= amount
        ]

    def expire(self, now_ms: int) -> list[int]:
        """Drop what is not in force any more; says on which agents."""
        # Nothing has expired yet: the usual case costs one comparison.
        if self._next_expiry_ms is None or self._next_expiry_ms >= now_ms:
            return []
        touched = self._keep(lambda _, expires_ms: expires_ms >= now_ms)
        left = (row[1] for rows in self._of_agent.values() for row in rows.values())
        self._next_expiry_ms = min(left, default=None)
        return touched

    def drop_agent(self, agent: int) -> None:
        self._count -= len(self._of_agent.pop(agent, {}))

    def drop_client(self, client: int) -> list[int]:
        """Forget what a client refused; says on which agents."""
        return self._keep(lambda other, _: other != client)

    def _keep(self, kept: Callable[[int, int], bool]) -> list[int]:
        """Keep the refusals whose client and time of expiry pass; says which agents lost some."""
        touched = []
        for agent in list(self._of_agent):
            before = self._of_agent[agent]
            after = {key: row for key, row in before.items() if kept(key[0], row[1])}
            if len(after) < len(before):
                touched.append(agent)
                self._count -= len(before) - len(after)
                if after:
                    self._of_agent[agent] = after
                else:
                    del self._of_agent[agent]
        return touched
