"""Dominant Resource Fairness, NSDI 2011, and the policies compared with it there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import measures
from allocator.core import PolicySpec
from allocator.policies import build
from allocator.solvers.fluid import proportional_fairness
from allocator.testing import amounts_granted, placement, static_snapshot
from laboratory.papers import drf
from laboratory.solvers import water_filling


def fluid(combine=None) -> np.ndarray:
    """Water filling on the example, with equal weights."""
    arguments = () if combine is None else (combine,)
    speed = water_filling.rate(drf.DEMAND, drf.CAPACITY, np.ones(2), *arguments)
    return water_filling.solve(drf.DEMAND, drf.CAPACITY, speed).tasks


def test_section_4_1_dominant_resources() -> None:
    """A's dominant resource is memory (4/18 > 1/9), B's is CPU (3/9 > 1/18), not the reverse."""
    assert measures.dominant_resource(drf.DEMAND, drf.CAPACITY).tolist() == [1, 0]


def test_section_4_1_whole_tasks() -> None:
    assert drf.filled("drf") == [3, 2]


def test_section_4_1_equal_dominant_shares_of_two_thirds() -> None:
    snapshot = static_snapshot(capacity=[drf.CAPACITY], demand=drf.DEMAND)
    spec = PolicySpec("drf", "listed", mode="characterised", flat=True)
    held = amounts_granted(snapshot, build(spec).allocate(snapshot, 0))
    assert measures.dominant_share(held, drf.CAPACITY).tolist() == [12 / 18, 6 / 9]


def test_section_4_1_order_of_grants() -> None:
    """Table 1 of the paper: B, A, B, A, A; there B starts, here the lower row wins ties."""
    snapshot = static_snapshot(capacity=[drf.CAPACITY], demand=drf.DEMAND)
    spec = PolicySpec("drf", "listed", mode="characterised", flat=True)
    grants = build(spec).allocate(snapshot, 0)
    # Shares after each grant, in 18ths: A 4; B 6; A 8 (4 < 6); B 12 (6 < 8); A 12 (8 < 12).
    assert grants.client.tolist() == [0, 1, 0, 1, 0]


def test_section_4_1_fluid() -> None:
    np.testing.assert_allclose(fluid(), [3, 2])


def test_section_4_3_asset_fairness() -> None:
    """x + 3 y = 9 and 6 x = 7 y, with a CPU worth two gigabytes."""
    np.testing.assert_allclose(fluid(lambda need: need.sum(axis=1)), [63 / 25, 54 / 25])


def test_section_4_3_ceei() -> None:
    """Maximise x * y subject to x + 3 y <= 9 and 4 x + y <= 18."""
    tasks = proportional_fairness.solve(drf.DEMAND, drf.CAPACITY, np.ones(2)).tasks
    np.testing.assert_allclose(tasks, [45 / 11, 18 / 11])


@pytest.mark.parametrize(
    ("policy", "optimum"), [("drf", (3, 2)), ("asset", drf.ASSET), ("ceei", drf.CEEI)]
)
def test_whole_tasks_come_within_one_task_of_the_optimum(policy: str, optimum) -> None:
    found = np.array(drf.filled(policy, drf.SCALE))
    assert (np.abs(found - np.array(optimum) * drf.SCALE) <= 1).all()


def test_ceei_is_an_alias_of_proportional_fairness() -> None:
    """The logarithm of a product of utilities is the sum of their logarithms."""
    assert drf.filled("ceei", drf.SCALE) == drf.filled("pf", drf.SCALE)


def test_section_4_2_weights() -> None:
    """Weighted DRF equalises dominant shares divided by weights."""
    snapshot = static_snapshot(capacity=[[900, 1800]], demand=drf.DEMAND, weight=[2, 1])
    spec = PolicySpec("drf", "listed", mode="characterised", flat=True)
    tasks = placement(snapshot, build(spec).allocate(snapshot, 0)).sum(axis=1)
    share = tasks * [4 / 1800, 3 / 900] / [2, 1]
    # Memory is scarce. When A's task (4 GB) no longer fits, up to three of B's (1 GB) still do.
    assert abs(share[0] - share[1]) <= 4 * 3 / 900
    assert share.min() > 0.45  # 13 x = 1800 with A = 3 x, B = x: 0.4615 each


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=2, max_size=5),
    st.integers(100, 400),
)
def test_section_5_whole_tasks_differ_by_less_than_a_task_from_fluid(demands, size) -> None:
    """While every user can be served, dominant shares differ by at most the largest task's share.

    The paper: "the difference between the allocations of any two users is bounded by one max-task
    compared to the continuous allocation". In the fluid allocation of users that need every
    resource, all dominant shares are equal, so that a user that can still be served is less than
    one task ahead.
    """
    demand = np.array(demands)
    snapshot = static_snapshot(capacity=[[size, size]], demand=demand)
    spec = PolicySpec("drf", "listed", mode="characterised", flat=True)
    grants = build(spec).allocate(snapshot, 0)
    task = demand.max(axis=1) / size
    held = np.zeros(demand.shape)
    for client in grants.client:
        if (held.sum(axis=0) + demand.max(axis=0) > size).any():
            break
        held[client] += demand[client]
        share = measures.dominant_share(held, np.array([size, size]))
        assert np.ptp(share) <= task.max() + 1e-12


def test_the_report_holds() -> None:
    report = drf.example()
    assert report.holds
    assert all(row.agrees for row in report.rows)
