"""The arrays of the ledger, and the compiled loops that read and change them."""

from typing import NamedTuple

import numpy as np

from allocator.core.books.sparse_rows import SparseRows
from allocator.core.events import Move
from allocator.core.numba.array_structures import delete_key, find_key, push, put_key, unlink
from allocator.core.numba.columns import Column
from allocator.core.numba.compiled import loop, part
from allocator.core.snapshot import Bools, Indices, Ints


class Books(NamedTuple):
    """The arrays of the ledger: H rows of holdings, and sums by agent and client.

    `held`, `offered` (K, H): of each holding; `offered` is the part that is not in use yet.
    `kinds_held`, `kinds_offered`, `kinds_used` (H,): number of kinds of which the holding has
        something at all, on offer, in use.
    `since_ms` (H,): since when something of the holding has been on offer without a break;
        undefined if nothing is on offer.
    `opened_ms` (H,): since when the client has had something on the agent without a break.
    `used_ms` (H,): since when the client has used something there without a break; -1: since before
        the session began. Undefined if nothing is in use.
    `agent`, `client` (H,): handle and row; 0 if the row is free.
    `agent_held` (K, A), `client_held`, `client_offered` (K, C): sums over holdings.
    `agents_held` (C,): number of agents on which the client holds something.
    `touched` (A,): set whenever what is held on the agent changes.
    `of_agent`, `next_of_agent`, `previous_of_agent` (A,), (H,), (H,): the holdings on each agent,
        as a doubly linked list.
    `of_client`, ... (C,), (H,), (H,): the same for the holdings of each client.
    """

    held: Ints
    offered: Ints
    kinds_held: Indices
    kinds_offered: Indices
    kinds_used: Indices
    since_ms: Ints
    opened_ms: Ints
    used_ms: Ints
    agent: Ints
    client: Ints
    agent_held: Ints
    client_held: Ints
    client_offered: Ints
    agents_held: Ints
    touched: Bools
    of_agent: Indices
    next_of_agent: Indices
    previous_of_agent: Indices
    of_client: Indices
    next_of_client: Indices
    previous_of_client: Indices


_INDEX = Column(np.int32, "holding")

COLUMNS = {
    "held": Column(by="holding", by_kind=True),
    "offered": Column(by="holding", by_kind=True),
    "kinds_held": _INDEX,
    "kinds_offered": _INDEX,
    "kinds_used": _INDEX,
    "since_ms": Column(by="holding"),
    "opened_ms": Column(by="holding"),
    "used_ms": Column(by="holding"),
    "agent": Column(by="holding"),
    "client": Column(by="holding"),
    "agent_held": Column(by="agent", by_kind=True),
    "client_held": Column(by="client", by_kind=True),
    "client_offered": Column(by="client", by_kind=True),
    "agents_held": Column(by="client"),
    "touched": Column(np.bool_, "agent"),
    "of_agent": Column(np.int32, "agent", fill=-1),
    "next_of_agent": _INDEX,
    "previous_of_agent": _INDEX,
    "of_client": Column(np.int32, "client", fill=-1),
    "next_of_client": _INDEX,
    "previous_of_client": _INDEX,
}


@part(forceinline=True)
def _add_cell(books: Books, row: int, kind: int, held: int, offered: int) -> None:
    """Add to one cell of a row and to the sums; all changes of amounts are made here."""
    agent, client = books.agent[row], books.client[row]
    old_held, old_offered = books.held[kind, row], books.offered[kind, row]
    new_held, new_offered = old_held + held, old_offered + offered
    # Unchanged cells are not written, so that unwritten zeros take no memory.
    if held != 0:
        books.held[kind, row] = new_held
        books.agent_held[kind, agent] += held
        books.client_held[kind, client] += held
        books.kinds_held[row] += int(new_held != 0) - int(old_held != 0)
    if offered != 0:
        books.offered[kind, row] = new_offered
        books.client_offered[kind, client] += offered
        books.kinds_offered[row] += int(new_offered != 0) - int(old_offered != 0)
    if held != offered:
        books.kinds_used[row] += int(new_held != new_offered) - int(old_held != old_offered)
    books.touched[agent] = True


@part()
def _on_offer(books: Books, row: int) -> bool:
    return books.kinds_offered[row] != 0


@part()
def _is_used(books: Books, row: int) -> bool:
    return books.kinds_used[row] != 0


@loop
def charge(books: Books, rows: Ints, kind: Ints, amount: Ints, as_offer: bool, now_ms: int) -> None:
    for i in range(len(rows)):
        if as_offer and not _on_offer(books, rows[i]):
            books.since_ms[rows[i]] = now_ms
        if not as_offer and not _is_used(books, rows[i]):
            books.used_ms[rows[i]] = -1
        for k in range(len(kind)):
            if amount[i, k] != 0:
                _add_cell(books, rows[i], kind[k], amount[i, k], amount[i, k] if as_offer else 0)


@loop
def offer(books: Books, rows: Ints, amounts: SparseRows, now_ms: int) -> None:
    for i in range(len(rows)):
        if not _on_offer(books, rows[i]):
            books.since_ms[rows[i]] = now_ms
        for x in range(amounts.start[i], amounts.start[i + 1]):
            _add_cell(books, rows[i], amounts.kind[x], amounts.amount[x], amounts.amount[x])


@loop
def withdraw(books: Books, rows: Ints, amounts: SparseRows) -> bool:
    offered = np.zeros(len(amounts.amount), np.int64)  # the part of each amount not in use
    for i in range(len(rows)):
        for x in range(amounts.start[i], amounts.start[i + 1]):
            row, kind, amount = rows[i], amounts.kind[x], amounts.amount[x]
            # If some of this part came into use, less than the amount is still on offer.
            if row >= 0 and books.held[kind, row] >= amount:
                offered[x] = min(amount, books.offered[kind, row])
                _add_cell(books, row, kind, -amount, -offered[x])
                continue
            # This part is no longer held: restore all parts released before it.
            for done in range(i, -1, -1):
                end = x if done == i else amounts.start[done + 1]
                for y in range(amounts.start[done], end):
                    _add_cell(books, rows[done], amounts.kind[y], amounts.amount[y], offered[y])
            return False
    return True


@part()
def _give_back_row(books: Books, row: int, kind: Ints, amount: Ints, used: bool) -> None:
    """Release one row: if `used` (a task ended), used amounts first, else offered ones."""
    for k in range(len(kind)):
        if amount[k] == 0:
            continue
        offered = books.offered[kind[k], row]
        in_use = books.held[kind[k], row] - offered
        back = max(amount[k] - in_use, 0) if used else min(amount[k], offered)
        _add_cell(books, row, kind[k], -amount[k], -back)


@loop
def release(books: Books, rows: Ints, kind: Ints, amount: Ints, used: Bools, began_ms: Ints) -> int:
    """Release row by row; return -1, or the first row that releases more than is held.

    In the latter case nothing has changed.

    `began_ms` (N,): output: since when something of the holding was in use; -1: nothing was, or
        unknown.
    """
    before = np.zeros((len(rows), len(kind)), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            continue
        # Check the whole row before changing it, and keep the data for undoing it.
        fits = True
        for k in range(len(kind)):
            before[i, k] = books.offered[kind[k], row]
            fits = fits and books.held[kind[k], row] >= amount[i, k]
        if not fits:
            for undone in range(i - 1, -1, -1):
                row = rows[undone]
                if row < 0:
                    continue
                for k in range(len(kind)):
                    offered = before[undone, k] - books.offered[kind[k], row]
                    _add_cell(books, row, kind[k], amount[undone, k], offered)
            return i
        began_ms[i] = _used_since(books, row)
        _give_back_row(books, row, kind, amount[i], used[i])
    return -1


@part()
def _used_since(books: Books, row: int) -> int:
    """Return since when something of a holding has been in use; -1: nothing is, or unknown."""
    return books.used_ms[row] if _is_used(books, row) else -1


@part()
def _use_row(books: Books, row: int, kind: Ints, amount: Ints, now_ms: int) -> None:
    if not _is_used(books, row):
        books.used_ms[row] = now_ms
    for k in range(len(kind)):
        moved = min(amount[k], books.offered[kind[k], row])
        if moved != 0:
            _add_cell(books, row, kind[k], 0, -moved)


@loop
def use(books: Books, rows: Ints, kind: Ints, amount: Ints, now_ms: int) -> None:
    for i in range(len(rows)):
        if rows[i] >= 0:
            _use_row(books, rows[i], kind, amount[i], now_ms)


@loop
def drop(books: Books, rows: Ints) -> None:
    for row in rows:
        for kind in range(len(books.held)):
            held = books.held[kind, row]
            if held != 0:
                _add_cell(books, row, kind, -held, -books.offered[kind, row])


@loop
def oldest_offer(books: Books, end: int) -> Ints:
    oldest = np.full(len(books.agents_held), -1, np.int64)
    for row in range(end):
        client = books.client[row]
        if client == 0 or not _on_offer(books, row):
            continue
        if oldest[client] < 0 or books.since_ms[row] < oldest[client]:
            oldest[client] = books.since_ms[row]
    return oldest


@loop
def offered_by_agent(books: Books, end: int, offered: Ints) -> None:
    for kind in range(len(offered)):
        for row in range(end):
            if books.offered[kind, row] != 0:
                offered[kind, books.agent[row]] += books.offered[kind, row]


@loop
def agents_of_groups(books: Books, end: int, groups: Ints, count: int) -> Ints:
    taken = np.zeros(count, np.int64)
    words = (len(books.of_agent) + 63) >> 6
    seen = np.zeros((count, words), np.uint64)
    for row in range(end):
        agent = books.agent[row]
        if agent == 0:
            continue
        bit = np.uint64(1) << np.uint64(agent & 63)
        for i in range(groups.shape[1]):
            group = groups[books.client[row], i]
            if group >= 0 and seen[group, agent >> 6] & bit == np.uint64(0):
                seen[group, agent >> 6] |= bit
                taken[group] += 1
    return taken


@loop
def enlist(books: Books, rows: Ints) -> None:
    for row in rows:
        agent, client = books.agent[row], books.client[row]
        push(books.of_agent, books.next_of_agent, books.previous_of_agent, agent, row)
        push(books.of_client, books.next_of_client, books.previous_of_client, client, row)


@loop
def unlist(books: Books, rows: Ints) -> None:
    for row in rows:
        agent, client = books.agent[row], books.client[row]
        unlink(books.of_agent, books.next_of_agent, books.previous_of_agent, agent, row)
        unlink(books.of_client, books.next_of_client, books.previous_of_client, client, row)


@loop
def listed(heads: Indices, following: Indices, owner: int) -> Ints:
    count = 0
    item = heads[owner]
    while item >= 0:
        count += 1
        item = following[item]
    items = np.empty(count, np.int64)
    item = heads[owner]
    for i in range(count):
        items[i] = item
        item = following[item]
    return items


@loop
def keys_of_agents(books: Books, agents: Ints) -> Ints:
    count = 0
    for agent in agents:
        row = books.of_agent[agent]
        while row >= 0:
            count += 1
            row = books.next_of_agent[row]
    keys = np.empty(count, np.int64)
    end = 0
    for place in range(len(agents)):
        row = books.of_agent[agents[place]]
        while row >= 0:
            key = (place << 32) + books.client[row]
            at = end
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
            end += 1
            row = books.next_of_agent[row]
    return keys


@part()
def _find_offer(
    books: Books, role_of_client: Ints, role: int, agent: int, kind: Ints, amount: Ints
) -> int:
    """Return the client in a role that was offered this much on an agent; 0: none.

    Of several, the one in the lowest row of holdings.
    """
    lowest = -1
    row = books.of_agent[agent]
    while row >= 0:
        if role_of_client[books.client[row]] == role and (lowest < 0 or row < lowest):
            enough = True
            for k in range(len(kind)):
                enough = enough and books.offered[kind[k], row] >= amount[k]
            if enough:
                lowest = row
        row = books.next_of_agent[row]
    return books.client[lowest] if lowest >= 0 else 0


@loop
def find_offers(
    books: Books, role_of_client: Ints, role: Ints, agent: Ints, kind: Ints, amount: Ints
) -> Ints:
    found = np.zeros(len(role), np.int64)
    for i in range(len(role)):
        found[i] = _find_offer(books, role_of_client, role[i], agent[i], kind, amount[i])
    return found


class Spare(NamedTuple):
    """Free rows that a loop may use, and the map from keys to rows.

    `keys`, `rows`: as `KeyMap.lend` returns them.
    `stack` (S,): free rows; the last one is used first.
    `tally` (3,): the number of rows on the stack; the lowest row that was never used; the number of
        keys in the map.
    """

    keys: Ints
    rows: Ints
    stack: Ints
    tally: Ints


class Rows(NamedTuple):
    """Moves, as input of the compiled loop; see `Moves`.

    `client`, `agent` (N,): 0 if unknown; the loop fills in clients that it finds.
    `role` (N,).
    `asked` (N,): whether to find the client by its offer on the agent, because the host does not
        know the framework.
    `apart` (N,): stop before these rows, which must be applied as events.
    `here` (N,): output: whether the client used something on the agent before.
    `offered` (N,): output: whether it has something on offer there afterwards.
    `began_ms` (N,): output, for releases: as in `release`.
    """

    what: Ints
    event: Ints
    client: Ints
    agent: Ints
    role: Ints
    kind: Ints
    amount: Ints
    allocated: Bools
    asked: Bools
    apart: Bools
    here: Bools
    offered: Bools
    began_ms: Ints

    def first(self, count: int) -> "Rows":
        kind = self.kind
        return Rows._make(column[:count] for column in self)._replace(kind=kind)


_HOLD, _USE, _RELEASE = int(Move.HOLD), int(Move.USE), int(Move.RELEASE)


@loop
def move(
    books: Books, spare: Spare, moves: Rows, role_of_client: Ints, subscribed: Bools, now_ms: int
) -> int:
    """Apply moves row by row; return the number of applied rows.

    Stops before an event of `apart` or one that releases more than is held, and after a row that
    leaves an unsubscribed client without holdings.
    """
    for i in range(len(moves.what)):
        client, agent, amount = moves.client[i], moves.agent[i], moves.amount[i]
        if moves.apart[i]:
            return i
        if moves.asked[i]:
            role = moves.role[i]
            client = _find_offer(books, role_of_client, role, agent, moves.kind, amount)
            agent = agent if client > 0 else 0
            moves.client[i], moves.agent[i] = client, agent
        row = find_key(spare.keys, spare.rows, (agent << 32) | client)
        if moves.what[i] == _HOLD:
            _hold_row(books, spare, row, client, agent, moves.kind, amount, now_ms)
        elif moves.what[i] == _USE:
            if row >= 0:
                moves.here[i] = _is_used(books, row)
                _use_row(books, row, moves.kind, amount, now_ms)
                moves.offered[i] = _on_offer(books, row)
            continue
        else:
            begins = i == 0 or moves.event[i] != moves.event[i - 1]
            if begins and not _is_held(books, spare, moves, i):
                return i
            if row >= 0:
                moves.began_ms[i] = _used_since(books, row)
                _give_back_row(books, row, moves.kind, amount, moves.allocated[i])
                moves.offered[i] = _on_offer(books, row)
                if books.kinds_held[row] == 0:
                    _close_row(books, spare, row)
        if client > 0 and not subscribed[client] and books.agents_held[client] == 0:
            return i + 1
    return len(moves.what)


@part()
def _is_held(books: Books, spare: Spare, moves: Rows, first: int) -> bool:
    """Return whether all that an event releases is held, all rows of a holding together."""
    i = first
    while i < len(moves.what) and moves.event[i] == moves.event[first]:
        client, agent = moves.client[i], moves.agent[i]
        row = find_key(spare.keys, spare.rows, (agent << 32) | client) if client > 0 else -1
        for k in range(len(moves.kind)):
            wanted = 0
            for j in range(first, i + 1):
                if moves.client[j] == client and moves.agent[j] == agent:
                    wanted += moves.amount[j, k]
            if client > 0 and wanted > (books.held[moves.kind[k], row] if row >= 0 else 0):
                return False
        i += 1
    return True


@part()
def _hold_row(
    books: Books,
    spare: Spare,
    row: int,
    client: int,
    agent: int,
    kind: Ints,
    amount: Ints,
    now_ms: int,
) -> None:
    """Add an amount in use; a zero amount makes no row."""
    for k in range(len(kind)):
        if amount[k] == 0:
            continue
        if row < 0:
            row = _open_row(books, spare, client, agent, now_ms)
        if not _is_used(books, row):
            books.used_ms[row] = -1
        _add_cell(books, row, kind[k], amount[k], 0)


@part()
def _open_row(books: Books, spare: Spare, client: int, agent: int, now_ms: int) -> int:
    if spare.tally[0] > 0:
        spare.tally[0] -= 1
        row = spare.stack[spare.tally[0]]
    else:
        row = spare.tally[1]
        spare.tally[1] += 1
    spare.tally[2] += 1
    put_key(spare.keys, spare.rows, (agent << 32) | client, row)
    books.agent[row] = agent
    books.client[row] = client
    books.opened_ms[row] = now_ms
    books.agents_held[client] += 1
    push(books.of_agent, books.next_of_agent, books.previous_of_agent, agent, row)
    push(books.of_client, books.next_of_client, books.previous_of_client, client, row)
    return row


@part()
def _close_row(books: Books, spare: Spare, row: int) -> None:
    agent, client = books.agent[row], books.client[row]
    delete_key(spare.keys, spare.rows, (agent << 32) | client)
    spare.tally[2] -= 1
    books.agents_held[client] -= 1
    unlink(books.of_agent, books.next_of_agent, books.previous_of_agent, agent, row)
    unlink(books.of_client, books.next_of_client, books.previous_of_client, client, row)
    books.agent[row] = 0
    books.client[row] = 0
    spare.stack[spare.tally[0]] = row
    spare.tally[0] += 1
