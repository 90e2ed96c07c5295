"""Tables of a bit for each pair, against sets of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.numba.bit_tables import (
    clear_word,
    empty_table,
    grown_table,
    has_bit,
    in_blocks,
    keep_bits,
    packed,
    pair_bits,
    rows_of,
    set_bit,
    set_pairs,
    some_on,
    width,
    word_of,
    words_for,
)
from tests.counting import resident_bytes

AGENTS = 5
CLIENTS = st.sampled_from([1, 64, 65, 1500, 2048, 2049, 5000])
_pairs = st.sets(st.tuples(st.integers(0, AGENTS - 1), st.integers(0, 4999)))


def columns(pairs: set[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    agents, clients = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    return np.array(agents, np.int64), np.array(clients, np.int64)


def table_of(pairs: set[tuple[int, int]], clients: int) -> np.ndarray:
    table = empty_table(AGENTS, clients)
    set_pairs(table, *columns(pairs))
    return table


def pairs_in(table: np.ndarray) -> set[tuple[int, int]]:
    words = np.ascontiguousarray(table.swapaxes(0, 1)).reshape(table.shape[1], width(table))
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return {(agent, client) for agent, client in np.argwhere(bits).tolist()}


def known(pairs: set[tuple[int, int]], clients: int) -> set[tuple[int, int]]:
    return {(agent, client) for agent, client in pairs if client < clients}


@given(_pairs, _pairs, CLIENTS)
def test_a_table_is_a_set_of_pairs(some, others, clients):
    some, others = known(some, clients), known(others, clients)
    table = table_of(some, clients)
    assert width(table) >= words_for(clients)
    assert pairs_in(table) == some
    agent, client = columns(some | others)
    assert pair_bits(table, agent, client).tolist() == [
        pair in some for pair in sorted(some | others)
    ]
    assert np.flatnonzero(some_on(table)).tolist() == sorted({agent for agent, _ in some})
    for agent, client in others:
        assert has_bit(table, agent, client) == ((agent, client) in some)
        assert bool(
            word_of(table, agent, client // 64) >> np.uint64(client % 64) & np.uint64(1)
        ) == ((agent, client) in some)
        set_bit(table, agent, client)
    assert pairs_in(table) == some | others


@given(_pairs, CLIENTS, CLIENTS, st.integers(0, 200))
def test_a_table_keeps_its_pairs_as_it_grows(some, clients, more, agents):
    some = known(some, clients)
    table = grown_table(table_of(some, clients), agents, words_for(more))
    assert table.shape[1] >= max(agents, AGENTS)
    assert width(table) >= words_for(max(more, clients))
    assert pairs_in(table) == some
    assert grown_table(table, agents, words_for(more)) is table


@given(_pairs, CLIENTS, st.sets(st.integers(0, AGENTS - 1)))
def test_rows_of_some_agents_are_copied(some, clients, agents):
    some, rows = known(some, clients), np.array(sorted(agents), int)
    table = table_of(some, clients)
    place = {agent: at for at, agent in enumerate(rows.tolist())}
    expected = {(place[agent], client) for agent, client in some if agent in place}
    assert pairs_in(rows_of(table, rows)) == expected
    words = table[:, rows].swapaxes(0, 1).reshape(len(rows), width(table))
    assert pairs_in(in_blocks(words)) == expected


@given(_pairs, CLIENTS, st.sets(st.integers(0, 4999)))
def test_bits_of_some_clients_are_kept(some, clients, kept):
    table = table_of(known(some, clients), clients)
    flags = np.isin(np.arange(clients), sorted(kept))
    keep_bits(table, 0, packed(flags, table))
    left = {(a, c) for a, c in known(some, clients) if a or c in kept}
    assert pairs_in(table) == left
    clear_word(table, 1, 0)
    assert pairs_in(table) == {(a, c) for a, c in left if a != 1 or c >= 64}


def test_roles_of_a_framework_share_pages_in_a_large_cluster():
    """Not a page for each agent: that would be 80 MB."""
    clients, agents = 60_000, np.arange(20_000)
    table = empty_table(len(agents), clients)
    for client in range(clients - 1000, clients, 10):
        set_pairs(table, agents, np.full(len(agents), client))
    assert some_on(table).all()
    assert resident_bytes(table) < 16_000_000
