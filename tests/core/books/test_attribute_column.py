"""A column of an attribute takes little memory, and is made once, however many values it has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AgentColumns, AgentTraits, Rule, SortedRule
from allocator.core.books import agent_rules, attribute_column
from allocator.core.books.attribute_column import AttributeColumn
from allocator.core.books.rule_index import RuleIndex
from allocator.core.constraints import parse_constraint
from tests.counting import count_calls

AGENTS, NAMES = 4096, 20


def _column(values: list[str]) -> AttributeColumn:
    column = AttributeColumn(len(values))
    column.put(np.arange(len(values)), values)
    return column


@given(
    st.lists(st.none() | st.text("abc", max_size=4), min_size=1, max_size=200),
    st.lists(
        st.dictionaries(st.integers(0, 99), st.none() | st.text("abcd", max_size=4), max_size=99),
        max_size=6,
    ),
)
def test_a_value_has_one_code_and_another_value_another_one(values, changes):
    column = AttributeColumn(len(values))
    for change in [dict(enumerate(values)), *changes]:
        rows = [row for row in change if row < len(values)]
        for row in rows:
            values[row] = change[row]
        column.put(np.array(rows, np.int64), [values[row] for row in rows])
        known = sorted({value for value in values if value is not None})
        code = dict(zip(known, column.find(known).tolist(), strict=True))
        assert all(0 < each < len(column) for each in code.values())
        assert len(set(code.values())) == len(code)
        assert column.of.tolist() == [0 if each is None else code[each] for each in values]
        assert column.find(["x", "none has it"]).tolist() == [-1, -1]


def test_values_with_the_same_hash_are_distinguished(monkeypatch):
    """Both for values of agents, and for values in rules that no agent has."""

    def alike(texts, salt):
        hashes = [hash(text) if salt > 1 else len(text) for text in texts]
        return np.array(hashes, np.int64)

    monkeypatch.setattr(attribute_column, "hashes_of", alike)
    column = _column([f"{row:03}" for row in range(200)])
    codes = column.find([f"{row:03}" for row in range(200)])
    assert len(set(codes.tolist())) == 200
    assert (column.of == codes).all()
    column = _column(["a" * row for row in range(1, 200)])
    assert column.find(["b", "aa", "cc"]).tolist() == [-1, 2, -1]
    column.put(np.array([0]), ["b"])
    assert column.find(["b", "a"]).tolist() == [len(column) - 1, 1]


def test_a_column_in_which_each_agent_has_its_own_value_takes_little_memory():
    column = _column([f"value-{row}" for row in range(AGENTS)])
    assert column.nbytes <= 28 * AGENTS + 1024
    arrays = column.of, column._hash, column._code
    assert sum(array.nbytes for array in arrays) == (4 + 8 + 4) * AGENTS
    assert not column._late


@pytest.fixture
def made(monkeypatch):
    """How many values columns were given, each time."""
    counts, put = list[int](), AttributeColumn.put

    def counted(column, agents, values):
        counts.append(len(values))
        put(column, agents, values)

    monkeypatch.setattr(AttributeColumn, "put", counted)
    return counts


def _unlike(number: int) -> AgentTraits:
    return AgentTraits({f"a{name}": f"v{name}-{number}" for name in range(NAMES)}, *[False] * 4)


def test_columns_of_twenty_attributes_that_all_differ_are_made_once(monkeypatch, made):
    """They fit into the memory for columns, which is 1 KiB for each of 50,000 agents."""
    monkeypatch.setattr(agent_rules, "COLUMNS_BYTES_MAX", AGENTS * 2**26 // 50_000)
    columns = AgentColumns([_unlike(agent) for agent in range(AGENTS)])
    for number in range(5):
        label = ";".join(f"a{name}!=v{name}-{number}" for name in range(NAMES))
        bars = columns.barred_by(SortedRule.of(Rule(parse_constraint(label))))
        assert bars is not None
        assert np.flatnonzero(bars).tolist() == [number]
    assert made == [AGENTS] * NAMES


def test_values_in_rules_are_looked_up_once_for_all_clients(monkeypatch):
    """Not once for each block of clients that is painted."""
    index = RuleIndex([_unlike(agent) for agent in range(AGENTS)])
    rules = {
        client: Rule(parse_constraint(f"a0!=v0-{client}|v0-{client + 1};a1!=v1-{client}"))
        for client in range(500)
    }
    entries = index.set_rules(rules).entries
    assert len(entries) == 500
    found = count_calls(monkeypatch, AttributeColumn, "find")
    named: dict = {}
    for block in (range(4), range(4, 8)):
        bars = index.barred_on(None, block, entries, named)
        for client in range(64 * block.start, min(64 * block.stop, 500)):
            bit = bars[:, client // 64 - block.start] >> np.uint64(client % 64) & np.uint64(1)
            assert np.flatnonzero(bit).tolist() == [client, client + 1]
    assert found == {"find": 2 * 2}  # to make each of two columns, and to look it up
