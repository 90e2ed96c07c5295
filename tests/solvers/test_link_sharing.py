"""Max-min fair rates over shared links: against the definition and a naive implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laboratory.solvers.link_sharing import NO_LINK, fair_rates
from tests.oracles import slow_rates


@st.composite
def networks(draw):
    links = draw(st.integers(1, 6))
    capacity = draw(st.lists(st.integers(0, 12), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True)
    return draw(st.lists(path, max_size=12)), capacity


def as_array(paths):
    rows = np.full((len(paths), 4), NO_LINK)
    for row, path in zip(rows, paths, strict=True):
        row[: len(path)] = path
    return rows


@given(networks())
def test_rates_are_those_of_the_slow_twin(network):
    paths, capacity = network
    rates = fair_rates(as_array(paths), np.array(capacity, np.float64))
    wanted = [float(each) for each in slow_rates(paths, capacity).values()]
    np.testing.assert_allclose(rates, wanted, atol=1e-9)


@given(networks())
def test_no_link_is_overloaded_and_every_flow_is_among_the_fastest_on_a_full_link(
    network,
):
    paths, capacity = network
    rates = fair_rates(as_array(paths), np.array(capacity, np.float64))
    used = [
        sum(rates[f] for f, path in enumerate(paths) if k in path) for k in range(len(capacity))
    ]
    assert all(u <= most + 1e-9 for u, most in zip(used, capacity, strict=True))
    for f, path in enumerate(paths):
        assert any(
            used[k] >= capacity[k] - 1e-9
            and rates[f] >= max(rates[g] for g, other in enumerate(paths) if k in other) - 1e-9
            for k in path
        )


def test_a_link_without_bounds_slows_no_flow_down():
    rates = fair_rates(np.array([[0, 1], [0, NO_LINK]]), np.array([np.inf, 2.0]))
    assert rates.tolist() == [2.0, np.inf]
