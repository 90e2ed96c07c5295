"""The ledger's lists by agent, and its sums over the role tree, against naive implementations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books.ledger import Ledger
from allocator.core.books.sparse_rows import SparseRows
from allocator.core.numba.array_structures import pair
from allocator.core.numba.tree_sums import add_up_amounts

AGENTS, CLIENTS, KINDS = 4, 6, 2
ROLE_OF_CLIENT = np.array([0, 1, 1, 2, 2, 3])


@st.composite
def ledgers(draw) -> Ledger:
    """Holdings that were added and removed, so that lists and rows are out of order."""
    ledger = Ledger()
    ledger.reserve(agents=AGENTS, clients=CLIENTS, kinds=KINDS)
    kind, none = np.arange(KINDS), np.zeros(1, np.bool_)
    for _ in range(draw(st.integers(0, 20))):
        client = np.array([draw(st.integers(1, CLIENTS - 1))])
        agent = np.array([draw(st.integers(1, AGENTS - 1))])
        row = ledger.find(client, agent)
        if row[0] >= 0 and draw(st.booleans()):
            held = ledger.books.held[:, row].T
            assert ledger.release(client, agent, kind, held, none)[0] < 0
        else:
            amount = np.array([[draw(st.integers(0, 3)) for _ in range(KINDS)]])
            as_offer = draw(st.booleans())
            ledger.charge(client, agent, kind, amount, as_offer=as_offer, now_ms=1)
    return ledger


@given(ledger=ledgers(), agents=st.lists(st.integers(0, AGENTS - 1), unique=True))
def test_holders_on_some_agents_equal_a_search(ledger: Ledger, agents: list[int]) -> None:
    books, rows = ledger.books, ledger.rows()
    expected = [
        pair(place, int(books.client[row]))
        for place, agent in enumerate(agents)
        for row in rows
        if books.agent[row] == agent
    ]
    assert ledger.holders(np.array(agents, np.int64)).tolist() == sorted(expected)
    for agent in agents:
        assert ledger.rows_of_agent(agent).tolist() == [
            row for row in rows.tolist() if books.agent[row] == agent
        ]


@given(
    ledger=ledgers(),
    wanted=st.lists(
        st.tuples(
            st.integers(1, 4), st.integers(1, AGENTS - 1), st.integers(0, 3), st.integers(0, 3)
        )
    ),
)
def test_the_owners_of_offered_amounts_equal_a_search(
    ledger: Ledger, wanted: list[tuple[int, int, int, int]]
) -> None:
    columns = np.array(wanted, np.int64).reshape(-1, 4)
    role, agent, amount = columns[:, 0], columns[:, 1], columns[:, 2:]
    books = ledger.books
    expected = []
    for one, where, much in zip(role, agent, amount, strict=True):
        first = (
            int(books.client[row])
            for row in ledger.rows()
            if books.agent[row] == where
            and ROLE_OF_CLIENT[books.client[row]] == one
            and (books.offered[:KINDS, row] >= much).all()
        )
        expected.append(next(first, 0))
    found = ledger.find_offers(ROLE_OF_CLIENT, role, agent, np.arange(KINDS), amount)
    assert found.tolist() == expected


@given(
    ledger=ledgers(),
    decided=st.lists(
        st.tuples(
            st.integers(1, CLIENTS - 1),
            st.integers(1, AGENTS - 1),
            st.integers(0, KINDS - 1),
            st.integers(1, 4),
        ),
        max_size=6,
    ),
)
def test_offers_are_withdrawn_all_or_none(
    ledger: Ledger, decided: list[tuple[int, int, int, int]]
) -> None:
    table = np.array(decided, np.int64).reshape(-1, 4)
    client, agent, kind, amount = table.T.copy()
    books = ledger.books
    keys = list(zip(books.client.tolist(), books.agent.tolist(), strict=True))
    held = {key: books.held[:KINDS, keys.index(key)].tolist() for key in keys if key[0]}
    before = books.held.copy(), books.offered.copy()
    possible = True
    for who, where, what, much in decided:
        row = held.setdefault((who, where), [0] * KINDS)
        possible = possible and row[what] >= much
        row[what] -= much
    rows = SparseRows(np.arange(len(decided) + 1), kind, amount)
    assert ledger.withdraw(client, agent, rows) == possible
    if not possible:
        assert (ledger.books.held == before[0]).all()
        assert (ledger.books.offered == before[1]).all()
    ledger.check(1)


@given(st.data())
def test_sums_over_a_tree(data: st.DataObject) -> None:
    leaves, inner = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 5))
    count = leaves + inner
    client = [data.draw(st.integers(0, 7)) for _ in range(leaves)]
    parent = [data.draw(st.integers(max(node + 1, leaves), count - 1)) for node in range(count - 1)]
    parent.append(-1)
    at = data.draw(st.lists(st.integers(leaves, count - 1), min_size=8, max_size=8))
    values = [[data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))] for _ in at]
    expected = np.zeros((count, 2))
    for place, row in zip(at, values, strict=True):
        node = place
        while node >= 0:
            expected[node] += row
            node = parent[node]
    for leaf in range(leaves):
        expected[leaf] = values[client[leaf]]
    tree = np.array(parent), np.array(client, np.int64), np.array(at, np.int64)
    counts = np.array(values, np.int64)
    # Half of each client's holdings, plus a count.
    halves = np.full(len(counts), 0.5)
    both = add_up_amounts(*tree, counts, halves, counts[:, 1].astype(np.float64))
    assert (both == np.column_stack([expected / 2, expected[:, 1]])).all()
