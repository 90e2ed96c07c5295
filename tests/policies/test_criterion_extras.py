"""Optional parts of a criterion: priorities, preferences, a power of the weights.

Equations are those of Kesidis et al., "Scheduling Distributed Resources in Heterogeneous Private
Clouds", MASCOTS 2018.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from allocator.policies import SELECTIONS
from allocator.policies.drf import drf
from allocator.policies.filling import CriterionError, Filling
from allocator.policies.ps_dsf import ps_dsf
from allocator.policies.rps_dsf import rps_dsf
from allocator.policies.tsf import tsf
from allocator.testing import placement, static_snapshot
from tests import oracles
from tests.policies.rows_of_grants import rows
from tests.strategies import arrays_of, snapshots
from tests.tiers import examples

CRITERIA = {"drf": drf, "ps-dsf": ps_dsf, "tsf": tsf, "rps-dsf": rps_dsf}
GRADES = [0.25, 0.5, 1.0, 1.0, 3.0]


def with_extras(criterion: Callable, **extras) -> Callable:
    return lambda snapshot: replace(criterion(snapshot), **extras)


def has_mixed_siblings(snapshot) -> bool:
    """Whether clients compete with roles at some node."""
    tree, leaves = snapshot.tree, len(snapshot.tree.client)
    return bool(set(tree.parent[:leaves].tolist()) & set(tree.parent[leaves:-1].tolist()))


def grades(draw, shape) -> np.ndarray:
    return draw(arrays_of(shape, GRADES, np.float64))


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", list(CRITERIA))
@examples(6, 40)
@given(data=st.data(), snapshot=snapshots(), seed=st.integers(0, 2**64 - 1))
def test_the_compiled_loops_give_what_the_twin_gives(name, selection, data, snapshot, seed):
    """The naive one uses definitions: weight ** power * priority, denominator * preference."""
    clients, agents = len(snapshot.held), len(snapshot.capacity)
    priority = grades(data.draw, (clients,))
    power = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
    liked = None
    if name != "rps-dsf" and not has_mixed_siblings(snapshot):
        liked = grades(data.draw, (clients, agents))
    extras = {"priority": priority, "preference": liked, "weight_power": power}
    fast = Filling(with_extras(CRITERIA[name], **extras), selection).allocate(snapshot, seed)

    def changed(criterion: oracles.Criterion) -> oracles.Criterion:
        return replace(
            criterion,
            priority=lambda client: float(priority[client]),
            preference=lambda c, a: 1.0 if liked is None else float(liked[c, a]),
            weight_power=power,
        )

    assert rows(fast) == oracles.fill(snapshot, name, selection, seed, changed=changed)


@pytest.mark.parametrize("selection", SELECTIONS)
@examples(4, 20)
@given(snapshot=snapshots(), seed=st.integers(0, 2**64 - 1))
def test_priorities_and_preferences_of_one_change_nothing(selection, snapshot, seed):
    assume(not has_mixed_siblings(snapshot))
    shape = len(snapshot.held), len(snapshot.capacity)
    extras = {"priority": np.ones(shape[0]), "preference": np.ones(shape)}
    plain = Filling(ps_dsf, selection).allocate(snapshot, seed)
    assert rows(Filling(with_extras(ps_dsf, **extras), selection).allocate(snapshot, seed)) == rows(
        plain
    )


def test_priorities_divide_the_shares():
    """Eq. 3: equal scores of <x / 3, x'>; three times the tasks for three times the priority."""
    cluster = static_snapshot([[400, 400]], [[1, 1], [1, 1]])
    first = with_extras(drf, priority=np.array([3.0, 1.0]))
    assert placement(cluster, Filling(first, "listed").allocate(cluster, 0)).tolist() == [
        [300],
        [100],
    ]


def test_a_priority_is_beside_the_weight_of_the_role():
    """Inside a role of half the cluster a framework of priority 3 has three quarters of it."""
    roles: dict[str, Any] = {"role": [1, 1, 2], "role_parent": (-1, 0, 0)}
    cluster = static_snapshot([[800, 800]], [[1, 1]] * 3, **roles)
    first = with_extras(drf, priority=np.array([3.0, 1.0, 9.0]))
    tasks = placement(cluster, Filling(first, "listed").allocate(cluster, 0))
    assert tasks[:, 0].tolist() == [300, 100, 400]


@pytest.mark.parametrize(("a", "parts"), [(1, (4, 1)), (2, (2, 1)), (1e9, (1, 1))])
def test_a_power_of_the_weight_gives_weighted_a_fairness(a, parts):
    """Eq. 8 of one resource: phi / x ** a is equal for all, so x is as phi ** (1 / a)."""
    cluster = static_snapshot([[600]], [[1], [1]], weight=[4.0, 1.0])
    fair = with_extras(drf, weight_power=1 / a)
    tasks = placement(cluster, Filling(fair, "listed").allocate(cluster, 0))[:, 0]
    expected = 600 * np.array(parts) / sum(parts)
    assert np.abs(tasks - expected).max() <= 1


def test_a_power_of_the_weights_is_the_optimum_of_the_equation():
    """No other division of 60 tasks has a larger sum of eq. 8, a = 2, up to one task."""
    cluster = static_snapshot([[60]], [[1], [1]], weight=[9.0, 1.0])
    fair = with_extras(drf, weight_power=0.5)
    tasks = placement(cluster, Filling(fair, "listed").allocate(cluster, 0))[:, 0]
    objective = {x: -9.0 / x - 1.0 / (60 - x) for x in range(1, 60)}
    assert abs(tasks[0] - max(objective, key=lambda x: objective[x])) <= 1


@pytest.mark.parametrize("selection", ["joint", "listed", "random"])
def test_clients_settle_where_they_like_it(selection):
    """Two equal agents and clients, each of which prefers another agent ten times: eq. 2."""
    liked = np.array([[1.0, 10.0, 1.0], [1.0, 1.0, 10.0]])
    cluster = static_snapshot([[100, 100]] * 2, [[1, 1]] * 2)
    policy = Filling(with_extras(drf, preference=liked), selection)
    tasks = placement(cluster, policy.allocate(cluster, 0))
    assert tasks[0, 0] > 80
    assert tasks[1, 1] > 80


def test_scores_are_shown_with_priorities_and_powers():
    held = np.array([[4000], [4000]])
    cluster = static_snapshot([[16]], [[1], [1]], weight=[4.0, 1.0], held=held)
    criterion = with_extras(drf, priority=np.array([1.0, 0.5]), weight_power=0.5)
    assert Filling(criterion, "listed").scores(cluster).tolist() == [0.125, 0.5]
    liked = with_extras(drf, preference=np.ones((2, 2)))
    assert np.isnan(Filling(liked, "listed").scores(cluster)).all()


REFUSED = {
    "a gain below nothing: the score falls with a grant": (
        lambda c: replace(c, amount_gain=-c.amount_gain),
        "amount_gain: a grant would reduce a score",
    ),
    "task gain": (
        lambda c: replace(c, task_gain=np.array([-1.0, 0.0])),
        "task_gain: a grant would",
    ),
    "nan": (lambda c: replace(c, agent_gain=np.array([np.nan, 0.0])), "agent_gain: a grant would"),
    "measure": (lambda c: replace(c, measure=c.measure - 1), "measure: must be finite, and 0 or"),
    "denominator": (
        lambda c: replace(c, denominator=-c.denominator),
        "denominator: must be 0 or more",
    ),
    "one row for a residual": (
        lambda c: replace(c, residual=True),
        "residual: free amounts differ by agent",
    ),
    "residual that becomes negative": (
        lambda c: replace(c, residual=True, denominator=np.full((3, 2), 500.0)),
        "residual: a denominator below what is free",
    ),
    "shape of the measure": (lambda c: replace(c, measure=c.measure[:1]), "measure: has the shape"),
    "shape of the denominator": (
        lambda c: replace(c, denominator=np.ones((2, 2))),
        "denominator: has the shape (2, 2); it must be (3, 2)",
    ),
    "shape of a gain": (
        lambda c: replace(c, amount_gain=np.ones(3)),
        "amount_gain: has the shape (3,); it must be (2,)",
    ),
    "power": (lambda c: replace(c, weight_power=-1.0), "weight_power: -1.0 must be 0 or more"),
    "priority": (lambda c: replace(c, priority=np.array([1.0, 0.0])), "priority: must be above 0"),
    "preference": (
        lambda c: replace(c, preference=np.zeros((2, 3))),
        "preference: must be above 0 and finite; exclude agents by a constraint",
    ),
    "preference of what is left": (
        lambda c: replace(
            c, residual=True, denominator=np.full((3, 2), np.inf), preference=np.ones((2, 3))
        ),
        "preference: grants reduce free amounts regardless of preferences; leave residual out",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
@pytest.mark.parametrize("selection", ["joint", "random"])
def test_invalid_extras_of_a_criterion_are_refused_with_a_reason(case, selection):
    """The loops check no bounds: an array of a wrong shape would be read beyond its end."""
    change, said = REFUSED[case]
    cluster = static_snapshot([[4], [4]], [[1], [1]])
    with pytest.raises(CriterionError) as caught:
        Filling(lambda snapshot: change(drf(snapshot)), selection).allocate(cluster, 0)
    assert said in str(caught.value)


def test_preferences_beside_roles_and_too_many_of_them_are_refused():
    beside = static_snapshot([[4]], [[1], [1]], role=[0, 1], role_parent=(-1, 0))
    liked = with_extras(drf, preference=np.ones((2, 2)))
    with pytest.raises(CriterionError, match="clients compete with sibling roles"):
        Filling(liked, "joint").allocate(beside, 0)
    many = static_snapshot([[100]], [[1]] * 65)
    each = np.arange(1.0, 66.0)[:, None] * np.ones(2)
    with pytest.raises(CriterionError, match="65 different rows; at most 64"):
        Filling(with_extras(drf, preference=each), "joint").allocate(many, 0)
