"""Constrained max-min fairness: against all assignments, and against linear programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.max_min import cuts as max_min_certificate
from allocator.solvers.max_min import cuts as max_min_cuts
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from allocator.solvers.max_min.constraint_graph import coalesce
from laboratory.solvers import independent
from tests.solvers.oracles import best_of_all, exact_shares, linear_programs, machines_envied
from tests.tiers import examples

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


@st.composite
def wide_graphs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """The same, with weights over nine orders of magnitude and fractional limits."""
    users, types = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    eligible = draw(arrays(np.bool_, (users, types)))
    count = draw(arrays(np.int64, types, elements=st.integers(0, 3) | st.integers(0, 10**6)))
    power = draw(arrays(np.int64, users, elements=st.integers(-5, 4)))
    weight = draw(arrays(np.float64, users, elements=st.floats(1, 9.99))) * 10.0**power
    limit = draw(st.none() | arrays(np.float64, users, elements=st.floats(0, 1000)))
    return eligible, count, weight, limit


@given(graphs())
def test_whole_machines_are_as_good_as_the_best_assignment(graph) -> None:
    eligible, count, weight, limit = graph
    solution = max_min_whole.solve(eligible, count, weight, limit)
    shares = sorted(x / w for x, w in zip(solution.machines.tolist(), weight, strict=True))
    assert shares == best_of_all(eligible, count, weight.tolist(), limit)
    assert (solution.given.sum(axis=1) == solution.machines).all()
    assert (solution.given.sum(axis=0) <= count).all()
    assert not solution.given[~eligible].any()


@examples(10, 30)
@given(graphs())
def test_divisible_machines_are_shared_as_algorithm_1_shares_them(graph) -> None:
    np.testing.assert_allclose(max_min.solve(*graph).machines, linear_programs(*graph), atol=1e-6)


@given(wide_graphs())
def test_weights_and_limits_of_any_size_give_the_exact_optimum(graph) -> None:
    machines = max_min.solve(*graph).machines
    exact = [float(share) for share in exact_shares(*graph)]
    np.testing.assert_allclose(machines, exact, rtol=1e-11, atol=1e-12 * graph[1].sum())


@given(wide_graphs())
def test_whole_machines_follow_weights_of_any_size(graph) -> None:
    eligible, count, weight, limit = graph
    solution = max_min_whole.solve(*graph)
    given_ = solution.given
    assert max_min_whole.improvement(given_, eligible, count, weight, limit) is None
    assert (given_.sum(axis=1) == solution.machines).all()
    assert limit is None or (solution.machines <= limit).all()


@given(graphs() | wide_graphs())
def test_cuts_and_the_absence_of_envy_prove_the_same(graph) -> None:
    weight, limit = graph[2:]
    solution = max_min.solve(*graph)
    assert solution.residual <= max_min_certificate.TOLERANCE
    assert machines_envied(solution.given, *graph) <= 1e-9 * weight.max() / weight.min()
    assert (solution.machines <= (np.inf if limit is None else limit)).all()
    np.testing.assert_allclose(solution.given.sum(axis=1), solution.machines, atol=1e-9)
    # A cut's users cannot use machines of a higher cut.
    classes = solution.classes
    for low, cut in enumerate(classes.cuts):
        for higher in classes.cuts[low + 1 :]:
            assert higher.level > cut.level
            assert not classes.graph.eligible[np.ix_(cut.classes, higher.groups)].any()


@given(graphs() | wide_graphs(), st.data())
def test_the_certificate_notices_what_was_tampered_with(graph, data: st.DataObject) -> None:
    classes = max_min.solve(*graph).classes

    def violation(flow: np.ndarray, cuts: tuple[max_min_cuts.Cut, ...] = classes.cuts) -> float:
        return max_min_certificate.certificate(
            classes.graph, classes.edges, flow, classes.machines, cuts
        )

    assert violation(classes.flow) == classes.residual
    some = np.flatnonzero(classes.flow > 1e-6 * graph[1].sum())
    if len(some):
        here = np.arange(len(classes.flow)) == data.draw(st.sampled_from(some.tolist()))
        assert violation(np.where(here, classes.flow / 2, classes.flow)) > 1e-9
        assert violation(np.where(here, np.nan, classes.flow)) == np.inf
    if len(classes.cuts) > 1:
        assert violation(classes.flow, classes.cuts[::-1]) == np.inf
        assert violation(classes.flow, classes.cuts[1:]) > 1e-9


@given(graphs())
def test_whole_machines_differ_by_less_than_one_from_the_divisible_share(graph) -> None:
    eligible, count, _, _ = graph
    whole = max_min_whole.solve(eligible, count).machines
    assert (np.abs(whole - max_min.solve(eligible, count).machines) < 1).all()


def test_the_certificate_refuses_what_is_not_fair() -> None:
    eligible, count = np.array([[True, True], [False, True]]), np.array([1, 2])
    fair = max_min.solve(eligible, count)
    np.testing.assert_allclose(fair.machines, [1.5, 1.5])
    unfair = np.array([[1.0, 1.0], [0.0, 1.0]])  # user 1 holds 2 machines, one of them user 2's
    assert machines_envied(unfair, eligible, count) == pytest.approx(1 / 3)
    idle = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert machines_envied(idle, eligible, count) > 0.1
    twice = np.array([[1.0, 1.5], [0.0, 1.5]])
    assert machines_envied(twice, eligible, count) == pytest.approx(1 / 3)
    unfair = np.array([[0.5, 1.0], [0.5, 1.0]])
    assert machines_envied(unfair, eligible, count) > 0.1


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
    graph = coalesce(eligible, np.array([10, 20, 5, 7]))
    assert graph.size.tolist() == [50, 50]
    assert sorted(graph.count.tolist()) == [5, 30]
    assert graph.group_of_type[0] == graph.group_of_type[1] != graph.group_of_type[2]
    assert graph.group_of_type[3] == -1  # no user can use it


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


def test_bad_input_is_named() -> None:
    one, two = np.ones((1, 1), bool), np.ones((2, 1), bool)
    with pytest.raises(ValueError, match="weights must be positive and finite, one is 0"):
        max_min.solve(two, np.array([1]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="weights must be positive and finite, one is nan"):
        max_min.solve(one, np.array([1]), np.array([np.nan]))
    with pytest.raises(ValueError, match="must not be negative"):
        max_min.solve(one, np.array([-1]))
    with pytest.raises(ValueError, match="must not be negative"):
        max_min_whole.solve(one, np.array([1]), limit=np.array([-1]))
    with pytest.raises(ValueError, match="do not fit a graph of"):
        max_min.solve(one, np.array([1, 2]))
    with pytest.raises(ValueError, match="1 users have"):
        max_min.solve(one, np.array([1]), np.ones(2))
    with pytest.raises(ValueError, match="more than 4503599627370496 machines"):
        max_min.solve(one, np.array([2**53]))


def test_no_users_and_no_machines_are_no_error() -> None:
    assert len(max_min.solve(np.zeros((0, 2), bool), np.array([1, 2])).machines) == 0
    assert len(max_min_whole.solve(np.zeros((0, 2), bool), np.array([1, 2])).machines) == 0
    assert max_min.solve(np.zeros((2, 0), bool), np.zeros(0, np.int64)).machines.tolist() == [0, 0]
    nothing = np.zeros((2, 2), bool)
    assert max_min_whole.solve(nothing, np.array([1, 2])).machines.tolist() == [0, 0]


def test_independent_allocation_follows_weights_and_leaves_useless_types_idle() -> None:
    eligible = np.array([[True, True, False], [True, False, False]])
    given = independent.solve(eligible, np.array([4, 1, 2]), np.array([3.0, 1.0]))
    assert given.tolist() == [[3.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
