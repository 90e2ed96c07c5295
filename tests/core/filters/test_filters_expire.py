"""Filters expire at their time, whatever was added, removed and replaced before."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.filters import table as filter_table
from allocator.core.filters.filter_arrays import PAGES
from allocator.core.filters.table import FilterTable

AGENTS, CLIENTS = 3, 4
ROUND_MS = PAGES * 64
CPUS = np.zeros(1, np.int64)
OWN = np.arange(CLIENTS)  # each client is its framework's only one

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.integers(1, CLIENTS - 1),
            st.integers(1, AGENTS - 1),
            st.integers(1, 3),
            st.one_of(st.integers(-500, 4000), st.sampled_from([ROUND_MS, 3 * ROUND_MS])),
        ),
        st.tuples(st.just("pass"), st.one_of(st.integers(0, 3000), st.just(ROUND_MS))),
        st.tuples(st.just("revive"), st.integers(1, CLIENTS - 1)),
    ),
    max_size=30,
)


@given(steps)
def test_filters_expire_at_their_time(steps) -> None:
    table = FilterTable(1000)
    table.reserve(agents=AGENTS, clients=CLIENTS, kinds=1)
    now_ms = 0
    for step in steps:
        if step[0] == "add":
            _, client, agent, amount, life_ms = step
            expires_ms = np.array([now_ms + life_ms])
            row = np.array([client]), np.array([agent]), CPUS, np.array([[amount]])
            table.add(*row, expires_ms, OWN)
        elif step[0] == "revive":
            table.drop_client(step[1])
        else:
            now_ms += step[1]
            before = table.rows.agent > 0
            kept = before & (table.rows.expires_ms >= now_ms)
            table.expire(now_ms)
            assert ((table.rows.agent > 0) == kept).all()
        table.check()


def test_many_filters_that_expire_at_different_moments_are_each_found() -> None:
    """Declines may state any duration: many different expiry times cost no more than one."""
    count = 50_000
    table = FilterTable(2 * count)
    table.reserve(agents=count, clients=CLIENTS, kinds=1)
    agent, life_ms = np.arange(count), 10 + 977 * np.arange(count)
    amount = np.ones((count, 1), np.int64)
    table.add(np.ones(count, np.int64), agent, CPUS, amount, life_ms, OWN)
    for now_ms in range(0, int(life_ms[-1]), ROUND_MS // 3):
        table.expire(now_ms)
        assert len(table) == (life_ms >= now_ms).sum()
    table.check()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, 64, 65, 129]),
            st.integers(1, AGENTS - 1),
            st.integers(1, 3),
            st.integers(1, 3),
        ),
        max_size=30,
    )
)
def test_clients_that_share_a_bit_keep_their_own_filters(steps) -> None:
    """With one word for all clients the table equals one in which each client has a bit."""
    tables = []
    for words in (1, 64):
        with patch.object(filter_table, "MAYBE_WORDS", words):
            table = FilterTable(1000)
            table.reserve(agents=AGENTS, clients=130, kinds=1)
        assert table.rows.maybe.shape[1] == min(words, 3)
        for client, agent, amount, life_ms in steps:
            row = np.array([client]), np.array([agent]), CPUS, np.array([[amount]])
            table.add(*row, np.array([life_ms]), np.arange(130))
        table.check()
        tables.append(table)
    one, other = (each.rows for each in tables)
    for name in one._fields:
        if name != "maybe":
            assert (getattr(one, name) == getattr(other, name)).all(), name
