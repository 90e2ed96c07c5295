"""Measures: the properties of each, on values computed by hand and on random arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator import measures

AMOUNTS = st.integers(0, 10**9)


def test_dominant_share_is_the_largest_share() -> None:
    held = np.array([[3, 12], [6, 2], [0, 0]])
    share = measures.dominant_share(held, np.array([9, 18]))
    assert share.tolist() == [12 / 18, 6 / 9, 0.0]


def test_dominant_share_divides_by_the_weight_and_leaves_out_what_does_not_count() -> None:
    held, total = np.array([[3, 12], [6, 2]]), np.array([9, 18])
    weighted = measures.dominant_share(held, total, weight=np.array([2.0, 1.0]))
    assert weighted.tolist() == [12 / 18 / 2, 6 / 9]
    cpus_only = measures.dominant_share(held, total, counted=np.array([True, False]))
    assert cpus_only.tolist() == [3 / 9, 6 / 9]
    assert measures.dominant_share(held, total, counted=np.zeros(2, bool)).tolist() == [0.0, 0.0]


def test_a_resource_that_the_cluster_lacks_has_no_share() -> None:
    assert measures.dominant_share(np.array([[1, 5]]), np.array([2, 0])).tolist() == [0.5]


def test_dominant_resource_is_the_first_of_equals() -> None:
    demand = np.array([[1, 4], [3, 1], [1, 2]])
    assert measures.dominant_resource(demand, np.array([9, 18])).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("share", "index"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([1.0, 0.0, 0.0, 0.0], 1 / 4),
        ([2.0, 1.0], 9 / 10),  # (2 + 1)^2 / (2 * (4 + 1))
        ([0.0, 0.0], 1.0),
        ([], 1.0),
    ],
)
def test_jain_index(share: list[float], index: float) -> None:
    assert measures.jain_index(np.array(share)) == pytest.approx(index)


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1e6)))
def test_jain_index_stays_between_one_over_n_and_one(share: np.ndarray) -> None:
    assert 1 / len(share) - 1e-12 <= measures.jain_index(share) <= 1 + 1e-12


def test_tasks_of_a_bundle_are_those_of_its_scarcest_resource() -> None:
    demand = np.array([[1, 4], [3, 0], [0, 0]])
    assert measures.tasks_of(np.array([6, 8]), demand).tolist() == [2.0, 2.0, 0.0]


def test_envy_counts_own_tasks_in_the_other_bundle() -> None:
    held, demand = np.array([[1, 4], [6, 8]]), np.array([[1, 4], [3, 1]])
    # A runs 1 task; with <6, 8> it could run min(6 / 1, 8 / 4) = 2. B would run fewer with <1, 4>.
    assert measures.envy(held, demand).tolist() == [1.0, 0.0]
    assert measures.envy_max(held, demand) == 1.0


def test_envy_is_about_bundles_in_proportion_to_weights() -> None:
    held, demand = np.array([[1, 1], [3, 3]]), np.array([[1, 1], [1, 1]])
    assert measures.envy(held, demand, np.array([1.0, 3.0])).tolist() == [0.0, 0.0]
    assert measures.envy(held, demand, np.array([1.0, 2.0])).tolist() == [0.5, 0.0]


def test_an_unknown_demand_has_no_envy_but_its_bundle_can_be_envied() -> None:
    held, demand = np.array([[1], [5]]), np.array([[1], [0]])
    assert measures.envy(held, demand).tolist() == [4.0, 0.0]


@given(st.data())
def test_envy_equals_the_pairwise_definition(data: st.DataObject) -> None:
    clients, resources = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    shape = (clients, resources)
    held = data.draw(arrays(np.int64, shape, elements=st.integers(0, 20)))
    demand = data.draw(arrays(np.int64, shape, elements=st.integers(0, 4)))
    weight = data.draw(arrays(np.float64, clients, elements=st.sampled_from([0.5, 1.0, 3.0])))
    for i in range(clients):
        worth = [
            measures.tasks_of(held[j] * weight[i] / weight[j], demand[i]) for j in range(clients)
        ]
        slow = max(float(w) for w in worth) - float(worth[i])
        assert measures.envy(held, demand, weight)[i] == pytest.approx(slow, abs=1e-9)


def test_envy_max_gives_up_where_there_is_too_much_to_compare() -> None:
    rng = np.random.default_rng(1)
    held, demand = rng.integers(1, 10**6, (1100, 2)), rng.integers(1, 10**6, (1100, 2))
    assert len(held) ** 2 > measures.ENVY_PAIRS_MAX
    assert np.isnan(measures.envy_max(held, demand))
    few = np.tile(demand[:20], (55, 1))
    assert measures.envy_max(held, few) == measures.envy(held, few).max() > 0


def test_no_users_are_no_error() -> None:
    no_users = np.zeros((0, 2), np.int64)
    assert measures.envy_max(no_users, no_users) == 0.0
    assert len(measures.dominant_share(no_users, np.array([1, 1]))) == 0


@given(arrays(np.int64, (5, 2), elements=AMOUNTS))
def test_shares_do_not_depend_on_the_unit(held: np.ndarray) -> None:
    total = held.sum(axis=0)
    np.testing.assert_allclose(
        measures.dominant_share(held * 1000, total * 1000), measures.dominant_share(held, total)
    )
