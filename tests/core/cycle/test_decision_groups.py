"""Decisions grouped by their kinds, and the queue of those without an outcome."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books.open_decisions import OpenDecisions
from allocator.core.books.sparse_rows import SparseRows, groups_of, joined

kind_sets = st.lists(st.frozensets(st.integers(0, 70_000), min_size=1, max_size=4), max_size=12)
few_kinds = st.lists(st.frozensets(st.integers(0, 2), min_size=1), max_size=12)


def rows_from(kinds: list[frozenset[int]], base: int = 0) -> SparseRows:
    """Rows of these kinds, all amounts different."""
    flat = [kind for each in kinds for kind in sorted(each)]
    start = np.cumsum([0, *map(len, kinds)])
    return SparseRows(start, np.array(flat, np.int64), 1 + base + np.arange(len(flat)))


def as_dicts(rows: SparseRows) -> list[dict[int, int]]:
    return [
        dict(zip(rows.kind[a:b].tolist(), rows.amount[a:b].tolist(), strict=True))
        for a, b in zip(rows.start[:-1], rows.start[1:], strict=True)
    ]


@given(st.one_of(kind_sets, few_kinds))
def test_groups_have_the_same_kinds_and_keep_their_order(kinds: list[frozenset[int]]) -> None:
    rows = rows_from(kinds)
    order, ends = groups_of(rows)
    groups: dict[frozenset[int], list[int]] = {}
    for row, each in enumerate(kinds):
        groups.setdefault(each, []).append(row)
    begins = [0, *ends.tolist()][:-1]
    found = [order[begin:end].tolist() for begin, end in zip(begins, ends, strict=True)]
    assert found == list(groups.values())
    taken = rows.take(order)
    assert as_dicts(taken) == [as_dicts(rows)[row] for row in order.tolist()]
    for begin, end in zip(begins, ends.tolist(), strict=True):
        kind, amount = taken.table(begin, end)
        dense = [dict(zip(kind.tolist(), row, strict=True)) for row in amount.tolist()]
        assert dense == as_dicts(taken)[begin:end]


@given(st.lists(few_kinds, max_size=4), st.data())
def test_the_queue_returns_the_oldest_first_for_any_chunk_size(cycles, data) -> None:
    queue, expected = OpenDecisions(), []
    for number, kinds in enumerate(cycles):
        rows = rows_from(kinds, base=100 * number)
        clients = 1 + np.arange(len(kinds)) % 3
        queue.append(clients, clients + 10, rows)
        expected += list(zip(clients.tolist(), as_dicts(rows), strict=True))
    queue.void_client(2)
    queue.void_agent(13)
    assert not queue.has_client(2)
    assert queue.has_client(1) == any(client == 1 for client, _ in expected)
    expected = [(client if client == 1 else 0, amounts) for client, amounts in expected]
    first = 1
    while expected:
        count = data.draw(st.integers(1, len(expected)))
        taken = queue.oldest(count)
        queue.drop(count)
        found = list(zip(taken.client.tolist(), as_dicts(taken.amounts), strict=True))
        assert found == expected[:count]
        expected, first = expected[count:], first + count
        assert (queue.first, len(queue)) == (first, len(expected))
    assert queue.next == first


def test_rows_are_joined() -> None:
    one, other = rows_from([frozenset({1}), frozenset({2, 3})]), rows_from([frozenset({4})])
    assert as_dicts(joined([one, other])) == as_dicts(one) + as_dicts(other)
    assert as_dicts(joined([])) == []
