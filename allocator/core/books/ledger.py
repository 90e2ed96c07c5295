"""Holdings: one row for each (client, agent) where the client has resources in use or on offer.

A change applies to the rows and to their sums by agent and by client, or to none of them.
"""

from typing import ClassVar

import numpy as np

from allocator.core.books import ledger_loops as loops
from allocator.core.books.ledger_loops import COLUMNS, Books, Rows, Spare
from allocator.core.books.sparse_rows import SparseRows
from allocator.core.events import Move
from allocator.core.numba.array_structures import KeyMap, distinct, pair
from allocator.core.numba.columns import grown, new_arrays
from allocator.core.numba.compiled import loop_view
from allocator.core.numba.wide_tables import untouched
from allocator.core.snapshot import Bools, Ints


class Ledger:
    """The holdings, with their sums by agent and by client.

    `changed`: the clients of each change, for a reader that empties the list; None: no reader.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("changed",)

    def __init__(self) -> None:
        self.changed: list[Ints] | None = None
        self._rows = KeyMap()
        self._spare: list[int] = []
        self._end = 0
        self.books = new_arrays(Books, COLUMNS)

    def __len__(self) -> int:
        return len(self._rows)

    def reserve(self, *, agents: int = 0, clients: int = 0, kinds: int = 0) -> None:
        sizes = {"holding": 0, "agent": agents, "client": clients, "kind": kinds}
        self.books = grown(self.books, COLUMNS, **sizes)

    def find(self, client: Ints, agent: Ints) -> Ints:
        """Return the rows of holdings (N,); -1 where nothing is held."""
        return self._rows.get(pair(agent, client))

    def uses_something(self, client: Ints, agent: Ints) -> Bools:
        rows = self.find(client, agent)
        return (rows >= 0) & (self.books.kinds_used[rows] > 0)

    def is_offered_something(self, client: Ints, agent: Ints) -> Bools:
        rows = self.find(client, agent)
        return (rows >= 0) & (self.books.kinds_offered[rows] > 0)

    def charge(
        self, client: Ints, agent: Ints, kind: Ints, amount: Ints, *, as_offer: bool, now_ms: int
    ) -> None:
        """Add amounts (N, K), all >= 0, to the holdings of clients on agents."""
        # Do not make rows for zero amounts.
        something = amount.any(axis=1)
        if not something.all():
            client, agent, amount = client[something], agent[something], amount[something]
        if len(client):
            self._note(client)
            rows = self._open(client, agent, now_ms)
            amount = np.ascontiguousarray(amount)  # loops are compiled for this layout
            loops.charge(self.books, rows, kind, amount, as_offer, now_ms)

    def offer(self, client: Ints, agent: Ints, amounts: SparseRows, *, now_ms: int) -> None:
        """Add N offers; each pair (client, agent) occurs at most once."""
        if len(client):
            self._note(client)
            rows = self._open(client, agent, now_ms)  # this may replace the arrays of the books
            loops.offer(self.books, rows, amounts, now_ms)

    def withdraw(self, client: Ints, agent: Ints, amounts: SparseRows) -> bool:
        """Release offers. If one is no longer held in full, change nothing and return False."""
        rows = self.find(client, agent)
        done = bool(loops.withdraw(self.books, rows, amounts))
        if done:
            self._note(client)
            self._close(rows)
        return done

    def release(
        self, client: Ints, agent: Ints, kind: Ints, amount: Ints, used: Bools
    ) -> tuple[int, Ints]:
        """Release amounts (N, K); rows with a client or agent below 1 are skipped.

        Returns the first row that releases more than is held, in which case nothing has changed, or
        -1; and since when each client had used something on the agent (N,), see `loops.release`.
        """
        rows = self.find(client, agent)
        # The loop skips rows without a holding, so check first that these release nothing.
        nothing_held = (rows < 0) & (client > 0) & (agent > 0) & amount.any(axis=1)
        if nothing_held.any():
            return int(np.argmax(nothing_held)), np.full(len(rows), -1)
        began_ms, amount = np.full(len(rows), -1), np.ascontiguousarray(amount)
        failed = int(loops.release(self.books, rows, kind, amount, used, began_ms))
        if failed < 0:
            self._note(client)
            self._close(rows)
        return failed, began_ms

    def use(self, client: Ints, agent: Ints, kind: Ints, amount: Ints, *, now_ms: int) -> None:
        self._note(client)
        rows, amount = self.find(client, agent), np.ascontiguousarray(amount)
        loops.use(self.books, rows, kind, amount, now_ms)

    def move(self, moves: Rows, role_of_client: Ints, subscribed: Bools, *, now_ms: int) -> int:
        """Apply moves row by row, see `ledger_loops.move`; returns the number of applied rows."""
        # Take a row for each holding that may be created: spare rows first, then new ones.
        most = int((moves.what == Move.HOLD).sum())
        taken = self._spare[max(len(self._spare) - most, 0) :]
        del self._spare[len(self._spare) - len(taken) :]
        more = self._end + most - len(taken)
        if more > len(self.books.agent):
            self.books = grown(self.books, COLUMNS, holding=more)
        stack = np.empty(len(taken) + len(moves.what), np.int64)
        stack[: len(taken)] = taken
        tally = np.array([len(taken), self._end, len(self)])
        spare = Spare(*self._rows.lend(most), stack, tally)
        done = int(loops.move(self.books, spare, moves, role_of_client, subscribed, now_ms))
        left, self._end, count = tally.tolist()
        self._spare.extend(stack[:left].tolist())
        self._rows.counted(count)
        self._note(moves.client[:done])
        return done

    def drop(self, rows: Ints) -> None:
        self._note(self.books.client[rows])
        loops.drop(self.books, rows)
        self._close(rows)

    def rows_of_agent(self, agent: int) -> Ints:
        """Return the rows of all holdings on an agent, ascending."""
        rows: Ints = loops.listed(self.books.of_agent, self.books.next_of_agent, agent)
        rows.sort()
        return rows

    def rows_of_client(self, client: int) -> Ints:
        rows: Ints = loops.listed(self.books.of_client, self.books.next_of_client, client)
        rows.sort()
        return rows

    def rows(self) -> Ints:
        """Return the rows of all holdings, ascending."""
        return np.flatnonzero(self.books.agent[: self._end] > 0)

    def oldest_offer_ms(self) -> Ints:
        """Return since when each client has had something on offer, (C,); -1: nothing on offer."""
        return loops.oldest_offer(self.books, self._end)

    def offered_by_agent(self) -> Ints:
        """Return the amounts on offer (and not in use) on each agent, (K, A)."""
        offered = untouched(self.books.agent_held.shape, np.int64)
        loops.offered_by_agent(self.books, self._end, offered)
        return offered

    def agents_of(self, groups: Ints, count: int) -> Ints:
        """Return the number of agents on which each group of clients holds something, (count,).

        `groups` (C, n): the groups of each client, below `count`; -1: none.
        """
        taken: Ints = loops.agents_of_groups(self.books, self._end, loop_view(groups), count)
        return taken

    def holders(self, agents: Ints) -> Ints:
        """Return the holders on `agents` (J,), as sorted keys ``j * 2**32 + client``."""
        keys: Ints = loops.keys_of_agents(self.books, agents)
        return keys

    def at(self, keys: Ints) -> Ints:
        """Return rows of holdings (N,), by keys ``agent * 2**32 + client``; all must exist."""
        return self._rows.get(keys)

    def opened_ms(self, keys: Ints) -> Ints:
        """Return since when each client has held something on the agent, (N,).

        `keys` are as in `at`. The largest integer stands for a pair that holds nothing.
        """
        rows = self._rows.get(keys)
        opened_ms = np.full(len(keys), np.iinfo(np.int64).max)
        opened_ms[rows >= 0] = self.books.opened_ms[rows[rows >= 0]]
        return opened_ms

    def find_offers(
        self, role_of_client: Ints, role: Ints, agent: Ints, kind: Ints, amount: Ints
    ) -> Ints:
        """Find the clients that were offered these amounts; of several, the one in the lowest row.

        `role_of_client` (C,); `role`, `agent` (N,); `kind` (K,); `amount` (N, K), in thousandths.
        Returns (N,): clients; 0 if no client in the role has that much on offer on the agent.
        """
        amount = np.ascontiguousarray(amount)
        found: Ints = loops.find_offers(self.books, role_of_client, role, agent, kind, amount)
        return found

    def _note(self, client: Ints) -> None:
        if self.changed is not None:
            self.changed.append(client)

    def _open(self, client: Ints, agent: Ints, now_ms: int) -> Ints:
        """Return the rows of holdings; creates missing ones."""
        keys = pair(agent, client)
        rows = self._rows.get(keys)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            # A pair that occurs several times gets one row; rows left over become spare again.
            taken = self._take_rows(len(missing))
            rows[missing], first = self._rows.claim(keys[missing], taken)
            fresh, at = taken[: len(first)], missing[first]
            self._spare.extend(taken[len(first) :].tolist())
            self.books.agent[fresh] = agent[at]
            self.books.client[fresh] = client[at]
            self.books.opened_ms[fresh] = now_ms
            np.add.at(self.books.agents_held, client[at], 1)
            loops.enlist(self.books, fresh)
        return rows

    def _take_rows(self, count: int) -> Ints:
        at = max(len(self._spare) - count, 0)
        taken = self._spare[at:]
        del self._spare[at:]
        more = count - len(taken)
        taken.extend(range(self._end, self._end + more))
        self._end += more
        if self._end > len(self.books.agent):
            self.books = grown(self.books, COLUMNS, holding=self._end)
        return np.array(taken, np.int64)

    def _close(self, rows: Ints) -> None:
        """Free the rows that no longer hold anything."""
        books = self.books
        emptied = distinct(rows[(rows >= 0) & (books.kinds_held[rows] == 0)])
        if not len(emptied):
            return
        agent, client = books.agent[emptied], books.client[emptied]
        self._rows.delete(pair(agent, client))
        np.subtract.at(books.agents_held, client, 1)
        loops.unlist(books, emptied)
        # Zeros mark a free row; its amounts are zeros already.
        books.agent[emptied] = 0
        books.client[emptied] = 0
        self._spare.extend(emptied.tolist())

    def check(self, now_ms: int) -> None:
        """Verify that sums equal the sums of the rows, and that no row is empty or unreachable."""
        books = self.books
        rows = self.rows()
        # Each row is found under its key, has amounts within bounds, is not empty, and has
        # plausible times.
        assert len(rows) == len(self._rows)
        assert (self.find(books.client[rows], books.agent[rows]) == rows).all()
        assert (books.offered >= 0).all()
        assert (books.held >= books.offered).all()
        for count, flags in (
            (books.kinds_held, books.held != 0),
            (books.kinds_offered, books.offered != 0),
            (books.kinds_used, books.held != books.offered),
        ):
            assert (count == flags.sum(axis=0)).all()
        assert books.kinds_held[rows].all()
        since_ms = books.since_ms[books.kinds_offered > 0]
        assert ((since_ms >= 0) & (since_ms <= now_ms)).all()
        assert (books.opened_ms[rows] <= now_ms).all()
        used_ms = books.used_ms[rows[books.kinds_used[rows] > 0]]
        assert ((used_ms >= -1) & (used_ms <= now_ms)).all()
        offering = books.client_offered.any(axis=0)
        assert ((self.oldest_offer_ms() >= 0) == offering).all()
        # The sums by agent and by client, added up again.
        for owner, held, total in (
            (books.agent, books.held, books.agent_held),
            (books.client, books.held, books.client_held),
            (books.client, books.offered, books.client_offered),
        ):
            expected = np.zeros_like(total)
            np.add.at(expected.T, owner[rows], held.T[rows])
            assert (expected == total).all()
        offered = np.zeros_like(books.agent_held)
        np.add.at(offered.T, books.agent[rows], books.offered.T[rows])
        assert (self.offered_by_agent() == offered).all()
        counts = np.bincount(books.client[rows], minlength=len(books.agents_held))
        assert (counts == books.agents_held).all()
        # The lists of agents and of clients contain each row once.
        for owner, heads, rows_of in (
            (books.agent, books.of_agent, self.rows_of_agent),
            (books.client, books.of_client, self.rows_of_client),
        ):
            listed = [rows_of(one) for one in range(len(heads))]
            assert all((owner[some] == one).all() for one, some in enumerate(listed))
            assert (np.sort(np.concatenate(listed)) == rows).all()
        every = np.arange(len(books.of_agent))
        assert (self.holders(every) == np.sort(pair(books.agent[rows], books.client[rows]))).all()
