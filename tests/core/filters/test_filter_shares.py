"""A framework that declines endlessly cannot displace others' refusals, and memory is bounded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.bounds import FILTER_BYTES_MAX
from allocator.core.filters import table as tables
from allocator.core.filters.table import FilterTable

AGENTS, LIMIT = 200, 100
FRAMEWORK = np.array([0, 1, 1, 2, 3])  # by client; the first framework has two clients


def decline(table: FilterTable, client: int, agents: range) -> None:
    count = len(agents)
    table.add(
        np.full(count, client),
        np.array(agents, np.int64),
        np.zeros(1, np.int64),
        np.ones((count, 1), np.int64),
        np.full(count, 10_000),
        FRAMEWORK,
    )


def kept(table: FilterTable, framework: int) -> int:
    return int(table.rows.per_client[: len(FRAMEWORK)][framework == FRAMEWORK].sum())


def new_table(limit: int = LIMIT) -> FilterTable:
    table = FilterTable(limit)
    table.reserve(agents=AGENTS, clients=len(FRAMEWORK), kinds=1)
    return table


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 150), st.integers(1, 50))))
def test_no_framework_keeps_more_filters_than_are_free_once_half_are_used(declines) -> None:
    table = new_table()
    for client, agent, count in declines:
        before = {each: kept(table, each) for each in (1, 2, 3)}
        decline(table, client, range(agent, min(agent + count, AGENTS)))
        free = LIMIT - len(table)
        assert free >= 0
        for each, had in before.items():
            had_more = kept(table, each) > had
            assert not had_more or len(table) <= LIMIT // 2 or kept(table, each) <= free + 1
    table.check()


def test_a_framework_that_declines_in_all_roles_leaves_room_for_others() -> None:
    table = new_table()
    for client in (1, 2):
        decline(table, client, range(1, AGENTS))
    assert kept(table, 1) <= LIMIT // 2
    decline(table, 3, range(1, 11))
    assert kept(table, 2) == 10


def test_filters_without_room_are_counted() -> None:
    table = new_table()
    decline(table, 1, range(1, AGENTS))
    assert table.forgotten == AGENTS - 1 - len(table)


def test_a_framework_keeps_at_most_its_maximum(monkeypatch) -> None:
    """Also while there is plenty of room, and in all of its roles together."""
    monkeypatch.setattr(tables, "FRAMEWORK_FILTERS_MAX", 50)
    table = new_table(limit=1_000_000)
    both = np.tile([1, 2, 3], 20)
    agents = np.arange(1, len(both) + 1)
    rows = np.zeros(1, np.int64), np.ones((len(both), 1), np.int64), np.full(len(both), 10_000)
    table.add(both, agents, *rows, FRAMEWORK)
    assert (kept(table, 1), kept(table, 2), table.forgotten) == (40, 20, 0)
    decline(table, 2, range(100, 130))
    decline(table, 3, range(100, 130))
    assert (kept(table, 1), kept(table, 2), table.forgotten) == (50, 50, 20)
    table.check()
    table.expire(10_001)
    decline(table, 2, range(100, 130))
    assert kept(table, 1) == 30


def test_wide_refusals_are_fewer(monkeypatch) -> None:
    """The size of a filter counts with all kinds, including made-up ones."""
    assert FILTER_BYTES_MAX // 128 > 20_000_000
    monkeypatch.setattr(tables, "FILTER_BYTES_MAX", 10 * 128)
    table = new_table()
    wide = np.arange(8), np.ones((30, 8), np.int64)
    table.reserve(kinds=8)
    table.add(np.ones(30, np.int64), np.arange(1, 31), *wide, np.full(30, 10_000), FRAMEWORK)
    assert len(table) == 5
