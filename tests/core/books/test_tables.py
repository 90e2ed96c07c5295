"""Rows of clients by framework and role."""

import numpy as np
import pytest

from allocator.core.books.tables import ClientTable


class _Counted(dict):
    """Counts lookups."""

    looks = 0

    def get(self, *arguments):
        self.looks += 1
        return super().get(*arguments)


@pytest.fixture
def clients() -> ClientTable:
    table = ClientTable()
    for framework in range(1, 11):
        for role in (1, 2):
            table.open(framework, role)
    table._row = _Counted(table._row)
    return table


def test_many_rows_of_few_clients_cost_a_lookup_of_each_client(clients):
    chance = np.random.default_rng(1)
    framework, role = chance.integers(0, 13, 10_000), chance.integers(0, 4, 10_000)
    rows = clients.rows(framework, role)
    assert clients._row.looks == 13 * 4
    pairs = zip(framework.tolist(), role.tolist(), strict=True)
    assert rows.tolist() == [clients.row(*pair) for pair in pairs]


@pytest.mark.parametrize("odd", [-1, 2**31, 2**32 + 1, 2**62, -(2**63)])
def test_handles_that_no_row_has_are_no_other_clients(clients, odd):
    every = np.full(1000, 1)
    for framework, role in ((every, every * odd), (every * odd, every)):
        assert not clients.rows(framework, role).any()
    assert (clients.rows(every, every) == clients.row(1, 1)).all()
