"""A framework that declines endlessly cannot displace others' refusals, and memory is bounded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.bounds import FILTER_BYTES_MAX
from allocator.core.filters import table as tables
from allocator.core.filters.table import FilterTable
from tests.core.session import Session

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


def test_a_framework_that_refused_very_often_gets_no_offers(monkeypatch) -> None:
    """In none of its roles, until refusals expire; others get all agents meanwhile."""
    monkeypatch.setattr(tables, "FRAMEWORK_FILTERS_MAX", 30)
    session = Session(roles={1: "a", 2: "b", 3: "c", 4: "d"})
    for agent in range(1, 21):
        session.agent(agent, 4, 8)
    session.framework(1, 1, 2, 3)
    for cycle in (1, 2):
        offers = session.cycle(1000 * cycle)
        assert len(offers) == 20
        for offer in offers:
            session.give_back(offer, 60_000)
    assert session.cycle(3000) == []
    assert session.allocator.last_cycle.clients == 0
    session.framework(2, 4)
    offers = session.cycle(4000)
    assert {offer[0] for offer in offers} == {2}
    assert len(offers) == 20
    for offer in offers:
        session.give_back(offer, 600_000)
    assert session.state.filters.forgotten == 0
    assert len(session.cycle(61_001)) == 20
    session.allocator.check()


def test_when_half_of_the_filters_are_in_use_few_are_enough() -> None:
    table = new_table()
    decline(table, 1, range(1, 51))
    assert table.satiated(FRAMEWORK) == ()
    decline(table, 1, range(51, 61))
    decline(table, 3, range(1, 21))
    assert (len(table), kept(table, 1), kept(table, 2)) == (70, 50, 20)
    assert table.satiated(FRAMEWORK) == (1,)
    decline(table, 4, range(1, 12))
    assert table.satiated(FRAMEWORK) == (1, 2)


def test_wide_refusals_are_fewer(monkeypatch) -> None:
    """The size of a filter counts with all kinds, including made-up ones."""
    assert FILTER_BYTES_MAX // 128 > 20_000_000
    monkeypatch.setattr(tables, "FILTER_BYTES_MAX", 10 * 128)
    table = new_table()
    wide = np.arange(8), np.ones((30, 8), np.int64)
    table.reserve(kinds=8)
    table.add(np.ones(30, np.int64), np.arange(1, 31), *wide, np.full(30, 10_000), FRAMEWORK)
    assert len(table) == 5
