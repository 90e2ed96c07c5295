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
from allocator.core.numba.array_structures import contains, distinct, pair

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
    `on` (p,): sorted keys ``agent * 2**32 + row``: those of them that are in the snapshot.
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
            keys.append(pair(agent[here], its[here]))
        return distinct(np.concatenate(keys))

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

    def under_full(self) -> Bools:
        """Return which clients have a cap on agents that leaves no further one, (C,)."""
        return self._have(self.full())

    def newly_full(self, before: "Counts") -> Bools:
        """Return which clients have such a cap that left one before, (C,)."""
        return self._have(self.full() & ~before.full())

    def _have(self, rows: Bools) -> Bools:
        """Return which clients some of the caps (q,) apply to, (C,)."""
        return np.asarray(np.append(rows, False)[self.of_client].any(axis=1))

    def limits_agents(self) -> Bools:
        """Return which clients have a cap on agents, (C,)."""
        return self._have(self.agents < UNBOUNDED)

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

        These are the agents of all full caps of each client.

        `clients` (C,): some of the clients in `under_full`.
        """
        full = np.append(self.full(), False)[self.of_client] & clients[:, None]
        needed, keys = full.sum(axis=1), [np.empty(0, np.int64)]
        agent, row = self.on >> np.int64(32), self.on & _LOW
        for column, here in zip(self.of_client.T, full.T, strict=True):
            # All clients of each row, for each agent of the row.
            mine = np.flatnonzero(here)
            mine = mine[np.argsort(column[mine], kind="stable")]
            size = np.bincount(column[mine], minlength=len(self.taken))
            number, begin = size[row], (np.cumsum(size) - size)[row]
            some = np.flatnonzero(number)
            number, begin = number[some], begin[some]
            offset = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            client = mine[np.repeat(begin, number) + offset]
            keys.append(pair(np.repeat(agent[some], number), client))
        pairs = np.concatenate(keys)
        if needed.max(initial=0) > 1:
            pairs, times = np.unique(pairs, return_counts=True)
            pairs = pairs[times == needed[pairs & _LOW]]
        return pairs >> np.int64(32), pairs & _LOW

    def charged(self, client: Ints, agent: Ints, amount: Ints) -> "Counts":
        """Return the counts after grants (G,); `amount` (G, R): what counts of them."""
        held = self.held.copy()
        np.add.at(held, client, amount)
        keys = pair(agent, client)
        pairs = self.pairs(self.of_client, self.agents, keys)
        pairs = pairs[~contains(self.on, pairs)]
        taken = self.taken + np.bincount(pairs & _LOW, minlength=len(self.taken))
        on = np.sort(np.append(self.on, pairs), kind="stable")  # merges sorted runs
        return self._replace(held=held, taken=taken, on=on)

    def within(self, client: Ints, agent: Ints, amount: Ints) -> Bools:
        """Return which grants (G,), in their order, exceed no cap.

        Of the grants under a cap, all from the first one that exceeds it do, except on agents that
        it allows.

        `amount` (G, R): what counts of each against caps on tasks.
        """
        kept = np.ones(len(client), np.bool_)
        if (self.tasks < UNBOUNDED).any():
            left, more = self.tasks_left(), self._more_tasks(client, amount)
            takes = np.asarray(((self.size[client] > 0) & (amount > 0)).any(axis=1))
            for row in self.of_client[client].T:
                order = np.argsort(row, kind="stable")
                order = order[(row[order] >= 0) & takes[order]]
                which = row[order]
                kept[order[_sums_within(which, more[order]) > left[which]]] = False
        if (self.agents < UNBOUNDED).any():
            for row in self.of_client[client].T:
                kept &= self._on_few_agents(row, agent)
        return kept

    def _on_few_agents(self, row: Ints, agent: Ints) -> Bools:
        """Return which grants (G,) are on as many agents as a cap allows, those of the first ones.

        `row` (G,): a cap of each; -1: none.
        """
        few, mine = np.ones(len(row), np.bool_), np.flatnonzero(row >= 0)
        keys = pair(agent[mine], row[mine])
        pairs, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.lexsort((first, pairs & _LOW))
        its = pairs[order] & _LOW
        more = ~contains(self.on, pairs[order])
        fits = np.empty(len(pairs), np.bool_)
        fits[order] = ~more | (_sums_within(its, more.astype(np.int64)) <= self._further()[its])
        few[mine] = fits[which]
        return few

    def _further(self) -> Ints:
        """Return on how many more agents something may be held under each cap, (q,)."""
        return np.where(self.agents < UNBOUNDED, self.agents - self.taken, UNBOUNDED)

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
