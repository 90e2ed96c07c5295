"""Water filling: the characteristic condition of max-min fairness, and the paper's examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laboratory.solvers.water_filling import rate, solve

SIZES = st.sampled_from([0.0, 0.0, 0.001, 0.5, 1.0, 2.0, 3.0, 1000.0])


@given(st.data())
def test_every_user_has_a_bottleneck_where_none_is_higher(data: st.DataObject) -> None:
    frameworks, resources = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    demand = data.draw(arrays(np.float64, (frameworks, resources), elements=SIZES))
    demand[:, 0] = np.where(demand.any(axis=1), demand[:, 0], 1.0)
    capacity = data.draw(arrays(np.float64, resources, elements=st.floats(0.1, 1e6)))
    weight = data.draw(arrays(np.float64, frameworks, elements=st.floats(0.01, 100)))
    speed = rate(demand, capacity, weight)
    tasks = solve(demand, capacity, speed).tasks
    level, used = tasks / speed, tasks @ demand / capacity
    assert (used <= 1 + 1e-9).all()
    for f in range(frameworks):
        assert any(
            demand[f, r] > 0
            and used[r] >= 1 - 1e-9
            and (level[demand[:, r] > 0] <= level[f] * (1 + 1e-9)).all()
            for r in range(resources)
        )


def test_dominant_shares_and_sums_of_shares() -> None:
    demand, capacity = np.array([[1.0, 4.0], [3.0, 1.0]]), np.array([9.0, 18.0])
    asset = rate(demand, capacity, np.ones(2), lambda need: need.sum(axis=1))
    np.testing.assert_allclose(solve(demand, capacity, asset).tasks, [63 / 25, 54 / 25])
    equal = solve(demand, capacity, np.ones(2)).tasks
    np.testing.assert_allclose(equal, [9 / 4, 9 / 4])  # x = y, x + 3 y = 9


def test_weights_scale_the_shares() -> None:
    demand = np.array([[1.0], [1.0]])
    tasks = solve(demand, np.array([9.0]), rate(demand, np.array([9.0]), np.array([2.0, 1.0])))
    np.testing.assert_allclose(tasks.tasks, [6.0, 3.0])


def test_filling_continues_for_users_whose_resources_are_left() -> None:
    demand, capacity = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([2.0, 10.0])
    tasks = solve(demand, capacity, rate(demand, capacity, np.ones(3))).tasks
    # Dominant shares x1/2, x2/2, x3/10 grow to 1/2; the first resource is used up, x3 takes the
    # rest.
    np.testing.assert_allclose(tasks, [1.0, 1.0, 9.0])


def test_users_that_need_a_missing_resource_get_nothing() -> None:
    demand, capacity = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([10.0, 0.0])
    tasks = solve(demand, capacity, rate(demand, capacity, np.ones(2))).tasks
    np.testing.assert_allclose(tasks, [10.0, 0.0])


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="framework 0 needs nothing"):
        solve(np.zeros((1, 2)), np.ones(2), np.ones(1))
