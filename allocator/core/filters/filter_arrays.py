"""The arrays of filters, and the compiled loops that change them."""

from typing import Any, NamedTuple

import numpy as np

from allocator.core.numba.array_structures import push, unlink
from allocator.core.numba.columns import Column
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.numba.wide_tables import columns_of
from allocator.core.snapshot import BitTable, BitWords, Bools, Filters, Indices, Ints


def excerpt(filters: Filters, agents: Ints, most: int) -> Filters | None:
    """Copy the filters on some agents; None: there are more than `most`.

    `agents` (J,): rows, ascending; the lists of other agents are empty in the copy.
    """
    lists = loop_view(filters.head), loop_view(filters.next), loop_view(agents)
    rows, is_last = _gather(*lists, most)
    if len(rows) > most:
        return None
    # Each list is contiguous in the copy.
    following = np.arange(1, len(rows) + 1, dtype=np.int32)
    following[is_last] = -1
    head = np.full(len(filters.head), -1, np.int32)
    some = agents[filters.head[agents] >= 0]
    head[some] = np.flatnonzero(np.append(True, is_last[:-1])[: len(rows)])
    return filters._replace(
        head=head,
        next=following,
        client=filters.client[rows],
        amount=columns_of(filters.amount, rows),
    )


@loop
def _gather(head: Indices, following: Indices, agents: Ints, most: int) -> tuple[Ints, Bools]:
    """Return up to `most` + 1 rows of filters, agent by agent, and which are the last of a list."""
    rows, is_last = np.empty(most + 1, np.int64), np.zeros(most + 1, np.bool_)
    count = 0
    for agent in agents:
        row = head[agent]
        while row >= 0 and count <= most:
            rows[count] = row
            row = following[row]
            is_last[count] = row < 0
            count += 1
    return rows[:count], is_last[:count]


NEVER = np.iinfo(np.int64).max
"""The expiry time of an unused row."""

MAYBE_WORDS = 16
"""Maximum number of words of `maybe`, enough for separate bits of 1,024 clients."""

PAGES = 1 << 12
_PAGE_BITS = 6
"""Filters are in lists by expiry time: a page of 64 ms each. After 4 minutes pages are used again,
so a page may also contain filters that expire in a later round."""


class FilterArrays(NamedTuple):
    """The arrays of all filters, as compiled loops use them.

    `agent`, `client` (X,): 0 if the row is free.
    `amount` (K, X): by kind; 0 in free rows.
    `expires_ms` (X,): the last moment at which the filter is in force.
    `of_agent`, `next_of_agent`, `previous_of_agent` (A,), (X,), (X,): the filters on each agent, as
        a doubly linked list.
    `of_client`, ... (C,), (X,), (X,): the same for the filters of each client.
    `of_page`, ... (PAGES,), (X,), (X,): the same for filters by expiry time.
    `spare` (X,): free rows, as a stack.
    `per_client` (C,): number of filters of each client.
    `maybe` (A, V): bit ``c % 64`` of word ``c // 64 % V``: client c may have a filter on the agent;
        0: it has none. V is at most `MAYBE_WORDS`.
    `covered` (B, A, V): as in `Filters`.
    `stale` (A,): the agent's row of `covered` must be recomputed; set by its first filter, too.
    `fresh` (A,): number of filters at the head of the agent's list that were added since its row of
        `covered` was updated.
    `largest` (K, A): at least the largest amount of any filter on the agent.
    """

    agent: Indices
    client: Indices
    amount: Ints
    expires_ms: Ints
    of_agent: Indices
    next_of_agent: Indices
    previous_of_agent: Indices
    of_client: Indices
    next_of_client: Indices
    previous_of_client: Indices
    of_page: Indices
    next_of_page: Indices
    previous_of_page: Indices
    spare: Indices
    per_client: Ints
    maybe: BitWords
    covered: BitTable
    stale: Bools
    fresh: Indices
    largest: Ints


_INDEX = Column(np.int32, "filter")

COLUMNS = {
    "agent": _INDEX,
    "client": _INDEX,
    "amount": Column(by="filter", by_kind=True),
    "expires_ms": Column(by="filter", fill=NEVER),
    "of_agent": Column(np.int32, "agent", fill=-1),
    "next_of_agent": _INDEX,
    "previous_of_agent": _INDEX,
    "of_client": Column(np.int32, "client", fill=-1),
    "next_of_client": _INDEX,
    "previous_of_client": _INDEX,
    "of_page": Column(np.int32, "page", fill=-1),
    "next_of_page": _INDEX,
    "previous_of_page": _INDEX,
    "spare": _INDEX,
    "per_client": Column(by="client"),
    "maybe": Column(np.uint64, "agent", across="maybe"),
    "covered": Column(np.uint64, "agent", across="word", in_blocks=True),
    "stale": Column(np.bool_, "agent"),
    "fresh": Column(np.int32, "agent"),
    "largest": Column(by="agent", by_kind=True),
}


@part()
def bit_of(client: int) -> Any:  # noqa: ANN401
    return np.uint64(1) << np.uint64(client & 63)


@part()
def maybe_word(filters: FilterArrays, client: int) -> int:
    return (client >> 6) % filters.maybe.shape[1]


@part()
def page_of(expires_ms: int) -> int:
    return (expires_ms >> _PAGE_BITS) & (PAGES - 1)


@part()
def _remove(filters: FilterArrays, row: int, spare: int) -> int:
    """Free the row of a filter; return the new number of spare rows."""
    agent, client = filters.agent[row], filters.client[row]
    unlink(filters.of_agent, filters.next_of_agent, filters.previous_of_agent, agent, row)
    unlink(filters.of_client, filters.next_of_client, filters.previous_of_client, client, row)
    page = page_of(filters.expires_ms[row])
    unlink(filters.of_page, filters.next_of_page, filters.previous_of_page, page, row)
    filters.agent[row] = 0
    filters.client[row] = 0
    filters.expires_ms[row] = NEVER
    for kind in range(len(filters.amount)):
        if filters.amount[kind, row] != 0:
            filters.amount[kind, row] = 0
    # Without this filter, a bit may no longer be covered.
    filters.stale[agent] = True
    filters.per_client[client] -= 1
    filters.spare[spare] = row
    return spare + 1


@loop
def add(
    filters: FilterArrays,
    client: Ints,
    agent: Ints,
    kind: Ints,
    amount: Ints,
    expires_ms: Ints,
    spare: int,
) -> int:
    """Add filters that no other one covers, and return the new number of spare rows.

    There must be room for all.
    """
    wide = np.zeros(len(filters.amount), np.int64)
    for i in range(len(client)):
        for k in range(len(kind)):
            wide[kind[k]] = amount[i, k]
        spare, covered = _replace(filters, client[i], agent[i], wide, expires_ms[i], spare)
        if covered:
            continue
        spare -= 1
        row = filters.spare[spare]
        filters.fresh[agent[i]] += 1
        if filters.of_agent[agent[i]] < 0:
            filters.stale[agent[i]] = True  # the free amounts there were not recorded
        filters.agent[row] = agent[i]
        filters.client[row] = client[i]
        filters.expires_ms[row] = expires_ms[i]
        filters.per_client[client[i]] += 1
        for each in kind:
            if wide[each] != 0:
                filters.amount[each, row] = wide[each]
                filters.largest[each, agent[i]] = max(filters.largest[each, agent[i]], wide[each])
        filters.maybe[agent[i], maybe_word(filters, client[i])] |= bit_of(client[i])
        push(filters.of_agent, filters.next_of_agent, filters.previous_of_agent, agent[i], row)
        push(filters.of_client, filters.next_of_client, filters.previous_of_client, client[i], row)
        page = page_of(expires_ms[i])
        push(filters.of_page, filters.next_of_page, filters.previous_of_page, page, row)
    return spare


@part()
def _replace(
    filters: FilterArrays, client: int, agent: int, amount: Ints, expires_ms: int, spare: int
) -> tuple[int, bool]:
    """Drop the filters of a pair that a new filter makes redundant.

    Returns the new number of spare rows, and whether the new filter itself is redundant.
    """
    # Without the bit, which is usual, the pair has no filter.
    if filters.maybe[agent, maybe_word(filters, client)] & bit_of(client) == np.uint64(0):
        return spare, False
    row = filters.of_agent[agent]
    while row >= 0:
        following = filters.next_of_agent[row]
        if filters.client[row] == client:
            # Of two filters, one that covers the other and lasts as long is enough.
            lives, larger, smaller = filters.expires_ms[row], True, True
            for kind in range(len(amount)):
                larger &= filters.amount[kind, row] >= amount[kind]
                smaller &= filters.amount[kind, row] <= amount[kind]
            if lives >= expires_ms and larger:
                return spare, True
            if lives <= expires_ms and smaller:
                stale = filters.stale[agent]  # the new filter covers all that this one does
                spare = _remove(filters, row, spare)
                filters.stale[agent] = stale
        row = following
    return spare, False


@loop
def drop_list(filters: FilterArrays, row: int, following: Indices, spare: int) -> int:
    """Drop a filter and all that follow it in a list; return the new number of spare rows."""
    while row >= 0:
        after = following[row]
        spare = _remove(filters, row, spare)
        row = after
    return spare


@loop
def expire(filters: FilterArrays, since_ms: int, now_ms: int, spare: int) -> int:
    """Drop the filters that expired since the previous call, at `since_ms`.

    Returns the new number of spare rows.
    """
    # A filter that had expired before it was added is stored as if it expired at `since_ms - 1`,
    # see `FilterTable.add`.
    first, last = (since_ms - 1) >> _PAGE_BITS, now_ms >> _PAGE_BITS
    for page in range(max(first, last - PAGES + 1), last + 1):
        row = filters.of_page[page & (PAGES - 1)]
        while row >= 0:
            following = filters.next_of_page[row]
            if filters.expires_ms[row] < now_ms:
                spare = _remove(filters, row, spare)
            row = following
    return spare
