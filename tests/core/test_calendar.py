"""Filters expire at their time, whatever was entered, dropped and replaced before."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.filters.calendar import Calendar
from allocator.core.filters.table import FilterTable

AGENTS, CLIENTS = 3, 4

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.integers(1, CLIENTS - 1),
            st.integers(1, AGENTS - 1),
            st.integers(1, 3),
            st.integers(0, 4000),
        ),
        st.tuples(st.just("pass"), st.integers(0, 3000)),
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
            table.add(np.array([client]), np.array([agent]), np.array([[amount]]), expires_ms)
        elif step[0] == "revive":
            table.drop_client(step[1])
        else:
            now_ms += step[1]
            before = table.rows.agent > 0
            kept = before & (table.rows.expires_ms >= now_ms)
            table.expire(now_ms)
            assert ((table.rows.agent > 0) == kept).all()
        table.check()


def test_replacing_filters_for_ever_does_not_fill_the_calendar() -> None:
    table = FilterTable(1000)
    table.reserve(agents=AGENTS, clients=CLIENTS, kinds=1)
    year_ms = 365 * 86_400_000
    one = np.ones(1, np.int64)
    for now_ms in range(5000):
        table.add(one, one, one[:, None], np.array([now_ms + year_ms]))
    assert len(table) == 1
    assert len(table._calendar) < 1100
    table.check()


def test_a_row_that_was_entered_twice_is_due_once() -> None:
    calendar = Calendar()
    calendar.enter(np.array([5, 7]), np.array([1500, 1600]))
    calendar.enter(np.array([5]), np.array([1700]))
    assert calendar.due(1024).tolist() == []
    assert calendar.due(1025).tolist() == [5, 7]
    assert calendar.due(9999).tolist() == []
