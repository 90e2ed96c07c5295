"""The nearest assignment that gives users their shares: by linear programs, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from allocator.solvers.flow.min_cost_flow import Infeasible
from allocator.solvers.max_min import max_min, nearest


@st.composite
def clusters(draw: st.DrawFn):
    users, types = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    eligible = rng.random((users, types)) < 0.6
    count = rng.integers(0, draw(st.sampled_from([4, 3_000])), types)
    share = max_min.solve(eligible, count, rng.choice([1.0, 1.5, 2.0], users)).machines
    held = rng.integers(0, 2 * count.sum() // eligible.size + 2, eligible.shape)
    return eligible, count, share, held


def fewest_moves(eligible, count, machines, held) -> float:
    """Naive implementation: the minimum number of machines that change hands."""
    users, types = eligible.shape
    pairs = users * types
    # First each user's amount of each type, then how much of it is new to the user.
    of_user = np.kron(np.eye(users), np.ones(types))
    of_type = np.kron(np.ones(users), np.eye(types))
    found = linprog(
        np.concatenate([np.zeros(pairs), np.ones(pairs)]),
        A_ub=np.block([[of_type, np.zeros((types, pairs))], [np.eye(pairs), -np.eye(pairs)]]),
        b_ub=np.concatenate([count, held.ravel()]),
        A_eq=np.hstack([of_user, np.zeros((users, pairs))]),
        b_eq=machines,
        bounds=[(0, None if able else 0) for able in eligible.ravel()] + [(0, None)] * pairs,
    )
    assert found.status == 0
    return float(found.fun or 0.0)


@given(clusters())
def test_shares_are_whole_and_as_little_changes_hands_as_can_be(cluster) -> None:
    eligible, count, share, held = cluster
    got = nearest.solve(*cluster)
    assert (got >= 0).all()
    assert not got[~eligible].any()
    assert (got.sum(axis=0) <= count).all()
    machines = got.sum(axis=1)
    assert (np.abs(machines - share) < 1).all()
    # No machine is idle that rounding could have assigned.
    assert machines.sum() >= np.floor(share.sum() - 1e-6)
    moves = np.maximum(got - held, 0).sum()
    assert moves == pytest.approx(fewest_moves(eligible, count, machines, held), abs=1e-6)


def test_changes_are_spread_over_all_types() -> None:
    """The second may take machines of any type, and finds some of each."""
    held = np.array([[4_000, 2_000, 2_000], [0, 0, 0]])
    count = held.sum(axis=0)
    got = nearest.solve(np.ones((2, 3), bool), count, np.array([4_000.0, 4_000.0]), held)
    assert got[1] == pytest.approx([2_000, 1_000, 1_000], rel=0.2)


def test_a_flexible_user_leaves_what_only_another_can_use() -> None:
    eligible = np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1]], bool)
    count = np.array([2_328, 2_679, 2_359])
    share = max_min.solve(eligible, count, np.array([1.0, 1.0, 1.5])).machines
    got = nearest.solve(eligible, count, share, np.zeros(eligible.shape, np.int64))
    assert got.sum(axis=1).tolist() == [2_104, 2_105, 3_157]
    assert got[2, 1] == 2_679


def test_unreachable_shares_are_refused() -> None:
    with pytest.raises(Infeasible):
        nearest.solve(np.ones((1, 1), bool), np.array([3]), np.array([4.0]), np.zeros((1, 1), int))
