"""Counts tasks and agents of holders, for caps on them.

A client holds as many tasks as it has amounts for: the resource of its demand that suffices for the
most determines the number, and a started task counts. Clients whose demand is unknown count no
task. Policies know no such caps. Three things keep grants within them:

- `Bounds` of clients say how much more each may be granted if no other client of its holders is
  granted anything;
- a holder with its number of agents is excluded from all others;
- `within` finds grants of a policy that together exceed a cap; they are dropped.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.numba import array_types

Ints = array_types.Ints
Bools = array_types.Bools

UNBOUNDED = 2**62
"""An amount larger than any real one, used for "no limit"."""

_LOW = 2**32 - 1


class Counts(NamedTuple):
    """Caps on tasks and agents, q rows, and what counts under them.

    `of_client` (C, n): the rows that apply to each client; -1: none.
    `tasks`, `agents` (q,): the largest numbers; `UNBOUNDED`: no limit.
    `held` (C, R), in thousandths: what counts of the holdings of each client.
    `size` (C, R), in thousandths: one task of each client; zeros if unknown.
    `bounded` (m,): clients with a cap on tasks and a known demand.
    `first`: the row of the snapshot's bounds with that of the first of them.
    `taken` (q,): number of agents on which something is held under a cap on agents.
    `on` (p,): sorted keys ``agent * 2**32 + row``: these agents, as far as they are in the snapshot.
    """

    of_client: Ints
    tasks: Ints
    agents: Ints
    held: Ints
    size: Ints
    bounded: Ints
    first: int
    taken: Ints
    on: Ints

    @staticmethod
    def pairs(of_client: Ints, agents: Ints, holder: Ints) -> Ints:
        """Return sorted keys ``agent * 2**32 + row`` of caps on agents.

        `of_client`, `agents`: as in the class.
        `holder` (H,): keys ``agent * 2**32 + client``.
        """
        bounded = np.append(agents < UNBOUNDED, False)
        agent, client = holder >> np.int64(32), holder & _LOW
        keys = [np.empty(0, np.int64)]
        for row in of_client.T:
            its = row[client]
            here = bounded[its]
            keys.append((agent[here] << np.int64(32)) | its[here])
        return np.unique(np.concatenate(keys))

    def tasks_held(self) -> Ints:
        """Return how many tasks each client holds, (C,)."""
        return whole_tasks(self.held, self.size)

    def tasks_left(self) -> Ints:
        """Return how many more tasks may be held under each cap, (q,); may be negative."""
        total, tasks = np.zeros(len(self.tasks), np.int64), self.tasks_held()
        for row in self.of_client.T:
            inside = np.flatnonzero(row >= 0)
            np.add.at(total, row[inside], tasks[inside])
        return np.where(self.tasks < UNBOUNDED, self.tasks - total, UNBOUNDED)

    def left(self) -> Ints:
        """Return how much more each of `bounded` may be granted, (m, R), in thousandths.

        Without a whole task left, this is nothing, even of resources that no task needs.
        """
        return self._amounts(self.tasks_left())

    def most(self) -> Ints:
        """Return how much each of `bounded` may hold, (m, R), in thousandths."""
        return self._amounts(self.tasks)

    def _amounts(self, tasks: Ints) -> Ints:
        every = np.append(tasks, UNBOUNDED)
        least = every[self.of_client[self.bounded]].min(axis=1, initial=UNBOUNDED)
        tasks, size = np.maximum(least, 0)[:, None], self.size[self.bounded]
        amount = np.minimum(tasks, UNBOUNDED // np.maximum(size, 1)) * size
        return np.where((size > 0) | (tasks == 0), amount, UNBOUNDED)

    def full(self) -> Bools:
        """Return which caps on agents leave no further agent, (q,)."""
        return self.taken >= self.agents

    def limits_agents(self) -> Bools:
        """Return which clients have a cap on agents, (C,)."""
        limited = np.append(self.agents < UNBOUNDED, False)
        return np.asarray(limited[self.of_client].any(axis=1))

    def agents_of(self, client: int) -> tuple[Ints, int]:
        """Return the agents on which all holders of a client hold something, and how many more.

        Only holders with a cap on agents count.
        """
        rows = self.of_client[client]
        rows = rows[(rows >= 0) & (self.agents[rows] < UNBOUNDED)]
        mine = np.isin(self.on & _LOW, rows)
        agent, times = np.unique(self.on[mine] >> np.int64(32), return_counts=True)
        left = int((self.agents[rows] - self.taken[rows]).min())
        return agent[times == len(rows)], max(left, 0)

    def open_to(self, clients: Bools) -> tuple[Ints, Ints]:
        """Return the agents, and the clients, that may be paired although a cap is full, (n,) each.

        `clients` (C,): those under a full cap.
        """
        full, needed = np.append(self.full(), False), np.zeros(len(clients), np.int64)
        keys = [np.empty(0, np.int64)]
        agent, row = self.on >> np.int64(32), self.on & _LOW
        for column in self.of_client.T:
            mine = np.flatnonzero(full[column])
            needed[mine] += 1
            # All clients of each row, for each agent of the row.
            mine = mine[np.argsort(column[mine], kind="stable")]
            begin, end = (np.searchsorted(column[mine], row, side) for side in ("left", "right"))
            number = end - begin
            offset = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            client = mine[np.repeat(begin, number) + offset]
            keys.append((np.repeat(agent, number) << np.int64(32)) | client)
        pair, times = np.unique(np.concatenate(keys), return_counts=True)
        pair = pair[times == needed[pair & _LOW]]
        return pair >> np.int64(32), pair & _LOW

    def charged(self, client: Ints, agent: Ints, amount: Ints) -> "Counts":
        """Return the counts after grants (G,); `amount` (G, R): what counts of them."""
        held = self.held.copy()
        np.add.at(held, client, amount)
        keys = (agent << np.int64(32)) | client
        pairs = np.setdiff1d(self.pairs(self.of_client, self.agents, keys), self.on)
        taken = self.taken + np.bincount(pairs & _LOW, minlength=len(self.taken))
        return self._replace(held=held, taken=taken, on=np.union1d(self.on, pairs))

    def within(self, client: Ints, agent: Ints, amount: Ints) -> Bools:
        """Return which grants (G,), in their order, exceed no cap.

        Of the grants under a cap, all from the first one that exceeds it do.

        `amount` (G, R): what counts of each against caps on tasks.
        """
        kept = np.ones(len(client), np.bool_)
        if (self.tasks < UNBOUNDED).any():
            left, more = self.tasks_left(), self._more_tasks(client, amount)
            for row in self.of_client[client].T:
                self._keep(kept, row, left, more)
        if (self.agents < UNBOUNDED).any():
            for row in self.of_client[client].T:
                self._keep(kept, row, self.agents - self.taken, self._is_new(row, agent))
        return kept

    def _keep(self, kept: Bools, row: Ints, left: Ints, more: Ints) -> None:
        """Mark grants of which too many are before them under their caps.

        `row` (G,): a cap of each; -1: none.
        `left` (q,); `more` (G,): what each grant takes of it.
        """
        order = np.argsort(row, kind="stable")
        order = order[row[order] >= 0]
        if not len(order):
            return
        which = row[order]
        total = _sums_within(which, more[order])
        # A grant that takes nothing exceeds nothing.
        kept[order[(total > left[which]) & (more[order] > 0)]] = False

    def _more_tasks(self, client: Ints, amount: Ints) -> Ints:
        """Return how many more tasks the client of each grant holds with it, (G,)."""
        order = np.argsort(client, kind="stable")
        who = client[order]
        begins = np.diff(who, prepend=-1) != 0
        total = np.stack([_sums_within(who, column) for column in amount[order].T], axis=1)
        tasks = whole_tasks(self.held[who] + total, self.size[who])
        before = np.where(begins, self.tasks_held()[who], np.roll(tasks, 1))
        more = np.zeros(len(client), np.int64)
        more[order] = tasks - before
        return more

    def _is_new(self, row: Ints, agent: Ints) -> Ints:
        """Return 1 for each grant with which a cap's holder takes a further agent, (G,); else 0."""
        new = np.zeros(len(row), np.int64)
        mine = np.flatnonzero(row >= 0)
        keys, first = np.unique((agent[mine] << np.int64(32)) | row[mine], return_index=True)
        new[mine[first[~np.isin(keys, self.on)]]] = 1
        return new


def whole_tasks(held: Ints, size: Ints) -> Ints:
    """Return how many tasks of a size are in amounts, (n,), rounded up; both (n, R)."""
    tasks = -(-held // np.maximum(size, 1))
    return np.where(size > 0, tasks, 0).max(axis=1, initial=0)


def _sums_within(group: Ints, amount: Ints) -> Ints:
    """Add up amounts (n,) from the first of each group to each; groups are adjacent."""
    total = np.cumsum(amount)
    begins = np.diff(group, prepend=-1) != 0
    before = (total - amount)[begins]
    return total - before[np.cumsum(begins) - 1]
