"""Tables with a bit for each pair of an agent and a client, with equal rows stored once.

Clients are in blocks, as in `bit_tables`. Instead of its words of a block, an agent has the number
of a row with these words. Agents that exclude the same clients of a block, such as those with the
same attributes, share a row. So one framework's constraint on 50,000 agents takes two rows, and the
memory of a table does not depend on the number of agents unless their exclusions differ.
"""

import secrets
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from allocator.core.numba import bit_tables
from allocator.core.numba.array_structures import enlarged, pair
from allocator.core.numba.array_types import BitTable, BitWords, Bools, Indices, Ints
from allocator.core.numba.compiled import loop, loop_view, part

_STEP = 1 << 12
"""Maximum number of rows that are added before the table of rows is enlarged."""

_SPARE = 1 << 10
"""Number of unused rows that are not worth removing."""


class SharedBits(NamedTuple):
    """A table of bits.

    `row` (B, A): for each block and agent, the row of `bits` with its words.
    `bits` (N, V): the words of each row. Written rows never change, so tables may have the same.
    """

    row: Indices
    bits: BitWords


# For loops.


@part()
def shared_word(table: SharedBits, agent: int, word: int) -> Any:  # noqa: ANN401 - an uint64
    row = table.row[bit_tables.block_of(word), agent]
    return table.bits[row, bit_tables.in_block(word)]


@part()
def has_shared_bit(table: SharedBits, agent: int, client: int) -> bool:
    word = shared_word(table, agent, client >> 6)
    return bool((word >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0))


def for_loops(table: SharedBits) -> SharedBits:
    return SharedBits(loop_view(table.row), loop_view(table.bits))


# Reading.


def no_bits(agents: int, clients: int) -> SharedBits:
    blocks, _, words = bit_tables.empty_table(0, clients).shape
    row, bits = np.zeros((blocks, agents), np.int32), np.zeros((1, words), np.uint64)
    return for_loops(SharedBits(row, bits))


def shared_shape(table: SharedBits) -> tuple[int, int, int]:
    """Return the shape (B, A, V) of the `BitTable` with the same bits."""
    return *table.row.shape, table.bits.shape[1]


def shared_width(table: SharedBits) -> int:
    """Return the number of words of each agent."""
    return len(table.row) * table.bits.shape[1]


def shared_pairs(table: SharedBits, agent: Ints, client: Ints) -> Bools:
    """Look up the bits of pairs (n,)."""
    block, word, bit = bit_tables.places(client)
    found: BitWords = table.bits[table.row[block, agent], word] & bit
    return found != 0


def shared_of_client(table: SharedBits, client: int) -> Bools:
    """Return the bits of one client, (A,)."""
    (block,), (word,), bit = bit_tables.places(np.array([client]))
    bits: BitWords = table.bits[:, word] & bit
    return bits.astype(np.bool_)[table.row[block]]


def shared_some_on(table: SharedBits) -> Bools:
    """Return whether any bit of an agent is set, (A,)."""
    some: Bools = np.bitwise_or.reduce(table.bits, axis=1).astype(np.bool_)
    found: Bools = np.logical_or.reduce(some[table.row], axis=0)
    return found


def shared_words_on(table: SharedBits, agents: Ints) -> BitWords:
    """Return all words of some agents (n,) side by side, (n, W)."""
    words = table.bits[table.row[:, agents]]
    return words.swapaxes(0, 1).reshape(len(agents), shared_width(table))


def same_bits(one: SharedBits, other: SharedBits) -> bool:
    if shared_shape(one) != shared_shape(other):
        return False
    pairs = np.unique(pair(one.row.astype(np.int64), other.row.astype(np.int64)))
    first, second = pairs >> 32, pairs & (2**32 - 1)
    parts = (slice(begin, begin + _STEP) for begin in range(0, len(pairs), _STEP))
    return all(np.array_equal(one.bits[first[some]], other.bits[second[some]]) for some in parts)


# Tables made from others.


def shared_rows_of(table: SharedBits, agents: Ints | None = None) -> SharedBits:
    """Copy the table of some agents (n,), or of all (None), with only the rows that they have."""
    row = table.row if agents is None else table.row[:, agents]
    if row.size < len(table.bits):
        own, new = np.unique(row, return_inverse=True)
        return SharedBits(new.reshape(row.shape).astype(np.int32), table.bits[own])
    rows = np.flatnonzero(_in_use(row, len(table.bits)))
    place: Indices = np.zeros(len(table.bits), np.int32)
    place[rows] = np.arange(len(rows))
    return SharedBits(place[row], table.bits[rows])


def _in_use(row: Indices, rows: int) -> Bools:
    """Return which of a number of rows some agents have."""
    found = np.zeros(rows, np.bool_)
    found[row] = True
    return found


def with_bits(table: SharedBits, agents: Ints, more: BitTable) -> SharedBits:
    """Return a table with more bits for some agents (n,).

    `more`: the bits by agent, (B, n, V), or those for all of these agents, (B, 1, V).
    """
    row, bits = table.row.copy(), [table.bits]
    count = len(table.bits)
    for block in np.flatnonzero(more.any(axis=(1, 2))).tolist():
        if more.shape[1] == 1:
            old, which = np.unique(row[block, agents], return_inverse=True)
        else:
            old, which = row[block, agents], np.arange(len(agents))
        row[block, agents] = count + which
        bits.append(table.bits[old] | more[block])
        count += len(old)
    return SharedBits(row, np.concatenate(bits))


def without_pairs(table: SharedBits, agent: Ints, client: Ints) -> SharedBits:
    """Return a table without the bits of some pairs (n,)."""
    block, word, bit = bit_tables.places(client)
    key, which = np.unique(block * table.row.shape[1] + agent, return_inverse=True)
    where = np.divmod(key, table.row.shape[1])
    words = table.bits[table.row[where]]
    np.bitwise_and.at(words, (which, word), ~bit)
    row = table.row.copy()
    row[where] = len(table.bits) + np.arange(len(words))
    return SharedBits(row, np.concatenate([table.bits, words]))


class BitRows:
    """A table of bits that changes; row 0 has no bits.

    Rows are found by hash. The key of the hash is random, because frameworks can choose the bits.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("_key", "_slot", "_indexed")

    def __init__(self) -> None:
        self._row: Indices = np.zeros((1, 0), np.int32)
        self._bits: BitWords = np.zeros((1, 0), np.uint64)
        self._used = self._kept = 1  # rows: with content, and after the last removal of unused ones
        self._key = np.frombuffer(secrets.token_bytes(16 * bit_tables.WORDS), np.uint64)
        self._slot: Indices = np.zeros(0, np.int32)
        self._indexed = 0  # rows in the index, see `_find`

    @property
    def table(self) -> SharedBits:
        """The table as it is now; its `row` changes with this object, its `bits` do not."""
        return SharedBits(self._row, self._bits[: self._used])

    def reserve(self, agents: int, words: int) -> None:
        blocks, agents, words = bit_tables.larger_shape(shared_shape(self.table), agents, words)
        self._row = enlarged(self._row, (blocks, agents))
        self._bits = enlarged(self._bits, (len(self._bits), words))

    def words(self, block: int, agents: Ints) -> BitWords:
        """Copy the words of some agents (n,) in a block, (n, V)."""
        return self._bits[self._row[block, agents]]

    def put(self, block: Ints | int, agent: Ints, words: BitWords) -> None:
        """Replace the words (n, V) of agents (n,) in a block or in blocks (n,)."""
        self._row[block, agent] = self._rows(words)
        self._tidy()

    def clear(self, block: int, bits: BitWords) -> None:
        """Clear bits (V,) in the words of all agents in a block."""
        row = self._row[block]
        rows = np.flatnonzero(_in_use(row, self._used))
        rows = rows[(self._bits[rows] & bits).any(axis=1)]
        new = np.arange(self._used, dtype=np.int32)
        new[rows] = self._rows(self._bits[rows] & ~bits)
        row[:] = new[row]
        self._tidy()

    def set_pairs(self, agent: Ints, client: Ints) -> None:
        self._change_pairs(agent, client, np.bitwise_or)

    def clear_pairs(self, agent: Ints, client: Ints) -> None:
        self._change_pairs(agent, client, lambda words, bits: words & ~bits)

    def clear_agent(self, agent: int) -> None:
        self._row[:, agent] = 0

    def _change_pairs(
        self, agent: Ints, client: Ints, change: Callable[[BitWords, BitWords], BitWords]
    ) -> None:
        block, word, bit = bit_tables.places(client)
        keys = block * self._row.shape[1] + agent
        order = np.argsort(keys)
        key, first, which = np.unique(keys[order], return_index=True, return_inverse=True)
        first = np.append(first, len(keys))
        for begin in range(0, len(key), _STEP):
            blocks, agents = np.divmod(key[begin : begin + _STEP], self._row.shape[1])
            some = slice(first[begin], first[begin + len(agents)])
            mine = order[some]
            bits = np.zeros((len(agents), self._bits.shape[1]), np.uint64)
            np.bitwise_or.at(bits, (which[some] - begin, word[mine]), bit[mine])
            self.put(blocks, agents, change(self._bits[self._row[blocks, agents]], bits))

    def _rows(self, words: BitWords) -> Indices:
        """Return the numbers of rows with these words (n, V); adds those that are missing."""
        found = np.empty(len(words), np.int32)
        for begin in range(0, len(words), _STEP):
            some = slice(begin, begin + _STEP)
            self._make_room(len(found[some]))
            self._used = _find(
                self._bits, self._slot, self._key, self._used, loop_view(words[some]), found[some]
            )
            self._indexed = self._used
        return found

    def _make_room(self, more: int) -> None:
        rows = self._used + more
        if rows > len(self._bits):
            self._bits = enlarged(self._bits, (rows + rows // 4, self._bits.shape[1]))
        if self._indexed != self._used or 2 * rows > len(self._slot):
            self._slot = np.zeros(1 << (4 * rows).bit_length(), np.int32)
            _index(self._bits, self._slot, self._key, self._used)

    def _tidy(self) -> None:
        """Remove rows that no agent has, if there are many.

        Tables that are in use elsewhere keep the old arrays.
        """
        if self._used <= self._kept + self._kept // 2 + _SPARE:
            return
        kept = _in_use(self._row, self._used)
        kept[0] = True
        new = (np.cumsum(kept) - 1).astype(np.int32)
        self._row, self._bits = new[self._row], self._bits[: self._used][kept]
        self._used = self._kept = len(self._bits)
        self._indexed = 0


@part()
def _hash(key: BitWords, words: BitWords) -> int:
    """Hash words so that two of them have the same hash with probability 2**-32.

    The sum of products of random 64-bit numbers and the 32-bit halves of the words; its upper half
    is the hash. That these collide cannot be arranged without knowing the key.
    """
    total, low = np.uint64(0), np.uint64((1 << 32) - 1)
    for word in range(len(words)):
        if words[word] != np.uint64(0):
            total += key[2 * word] * (words[word] & low)
            total += key[2 * word + 1] * (words[word] >> np.uint64(32))
    return int(total >> np.uint64(32))


@part()
def _slot_of(bits: BitWords, slot: Indices, key: BitWords, words: BitWords) -> int:
    """Return the slot with the row of some words (V,), or the free slot for it."""
    at = _hash(key, words) & (len(slot) - 1)
    while slot[at] != 0:
        same = True
        for word in range(len(words)):
            same &= bits[slot[at], word] == words[word]
        if same:
            return at
        at = (at + 1) & (len(slot) - 1)
    return at


@loop
def _find(
    bits: BitWords, slot: Indices, key: BitWords, used: int, words: BitWords, found: Indices
) -> int:
    """Find the rows of words (n, V); adds missing rows after the first `used` ones.

    `slot`: numbers of rows, each in its slot by hash or after it; 0: free. Its size is a power of
    two. `found` (n,) receives the rows. Returns the new number of rows.
    """
    for i in range(len(words)):
        some = False
        for word in range(words.shape[1]):
            some |= words[i, word] != np.uint64(0)
        found[i] = 0
        if not some:
            continue
        at = _slot_of(bits, slot, key, words[i])
        if slot[at] == 0:
            bits[used] = words[i]
            slot[at] = used
            used += 1
        found[i] = slot[at]
    return used


@loop
def _index(bits: BitWords, slot: Indices, key: BitWords, used: int) -> None:
    """Put all rows with content into free slots."""
    for row in range(1, used):
        slot[_slot_of(bits, slot, key, bits[row])] = row
