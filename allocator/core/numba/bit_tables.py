"""Tables with a bit for each pair of an agent and a client.

The bit of client c is bit ``c % 64`` of *word* ``w = c // 64``, which is stored at
``table[w // 32, agent, w % 32]``. So a table (B, A, V) consists of B *blocks* of 2,048 clients,
with V words for each agent; V is 32, or less if there is one block. Clients with nearby numbers,
such as all roles of one framework, share pages of memory: with 50,000 agents a block takes 13 MB
once it has bits on all of them, however many other clients there are. Smaller blocks would take
less, but searching the words of an agent, block by block, would take longer.
"""

from typing import Any

import numpy as np

from allocator.core.numba.array_structures import enlarged, larger_size, pack
from allocator.core.numba.array_types import BitTable, BitWords, Bools, Ints
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.numba.wide_tables import untouched

BITS = 64
"""Clients per word."""

WORDS = 32
"""Words per block, a power of two."""

_SHIFT, _MASK = 5, WORDS - 1


# For loops.


@part()
def block_of(word: int) -> int:
    return word >> _SHIFT


@part()
def in_block(word: int) -> int:
    return word & _MASK


@part()
def word_of(table: BitTable, agent: int, word: int) -> Any:  # noqa: ANN401 - an uint64
    return table[word >> _SHIFT, agent, word & _MASK]


@part()
def has_bit(table: BitTable, agent: int, client: int) -> bool:
    word = word_of(table, agent, client >> 6)
    return bool((word >> np.uint64(client & 63)) & np.uint64(1) != np.uint64(0))


@part()
def set_bit(table: BitTable, agent: int, client: int) -> None:
    word = client >> 6
    table[word >> _SHIFT, agent, word & _MASK] |= np.uint64(1) << np.uint64(client & 63)


@part()
def clear_word(table: BitTable, agent: int, word: int) -> None:
    table[word >> _SHIFT, agent, word & _MASK] = np.uint64(0)


@part()
def keep_bits(table: BitTable, agent: int, row: BitTable) -> None:
    """Clear the bits of an agent that a row (B, 1, V) lacks; zeros are not written."""
    for block in range(len(table)):
        for word in range(table.shape[2]):
            if table[block, agent, word] != np.uint64(0):
                table[block, agent, word] &= row[block, 0, word]


# Sizes.


def empty_table(agents: int, clients: int) -> BitTable:
    return untouched(_shape(agents, words_for(clients)), np.uint64)


def _shape(agents: int, words: int) -> tuple[int, int, int]:
    return max(-(-words // WORDS), 1), agents, min(words, WORDS)


def words_for(clients: int) -> int:
    return max(-(-clients // BITS), 1)


@part()
def width(table: BitTable) -> int:
    """Return the number of words of each agent."""
    return table.shape[0] * table.shape[2]


def grown_table(table: BitTable, agents: int, words: int) -> BitTable:
    """Enlarge a table to at least these words, and by doubling to at least these agents."""
    blocks, old, each = table.shape
    return enlarged(table, larger_shape((blocks, old, each), agents, words))


def larger_shape(shape: tuple[int, int, int], agents: int, words: int) -> tuple[int, int, int]:
    """Return the shape of a table that `grown_table` enlarges."""
    blocks, old, each = shape
    return _shape(larger_size(old, agents), max(blocks * each, words))


# Pairs.


def places(client: Ints) -> tuple[Ints, Ints, BitWords]:
    """Return the block, the word in it, and the bit of clients (n,)."""
    word = client // BITS
    return word >> _SHIFT, word & _MASK, np.uint64(1) << (client % BITS).astype(np.uint64)


def pair_bits(table: BitTable, agent: Ints, client: Ints) -> Bools:
    """Look up the bits of pairs (n,)."""
    block, word, bit = places(client)
    return (table[block, agent, word] & bit) != 0


def set_pairs(table: BitTable, agent: Ints, client: Ints) -> None:
    block, word, bit = places(client)
    np.bitwise_or.at(table, (block, agent, word), bit)


# Rows and columns.


def some_on(table: BitTable) -> Bools:
    """Return whether any bit of an agent is set, (A,)."""
    found: Bools = np.bitwise_or.reduce(table, axis=0).any(axis=1)
    return found


def in_blocks(words: BitWords) -> BitTable:
    """Bring rows of words (n, W), as many as a table has, into the form of a table, (B, n, V)."""
    blocks, _, each = _shape(len(words), words.shape[1])
    return words.reshape(len(words), blocks, each).swapaxes(0, 1)


def packed(clients: Bools, table: BitTable) -> BitTable:
    """Pack the flags of clients into one row of a table, (B, 1, V)."""
    return in_blocks(pack(clients, width(table))[None])


def rows_of(table: BitTable, agents: Ints) -> BitTable:
    """Copy the rows of some agents (n,) of a table that is mostly zero."""
    found = untouched((table.shape[0], len(agents), table.shape[2]), np.uint64)
    _gather(loop_view(table), loop_view(agents), found)
    return found


@loop
def _gather(table: BitTable, agents: Ints, found: BitTable) -> None:
    for block in range(len(table)):
        for place in range(len(agents)):
            for word in range(table.shape[2]):
                bits = table[block, agents[place], word]
                if bits != np.uint64(0):
                    found[block, place, word] = bits
