"""Policies that plan: their results, and that a plan is a target and breaks no rule."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Plan, PlanningPolicy, PolicySpec
from allocator.core.numba.shared_bits import shared_pairs, shared_width
from allocator.policies import POLICIES, build, warm_plans
from allocator.policies.plan_guided.sorts import alike
from allocator.testing import placement, planned, static_snapshot
from laboratory.papers.kesidis import fluid as kesidis_fluid
from laboratory.papers.kesidis import per_server_fluid
from tests.strategies import snapshots

SELECTIONS = ("random", "round_robin", "joint")
PLANNING = tuple(name for name in POLICIES if isinstance(build(PolicySpec(name)), PlanningPolicy))

# Figure 1 of Choosy: ten machines, four users, who get 1.5, 1.5, 3 and 4 of them.
CAN_USE = [{1, 4}, {3, 4}, {2, 3, 4, 6, 7}, {5, 6, 7, 8, 9, 10}]
ALLOWED = [[machine in those for machine in range(1, 11)] for those in CAN_USE]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), max_size=8),
    st.sampled_from([0, 1, 8, 63, 64, 65, 130]),
    st.randoms(use_true_random=False),
)
def test_rows_are_taken_together_exactly_if_they_are_equal(numbers, width, random) -> None:
    """As numbers and as bits, for widths below, at and above a word."""
    patterns = [[random.random() < 0.5 for _ in range(width)] for _ in range(2)]
    bits = [random.choice(patterns) for _ in numbers]
    rows = [(one, tuple(other)) for one, other in zip(numbers, bits, strict=True)]
    count = len(rows)
    first, which = alike(
        np.array(numbers, np.int64).reshape(count, 2),
        np.array(bits, np.bool_).reshape(count, width),
    )
    assert [rows[first[sort]] for sort in which] == rows
    assert sorted(first.tolist()) == [at for at, row in enumerate(rows) if rows.index(row) == at]


def test_which_policies_plan() -> None:
    assert {"cmmf", "pf-exact", "ps-dsf-exact"} <= set(PLANNING)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("steer", ["flow", "machines"])
def test_cmmf_hands_machines_out_as_the_optimum_does(steer: str, selection: str) -> None:
    cluster = static_snapshot([[1]] * 10, clients=4, allowed=ALLOWED)
    policy = build(PolicySpec("cmmf", selection, parameters={"steer": steer}))
    got = np.bincount(policy.allocate(planned(cluster, policy), seed=1).client)
    assert sorted(got[:2].tolist()) == [1, 2]
    assert got[2:].tolist() == [3, 4]


def test_greedy_choosy_does_not() -> None:
    """The plan makes the difference: by turns, user 4 takes a machine that 3 needs."""
    cluster = static_snapshot([[1]] * 10, clients=4, allowed=ALLOWED)
    grants = build(PolicySpec("choosy", "listed")).allocate(cluster, seed=1)
    assert np.bincount(grants.client).tolist() == [2, 1, 2, 5]


def test_a_machine_that_its_owner_holds_already_stays_its_owners() -> None:
    cluster = static_snapshot([[1]] * 4, clients=2)
    holder = np.array([1 << 32 | 1, 2 << 32 | 1, 3 << 32 | 0, 4 << 32 | 0])
    policy = build(PolicySpec("cmmf", parameters={"steer": "machines"}))
    plan = planned(replace(cluster, holder=holder), policy).plan
    assert plan is not None
    assert plan.allowed[plan.group[1:]].ravel().tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_exact_ps_dsf_comes_near_its_definition(seed: int, selection: str) -> None:
    cluster = per_server_fluid.random_cluster(np.random.default_rng(seed))
    gap = per_server_fluid.gap(*cluster, "ps-dsf-exact", selection, seed)
    assert gap.short <= 0.05
    assert gap.moved <= 0.02


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_exact_proportional_fairness_comes_near_the_optimum(seed: int, selection: str) -> None:
    cluster = kesidis_fluid.random_cluster(np.random.default_rng(seed))
    assert abs(kesidis_fluid.shortfall(*cluster, selection, seed, "pf-exact")) < 1


@given(snapshots(), st.sampled_from(PLANNING), st.sampled_from(SELECTIONS), st.randoms())
def test_a_plan_breaks_no_rule(snapshot, name: str, selection: str, random) -> None:
    """Any plan: grants are free and permitted, and no resource stays idle for the plan."""
    clients, agents = len(snapshot.demand), len(snapshot.free)
    groups = 3
    rng = np.random.default_rng(random.getrandbits(32))
    part = rng.random((groups, clients)) * (rng.random((groups, clients)) < 0.7)
    shape = groups, *snapshot.demand.shape
    plan = Plan(
        target=rng.random(clients) * (rng.random(clients) < 0.7),
        group=rng.integers(-1, groups, agents),
        allowed=rng.integers(0, 2**63, (groups, shared_width(snapshot.excluded))).astype(np.uint64),
        price=rng.random((groups, len(snapshot.total))),
        part=part if random.random() < 0.5 else np.zeros((0, clients)),
        held=np.zeros(shape, np.int64),
        agents_held=np.zeros(shape[:2], np.int64),
    )
    policy = build(PolicySpec(name, selection))
    steered = replace(snapshot, plan=plan)
    grants = policy.allocate(steered, seed=7)
    assert_within(snapshot, grants)
    again = policy.allocate(steered, seed=7)
    assert (again.client.tolist(), again.agent.tolist()) == (
        grants.client.tolist(),
        grants.agent.tolist(),
    )


def assert_within(snapshot, grants) -> None:
    given_out = np.zeros_like(snapshot.free)
    np.add.at(given_out, grants.agent, grants.amount)
    assert (given_out <= snapshot.free).all()
    assert not shared_pairs(snapshot.excluded, grants.agent, grants.client).any()
    assert (snapshot.leaf_of_client[grants.client] >= 0).all()
    assert np.isin(grants.agent, snapshot.agents).all()


def test_clients_outside_the_plan_get_what_it_leaves() -> None:
    cluster = static_snapshot(capacity=[[4, 4]], demand=[[1, 1], [1, 1]])
    policy = build(PolicySpec("ps-dsf-exact"))
    snapshot = planned(cluster, policy)
    plan = snapshot.plan
    assert plan is not None
    only_first = replace(
        plan, target=plan.target * [1, 0], part=plan.part * [1, 0], allowed=plan.allowed * 0 + 1
    )
    everything = policy.allocate(replace(snapshot, plan=only_first), seed=0)
    assert placement(cluster, everything)[:, 0].tolist() == [4, 0]
    unplanned = replace(plan, group=np.full_like(plan.group, -1))
    shared = policy.allocate(replace(snapshot, plan=unplanned), seed=0)
    assert placement(cluster, shared)[:, 0].tolist() == [2, 2]


def test_solvers_loops_are_warmed_by_planning() -> None:
    warm_plans()


@pytest.mark.parametrize(("times", "given"), [(1, 0), (100, 0), (0.05, 3)])
def test_parts_of_small_tasks_are_kept_together(times: float, given: int) -> None:
    """The first lacks tasks of five, and three are free: the second, with small tasks, gets it."""
    capacity = np.array([[1000, 1000]]) * times
    cluster = static_snapshot(capacity=capacity, demand=[[1, 5], [1, 1]])
    policy = build(PolicySpec("ps-dsf-exact"))
    plan = planned(cluster, policy).plan
    assert plan is not None
    mine = replace(plan, target=plan.target * [1, 0], part=plan.part * [1, 0])
    free = np.array([[0, 0], [100_000, 3_000]])
    steered = replace(cluster, plan=mine, free=np.minimum(free, cluster.capacity))
    grants = policy.allocate(steered, seed=0)
    assert grants.tasks.sum() == given
    assert (grants.client == 1).all()


def _steered(demand, free):
    """An agent of 1,000 of each resource, in a planned cycle whose first client lacks a task."""
    cluster = static_snapshot(capacity=[[1000, 1000]], demand=demand)
    plan = planned(cluster, build(PolicySpec("ps-dsf-exact"))).plan
    assert plan is not None
    mine = np.zeros(len(demand))
    mine[0] = 1
    plan = replace(plan, target=plan.target * mine, part=plan.part * mine)
    return replace(cluster, plan=plan, free=np.array([[0, 0], free]) * 1000)


@pytest.mark.parametrize(
    ("free", "given"),
    [
        ((50, 0), [[50_000, 0]]),  # less than a task is free: nothing to keep
        ((50, 3), [[50_000, 3_000]]),  # more than the partial task is free
        ((0, 3), []),  # the partial task, and nothing else
    ],
)
def test_a_client_of_unknown_demand_is_excluded_only_where_all_is_its_part(free, given) -> None:
    snapshot = _steered([[1, 5], [0, 0]], free)
    grants = build(PolicySpec("ps-dsf-exact")).allocate(snapshot, seed=0)
    assert grants.amount.tolist() == given
    assert (grants.client == 1).all()


@pytest.mark.parametrize(
    ("free", "task", "tasks"),
    [
        ((100, 3), (1, 1), 0),  # it could use three CPUs
        ((100, 3), (2, 0.02), 50),  # all of them
        ((20, 3), (2, 0.02), 0),
    ],
)
def test_no_more_than_a_little_lies_idle_beside_a_part(free, task, tasks) -> None:
    """A client that needs little of the part, and much of something else, is not excluded."""
    snapshot = _steered([[1, 5], task], free)
    grants = build(PolicySpec("ps-dsf-exact")).allocate(snapshot, seed=0)
    assert grants.tasks.sum() == tasks


def test_nothing_lies_idle_for_a_client_that_lacks_another_resource_altogether() -> None:
    """The first can use one agent only, and uses up its memory: others get the remaining CPUs."""
    cluster = static_snapshot(
        capacity=[[150, 300], [200, 150]],
        demand=[[1, 1], [0, 0]],
        allowed=[[False, True], [True, True]],
    )
    for name in ("cmmf", "pf-exact", "ps-dsf-exact"):
        policy = build(PolicySpec(name))
        grants = policy.allocate(planned(cluster, policy), seed=0)
        assert grants.amount.sum(axis=0).tolist() == [350_000, 450_000], name


def test_whole_agents_of_single_owners_are_refused_where_they_are_too_few() -> None:
    policy = build(PolicySpec("cmmf", parameters={"steer": "machines"}))
    tasks = static_snapshot([[100]] * 3, [[1], [1]], weight=[1, 1.5])
    with pytest.raises(ValueError, match=r"with 3 agents a client would be 17 % off.*steer=flow"):
        planned(tasks, policy)
    many = static_snapshot([[100]] * 100, [[1], [1]], weight=[1, 1.5])
    assert planned(many, policy).plan is not None
    # When whole agents are offered, nothing is lost.
    whole = static_snapshot([[100]] * 3, clients=2, weight=[1, 1.5])
    assert planned(whole, policy).plan is not None


@pytest.mark.parametrize("name", PLANNING)
def test_agents_of_nothing_make_an_empty_plan(name: str) -> None:
    policy = build(PolicySpec(name))
    plan = planned(static_snapshot([[0, 0], [0, 0]], [[1, 1]]), policy).plan
    assert plan is not None
    assert not plan.target.any()
    assert plan.group.tolist() == [-1, -1, -1]


def test_prices_of_nothing_are_no_warning() -> None:
    cluster = static_snapshot([[4, 4]], [[1, 1], [1, 1]])
    policy = build(PolicySpec("pf-exact"))
    plan = planned(cluster, policy).plan
    assert plan is not None
    free_of_charge = replace(cluster, plan=replace(plan, price=0 * plan.price, part=plan.part[:0]))
    assert policy.allocate(free_of_charge, seed=0).tasks.sum() == 4
