"""Each criterion on examples small enough to check by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.policy import PolicySpec
from allocator.core.snapshot import UNBOUNDED, Snapshot
from allocator.policies import SELECTIONS, build
from allocator.policies.choosy import choosy
from allocator.policies.drf import drf
from allocator.policies.proportional_fairness import prices, proportional_fairness
from allocator.policies.ps_dsf import ps_dsf
from allocator.policies.rps_dsf import rps_dsf
from allocator.policies.tsf import tasks_alone, tsf
from allocator.testing import amounts_granted, placement, static_snapshot, with_refusals
from tests.strategies import snapshots

NSDI: dict[str, Any] = {
    "capacity": [[9, 18]],
    "demand": [[1, 4], [3, 1]],
}  # Ghodsi et al., NSDI 2011, sec. 4.1


def order(snapshot: Snapshot, name: str = "drf", selection: str = "listed", **parameters) -> str:
    """The clients served, in order: client 0 is a, client 1 is b, ..."""
    spec = PolicySpec(name, selection, parameters=parameters)
    return "".join(chr(ord("a") + c) for c in build(spec).allocate(snapshot, 0).client)


def tasks(snapshot: Snapshot, name: str = "drf", selection: str = "listed") -> list[int]:
    grants = build(PolicySpec(name, selection)).allocate(snapshot, 0)
    return placement(snapshot, grants).sum(axis=1).tolist()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_drf_equalises_dominant_shares(selection):
    """12 of 18 GB for A, 6 of 9 CPUs for B: 2/3 each."""
    cluster = static_snapshot(**NSDI)
    grants = build(PolicySpec("drf", selection)).allocate(cluster, 0)
    assert amounts_granted(cluster, grants).tolist() == [[3, 12], [6, 2]]


def test_drf_divides_shares_by_weights():
    cluster = static_snapshot(capacity=[[9, 9]], demand=[[1, 1], [1, 1]], weight=[2, 1])
    assert tasks(cluster) == [6, 3]


def test_a_resource_that_does_not_count_makes_no_share():
    """In memory A's task is 4/18 and B's 1/18: B is served until its next task does not fit."""
    assert order(static_snapshot(**NSDI)) == "ababa"
    assert order(static_snapshot(**NSDI, counted=np.array([False, True]))) == "abbaa"


def test_of_equal_scores_the_one_served_less_often_comes_first_then_the_lower_row():
    cluster = static_snapshot(capacity=[[3]], demand=[[1], [1], [1]], served=[1, 0, 0])
    assert order(cluster) == "bca"


def test_roles_compete_first_then_their_clients():
    """Two roles of equal weight: 4 tasks each; the first shares them between two clients."""
    cluster = static_snapshot([[8]], [[1]] * 3, role=[1, 1, 2], role_parent=[-1, 0, 0])
    assert tasks(cluster) == [2, 2, 4]
    flat = static_snapshot([[9]], [[1]] * 3)
    assert tasks(flat) == [3, 3, 3]


def test_role_weights_count_at_every_level():
    """Role 1 has weight 3 against 1; below it, role 3 has 2 against 1: 4 + 2 and 2 of 8 tasks."""
    cluster = static_snapshot(
        capacity=[[8]],
        demand=[[1]] * 3,
        role=[3, 4, 2],
        role_parent=[-1, 0, 0, 1, 1],
        role_weight=[1, 3, 1, 2, 1],
    )
    assert tasks(cluster) == [4, 2, 2]


def test_holdings_of_clients_that_are_not_served_count_for_their_role():
    """Client a, which is not served, holds 2 for role 1; so role 2 gets two tasks more."""
    cluster = static_snapshot(
        capacity=[[8]],
        demand=[[1]] * 3,
        role=[1, 1, 2],
        role_parent=[-1, 0, 0],
        live=[False, True, True],
        held=np.array([[2000], [0], [0]]),
        free=np.array([[0], [6000]]),
    )
    assert tasks(cluster) == [0, 2, 4]


def test_an_unknown_demand_is_served_with_all_that_is_free():
    cluster = static_snapshot(capacity=[[4, 8], [2, 2]], demand=[[0, 0], [1, 2]])
    grants = build(PolicySpec("drf", "listed")).allocate(cluster, 0)
    assert grants.client.tolist() == [0, 1, 0]
    assert grants.tasks.tolist() == [0, 1, 0]
    assert grants.amount.tolist() == [[4000, 8000], [1000, 2000], [1000, 0]]


def test_the_minimum_holds_for_all_that_is_free_and_for_whole_tasks():
    capacity, minimum = [[1, 1]], np.array([[2000, 0], [0, 2000]])
    unknown = static_snapshot(capacity, clients=1, minimum=minimum)
    known = static_snapshot(capacity, [[1, 1]], minimum=minimum)
    either = static_snapshot([[1, 3]], clients=1, minimum=minimum)
    assert [order(s) for s in (unknown, known, either)] == ["", "", "a"]


@pytest.mark.parametrize(("refused", "served"), [([1, 4], "bb"), ([9, 9], "bb"), ([1, 3], "ab")])
def test_a_filter_bars_what_it_covers(refused, served):
    """A's task needs <1, 4>: an equal refusal excludes the agent, a smaller one does not."""
    cluster = static_snapshot(capacity=[[4, 5]], demand=[[1, 4], [2, 1]])
    assert order(with_refusals(cluster, client=[0], agent=[1], refused=[refused])) == served


def test_constraints_keep_a_client_to_its_agents():
    cluster = static_snapshot([[2], [2]], [[1], [1]], allowed=[[True, False], [True, True]])
    grants = build(PolicySpec("drf", "listed")).allocate(cluster, 0)
    assert placement(cluster, grants).tolist() == [[1, 0], [1, 2]]


def test_tsf_counts_whole_tasks_on_each_agent_and_ignores_constraints():
    """Three CPUs twice: a task of two CPUs fits once each; constraints are ignored."""
    cluster = static_snapshot([[3], [3]], [[2], [1]], allowed=[[True, False], [True, True]])
    assert tasks_alone(cluster).tolist() == [2, 6]


def test_tsf_knows_that_equal_parts_are_equal():
    """Two of six equals one of three, although 1/6 + 1/6 in float64 may differ from 1/3."""
    cluster = static_snapshot([[6, 6]], [[1, 1], [2, 1]])
    measure = tsf(cluster)
    assert tasks_alone(cluster).tolist() == [6, 3]
    assert measure.task_gain.tolist() == [1, 2]
    assert measure.denominator[0, -1] == 6
    assert order(cluster) == "abab"  # 1/6 < 1/3; at 2/6 = 1/3 a was served twice, b once


def test_tsf_counts_a_client_of_unknown_demand_by_its_dominant_share():
    """a holds half of the cluster, b one of its four tasks."""
    cluster = static_snapshot(
        [[8]], [[0], [2]], held=np.array([[4000], [2000]]), free=np.array([[0], [2000]])
    )
    assert order(cluster, "tsf") == "b"


def test_ps_dsf_measures_against_the_agent_that_is_filled():
    """Both hold <4, 4>. On an agent short of memory, memory decides, and vice versa."""
    cluster = static_snapshot(
        capacity=[[8, 4], [4, 8]],
        demand=[[1, 1], [1, 1]],
        held=np.array([[4000, 1000], [1000, 4000]]),
    )
    assert (ps_dsf(cluster).denominator[1:, :2] == cluster.capacity[1:]).all()
    grants = build(PolicySpec("ps-dsf", "listed")).allocate(cluster, 0)
    first = {int(a): int(c) for c, a in zip(grants.client[::-1], grants.agent[::-1], strict=True)}
    assert first == {1: 0, 2: 1}  # 4/8 < 4/4 for a on the first, for b on the second


def test_ps_dsf_ignores_resources_that_an_agent_never_had():
    """a holds all the GPUs, and less of the rest: it is served first on an agent without GPUs."""
    cluster = static_snapshot(
        capacity=[[4, 0], [4, 2]],
        demand=[[1, 0], [1, 0]],
        held=np.array([[0, 2000], [1000, 0]]),
        free=np.array([[0, 0], [1000, 0], [0, 0]]),
    )
    assert order(cluster, "ps-dsf") == "a"
    assert order(cluster, "rps-dsf") == "a"
    assert order(cluster, "drf") == "b"


def test_rps_dsf_follows_what_is_left():
    """If the agent has no memory left, holders of memory have an infinite score."""
    cluster = static_snapshot(
        capacity=[[8, 8]],
        demand=[[1, 0], [1, 0]],
        held=np.array([[1000, 1000], [6000, 0]]),
        free=np.array([[0, 0], [1000, 0]]),
    )
    assert order(cluster, "ps-dsf") == "a"
    assert order(cluster, "rps-dsf") == "b"
    assert rps_dsf(cluster).denominator[1].tolist() == [1000, 0, np.inf]


def test_choosy_counts_each_agent_once():
    """a already holds something on agent 1, so another task there adds no machine."""
    cluster = static_snapshot(
        capacity=[[9]],
        demand=[[1], [1]],
        held=np.array([[1000], [0]]),
        agents_held=np.array([1, 0]),
        holder=np.array([1 << 32]),
        free=np.array([[0], [6000]]),
    )
    assert order(cluster, "choosy") == "bababa"  # only turns decide after the first
    assert order(cluster, "choosy", unit="tasks") == "bababa"
    heavier = replace(cluster, held=np.array([[3000], [0]]))
    assert order(heavier, "choosy", unit="tasks") == "bbbaba"
    assert order(heavier, "choosy", unit="dominant_share") == "bbbaba"
    assert order(heavier, "choosy", unit="agents") == "bababa"


def test_choosy_counts_agents_where_the_size_of_a_task_is_unknown():
    measure = choosy("tasks")(static_snapshot([[4]], [[0], [1]], agents_held=np.array([2, 7])))
    assert measure.measure[:2, -1].tolist() == [2, 0]
    assert measure.agent_gain.tolist() == [1, 0]
    assert measure.task_gain.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([[0.5, 1], [1, 0.5]], [1, 1]),
        ([[2 / 3, 1], [1, 0.5]], [1, 0]),
        ([[0.5, 1], [1, 1 / 3]], [1, 0.5]),
    ],
)
def test_prices_are_those_of_the_fluid_optimum(needs, expected):
    """Bonald and Roberts 2014, sec. 2.4 and 4.1; the largest price is 1 here.

    The third: tasks (4/5, 3/5) cost 5/4 = nu1/2 + nu2 and 5/3 = nu1 + nu2/3: nu = (3/2, 1/2).
    """
    cluster = static_snapshot(capacity=[[300, 300]], demand=np.array(needs) * 300)
    if needs[1][1] == 1 / 3:
        expected = [1, 1 / 3]
    assert prices(cluster) == pytest.approx(expected, abs=1e-6)


def test_prices_take_what_is_held_for_an_unknown_demand_and_are_equal_without_any():
    held = np.array([[2000, 0], [0, 0]])
    some = static_snapshot([[4, 4]], clients=2, held=held)
    none = static_snapshot([[4, 4]], clients=2)
    assert prices(some).tolist() == [1, 0]
    assert prices(none).tolist() == [1, 1]
    uncounted = static_snapshot([[4, 4]], clients=2, counted=np.array([True, False]))
    assert prices(uncounted).tolist() == [1, 0]


def test_prices_weigh_a_client_by_its_part_of_its_role():
    """One client alone in its role outweighs each of two that share a role: 2 to 1 to 1.

    Needs (1, 0) with weight 2, and (0, 1) twice with weight 1: both resources cost 2.
    """
    needs = [[1, 0], [0, 1], [0, 1]]
    cluster = static_snapshot([[8, 8]], needs, role=[1, 2, 2], role_parent=[-1, 0, 0])
    assert prices(cluster) == pytest.approx([1, 1], abs=1e-9)
    flat = static_snapshot([[8, 8]], needs)
    assert prices(flat) == pytest.approx([0.5, 1], abs=1e-9)


def test_proportional_fairness_charges_nothing_for_a_resource_without_a_price():
    cluster = static_snapshot(capacity=[[300, 300]], demand=[[200, 300], [300, 150]])
    denominator = proportional_fairness(cluster).denominator[0]
    assert denominator.tolist() == [300_000, np.inf, np.inf]


def test_best_fit_takes_the_agent_whose_proportions_are_nearest():
    cluster = static_snapshot(capacity=[[4, 4], [4, 16], [16, 4]], demand=[[1, 4], [4, 1]])
    grants = build(PolicySpec("bf-drf")).allocate(cluster, 0)
    assert list(zip(grants.client.tolist(), grants.agent.tolist(), strict=True))[:2] == [
        (0, 2),
        (1, 3),
    ]


@pytest.mark.parametrize("selection", ["random", "round_robin"])
def test_the_seed_is_the_only_chance(selection):
    cluster = static_snapshot([[2, 2]] * 8, [[1, 1], [1, 1]])
    policy = build(PolicySpec("drf", selection))
    agents = [policy.allocate(cluster, seed).agent.tolist() for seed in (1, 1, 2, 2**64 - 1)]
    assert agents[0] == agents[1]
    assert agents[0] != agents[2]
    assert agents[0] != agents[3]


def test_round_robin_visits_every_agent_once_a_round():
    cluster = static_snapshot([[3]] * 5, [[1]])
    agents = build(PolicySpec("drf", "round_robin")).allocate(cluster, 4).agent
    assert [sorted(each) for each in agents.reshape(3, 5).tolist()] == [[1, 2, 3, 4, 5]] * 3


def test_without_clients_or_resources_there_are_no_grants():
    for cluster in (
        static_snapshot([[4]], clients=0),
        static_snapshot([[4]], [[1]], live=[False]),
        static_snapshot([[4]], [[1]], agents=np.empty(0, np.int64)),
        static_snapshot([[0]], clients=2),
    ):
        for selection in SELECTIONS:
            grants = build(PolicySpec("drf", selection)).allocate(cluster, 0)
            assert len(grants) == 0
            assert grants.amount.shape == (0, 1)


@pytest.mark.parametrize("name", ["drf", "tsf", "ps-dsf", "rps-dsf", "choosy"])
@pytest.mark.parametrize("selection", ["random", "joint"])
@given(snapshot=snapshots(), data=st.data())
def test_the_order_and_the_units_of_resources_do_not_matter(name, selection, snapshot, data):
    columns = data.draw(st.permutations(range(len(snapshot.total))))
    scale = np.array(data.draw(st.lists(st.sampled_from([1, 2, 8]), min_size=3, max_size=3)))
    scale = scale[: len(columns)]

    def same(amounts):
        scaled = np.where(amounts < UNBOUNDED, amounts * scale, UNBOUNDED)
        return scaled[..., columns]

    specials, bounds, refused = snapshot.specials, snapshot.bounds, snapshot.filters.amount
    refused = refused.T.copy()
    refused[:, : len(columns)] = same(refused[:, : len(columns)])
    refused[:, len(columns) :] *= scale[specials.column]
    other = replace(
        snapshot,
        counted=snapshot.counted[list(columns)],
        **{
            name: same(getattr(snapshot, name))
            for name in ("capacity", "free", "total", "minimum", "held", "demand")
        },
        filters=snapshot.filters._replace(
            amount=np.ascontiguousarray(refused.T),
            # this price need not be tight
            largest=np.full_like(snapshot.filters.largest, UNBOUNDED),
        ),
        specials=specials._replace(
            free=specials.free * scale[specials.column[specials.row]],
            column=np.argsort(columns)[specials.column],
        ),
        bounds=bounds._replace(
            **{
                name: same(getattr(bounds, name))
                for name in ("left", "owed", "available", "required")
            }
        ),
        classes=replace(snapshot.classes, capacity=same(snapshot.classes.capacity)),
    )
    before = build(PolicySpec(name, selection)).allocate(snapshot, 1)
    after = build(PolicySpec(name, selection)).allocate(other, 1)
    assert after.client.tolist() == before.client.tolist()
    assert after.agent.tolist() == before.agent.tolist()
    assert after.amount.tolist() == same(before.amount).tolist()


def test_a_criterion_does_not_depend_on_the_loop():
    """A score is the measure over denominator and weight, at leaves and at roles."""
    cluster = static_snapshot(
        capacity=[[10, 20]],
        demand=[[1, 1]] * 3,
        role=[1, 1, 2],
        role_parent=[-1, 0, 0],
        held=np.array([[1000, 0], [2000, 4000], [0, 5000]]),
    )
    criterion = drf(cluster)
    assert criterion.measure[:3, :2].tolist() == [[1000, 0], [2000, 4000], [0, 5000]]
    assert criterion.measure[3:, :2].tolist() == [[0, 5000], [3000, 4000], [3000, 9000]]
    assert criterion.denominator.tolist() == [[10_000, 20_000, np.inf]]


def test_prices_that_are_far_apart_are_no_zeros():
    """Two that need CPUs bid 1e-4 and 1e-6 for them; the one that needs memory bids a million."""
    shares = static_snapshot([[1000, 1000]], [[1, 0], [1, 0], [0, 1]], weight=[1e-4, 1e-6, 1e6])
    assert prices(shares) == pytest.approx([1.01e-10, 1.0], rel=1e-4)
    huge = static_snapshot([[10, 10]], [[1, 0], [0, 1]], weight=[1e308, 1e308])
    assert prices(huge).tolist() == [1.0, 1.0]
