"""Groups of agents in plans: untrusted attributes must not make many groups."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Plan, PlanningPolicy, PlanProblem, PolicySpec
from allocator.core.numba.bit_tables import in_blocks, set_bit, some_on
from allocator.core.numba.shared_bits import shared_pairs
from allocator.policies import build
from allocator.policies.drf import drf
from allocator.policies.filling import Filling
from allocator.policies.filling.scene.scene_builder import scene_of
from allocator.policies.plan_guided import filling, keeping, sorts
from allocator.policies.plan_guided.groups import (
    GROUPS_MAX,
    Groups,
    affordable,
    group_agents,
    words_of,
)
from allocator.policies.plan_guided.sorts import (
    AgentSorts,
    any_of_groups,
    distinct_agents,
    sorts_of,
)
from allocator.testing import planned, problem_of, shared, static_snapshot
from tests.tables import dense

TENANTS = 9
AGENTS = 2**TENANTS
WITH_PARTS = ("cmmf", "pf-exact", "ps-dsf-exact")


def shattered(tenants: int = TENANTS):
    """An honest client; and tenants, each allowed on the half of the agents given by one bit."""
    number = np.arange(2**tenants)
    allowed = np.array([number >= 0, *(number >> bit & 1 for bit in range(tenants))])
    clients = len(allowed)
    return static_snapshot(
        [[80, 80]] * len(number), [[1, 1]] * clients, allowed=allowed, weight=[10] + [1] * tenants
    )


def plan_of(problem: PlanProblem, name: str) -> Plan:
    policy = build(PolicySpec(name))
    assert isinstance(policy, PlanningPolicy)
    return policy.plan(problem)


@pytest.mark.parametrize("name", WITH_PARTS)
def test_constraints_of_frameworks_do_not_exceed_the_limit_of_groups(name: str) -> None:
    plan = plan_of(problem_of(shattered()), name)
    assert AGENTS > GROUPS_MAX >= len(plan.allowed) > 1
    assert len(plan.part) in (0, len(plan.allowed))
    assert set(plan.group[1:].tolist()) == set(range(len(plan.allowed)))


def passes(snapshot, monkeypatch, name: str = "ps-dsf-exact") -> tuple[int, np.ndarray]:
    """The number of passes of a cycle, and the result of each client."""
    count = [0]
    fill = Filling._fill

    def counted(*arguments):
        count[0] += 1
        return fill(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Filling, "_fill", counted)
        grants = build(PolicySpec(name)).allocate(snapshot, seed=0)
    assert not shared_pairs(snapshot.excluded, grants.agent, grants.client).any()
    return count[0], np.bincount(grants.client, grants.tasks, len(snapshot.demand))


def test_a_cycle_makes_a_bounded_number_of_passes_and_gives_everything(monkeypatch) -> None:
    snapshot = planned(shattered(), build(PolicySpec("ps-dsf-exact")))
    made, tasks = passes(snapshot, monkeypatch)
    assert made <= 2 * GROUPS_MAX + 1
    assert tasks.sum() == 80 * AGENTS
    # The honest client gets about the share of its weight.
    assert tasks[0] == pytest.approx(80 * AGENTS * 10 / (10 + TENANTS), rel=0.05)


def test_groups_without_free_resources_are_not_examined(monkeypatch) -> None:
    snapshot = planned(shattered(4), build(PolicySpec("ps-dsf-exact")))
    assert snapshot.plan is not None
    assert len(snapshot.plan.part) == 16
    free = snapshot.free * (np.arange(17) == 3)[:, None]
    made, tasks = passes(replace(snapshot, free=free), monkeypatch)
    assert made <= 3
    assert tasks.sum() == 80


def test_no_client_is_planned_on_agents_it_may_not_use() -> None:
    """Although agents of a group differ, quincy asks no framework to leave them."""
    problem = replace(problem_of(shattered()), frameworks=(None,) * (TENANTS + 1))
    excluded = dense(problem.excluded)[0, 1:, 0]
    plan = plan_of(problem, "quincy")
    assert not (plan.allowed[plan.group[1:], 0] & excluded)[plan.group[1:] >= 0].any()


def distinct(capacity: np.ndarray, allowed: np.ndarray) -> AgentSorts:
    """Of agents, and clients in odd rows; other clients are excluded from some of the agents."""
    clients = 2 * np.arange(allowed.shape[1]) + 1
    width = -(-2 * allowed.shape[1] // 64)
    excluded = words_of(~allowed, clients, width)
    excluded |= np.arange(len(excluded))[:, None].astype(np.uint64) % np.uint64(2)
    return distinct_agents(capacity, shared(in_blocks(excluded)), np.arange(len(capacity)), clients)


@given(st.integers(0, 40), st.integers(1, 70), st.booleans(), st.integers(1, 40), st.randoms())
def test_distinct_agents_lose_nothing(agents, clients, collide, step, random) -> None:
    """Also if marks of different rows are equal, and if few pairs are expanded at a time."""
    rng = np.random.default_rng(random.getrandbits(32))
    capacity = rng.integers(1, 3, (agents, 2)) * 1000
    allowed = rng.random((3, clients))[rng.integers(0, 3, agents)] < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorts, "_PAIRS", step)
        patch.setattr(sorts, "_MARK", 0 if collide else sorts._MARK)
        found = distinct(capacity, allowed)
    rows = [(*size, *bits) for size, bits in zip(capacity.tolist(), allowed.tolist(), strict=True)]
    first = [rows.index(row) for row in dict.fromkeys(rows)]
    assert found.of_agent.tolist() == [first.index(rows.index(row)) for row in rows]
    assert found.times.tolist() == [rows.count(rows[row]) for row in first]
    assert found.numbers.tolist() == capacity[first].tolist()
    bits = np.unpackbits(found.allowed, axis=1, count=clients).astype(np.bool_)
    assert bits.tolist() == allowed[first].tolist()


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 20), st.randoms())
def test_where_groups_are_few_agents_of_one_are_equal(agents, clients, most, random) -> None:
    """Otherwise as many agents as possible are distinguished, and no client is left out."""
    rng = np.random.default_rng(random.getrandbits(32))
    capacity = rng.integers(1, 4, (agents, 2)) * 1000
    allowed = rng.random((agents, clients)) < 0.5
    found = distinct(capacity, allowed)
    of_row = sorts_of(found, rng.random(clients), most)
    which = of_row[found.of_agent]
    groups, first = np.unique(which, return_index=True)
    rows = {(*size.tolist(), *bits.tolist()) for size, bits in zip(capacity, allowed, strict=True)}
    assert groups.tolist() == list(range(len(first)))
    assert len(first) <= most
    if len(rows) <= most:
        assert len(first) == len(rows)
        assert (capacity == capacity[first][which]).all()
        assert (allowed == allowed[first][which]).all()
    some = any_of_groups(found, of_row, len(first))
    assert [some[group].tolist() for group in range(len(first))] == [
        allowed[which == group].any(axis=0).tolist() for group in range(len(first))
    ]


def test_heavy_clients_and_those_with_few_distinct_agents_are_examined_first() -> None:
    number = np.arange(64)
    halves = [(number >> bit & 1).astype(bool) for bit in range(6)]
    few = number < 3
    allowed = np.array([*halves, few]).T
    found = distinct(np.full((64, 1), 1000), allowed)
    which = sorts_of(found, np.array([1, 1, 1, 1, 1, 9.0, 1]), 8)[found.of_agent]
    first = np.unique(which, return_index=True)[1]
    assert len(first) <= 8
    for told in (5, 6):
        assert (allowed[:, told] == allowed[first][which][:, told]).all()
    assert (allowed != allowed[first][which]).any(axis=0).sum() == 4


def test_sizes_that_hardly_differ_are_taken_together_first() -> None:
    """A thousand sizes between 64 and 65 GiB, and one agent with half of that."""
    capacity = np.linspace(64_000, 65_000, 1000).astype(np.int64)[:, None]
    capacity = np.append(capacity, [[32_000]], axis=0)
    found = distinct(capacity, np.ones((1001, 1), np.bool_))
    which = sorts_of(found, np.ones(1), GROUPS_MAX)[found.of_agent]
    assert 2 <= which.max() + 1 <= GROUPS_MAX // 4
    assert (which == which[-1]).sum() == 1
    problem = problem_of(static_snapshot(capacity / 1000, [[1]]))
    groups = group_agents(problem)
    assert groups.capacity[:, 0] @ groups.count == pytest.approx(capacity.sum())


BY_CLIENTS = import_module("allocator.policies.cmmf")._by_clients


@pytest.mark.parametrize("group", [group_agents, BY_CLIENTS])
def test_groups_take_no_memory_for_each_pair(
    group: Callable[[PlanProblem], Groups], monkeypatch
) -> None:
    """A tenant in thousands of roles excludes half of the agents."""
    monkeypatch.setattr(sorts, "_PAIRS", 2**14)
    agents, clients = 1000, 1000
    allowed = np.ones((clients, agents), np.bool_)
    allowed[1:, ::2] = False
    problem = problem_of(static_snapshot([[8, 8]] * agents, [[1, 1]] * clients, allowed=allowed))
    tracemalloc.start()
    try:
        found = group(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.count.tolist() == [agents // 2] * 2
    assert sorted(found.eligible.sum(axis=0).tolist()) == [1, clients]
    assert peak < agents * clients / 4


def test_the_number_of_groups_is_what_a_solver_can_afford() -> None:
    problem = problem_of(shattered())
    asked = []

    def cost(sorts: int, groups: int) -> float:
        asked.append((sorts, groups))
        return float(groups)

    assert len(affordable(problem, cost, 100).count) == 64
    # Tenants beyond the limit are in one group with the honest client.
    assert asked == [(9, 256), (8, 128), (7, 64)]
    # Few agents are always distinguished: at worst the solver gives up.
    assert len(affordable(problem, cost, 0).count) == 16


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.randoms())
def test_planned_grants_are_summed_over_roles(role, random) -> None:
    """A planned stage ignores roles; later stages rank them by all holdings in their subtree."""
    rng = np.random.default_rng(random.getrandbits(32))
    parents = [-1, *(int(rng.integers(0, role)) for role in range(1, 6))]
    clients = len(role)
    held = 1000 * rng.integers(0, 5, (clients, 2))
    cluster = static_snapshot(
        [[9, 9]], np.ones((clients, 2)), role=role, role_parent=parents, held=held
    )
    scene = scene_of(cluster, [drf(cluster)])
    standing, leaf = scene.standing, np.flatnonzero(scene.places.client >= 0)
    before = standing.measure.copy(), standing.served.copy()
    more = 1000 * rng.integers(0, 3, (3, len(leaf)))
    standing.measure[:, leaf] += more
    standing.measure[:, -1] += more.sum(axis=1)
    turn = np.where(more.any(axis=0), 1 + rng.permutation(len(leaf)), 0)
    standing.served[leaf] = turn
    standing.served[-1] = turn.max()
    filling._add_up(scene, *before)
    # Each node has the sum of its leaves, and the latest of their turns.
    for place in range(len(scene.places.parent)):
        mine = [each for each in leaf if place in path_of(scene.places.parent, int(each))]
        added = standing.measure[:, place] - before[0][:, place]
        assert added.tolist() == more[:, np.isin(leaf, mine)].sum(axis=1).tolist()
        assert standing.served[place] == max(standing.served[mine].tolist(), default=0)


@pytest.mark.parametrize("barred_by", ["excluded", "covered", "barred"])
def test_parts_of_tasks_are_kept_only_where_the_client_may_be_served(barred_by):
    """Client 0 lacks a task of 5 CPUs, of which 3 are free on both agents."""
    free = [[0, 0], [3000, 0], [3000, 0]]
    cluster = static_snapshot([[1000, 1000]] * 2, [[5, 0], [1, 0]], free=np.array(free))
    agents, late = scene_of(cluster, [drf(cluster)]).agents, np.array([0])
    assert some_on(keeping.parts_of_tasks(cluster, agents, late)).tolist() == [True, True]
    table = np.zeros_like(agents.barred)
    set_bit(table, 1, 0)
    barred: dict[str, Any] = {barred_by: shared(table) if barred_by == "excluded" else table}
    agents = agents._replace(**barred)
    assert some_on(keeping.parts_of_tasks(cluster, agents, late)).tolist() == [False, True]


def path_of(parent: np.ndarray, place: int) -> list[int]:
    """A node and its ancestors."""
    found = [int(place)]
    while parent[found[-1]] >= 0:
        found.append(int(parent[found[-1]]))
    return found
