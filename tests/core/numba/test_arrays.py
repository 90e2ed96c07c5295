"""Growing arrays, key maps and linked lists, each against a naive implementation."""

from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from allocator.core.numba import wide_tables
from allocator.core.numba.array_structures import (
    MARK,
    DistinctRows,
    FreeRows,
    KeyMap,
    distinct_rows,
    grow,
    pair,
    some,
)
from allocator.core.numba.columns import Column, Table, column, grown, listed, new_arrays
from allocator.core.numba.wide_tables import columns_of, copied, fill, write
from allocator.core.snapshot import Bools, Ints

KEYS = st.integers(0, 40)


@given(st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.sets(KEYS, max_size=9))))
def test_key_map_is_a_dictionary(steps: list[tuple[str, set[int]]]):
    fast, slow = KeyMap(), {}
    for row, (verb, keys) in enumerate(steps):
        chosen = [key for key in sorted(keys) if (key in slow) == (verb == "delete")]
        # Spread over the width of real keys, so that many share a slot.
        wide = np.array([pair(key, key * 7) for key in chosen], np.int64)
        if verb == "put":
            fast.claim(wide, np.full(len(wide), row))
            slow.update(dict.fromkeys(chosen, row))
        else:
            fast.delete(wide)
            for key in chosen:
                del slow[key]
        everything = np.array([pair(key, key * 7) for key in range(41)], np.int64)
        assert fast.get(everything).tolist() == [slow.get(key, -1) for key in range(41)]
        assert len(fast) == len(slow)


@given(st.lists(st.lists(KEYS, max_size=12), max_size=12))
def test_keys_that_are_absent_claim_rows_as_they_are_met(asked: list[list[int]]):
    fast = KeyMap()
    slow: dict[int, int] = {}
    for step, keys in enumerate(asked):
        spare = [100 * step + at for at in range(len(keys))]
        new = [key for key in dict.fromkeys(keys) if key not in slow]
        slow.update(zip(new, spare, strict=False))
        wide = np.array([pair(key, key * 7) for key in keys], np.int64)
        found, first = fast.claim(wide, np.array(spare, np.int64))
        assert found.tolist() == [slow[key] for key in keys]
        assert first.tolist() == [keys.index(key) for key in new]
        assert len(fast) == len(slow)


@given(st.lists(st.booleans(), max_size=60), st.randoms(use_true_random=False))
def test_free_rows_are_given_lowest_first(steps: list[bool], chance):
    rows = FreeRows(first=1)
    taken: set[int] = set()
    for take in steps:
        if take or not taken:
            expected = min(set(range(1, len(taken) + 2)) - taken)
            assert rows.take() == expected
            taken.add(expected)
        else:
            back = chance.choice(sorted(taken))
            rows.give(back)
            taken.remove(back)
        assert rows.limit > max(taken, default=0)


def test_growing_doubles_keeps_what_was_there_and_fills_with_zeros():
    array = np.arange(6).reshape(3, 2)
    larger = grow(array, 9, 3)
    assert larger.shape == (72, 3)
    assert larger[:3, :2].tolist() == array.tolist()
    assert not larger[3:].any()
    assert not larger[:, 2].any()
    assert grow(larger, 72) is larger
    assert grow(larger, 73).shape == (200, 3)


tables = st.integers(0, 3).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(-2, 2), min_size=columns, max_size=columns), max_size=12
    ).map(lambda rows: np.array(rows, np.int64).reshape(len(rows), columns))
)


@given(tables)
def test_distinct_rows_are_those_of_numpy(table):
    _check_distinct(distinct_rows(table), table)
    with patch.object(wide_tables, "_WIDE_BYTES", 0):
        _check_distinct(distinct_rows(table), table)


def test_rows_with_the_same_hash_are_distinguished():
    """A tenant can choose input for which the marks of different rows are equal."""
    same = [[np.int64(np.uint64(MARK)), 0], [0, 1]]
    table = np.array([*same, *same], np.int64)
    with patch.object(wide_tables, "_WIDE_BYTES", 0):
        _check_distinct(distinct_rows(table), table)


def _check_distinct(found: DistinctRows, table: np.ndarray) -> None:
    assert np.array_equal(found.rows[found.which], table)
    assert found.rows.tolist() == sorted({tuple(row): list(row) for row in table.tolist()}.values())
    assert found.times.tolist() == [
        sum(row == other for other in table.tolist()) for row in found.rows.tolist()
    ]


class Shelf(Table):
    """The declared columns of a table."""

    number: Ints = column()
    filled: Bools = column(np.bool_)
    amounts: Ints = column(wide=True)
    names: list[list[str]] = listed(list)


def test_columns_of_a_table_grow_together_and_keep_their_values():
    shelf = Shelf()
    assert not shelf.names[0]
    assert shelf.names[0] is not shelf.names[1]
    before = shelf.number
    shelf.reserve(len(before))
    assert shelf.number is before
    shelf.number[3], shelf.filled[3] = 7, True
    shelf.names[3].append("a")
    shelf.reserve(len(before) + 1, 2)
    shelf.amounts[3] = 4, 5
    shelf.reserve(1, 3)
    assert {len(each) for each in vars(shelf).values()} == {2 * len(before) + 56}
    row = shelf.number[3], shelf.filled[3], shelf.amounts[3].tolist(), shelf.names[3]
    assert row == (7, True, [4, 5, 0], ["a"])
    shelf.clear(3)
    row = shelf.number[3], shelf.filled[3], shelf.amounts[3].tolist(), shelf.names[3]
    assert row == (0, False, [0, 0, 0], [])


class Heads(NamedTuple):
    """Arrays of two types of rows."""

    first: Ints
    held: Ints


def test_arrays_of_a_tuple_grow_by_what_they_have_rows_of():
    columns = {"first": Column(by="owner", fill=-1), "held": Column(by="holding", across="kind")}
    empty = new_arrays(Heads, columns)
    assert (empty.first.shape, empty.held.shape) == ((0,), (0, 0))
    some = grown(empty, columns, owner=3)
    assert set(some.first.tolist()) == {-1}
    assert some.held is empty.held
    wide = grown(some, columns, holding=1, kind=2)
    assert wide.first is some.first
    assert wide.held.shape == (72, 2)
    assert grown(wide, columns, owner=64, holding=64, kind=1) is wide


TABLES = hnp.arrays(np.uint64, (5, 3), elements=st.integers(0, 2).map(np.uint64))


@given(TABLES, st.integers(0, 70), st.integers(0, 5))
def test_wide_tables_grow_like_any_others(table, rows: int, columns: int):
    narrow = grow(table, rows, columns)
    with (
        patch.object(wide_tables, "_UNTOUCHED_BYTES", 0),
        patch.object(wide_tables, "_WIDE_BYTES", 0),
    ):
        sparse = grow(table, rows, columns)
    assert (sparse == narrow).all()
    assert sparse.flags.c_contiguous
    assert sparse.flags.writeable


@given(TABLES, TABLES, st.sampled_from([1, 7, 1 << 16]))
def test_tables_are_written_and_copied_cell_by_cell(one, other, stretch: int):
    with patch.object(wide_tables, "STRETCH", stretch):
        whole = one.copy()
        write(whole, other)
        assert (copied(one) == one).all()
    assert (whole == other).all()


@given(hnp.arrays(np.int64, (3, 5), elements=st.integers(-1, 1)), st.sets(st.integers(0, 4)))
def test_columns_of_a_table_are_copied(table, some):
    columns = np.array(sorted(some), np.int64)
    found = columns_of(table, columns)
    assert (found == table[:, columns]).all()
    assert found.flags.c_contiguous


@given(
    hnp.arrays(np.uint8, st.integers(0, 70), elements=st.sampled_from([0, 0, 0, 7])),
    st.sampled_from([8, 16, 1 << 10]),
)
def test_zeros_are_filled_page_by_page(content, piece):
    zeros = np.zeros_like(content)
    with patch.object(wide_tables, "_PAGE", 8), patch.object(wide_tables, "_PIECE", piece):
        fill(zeros, content)
    assert (zeros == content).all()


class _Counted(np.ndarray):
    """A table that counts how often parts of it are gathered."""

    taken = 0

    def __getitem__(self, index: Any) -> Any:
        _Counted.taken += 1
        return super().__getitem__(index)


@pytest.mark.parametrize(("rows", "columns"), [(1, 512), (2000, 512), (1, 3), (0, 3), (2000, 3)])
def test_whether_rows_are_zeros_is_not_asked_of_many_columns_one_by_one(rows, columns, monkeypatch):
    """Each launch reads a row, in which there may be hundreds of kinds."""
    monkeypatch.setattr(_Counted, "taken", 0)
    table = np.zeros((rows, columns), np.int64)
    table[::3, columns - 1] = -5
    found = some(table.view(_Counted))
    assert found.tolist() == [row % 3 == 0 for row in range(rows)]
    assert found.dtype == np.bool_
    assert _Counted.taken <= 3
