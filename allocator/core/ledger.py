"""Who holds what where: one row for each (client, agent) that has something.

The ledger also keeps the two sums that cycles need, by agent and by client, in step with the rows:
a change either happens in all three or in none.
"""

from typing import NamedTuple, cast

import numpy as np

from allocator.core.array_structures import KeyMap, grow, pair
from allocator.core.compiled import loop, part
from allocator.core.snapshot import Bools, Ints


class Books(NamedTuple):
    """The arrays of the ledger, as the compiled loops take them.

    Attributes
    ----------
    held, offered : (H, K) int64
        Of each holding; `offered` is the part that is not in use yet.
    since_ms : (H,) int64
        Since when something of the holding has been on offer without a break; means nothing where
        nothing is.
    agent, client : (H,) int64
    agent_held : (A, K) int64
    client_held, client_offered : (C, K) int64
    agents_held : (C,) int64
    touched : (A,) bool
        Set whenever what is held on the agent changes.
    """

    held: Ints
    offered: Ints
    since_ms: Ints
    agent: Ints
    client: Ints
    agent_held: Ints
    client_held: Ints
    client_offered: Ints
    agents_held: Ints
    touched: Bools


@part()
def _add_cell(books: Books, row: int, kind: int, held: int, offered: int) -> None:
    agent, client = books.agent[row], books.client[row]
    books.held[row, kind] += held
    books.agent_held[agent, kind] += held
    books.touched[agent] = True
    books.client_held[client, kind] += held
    books.offered[row, kind] += offered
    books.client_offered[client, kind] += offered


@part()
def _on_offer(books: Books, row: int) -> bool:
    for k in range(books.offered.shape[1]):
        if books.offered[row, k] != 0:
            return True
    return False


@loop
def _charge(
    books: Books, rows: Ints, kind: Ints, amount: Ints, as_offer: bool, now_ms: int
) -> None:
    for i in range(len(rows)):
        if as_offer and not _on_offer(books, rows[i]):
            books.since_ms[rows[i]] = now_ms
        for k in range(len(kind)):
            if amount[i, k] != 0:
                _add_cell(books, rows[i], kind[k], amount[i, k], amount[i, k] if as_offer else 0)


@part()
def _give_back_row(books: Books, row: int, kind: Ints, amount: Ints, used: bool) -> None:
    """Release one row: first what was in use where a task ended, else first what was offered."""
    for k in range(len(kind)):
        if amount[k] == 0:
            continue
        offered = books.offered[row, kind[k]]
        in_use = books.held[row, kind[k]] - offered
        back = max(amount[k] - in_use, 0) if used else min(amount[k], offered)
        _add_cell(books, row, kind[k], -amount[k], -back)


@loop
def _release(books: Books, rows: Ints, kind: Ints, amount: Ints, used: Bools) -> int:
    """Release row by row; -1, or the first row that releases more than is held, undone to there."""
    before = np.zeros((len(rows), len(kind)), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            continue
        fits = True
        for k in range(len(kind)):
            before[i, k] = books.offered[row, kind[k]]
            fits = fits and books.held[row, kind[k]] >= amount[i, k]
        if not fits:
            for undone in range(i - 1, -1, -1):
                row = rows[undone]
                if row < 0:
                    continue
                for k in range(len(kind)):
                    offered = before[undone, k] - books.offered[row, kind[k]]
                    _add_cell(books, row, kind[k], amount[undone, k], offered)
            return i
        _give_back_row(books, row, kind, amount[i], used[i])
    return -1


@loop
def _use(books: Books, rows: Ints, kind: Ints, amount: Ints) -> None:
    for i in range(len(rows)):
        if rows[i] < 0:
            continue
        for k in range(len(kind)):
            moved = min(amount[i, k], books.offered[rows[i], kind[k]])
            _add_cell(books, rows[i], kind[k], 0, -moved)


@loop
def _empty(held: Ints, rows: Ints) -> Bools:
    empty = np.zeros(len(rows), np.bool_)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            continue
        empty[i] = True
        for k in range(held.shape[1]):
            if held[row, k] != 0:
                empty[i] = False
                break
    return empty


@loop
def _oldest_offer(books: Books, end: int) -> Ints:
    oldest = np.full(len(books.agents_held), -1, np.int64)
    for row in range(end):
        client = books.client[row]
        if client == 0 or not _on_offer(books, row):
            continue
        if oldest[client] < 0 or books.since_ms[row] < oldest[client]:
            oldest[client] = books.since_ms[row]
    return oldest


class Ledger:
    """The holdings, with their sums by agent and by client."""

    def __init__(self) -> None:
        """Begin with nothing held."""
        self._rows = KeyMap()
        self._spare: list[int] = []
        self._end = 0
        narrow = (0, 0)
        self.books = Books(
            held=np.zeros(narrow, np.int64),
            offered=np.zeros(narrow, np.int64),
            since_ms=np.zeros(0, np.int64),
            agent=np.zeros(0, np.int64),
            client=np.zeros(0, np.int64),
            agent_held=np.zeros(narrow, np.int64),
            client_held=np.zeros(narrow, np.int64),
            client_offered=np.zeros(narrow, np.int64),
            agents_held=np.zeros(0, np.int64),
            touched=np.zeros(0, np.bool_),
        )

    def __len__(self) -> int:
        return len(self._rows)

    def reserve(self, *, agents: int = 0, clients: int = 0, kinds: int = 0) -> None:
        """Make room for so many agents, clients and kinds."""
        books = self.books
        width = max(kinds, books.agent_held.shape[1])
        self.books = books._replace(
            held=grow(books.held, 0, width),
            offered=grow(books.offered, 0, width),
            since_ms=grow(books.since_ms, 0),
            agent=grow(books.agent, 0),
            client=grow(books.client, 0),
            agent_held=grow(books.agent_held, agents, width),
            client_held=grow(books.client_held, clients, width),
            client_offered=grow(books.client_offered, clients, width),
            agents_held=grow(books.agents_held, clients),
            touched=grow(books.touched, agents),
        )

    def find(self, client: Ints, agent: Ints) -> Ints:
        """Rows of holdings; -1 where nothing is held."""
        return self._rows.get(pair(agent, client))

    def charge(
        self, client: Ints, agent: Ints, kind: Ints, amount: Ints, *, as_offer: bool, now_ms: int
    ) -> None:
        """Book amounts (N, K), all >= 0, to clients on agents."""
        something = amount.any(axis=1)
        if not something.all():
            client, agent, amount = client[something], agent[something], amount[something]
        if len(client):
            rows = self._open(client, agent)
            amount = np.ascontiguousarray(amount)  # one layout: loops are compiled for each
            _charge(self.books, rows, kind, amount, as_offer, now_ms)

    def release(self, client: Ints, agent: Ints, kind: Ints, amount: Ints, used: Bools) -> int:
        """Give amounts (N, K) back; rows with a client or agent below 1 are passed over.

        Returns
        -------
        int
            -1; or a row that gives back more than is held, with nothing changed.
        """
        rows = self.find(client, agent)
        nothing_held = (rows < 0) & (client > 0) & (agent > 0) & amount.any(axis=1)
        if nothing_held.any():
            return int(np.argmax(nothing_held))
        failed = int(_release(self.books, rows, kind, np.ascontiguousarray(amount), used))
        if failed < 0:
            self._close(rows)
        return failed

    def use(self, client: Ints, agent: Ints, kind: Ints, amount: Ints) -> None:
        """Move amounts (N, K) from offered to used, as far as they are offered."""
        _use(self.books, self.find(client, agent), kind, np.ascontiguousarray(amount))

    def drop(self, rows: Ints) -> None:
        """Forget holdings altogether."""
        books = self.books
        kind = np.arange(books.held.shape[1])
        # One kind of release for both parts: all that is offered goes, then all that is used.
        _release(books, rows, kind, books.held[rows], np.zeros(len(rows), np.bool_))
        self._close(rows)

    def rows_of_agent(self, agent: int) -> Ints:
        """Rows of all holdings on an agent, ascending."""
        return np.flatnonzero(self.books.agent[: self._end] == agent)

    def rows_of_client(self, client: int) -> Ints:
        """Rows of all holdings of a client, ascending."""
        return np.flatnonzero(self.books.client[: self._end] == client)

    def rows(self) -> Ints:
        """Rows of all holdings, ascending."""
        return np.flatnonzero(self.books.agent[: self._end] > 0)

    def oldest_offer_ms(self) -> Ints:
        """Since when each client has had something on offer, (C,); -1 where it has nothing."""
        return _oldest_offer(self.books, self._end)

    def holders(self) -> Ints:
        """Sorted keys ``agent * 2**32 + client`` of all holdings."""
        return cast("Ints", np.sort(self._rows.keys()))

    def _open(self, client: Ints, agent: Ints) -> Ints:
        """Rows of holdings, made where there is none."""
        keys = pair(agent, client)
        rows = self._rows.get(keys)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            new_keys, first = np.unique(keys[missing], return_index=True)
            at = missing[first]
            fresh = self._take_rows(len(new_keys))
            self._rows.put(new_keys, fresh)
            self.books.agent[fresh] = agent[at]
            self.books.client[fresh] = client[at]
            np.add.at(self.books.agents_held, client[at], 1)
            rows = self._rows.get(keys)
        return rows

    def _take_rows(self, count: int) -> Ints:
        at = max(len(self._spare) - count, 0)
        taken = self._spare[at:]
        del self._spare[at:]
        more = count - len(taken)
        taken.extend(range(self._end, self._end + more))
        self._end += more
        books = self.books
        self.books = books._replace(
            held=grow(books.held, self._end),
            offered=grow(books.offered, self._end),
            since_ms=grow(books.since_ms, self._end),
            agent=grow(books.agent, self._end),
            client=grow(books.client, self._end),
        )
        return np.array(taken, np.int64)

    def _close(self, rows: Ints) -> None:
        """Free the rows that hold nothing any more."""
        books = self.books
        emptied = np.unique(rows[_empty(books.held, rows)])
        if not len(emptied):
            return
        agent, client = books.agent[emptied], books.client[emptied]
        self._rows.delete(pair(agent, client))
        np.subtract.at(books.agents_held, client, 1)
        books.agent[emptied] = 0
        books.client[emptied] = 0
        self._spare.extend(emptied.tolist())

    def check(self, now_ms: int) -> None:
        """Verify that the sums are the sums of the rows, and that no row is empty or lost."""
        books = self.books
        rows = self.rows()
        assert len(rows) == len(self._rows)
        assert (self.find(books.client[rows], books.agent[rows]) == rows).all()
        assert (books.offered >= 0).all()
        assert (books.held >= books.offered).all()
        assert books.held[rows].any(axis=1).all()
        since_ms = books.since_ms[books.offered.any(axis=1)]
        assert ((since_ms >= 0) & (since_ms <= now_ms)).all()
        offering = books.client_offered.any(axis=1)
        assert ((self.oldest_offer_ms() >= 0) == offering).all()
        for owner, held, total in (
            (books.agent, books.held, books.agent_held),
            (books.client, books.held, books.client_held),
            (books.client, books.offered, books.client_offered),
        ):
            expected = np.zeros_like(total)
            np.add.at(expected, owner[rows], held[rows])
            assert (expected == total).all()
        counts = np.bincount(books.client[rows], minlength=len(books.agents_held))
        assert (counts == books.agents_held).all()
