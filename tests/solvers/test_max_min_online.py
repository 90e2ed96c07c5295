"""Incremental max-min fairness equals the full solution after every change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.max_min import max_min
from laboratory.solvers.online_max_min import OnlineMaxMin

TYPES = 5
ROWS = arrays(np.bool_, TYPES)
WEIGHTS = st.sampled_from([1.0, 1.0, 2.0, 0.3, 1e-5, 7e3])
LIMITS = st.sampled_from([np.inf, np.inf, 0.0, 1.5, 20.0])
COUNTS = arrays(np.int64, TYPES, elements=st.integers(0, 4) | st.integers(0, 1000))


@given(st.data())
def test_every_change_gives_the_optimum(data: st.DataObject) -> None:
    count = data.draw(COUNTS)
    users = data.draw(st.lists(st.tuples(ROWS, WEIGHTS, LIMITS), max_size=6))
    there = dict(enumerate(users))

    def columns() -> list[np.ndarray]:
        chosen = [there[number] for number in sorted(there)]
        rows = np.array([each[0] for each in chosen], bool).reshape(-1, TYPES)
        return [rows, *(np.array([each[k] for each in chosen], float) for k in (1, 2))]

    rows, weight, limit = columns()
    online = OnlineMaxMin(rows, count, weight, limit)
    for change in data.draw(st.lists(st.sampled_from(["join", "join", "leave", "resize"]))):
        if change == "join":
            user = data.draw(st.tuples(ROWS, WEIGHTS, LIMITS))
            number = online.join(*user)
            assert number not in there
            there[number] = user
        elif change == "resize":
            count = data.draw(COUNTS)
            online.resize(count)
        elif there:
            number = data.draw(st.sampled_from(sorted(there)))
            online.leave(number)
            del there[number]
        rows, weight, limit = columns()
        expected = max_min.solve(rows, count, weight, limit)
        assert online.users.tolist() == sorted(there)
        machines, tiny = online.solution.machines, 1e-12 * count.sum()
        np.testing.assert_allclose(machines, expected.machines, rtol=1e-12, atol=tiny)
        np.testing.assert_allclose(online.solution.given.sum(axis=1), machines, atol=1e-9)


def test_invalid_input_changes_nothing() -> None:
    online = OnlineMaxMin(np.ones((2, 1), bool), np.array([4]))
    with pytest.raises(ValueError, match="weights must be positive and finite, one is -1"):
        online.join(np.array([True]), -1.0)
    with pytest.raises(ValueError, match="do not fit a graph of"):
        online.join(np.array([True, False]))
    with pytest.raises(ValueError, match="must not be negative"):
        online.resize(np.array([-1]))
    with pytest.raises(KeyError, match="there is no user 2"):
        online.leave(2)
    assert online.solution.machines.tolist() == [2, 2]
    online.leave(0)
    with pytest.raises(KeyError, match="there is no user 0"):
        online.leave(0)
    assert online.solution.machines.tolist() == [4]
    assert online.join(np.array([True]), 3.0) == 0
    assert online.solution.machines.tolist() == [3, 1]
