"""Grants to one client on one agent become one decision, ordered by the first grant of each."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.cycle.cycle import coalesce
from allocator.core.snapshot import Grants

NUMBERS = st.integers(0, 5)


def _grants(rows: list[tuple[int, int, int, int, int]], special: list[tuple[int, int]]) -> Grants:
    client, agent, tasks, cpus, mem = np.array(rows, np.int64).reshape(-1, 5).T
    grant, amount = np.array(special, np.int64).reshape(-1, 2).T
    amounts = np.stack([cpus, mem], axis=1)
    return Grants(client, agent, tasks, amounts, grant, grant % 3, amount)


@given(st.lists(st.tuples(*[NUMBERS] * 5), min_size=1, max_size=30), st.data())
def test_grants_to_a_client_on_an_agent_are_summed(rows, data):
    parts = st.lists(st.tuples(st.integers(0, len(rows) - 1), NUMBERS), max_size=5)
    special = sorted(data.draw(parts))
    merged = coalesce(_grants(rows, special))
    expected = dict[tuple[int, int], list[int]]()
    for client, agent, *amounts in rows:
        row = expected.setdefault((client, agent), [0, 0, 0])
        row[:] = np.add(row, amounts).tolist()
    pairs = list(zip(merged.client.tolist(), merged.agent.tolist(), strict=True))
    assert pairs == list(expected)
    found = np.column_stack([merged.tasks, merged.amount])
    assert found.tolist() == list(expected.values())
    assert [pairs[grant] for grant in merged.special_grant.tolist()] == [
        rows[grant][:2] for grant, _ in special
    ]
    assert merged.special_amount.tolist() == [amount for _, amount in special]


def test_merging_takes_few_bytes_a_grant():
    """With tiny tasks a cycle merges a million grants."""
    count = 20_000
    at = np.arange(count)
    rows = np.stack([at % 7, at % 1000, *[np.ones(count, np.int64)] * 3], axis=1)
    grants = _grants(rows.tolist(), [])
    tracemalloc.start()
    try:
        assert len(coalesce(grants)) == 7000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * count
