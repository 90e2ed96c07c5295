"""Constrained max-min fairness: against every assignment there is, and against linear programs."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from allocator.solvers import constraint_graph, independent, max_min, max_min_whole

COUNTS = st.integers(0, 3)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Eligibility, counts, weights, limits of up to four users and four types."""
    users, types = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    eligible = draw(arrays(np.bool_, (users, types)))
    count = draw(arrays(np.int64, types, elements=COUNTS))
    weight = draw(arrays(np.float64, users, elements=st.sampled_from([1.0, 1.5, 2.0, 4.0])))
    limit = draw(st.none() | arrays(np.int64, users, elements=st.integers(0, 6)))
    return eligible, count, weight, limit


def best_of_all(
    eligible: np.ndarray, count: np.ndarray, weight: Sequence[float], limit: np.ndarray | None
) -> list[Fraction]:
    """The largest ascending vector of weighted shares among all assignments of machines."""
    vectors = {(0,) * len(eligible)}
    for kind in np.repeat(np.arange(len(count)), count):
        vectors |= {
            (*vector[:user], vector[user] + 1, *vector[user + 1 :])
            for vector in vectors
            for user in np.flatnonzero(eligible[:, kind])
            if limit is None or vector[user] < limit[user]
        }
    return max(
        sorted(Fraction(x) / Fraction(w) for x, w in zip(vector, weight, strict=True))
        for vector in vectors
    )


def linear_programs(eligible: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Algorithm 1 of the paper, with the first constraint as it is meant: x[i, j] <= C[i, j]."""
    users, types = eligible.shape
    columns = users * types + 1  # x[i, j] row by row, then the level
    machine = np.zeros((types, columns))
    user = np.zeros((users, columns))
    for i in range(users):
        user[i, i * types : (i + 1) * types] = -1.0
        machine[:, i * types : (i + 1) * types] = np.eye(types)
    bounds = [(0, c if e else 0) for row in eligible for e, c in zip(row, count, strict=True)]

    def highest(fixed: dict[int, float], active: Sequence[int]) -> float:
        rows = user.copy()
        rows[list(active), -1] = 1.0
        right = [-fixed.get(i, 0.0) for i in range(users)]
        result = linprog(
            np.eye(columns)[-1] * -1.0,
            A_ub=np.vstack([machine, rows]),
            b_ub=np.concatenate([count, right]),
            bounds=[*bounds, (0, None)],
        )
        assert result.status == 0
        return -float(result.fun or 0.0)

    share: dict[int, float] = {}
    while active := [i for i in range(users) if i not in share]:
        level = highest(share, active)
        floor = {**share, **dict.fromkeys(active, level)}
        stuck = [
            i
            for i in active
            if highest({k: v for k, v in floor.items() if k != i}, [i]) <= level + 1e-7
        ]
        share |= dict.fromkeys(stuck, level)
    return np.array([share[i] for i in range(users)])


@given(graphs())
def test_whole_machines_are_as_good_as_the_best_assignment(graph) -> None:
    eligible, count, weight, limit = graph
    solution = max_min_whole.solve(eligible, count, weight, limit)
    shares = sorted(
        Fraction(int(x)) / Fraction(w)
        for x, w in zip(solution.machines, weight.tolist(), strict=True)
    )
    assert shares == best_of_all(eligible, count, weight.tolist(), limit)
    assert (solution.given.sum(axis=1) == solution.machines).all()
    assert (solution.given.sum(axis=0) <= count).all()
    assert not solution.given[~eligible].any()


@settings(max_examples=30)
@given(graphs())
def test_divisible_machines_are_shared_as_algorithm_1_shares_them(graph) -> None:
    eligible, count, _, _ = graph
    np.testing.assert_allclose(
        max_min.solve(eligible, count).machines, linear_programs(eligible, count), atol=1e-6
    )


@given(graphs())
def test_the_certificate_holds_with_weights_and_limits(graph) -> None:
    eligible, count, weight, limit = graph
    solution = max_min.solve(eligible, count, weight, limit)
    assert solution.residual <= max_min.TOLERANCE
    assert (solution.machines <= (np.inf if limit is None else limit)).all()
    np.testing.assert_allclose(solution.given.sum(axis=1), solution.machines, atol=1e-9)


@given(graphs())
def test_nobody_whole_is_a_machine_or_more_below_its_divisible_share(graph) -> None:
    eligible, count, _, _ = graph
    whole = max_min_whole.solve(eligible, count).machines
    assert (np.abs(whole - max_min.solve(eligible, count).machines) < 1).all()


def test_the_certificate_refuses_what_is_not_fair() -> None:
    eligible, count = np.array([[True, True], [False, True]]), np.array([1, 2])
    fair = max_min.solve(eligible, count)
    np.testing.assert_allclose(fair.machines, [1.5, 1.5])
    unfair = np.array([[1.0, 1.0], [0.0, 1.0]])  # user 1 holds 2 machines, one of them user 2's
    assert max_min.residual(unfair, eligible, count) == pytest.approx(1 / 3)
    idle = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert max_min.residual(idle, eligible, count) > 0.1
    twice = np.array([[1.0, 1.5], [0.0, 1.5]])
    assert max_min.residual(twice, eligible, count) == pytest.approx(1 / 3)
    stranger = np.array([[0.5, 1.0], [0.5, 1.0]])
    assert max_min.residual(stranger, eligible, count) > 0.1


def test_the_certificate_of_whole_machines_follows_chains() -> None:
    # User 2 could have a third machine only if user 1 moves from type 1 to type 0.
    eligible = np.array([[True, True, False], [False, True, True]])
    count = np.array([2, 2, 1])
    better = np.array([[1, 2, 0], [0, 0, 1]])  # 3 and 1, and a machine of type 0 is idle
    assert max_min_whole.improvement(better, eligible, count) == 0
    assert max_min_whole.improvement(np.array([[2, 1, 0], [0, 1, 1]]), eligible, count) is None
    assert max_min_whole.improvement(np.array([[2, 2, 0], [0, 0, 1]]), eligible, count) == 1
    with pytest.raises(AssertionError):
        max_min_whole.improvement(np.array([[2, 2, 0], [0, 1, 1]]), eligible, count)


def test_equal_users_and_equal_machines_are_one() -> None:
    eligible = np.tile(np.array([[True, True, False, False], [True, True, True, False]]), (50, 1))
    graph = constraint_graph.coalesce(eligible, np.array([10, 20, 5, 7]))
    assert graph.size.tolist() == [50, 50]
    assert sorted(graph.count.tolist()) == [5, 30]
    assert graph.group_of_type[0] == graph.group_of_type[1] != graph.group_of_type[2]
    assert graph.group_of_type[3] == -1  # nobody can use it


def test_equal_users_get_equal_shares_to_a_machine() -> None:
    eligible = np.ones((7, 3), bool)
    machines = max_min_whole.solve(eligible, np.array([5, 5, 6])).machines
    assert sorted(machines.tolist()) == [2, 2, 2, 2, 2, 3, 3]


@given(arrays(np.bool_, (3, 5)), arrays(np.int64, 5, elements=st.integers(0, 9)))
def test_the_result_does_not_depend_on_the_order_of_machines(eligible, count) -> None:
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(
        max_min.solve(eligible, count).machines,
        max_min.solve(eligible[:, order], count[order]).machines,
        atol=1e-9,
    )


def test_weights_are_kept_to_a_thousandth_of_the_smallest() -> None:
    assert constraint_graph.whole_weights(np.array([0.1, 0.2, 0.25])).tolist() == [2, 4, 5]
    assert constraint_graph.whole_weights(np.array([3.0, 1.0])).tolist() == [3, 1]
    with pytest.raises(ValueError, match="weights must be positive"):
        constraint_graph.whole_weights(np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="must not be negative"):
        max_min.solve(np.ones((1, 1), bool), np.array([-1]))
    with pytest.raises(ValueError, match="62 bits"):
        max_min.solve(np.ones((2, 1), bool), np.array([2**50]), np.array([1.0, 1234.567]))


def test_nobody_and_nothing_are_no_error() -> None:
    assert len(max_min.solve(np.zeros((0, 2), bool), np.array([1, 2])).machines) == 0
    assert len(max_min_whole.solve(np.zeros((0, 2), bool), np.array([1, 2])).machines) == 0
    assert max_min.solve(np.zeros((2, 0), bool), np.zeros(0, np.int64)).machines.tolist() == [0, 0]
    nothing = np.zeros((2, 2), bool)
    assert max_min_whole.solve(nothing, np.array([1, 2])).machines.tolist() == [0, 0]


def test_independent_allocation_follows_weights_and_leaves_useless_types_idle() -> None:
    eligible = np.array([[True, True, False], [True, False, False]])
    given = independent.solve(eligible, np.array([4, 1, 2]), np.array([3.0, 1.0]))
    assert given.tolist() == [[3.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
