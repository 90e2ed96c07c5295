"""Sorts of agents: groups of those that are equal, or similar, for the same clients.

Which clients may use which agents is one bit for each pair. A single tenant can have thousands of
clients, so these bits are expanded only for agents that differ, and for some of them at a time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.core import (
    Bools,
    Floats,
    Ints,
    SharedBits,
    distinct_rows,
    shared_width,
    shared_words_on,
)

_BITS, _BYTE = 64, 8
_OF_SIZES = 4  # groups per size of agents, so that sizes can be separated further by clients
_FINEST = 64  # size steps per doubling
_MARK = 0x9E3779B97F4A7C15  # of hashes: odd, so that its powers are odd
_PAIRS = 2**22
"""Number of pairs of agents and clients that are examined at a time."""


class AgentSorts(NamedTuple):
    """Agents without repetitions: one row for all that are equal, in the order of the first ones.

    `of_agent` (n,): the row of each agent.
    `times` (D,): number of agents.
    `numbers` (D, K): in which the agents of different rows may differ, such as their capacity.
    `allowed` (D, B): which clients may use them, eight to a byte, as `np.packbits` packs them.
    `clients`: their number.
    """

    of_agent: Ints
    times: Ints
    numbers: Ints
    allowed: NDArray[np.uint8]
    clients: int


def distinct_agents(numbers: Ints, excluded: SharedBits, rows: Ints, clients: Ints) -> AgentSorts:
    """Find the distinct agents.

    `numbers` (n, K); `excluded`: bits of all clients; `rows` (n,): the agents.
    `clients` (C,): the clients that matter.
    """
    first, of_agent = _equal(numbers, excluded, rows, clients)
    step = max(_PAIRS // max(len(clients), 1), 1)
    allowed = np.zeros((len(first), -(-len(clients) // _BYTE)), np.uint8)
    for begin in range(0, len(first), step):
        words = shared_words_on(excluded, rows[first[begin : begin + step]])
        allowed[begin : begin + step] = np.packbits(~bits_of(words, clients), axis=1)
    times = np.bincount(of_agent, minlength=len(first))
    return AgentSorts(of_agent, times, numbers[first], allowed, len(clients))


def _equal(numbers: Ints, excluded: SharedBits, rows: Ints, clients: Ints) -> tuple[Ints, Ints]:
    """Return the first of all equal agents, ascending (D,), and the index of each one's, (n,)."""
    flags = np.zeros(_BITS * shared_width(excluded), np.bool_)
    flags[clients[clients < len(flags)]] = True
    mask = np.packbits(flags, bitorder="little").view(np.uint64)
    step = max(_PAIRS // (len(flags) + 1), 1)
    parts = [slice(begin, begin + step) for begin in range(0, len(rows), step)]

    def table(some: Ints) -> Ints:
        words = shared_words_on(excluded, rows[some]) & mask
        return np.concatenate([numbers[some], words.view(np.int64)], axis=1)

    every = np.arange(len(rows))
    factors = np.cumprod(np.full(numbers.shape[1] + len(mask), _MARK, np.uint64))
    marks = [table(every[part]).view(np.uint64) @ factors for part in parts]
    _, first, which = np.unique(
        np.concatenate([np.zeros(0, np.uint64), *marks]), return_index=True, return_inverse=True
    )
    if not all((table(every[part]) == table(first[which[part]])).all() for part in parts):
        which = distinct_rows(table(every)).which
        first = np.unique(which, return_index=True)[1]
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[which]


def sorts_of(agents: AgentSorts, weight: Floats, most: int) -> Ints:
    """Group agents: equal ones, or, if that gives too many groups, similar ones.

    Twelve constraints of untrusted frameworks can separate 4,096 groups. If there are too many,
    agents are first separated by size, coarsely if necessary. Then they are separated by whether
    one client may use them, client by client: those with the largest weight first, on ties those
    that separate the fewest agents. A client that would make too many groups is skipped.

    `weight` (C,); `most`: maximum number of groups, at least 1.
    Returns the group of each row, (D,).
    """
    first, which = _alike(agents.numbers, agents.allowed)
    if len(first) <= most:
        return which
    which = _sizes(agents.numbers, max(most // _OF_SIZES, 1))
    columns, of_client = _distinct_columns(agents)
    weights = np.bincount(of_client, weight, len(columns))
    some = columns @ agents.times
    apart = np.minimum(some, len(agents.of_agent) - some)
    for each in np.lexsort((apart, -weights)).tolist():
        finer = np.unique(2 * which + columns[each], return_inverse=True)[1].reshape(-1)
        if finer.max() < most:
            which = finer
    return which


def _distinct_columns(agents: AgentSorts) -> tuple[Bools, Ints]:
    """Return which rows distinct clients may use, (K, D), and the index of each client's, (C,).

    Their order depends on all agents.
    """
    step = max(_PAIRS // (_BYTE * max(len(agents.allowed), 1)), 1)
    columns, of_client, count = list[Bools](), list[Ints](), 0
    for begin in range(0, agents.allowed.shape[1], step):
        some = min(agents.clients - _BYTE * begin, _BYTE * step)
        bits = np.unpackbits(agents.allowed[:, begin : begin + step], axis=1, count=some)
        first, which = alike(np.zeros((some, 0), np.int64), bits.T)
        columns.append(bits.T[first].astype(np.bool_))
        of_client.append(which + count)
        count += len(first)
    found = np.concatenate([np.zeros((0, len(agents.times)), np.bool_), *columns])
    first, which = alike(np.zeros((count, 0), np.int64), found[:, agents.of_agent])
    return found[first], which[np.concatenate([np.zeros(0, np.int64), *of_client])]


def _sizes(numbers: Ints, most: int) -> Ints:
    """Group rows by size, (D,), as finely as at most `most` groups allow."""
    rows, step = numbers, 1 / _FINEST
    while True:
        sizes = distinct_rows(rows)
        if len(sizes.rows) <= most:
            return sizes.which
        rows = np.floor(np.log2(np.maximum(numbers, 0) + 1) / step).astype(np.int64)
        step *= 2


def any_of_groups(agents: AgentSorts, which: Ints, groups: int) -> Bools:
    """Return which clients may use at least one agent of each group, (G, C).

    That is enough for a plan, because cycles also apply the exclusions of each agent.

    `which` (D,): the group of each row, each below `groups`.
    """
    if not groups:
        return np.zeros((0, agents.clients), np.bool_)
    order = np.argsort(which, kind="stable")
    begin = np.searchsorted(which[order], np.arange(groups))
    packed = np.bitwise_or.reduceat(agents.allowed[order], begin, axis=0)
    return np.unpackbits(packed, axis=1, count=agents.clients).astype(np.bool_)


def alike(numbers: Ints, bits: NDArray[np.bool_ | np.uint8]) -> tuple[Ints, Ints]:
    """Group rows that are equal in numbers (n, K) and in bits (n, W).

    Returns `first` (k,): the first row of each sort; `which` (n,): the sort of each row.
    """
    return _alike(numbers, np.packbits(bits, axis=1))


def _alike(numbers: Ints, packed: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    # One sort key per 64 bits.
    words = np.zeros((len(packed), -(-packed.shape[1] * _BYTE // _BITS)), np.int64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    sorts = distinct_rows(np.concatenate([numbers, words], axis=1))
    first = np.empty(len(sorts.rows), np.int64)
    first[sorts.which[::-1]] = np.arange(len(packed))[::-1]
    return first, sorts.which


def bits_of(words: np.ndarray, clients: Ints) -> Bools:
    """Expand bits (n, W) to flags of some clients, (n, C); clients beyond the bits have none."""
    packed = np.ascontiguousarray(words).view(np.uint8)
    known = clients < _BYTE * packed.shape[1]
    found = packed[:, np.where(known, clients // _BYTE, 0)]
    found >>= (clients % _BYTE).astype(np.uint8)
    found &= 1
    return found.view(np.bool_) & known
