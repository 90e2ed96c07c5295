"""Tables of bits with shared rows, against sets of pairs."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.numba import bit_tables, shared_bits
from allocator.core.numba.shared_bits import (
    BitRows,
    SharedBits,
    has_shared_bit,
    no_bits,
    same_bits,
    shared_of_client,
    shared_pairs,
    shared_rows_of,
    shared_some_on,
    shared_width,
    shared_word,
    shared_words_on,
    with_bits,
    without_pairs,
)
from tests.core.numba.test_bit_tables import columns, known, table_of
from tests.tables import dense

AGENTS, CLIENTS = 5, 5000
_pair = st.tuples(st.integers(0, AGENTS - 1), st.sampled_from([0, 1, 63, 64, 2047, 2048, 4999]))
_pairs = st.sets(_pair)
_changes = st.lists(st.tuples(st.sampled_from(["set", "clear", "drop", "forget"]), _pairs))


def rows_of(pairs: set[tuple[int, int]]) -> BitRows:
    rows = BitRows()
    rows.reserve(AGENTS, bit_tables.words_for(CLIENTS))
    rows.set_pairs(*columns(pairs))
    return rows


def pairs_in(table: SharedBits) -> set[tuple[int, int]]:
    every = 64 * shared_width(table)
    return {
        (agent, client)
        for client in range(every)
        for agent in np.flatnonzero(shared_of_client(table, client)).tolist()
    }


@given(_pairs, _pairs)
def test_a_table_is_a_set_of_pairs(some, others):
    table = rows_of(some).table
    assert pairs_in(table) == some
    agent, client = columns(some | others)
    expected = [pair in some for pair in sorted(some | others)]
    assert shared_pairs(table, agent, client).tolist() == expected
    for (agent, client), there in zip(sorted(some | others), expected, strict=True):
        assert has_shared_bit(table, agent, client) == there
        word = int(shared_word(table, agent, client // 64))
        assert bool(word >> client % 64 & 1) == there
    assert np.flatnonzero(shared_some_on(table)).tolist() == sorted({agent for agent, _ in some})
    rows = np.array([3, 1])
    assert pairs_in(shared_rows_of(table, rows)) == {
        (rows.tolist().index(agent), client) for agent, client in some if agent in rows
    }
    assert (
        shared_words_on(table, rows) == dense(table)[:, rows].swapaxes(0, 1).reshape(2, -1)
    ).all()


@given(_pairs, _changes, st.sampled_from([0, 2, 1 << 10]), st.integers(1, 4))
def test_a_table_changes_as_a_set_does(some, changes, spare, step):
    """With unused rows that are removed at once, or later; earlier tables keep their content."""
    with patch.multiple(shared_bits, _SPARE=spare, _STEP=step):
        rows, pairs, earlier = rows_of(some), set(some), []
        for name, other in changes:
            table = rows.table
            earlier.append((table._replace(row=table.row.copy()), set(pairs)))
            if name == "set":
                rows.set_pairs(*columns(other))
                pairs |= other
            elif name == "clear":
                rows.clear_pairs(*columns(other))
                pairs -= other
            elif name == "drop":
                gone = {agent for agent, _ in other}
                for agent in gone:
                    rows.clear_agent(agent)
                pairs = {pair for pair in pairs if pair[0] not in gone}
            else:
                gone = {client for _, client in other}
                mask = np.zeros((1, shared_width(rows.table)), np.uint64)
                for client in gone:
                    mask[0, client // 64] |= np.uint64(1 << client % 64)
                for block, bits in enumerate(bit_tables.in_blocks(mask)):
                    rows.clear(block, bits[0])
                pairs = {pair for pair in pairs if pair[1] not in gone}
            assert pairs_in(rows.table) == pairs
            distinct = {row.tobytes() for row in dense(rows.table).reshape(-1, 32) if row.any()}
            used = np.unique(rows.table.row)
            assert len(used[used > 0]) == len(distinct), "equal words are stored once"
            most = 1 + dense(rows.table)[:, :AGENTS, 0].size
            assert len(rows.table.bits) <= most + most // 2 + spare
        assert all(pairs_in(table) == before for table, before in earlier)


@given(_pairs, _pairs, _pairs, st.sets(st.integers(0, AGENTS - 1), min_size=1))
def test_tables_are_made_from_others(some, more, gone, agents):
    table, rows = rows_of(some).table, np.array(sorted(agents))
    added = {pair for pair in more if pair[0] in agents}
    bits = table_of(added, CLIENTS)[:, rows]
    assert pairs_in(with_bits(table, rows, bits)) == some | added
    everywhere = {client for _, client in more}
    bits = table_of({(0, client) for client in everywhere}, CLIENTS)[:, :1]
    found = with_bits(table, rows, bits)
    assert pairs_in(found) == some | {(agent, client) for agent in agents for client in everywhere}
    left = without_pairs(found, *columns(gone))
    assert pairs_in(left) == pairs_in(found) - gone
    assert pairs_in(table) == some
    assert same_bits(left, rows_of(pairs_in(left)).table)
    assert same_bits(table, rows_of(some).table)
    kept = shared_rows_of(left)
    assert same_bits(kept, left)
    assert len(kept.bits) <= min(len(left.bits), left.row.size)
    assert same_bits(table, left) == (pairs_in(left) == some)


def test_a_table_without_bits():
    table = no_bits(AGENTS, CLIENTS)
    assert not dense(table).any()
    assert dense(table).shape == table_of(set(), CLIENTS).shape


@pytest.mark.parametrize("clients", [64, 65, 3000])
def test_a_table_keeps_its_pairs_as_it_grows(clients):
    some = known({(0, 0), (1, 63), (1, 64), (4, 2500)}, clients)
    rows = BitRows()
    rows.reserve(AGENTS, bit_tables.words_for(clients))
    rows.set_pairs(*columns(some))
    before = rows.table
    rows.reserve(1000, bit_tables.words_for(CLIENTS))
    assert pairs_in(rows.table) == some
    rows.set_pairs(np.array([900]), np.array([4999]))
    assert pairs_in(rows.table) == some | {(900, 4999)}
    assert pairs_in(before) == some


def test_memory_does_not_depend_on_the_number_of_agents():
    """Half of the agents exclude a thousand clients."""
    rows, agents = BitRows(), np.arange(50_000)
    rows.reserve(len(agents), bit_tables.words_for(60_000))
    words = np.zeros((len(agents), bit_tables.WORDS), np.uint64)
    words[::2, :16] = ~np.uint64(0)
    for _ in range(3):
        rows.put(3, agents, words)
        rows.put(3, agents, np.roll(words, 1, axis=0))
    assert len(rows.table.bits) == 2


def test_rows_that_differ_are_all_stored():
    rows, agents = BitRows(), np.arange(20_000)
    rows.reserve(len(agents), 4)
    random = np.random.default_rng(1)
    for _ in range(4):
        words = random.integers(0, 2**63, (len(agents), 4)).astype(np.uint64)
        rows.put(0, agents, words)
        assert (rows.words(0, agents) == words).all()
    assert len(rows.table.bits) < 3 * len(agents)
