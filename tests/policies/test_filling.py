"""The compiled loops against a naive implementation, and properties of every filling."""

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    SetQuota,
    Settings,
    needs,
)
from allocator.core.numba import compiled
from allocator.core.policy import PolicySpec
from allocator.core.snapshot import Bounds, Snapshot, Specials, Tier
from allocator.policies import POLICIES, SELECTIONS, build
from allocator.policies.filling import Filling
from allocator.policies.filling.scene import scoring
from allocator.policies.filling.scene.loop_arrays import Effort
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER, OVERDUE, USUAL
from allocator.testing import static_snapshot, with_refusals
from tests import oracles
from tests.policies.rows_of_grants import rows
from tests.strategies import snapshots
from tests.tiers import examples


def different_criteria() -> Iterator[tuple[str, str]]:
    """Every criterion of the registry, and each value of its parameter, once."""
    seen = set()
    for name, entry in POLICIES.items():
        if entry.criterion is None:
            continue
        assert len(entry.parameters) <= 1, f"{name}: let this table vary all of its parameters"
        for key, value in [(k, v) for k, vs in entry.parameters.items() for v in vs] or [("", "")]:
            criterion = entry.criterion(**({key: value} if key else {}))
            if criterion not in seen:
                yield name, value
            seen.add(criterion)


CRITERIA = list(different_criteria())
SEEDS = st.integers(0, 2**64 - 1)
EFFORTS = st.builds(
    Effort,
    tries=st.sampled_from([1, 2, 8]),
    groups=st.sampled_from([1, 2, 64]),
    few=st.sampled_from([1, 2, 3, 16]),
    block=st.sampled_from([1, 2, 16]),
    looks=st.sampled_from([0, 1]),
    thresholds_from=st.sampled_from([0, 8]),
    rare=st.sampled_from([0, 1, 16]),
)


def policy(name: str, unit: str, selection: str) -> Filling:
    (key,) = POLICIES[name].parameters or ("",)
    built = build(PolicySpec(name, selection, parameters={key: unit} if unit else {}))
    assert isinstance(built, Filling)
    return built


@given(snapshots(clients_max=12), SEEDS)
def test_coarse_thresholds_change_nothing(snapshot, seed):
    """A step contains clients that need a little more: these are tested, and rejected."""
    at_once = replace(policy("drf", "", "random"), effort=Effort(tries=1, thresholds_from=0))
    expected = at_once.allocate(snapshot, seed)
    # Distinct arrays of equal values, so that the scales are computed again.
    same = replace(snapshot, minimum=snapshot.minimum.copy())
    with mock.patch.object(needs, "_STEPS_MAX", 2):
        assert rows(at_once.allocate(same, seed)) == rows(expected)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(("name", "unit"), CRITERIA)
@examples(4, 100)
@given(snapshot=snapshots(), seed=SEEDS, effort=EFFORTS)
def test_the_compiled_loop_gives_what_its_twin_gives(name, unit, selection, snapshot, seed, effort):
    """Limits on the effort vary, so that every path through the loops is taken."""
    fast = replace(policy(name, unit, selection), effort=effort).allocate(snapshot, seed)
    assert rows(fast) == oracles.fill(snapshot, name, selection, seed, unit)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", ["drf", "tsf", "rps-dsf"])
@examples(3, 15)
@given(snapshot=snapshots(agents_max=24, clients_max=24), seed=SEEDS, effort=EFFORTS)
def test_larger_snapshots_are_filled_as_by_the_twin(name, selection, snapshot, seed, effort):
    fast = replace(policy(name, "", selection), effort=effort).allocate(snapshot, seed)
    assert rows(fast) == oracles.fill(snapshot, name, selection, seed)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", ["drf", "tsf", "rps-dsf"])
@examples(4, 60)
@given(snapshot=snapshots(several=True), seed=SEEDS, effort=EFFORTS)
def test_offers_of_several_tasks_are_filled_as_by_the_twin(name, selection, snapshot, seed, effort):
    fast = replace(policy(name, "", selection), effort=effort).allocate(snapshot, seed)
    assert rows(fast) == oracles.fill(snapshot, name, selection, seed)


@pytest.mark.parametrize("selection", SELECTIONS)
@examples(5, 30)
@given(
    snapshot=snapshots(),
    seed=SEEDS,
    outer=st.sampled_from(["drf", "tsf", "asset"]),
    inner=st.sampled_from(["ps-dsf", "rps-dsf", "choosy", "drf"]),
    data=st.data(),
)
def test_another_policy_may_decide_below_a_role(selection, snapshot, seed, outer, inner, data):
    tree = snapshot.tree
    flags = st.lists(st.integers(0, 1), min_size=len(tree.parent), max_size=len(tree.parent))
    snapshot = replace(snapshot, tree=tree._replace(scheme=np.array(data.draw(flags))))
    both = build(PolicySpec(outer, selection, subtrees={"dept": inner}))
    assert rows(both.allocate(snapshot, seed)) == oracles.fill(
        snapshot, outer, selection, seed, others=(inner,)
    )


def test_of_the_few_that_are_kept_one_may_have_become_as_bad_as_one_that_is_not():
    """Client 0 keeps agents 3 (5/6) and 1 (5/4); agent 2 (5/4, too) is not kept.

    Then client 1 fills agent 3 down to 4, and agent 1 to 2. Agents 2 and 3 are now equal, and the
    lower number wins. Agent 4 excludes both, which makes client 0 be looked at in time.
    """
    cluster = static_snapshot(
        capacity=[[4], [4], [6], [100]],
        demand=[[1], [2]],
        held=np.array([[5000], [1200]]),
        allowed=[[True, True, True, False], [True, False, True, False]],
    )
    for few in (2, 16):
        joint = replace(policy("rps-dsf", "", "joint"), effort=Effort(few=few))
        grants = rows(joint.allocate(cluster, 0))
        assert [grant[:2] for grant in grants[:3]] == [(1, 3), (1, 1), (0, 2)]
        assert grants == oracles.fill(cluster, "rps-dsf", "joint")


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", ["drf", "ps-dsf", "rps-dsf"])
def test_after_a_refusal_of_one_kind_another_is_offered_once_it_is_used_up(name, selection):
    """Client 0 refused a task of the reserved kind; client 1, whose demand is unknown, takes that
    kind.

    Afterwards client 0 would get its task from the other kind, which it did not refuse.
    """
    cluster = static_snapshot(
        capacity=[[1]], demand=[[1], [0]], characterised=np.array([True, False])
    )
    kinds = Specials(
        start=np.array([0, 0, 2]),
        row=np.array([0, 1]),
        free=np.array([1000, 1000]),
        kind=np.array([1, 2]),
        column=np.array([0, 0]),
        tier=np.array([Tier.OPEN, Tier.RESERVED]),
        bounded=np.array([True, False]),
        whole=np.array([False, False]),
        reach=np.array([[1], [3]], np.uint64),
    )
    cluster = replace(cluster, free=np.zeros_like(cluster.free), specials=kinds)
    cluster = with_refusals(cluster, [0], [1], [[0, 0, 1]])
    grants = rows(policy(name, "", selection).allocate(cluster, 0))
    assert [(grant.client, grant.special) for grant in grants] == [
        (1, ((1, 1000),)),
        (0, ((0, 1000),)),
    ]
    assert grants == oracles.fill(cluster, name, selection)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_task_counts_towards_a_guarantee_once_reserved_resources_are_used_up(selection):
    """A task of client 1 is the reserved CPU, which counts towards no guarantee.

    Client 2 needs two CPUs and takes that one, too. From then on a task of client 1 counts.
    """
    kinds = {0: Kind("cpus"), 1: Kind("cpus", reserved_role="eng", depth=1)}
    allocator = Allocator(build, Settings(policy=PolicySpec("drf", selection, "characterised")))
    allocator.step(Options(minimum=()))
    allocator.step(Define(kinds, {1: "eng"}))
    allocator.step(SetQuota("eng", {"cpus": 4000}, {}))
    allocator.step(AddAgent(1, AgentInfo("agent"), {0: 3000, 1: 1000}))
    for number, cpus in ((1, 1), (2, 2)):
        info = FrameworkInfo(f"framework-{number}", labels={DEMAND_LABEL: f"cpus:{cpus}"})
        allocator.step(AddFramework(number, info, (1,)))
    snapshot = allocator.preview()
    assert snapshot is not None
    grants = rows(policy("drf", "", selection).allocate(snapshot, 0))
    assert [(grant.client, grant.special) for grant in grants] == [
        (2, ((0, 1000),)),
        (1, ()),
        (1, ()),
    ]
    assert grants == oracles.fill(snapshot, "drf", selection)


@pytest.mark.parametrize("selection", ["joint", "best_fit"])
def test_a_refused_task_is_offered_with_a_kind_that_was_not_refused(selection):
    """The client refused a plain task on agent 1; another kind there makes it a new offer.

    The task uses up the limit, so nothing is left for agent 2. The other kind counts against no
    limit.
    """
    cluster = static_snapshot(capacity=[[1], [1]], demand=[[1]])
    kinds = Specials(
        start=np.array([0, 0, 1, 1]),
        row=np.array([0]),
        free=np.array([1000]),
        kind=np.array([1]),
        column=np.array([0]),
        tier=np.array([Tier.OPEN]),
        bounded=np.array([False]),
        whole=np.array([False]),
        reach=np.array([[1]], np.uint64),
    )
    limit = Bounds(
        of_client=np.array([0]),
        further=np.array([[-1]]),
        above=np.array([-1]),
        left=np.array([[1000]]),
        owed=np.array([[0]]),
        available=np.array([2000]),
        required=np.array([0]),
    )
    cluster = with_refusals(replace(cluster, specials=kinds, bounds=limit), [0], [1], [[1, 0]])
    grants = rows(policy("drf", "", selection).allocate(cluster, 0))
    assert [(grant.agent, grant.amount, grant.special) for grant in grants] == [
        (1, (1000,), ((0, 1000),))
    ]
    assert grants == oracles.fill(cluster, "drf", selection, 0)


@pytest.mark.parametrize("selection", SELECTIONS)
@given(snapshot=snapshots(), seed=SEEDS, criterion=st.sampled_from(CRITERIA))
def test_a_filling_keeps_within_bounds_and_ends_when_nothing_more_fits(
    selection, snapshot: Snapshot, seed, criterion: tuple[str, str]
):
    before = snapshot.free.copy()
    grants = policy(*criterion, selection).allocate(snapshot, seed)
    assert (snapshot.free == before).all()
    given = np.zeros_like(before)
    np.add.at(given, grants.agent, grants.amount)
    assert (grants.amount >= 0).all()
    assert (given <= before).all()
    assert np.isin(grants.agent, snapshot.agents).all()
    assert (snapshot.leaf_of_client[grants.client] >= 0).all()
    columns = grants.amount.copy()
    np.add.at(
        columns,
        (grants.special_grant, snapshot.specials.column[grants.special]),
        grants.special_amount,
    )
    assert columns.any(axis=1).all()
    # Shared resources are not used up: they may belong to earlier tasks, too.
    if not (snapshot.specials.tier == Tier.SHARED).any():
        tasks = grants.tasks[:, None] * snapshot.demand[grants.client]
        apart = ~snapshot.specials.whole.any()
        assert (columns >= np.where(apart, tasks, np.sign(tasks))).all()

    slow = oracles.Filling(snapshot, criterion[0], selection, seed, criterion[1])
    assert slow.run() == rows(grants)
    slow.cluster.stage = USUAL
    for client in snapshot.tree.client.tolist():
        for agent in snapshot.agents.tolist():
            assert not slow.cluster.can_serve_client(client, agent)


@pytest.mark.parametrize("selection", SELECTIONS)
@given(snapshot=snapshots(), seed=SEEDS)
def test_every_grant_was_allowed_when_it_was_given(selection, snapshot, seed):
    """At each stage, every grant is what the client was entitled to at that moment."""
    grants = rows(policy("drf", "", selection).allocate(snapshot, seed))
    cluster = oracles.Cluster(snapshot)
    stages = iter((GUARANTEED, OVERDUE, USUAL, LEFT_OVER))
    cluster.stage = next(stages)
    for client, agent, _, amount, special in grants:
        offer = cluster.offer(client, agent)
        while offer is None or offer[:2] != (amount, dict(special)):
            cluster.stage = next(stages)
            offer = cluster.offer(client, agent)
        cluster.supply.take(client, agent, offer, cluster.stage, known=cluster.known[client])


@given(snapshot=snapshots(), seed=SEEDS, criterion=st.sampled_from(CRITERIA))
def test_read_only_arrays_are_as_good(snapshot, seed, criterion: tuple[str, str]):
    expected = rows(policy(*criterion, "random").allocate(snapshot, seed))
    for array in (snapshot.free, snapshot.held, *snapshot.excluded, snapshot.tree.child):
        array.flags.writeable = False
    assert rows(policy(*criterion, "random").allocate(snapshot, seed)) == expected


@compiled.entry(cache=False)
def words(state, count):
    result = np.empty(count, np.uint64)
    for i in range(count):
        result[i] = scoring.next_word(state)
    return result


@compiled.entry(cache=False)
def draws(state, bound, count):
    result = np.empty(count, np.int64)
    for i in range(count):
        result[i] = scoring.draw(state, bound)
    return result


def test_the_random_numbers_are_those_of_splitmix64():
    """The first words after seed 1234567, as published with the reference implementation."""
    found = words(np.array([1234567], np.uint64), 5).tolist()
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    twin = oracles.SplitMix64(1234567)
    assert [twin.word() for _ in range(5)] == found


def test_a_draw_is_uniform():
    """Chi-squared of 60,000 draws of ten: below 27.9 with probability 0.999."""
    count = np.bincount(draws(np.array([7], np.uint64), 10, 60_000), minlength=10)
    assert ((count - 6000) ** 2 / 6000).sum() < 27.9


@given(snapshot=snapshots())
def test_the_bits_of_filters_say_which_pairs_are_barred(snapshot):
    """The bits computed by the table of filters, against their definition."""
    filters = snapshot.filters
    rows = [
        (int(filters.client[row]), agent, filters.amount[:, row] / 1000)
        for agent in range(len(filters.head))
        for row in linked(filters, agent)
    ]
    if rows:
        client, agent, refused = zip(*rows, strict=True)
        shown = with_refusals(snapshot, client, agent, np.array(refused)).filters
        assert (shown.covered == filters.covered).all()


def linked(filters, agent):
    row = int(filters.head[agent])
    while row >= 0:
        yield row
        row = int(filters.next[row])
