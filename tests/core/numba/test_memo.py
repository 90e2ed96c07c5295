"""A cached result equals a computed one."""

import numpy as np

from allocator.core.numba.memo import StableArrays, constant, fixed, is_fixed, memoize


def test_a_result_is_kept_as_long_as_the_arrays_are_the_same_objects():
    made = []

    @memoize()
    def doubled(array: np.ndarray, times: int) -> np.ndarray:
        made.append(times)
        return fixed(array * times)

    one, other = fixed(np.arange(3)), fixed(np.arange(3))
    first = doubled(one, 2)
    assert doubled(one, 2) is first
    assert doubled(other, 2) is not first
    assert doubled(one, 3).tolist() == [0, 3, 6]
    assert made == [2, 2, 3]


def test_results_of_writable_arrays_are_not_cached():
    @memoize(size=4)
    def total(array: np.ndarray) -> int:
        return int(array.sum())

    array = np.arange(3)
    view = array.view()
    view.flags.writeable = False
    assert not is_fixed(view)
    assert (total(array), total(view)) == (3, 3)
    array[0] = 10
    assert (total(array), total(view)) == (13, 13)


def test_arrays_in_tuples_count_and_the_number_of_results_is_limited():
    made = []

    @memoize(size=2)
    def joined(arrays: tuple[np.ndarray, ...]) -> list[int]:
        made.append(len(arrays))
        return np.concatenate(arrays).tolist()

    one, other = fixed(np.array([1])), fixed(np.array([2]))
    for arrays in ((one, other), (one,), (one, other), (one,)):
        assert joined(arrays) == [each[0] for each in arrays]
    assert made == [2, 1]
    joined((other,))
    joined((one, other))
    assert made == [2, 1, 1, 2]


def test_a_steady_array_is_the_same_object_while_it_is_equal():
    steady, books = StableArrays(), np.arange(4)
    shown = steady("demand", books)
    assert is_fixed(shown)
    assert steady("demand", books.copy()) is shown
    books[1] = 7
    assert shown.tolist() == [0, 1, 2, 3]
    assert steady("demand", books).tolist() == [0, 7, 2, 3]
    assert steady("other", books) is not steady("demand", books)
    assert steady("demand", books.astype(np.float64)).dtype == np.float64


def test_fixed_arrays_cannot_be_written():
    whole = np.arange(6).reshape(2, 3)
    row = fixed(whole[0])
    whole[0, 0] = 9
    assert row.tolist() == [0, 1, 2]
    assert not row.flags.writeable
    assert constant(1, 3) is constant(1, 3)
    assert is_fixed(constant(1, 3))
