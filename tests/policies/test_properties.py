"""Which policy has which property; every property it lacks is shown by a counter-example.

One pool of resources (one agent), where the papers state their theorems. Sources of the entries:

- DRF, asset fairness, CEEI: Table 2 of [1]_, for users who need some of every resource. The table
  as [1]_ prints it: asset fairness lacks sharing incentive, bottleneck fairness and resource
  monotonicity; CEEI lacks strategy-proofness, population and resource monotonicity; DRF lacks only
  resource monotonicity.
- PF is CEEI (the same optimum). Sharing incentive, no strategy-proofness, scale invariance and
  local fairness are also Propositions 4 to 6 and equation 5 of [2]_; of DRF, Propositions 1 to 3.
- TSF, PS-DSF and BF-DRF are DRF on one pool, which is tested as such.
- rPS-DSF: no paper claims any of these; only properties of every policy are tested.
- CMMF (Choosy's optimum): sharing incentive and strategy-proofness, Theorems 2 and 3 of [3]_, are
  tested with its other claims in ``tests/papers/test_choosy.py``.

Several agents: footnote 2 of [4]_ denies DRF the sharing incentive and PS-DSF Pareto efficiency,
and grants PS-DSF bottleneck fairness. Its claims about fluid DRF and TSF (Pareto efficiency; for
TSF strategy-proofness and envy-freeness) are about their optimum. Filling agents one by one only
approximates it, and tests show that it lacks these properties.

The properties hold exactly for the fluid optimum, and up to a few tasks for the policy.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 3, 4 and 6.1, Table 2.
.. [2] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 2.
.. [3] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 3 and 4.
.. [4] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, footnote 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import measures
from allocator.core import PolicySpec
from allocator.policies import POLICIES, SELECTIONS, build
from allocator.solvers.fluid import proportional_fairness
from allocator.testing import placement, static_snapshot
from laboratory.solvers import water_filling
from tests.tiers import examples

FINE = 1000
"""Factor by which an agent of the whole-task engine is larger than in the instance."""

NEED_MAX = 6


@dataclass(frozen=True)
class Instance:
    """Users of one pool, and changes to it.

    claim (R,): the demand that user 0 claims when it lies.
    growth (R,): the addition to the capacity when it grows.
    """

    demand: np.ndarray
    capacity: np.ndarray
    weight: np.ndarray
    claim: np.ndarray
    growth: np.ndarray

    @property
    def task(self) -> np.ndarray:
        """Dominant share of one task of each user."""
        return measures.dominant_share(self.demand, self.capacity)


Tasks = Callable[[Instance], np.ndarray]
"""An engine: computes the number of tasks of each user."""


def fluid(policy: str) -> Tasks:
    """The fluid optimum, by the solvers."""

    def asset(need: np.ndarray) -> np.ndarray:
        return need.sum(axis=1)

    def tasks(case: Instance) -> np.ndarray:
        demand, capacity = case.demand.astype(float), case.capacity.astype(float)
        if policy in {"pf", "ceei"}:
            return proportional_fairness.solve(demand, capacity, case.weight).tasks
        combine = (asset,) if policy == "asset" else ()
        speed = water_filling.rate(demand, capacity, case.weight, *combine)
        return water_filling.solve(demand, capacity, speed).tasks

    return tasks


def whole(policy: str, selection: str = "listed") -> Tasks:
    """Whole tasks, as the policy fills one large agent; divided by `FINE`."""

    def tasks(case: Instance) -> np.ndarray:
        snapshot = static_snapshot([case.capacity * FINE], case.demand, weight=case.weight)
        spec = PolicySpec(policy, selection, mode="characterised", flat=True)
        return placement(snapshot, build(spec).allocate(snapshot, 0)).sum(axis=1) / FINE

    return tasks


# Distance of an allocation from having a property, in dominant shares; at most 0 if it has it.


def sharing_incentive(tasks: Tasks, case: Instance) -> float:
    """Every user gets at least what its part of every resource could run."""
    own = case.weight / case.weight.sum()
    return float((own - tasks(case) * case.task).max())


def strategy_proofness(tasks: Tasks, case: Instance) -> float:
    """User 0 cannot run more by claiming other needs."""
    lie = replace(case, demand=np.vstack([case.claim, case.demand[1:]]))
    bundle = tasks(lie)[0] * case.claim
    gained = measures.tasks_of(bundle, case.demand[0]) - tasks(case)[0]
    return float(gained * case.task[0])


def envy_freeness(tasks: Tasks, case: Instance) -> float:
    """No user could run more with another's bundle, in proportion to the weights."""
    held = tasks(case)[:, None] * case.demand
    return float((measures.envy(held, case.demand, case.weight) * case.task).max())


def pareto_efficiency(tasks: Tasks, case: Instance) -> float:
    """Some resource is used up, and every user needs it."""
    used = tasks(case) @ case.demand / case.capacity
    return float(1 - used.max())


def single_resource_fairness(tasks: Tasks, case: Instance) -> float:
    """Every user gets a part of a single resource in proportion to its weight (local fairness)."""
    one = replace(case, demand=case.demand[:, :1], capacity=case.capacity[:1])
    share = tasks(one) * one.task
    return float(np.abs(share - case.weight / case.weight.sum()).max())


def bottleneck_fairness(tasks: Tasks, case: Instance) -> float:
    """If all need most of the same resource, each gets a part in proportion to its weight.

    Capacities are made equal and each user's largest need is put first.
    """
    capacity = np.full_like(case.capacity, case.capacity[0])
    alike = replace(case, demand=-np.sort(-case.demand, axis=1), capacity=capacity)
    return single_resource_fairness(lambda _: tasks(alike), alike)


def population_monotonicity(tasks: Tasks, case: Instance) -> float:
    """No user gets less when the last user leaves."""
    fewer = replace(case, demand=case.demand[:-1], weight=case.weight[:-1])
    return float(((tasks(case)[:-1] - tasks(fewer)) * case.task[:-1]).max())


def resource_monotonicity(tasks: Tasks, case: Instance) -> float:
    """No user gets less when capacity grows."""
    larger = replace(case, capacity=case.capacity + case.growth)
    return float(((tasks(case) - tasks(larger)) * case.task).max())


def scale_invariance(tasks: Tasks, case: Instance) -> float:
    """Shares do not depend on task size: a task may be split into two equal ones."""
    factor = np.ones(len(case.demand), np.int64)
    factor[0] = 2
    scaled = replace(case, demand=case.demand * factor[:, None])
    return float((np.abs(tasks(case) - tasks(scaled) * factor) * case.task).max())


def permutation_equivariance(tasks: Tasks, case: Instance) -> float:
    """The order of users makes no difference."""
    order = np.roll(np.arange(len(case.demand)), 1)
    moved = replace(case, demand=case.demand[order], weight=case.weight[order])
    return float((np.abs(tasks(case)[order] - tasks(moved)) * case.task[order]).max())


PROPERTIES: Mapping[str, Callable[[Tasks, Instance], float]] = {
    check.__name__: check
    for check in (
        sharing_incentive,
        strategy_proofness,
        envy_freeness,
        pareto_efficiency,
        single_resource_fairness,
        bottleneck_fairness,
        population_monotonicity,
        resource_monotonicity,
        scale_invariance,
        permutation_equivariance,
    )
}


def example(demand, capacity, claim=None, growth=None) -> Instance:
    """A counter-example, with equal weights."""
    need = np.array(demand)
    same = np.zeros_like(capacity)
    return Instance(
        demand=need,
        capacity=np.array(capacity),
        weight=np.ones(len(need)),
        claim=need[0] if claim is None else np.array(claim),
        growth=same if growth is None else np.array(growth),
    )


REFUSED: Mapping[tuple[str, str], Instance] = {
    # Equal sums of shares: user 0 needs 3 of 9 of the second resource, user 1 needs 6 of 9.
    ("asset", "sharing_incentive"): example([[6, 3, 5], [1, 6, 2]], [18, 9, 17]),
    # User 0 needs a third of everything, user 1 half of the first and little else.
    ("asset", "bottleneck_fairness"): example([[4, 4, 4], [6, 1, 1]], [12, 12, 12]),
    # More of resource 1 makes user 0's tasks cheap: it gets more of resource 2, user 1 less.
    ("asset", "resource_monotonicity"): example([[3, 1], [1, 6]], [7, 9], growth=[11, 0]),
    # [2]_, Proposition 5: a1 = (1/2, 1), a2 = (1, 1/2); job 1 claims (2/3, 1).
    ("ceei", "strategy_proofness"): example([[3, 6], [6, 3]], [6, 6], claim=[4, 6]),
    # User 1 needs little of the third resource. Without user 2 only the first has a price.
    ("ceei", "population_monotonicity"): example([[5, 4, 4], [6, 1, 1], [1, 3, 6]], [22, 14, 11]),
    ("ceei", "resource_monotonicity"): example(
        [[1, 4, 1], [3, 1, 1], [5, 2, 5]], [8, 10, 16], growth=[11, 0, 0]
    ),
    # Twice the first resource halves user 0's dominant share of a task: it runs more, and user 1
    # less, because they compete for the second and third.
    ("drf", "resource_monotonicity"): example(
        [[6, 3, 1], [1, 4, 6]], [12, 12, 12], growth=[12, 0, 0]
    ),
}
"""The properties that Table 2 of [1]_ denies; it grants all others."""

TABLE = {
    (policy, name): (policy, name) not in REFUSED
    for policy in ("drf", "asset", "ceei")
    for name in PROPERTIES
}
ELSEWHERE = {
    "pf": "the optimum of ceei; its prices, in test_criteria",
    "tsf": "drf on one pool, up to rounding: below",
    "ps-dsf": "drf on one pool: below",
    "bf-drf": "drf on one pool: below",
    "rps-dsf": "no paper promises any; what holds for every policy: below",
    "choosy": "tests/papers/test_choosy.py",
    "cmmf": "its optimum, tests/papers/test_choosy.py; that it comes to it, test_planning",
    "pf-exact": "the optimum of ceei on one pool; that it comes to it, test_planning",
    "quincy": "no paper promises any; where it places tasks, tests/policies/test_quincy.py",
    "ps-dsf-exact": "drf on one pool; that it comes to its definition, test_planning",
}
"""Policies without rows of their own, and where their properties are tested."""


def test_every_policy_has_its_rows() -> None:
    missing = set(POLICIES) - {policy for policy, _ in TABLE} - set(ELSEWHERE)
    assert not missing, (
        f"{', '.join(sorted(missing))}: say what it promises: add it to the policies of TABLE, with"
        " a counter-example in REFUSED for each property that it does not have, and its optimum in"
        " `fluid`; or to ELSEWHERE, with the place where its promises are tested"
    )


PROMISED = [entry for entry, promised in TABLE.items() if promised]


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Two to four users of two or three resources, each of which all users need."""
    users, resources = draw(st.integers(2, 4)), draw(st.integers(2, 3))
    need = st.integers(1, NEED_MAX)
    row = st.lists(need, min_size=resources, max_size=resources).map(np.array)
    sizes = st.lists(st.integers(6, 24), min_size=resources, max_size=resources)
    weight = st.lists(st.sampled_from([1.0, 1.0, 2.0, 0.5]), min_size=users, max_size=users)
    return Instance(
        demand=np.array([draw(row) for _ in range(users)]),
        capacity=np.array(draw(sizes)),
        weight=np.array(draw(weight)),
        claim=draw(row),
        growth=np.array(draw(st.lists(st.integers(0, 12), min_size=resources, max_size=resources))),
    )


def few_tasks(case: Instance) -> float:
    """Tolerance for whole tasks: the leftover of the largest task, used up by the smallest ones.

    Less than `NEED_MAX` units of some resource are left when the first user is blocked. The others
    may turn them into as many tasks, each of at most the largest dominant share. False demands and
    doubled tasks are twice as large.
    """
    return 2 * NEED_MAX * 2 * float(case.task.max()) / FINE


@pytest.mark.parametrize(("policy", "name"), PROMISED)
@given(case=instances())
def test_the_fluid_optimum_keeps_the_promise(policy: str, name: str, case: Instance) -> None:
    assert PROPERTIES[name](fluid(policy), case) <= 1e-7


@pytest.mark.parametrize(("policy", "name"), PROMISED)
@examples(4, 20)
@given(case=instances())
def test_whole_tasks_keep_the_promise_up_to_a_few(policy: str, name: str, case: Instance) -> None:
    assert PROPERTIES[name](whole(policy), case) <= few_tasks(case)


@pytest.mark.parametrize(("policy", "name"), list(REFUSED))
@pytest.mark.parametrize("engine", [fluid, whole])
def test_properties_that_are_not_promised_do_not_hold(policy: str, name: str, engine) -> None:
    assert PROPERTIES[name](engine(policy), REFUSED[policy, name]) > 0.03


def test_the_table_is_that_of_the_paper() -> None:
    """Seven crosses: asset fairness 3, CEEI 3, DRF 1."""
    refused = [policy for (policy, _), promised in TABLE.items() if not promised]
    assert sorted(refused) == ["asset"] * 3 + ["ceei"] * 3 + ["drf"]


def test_population_monotonicity_is_about_users_who_need_everything() -> None:
    """DRF: three users of the first resource hold back a fourth, who also needs the second.

    When they leave it takes half of the second resource, of which the last user had 3/4. [1]_
    proves the property for users who need some of every resource.
    """
    before = example([[0, 1], [1, 1], [1, 0], [1, 0], [1, 0]], [12, 12])
    after = example([[0, 1], [1, 1]], [12, 12])
    np.testing.assert_allclose(fluid("drf")(before)[0], 9)
    np.testing.assert_allclose(fluid("drf")(after)[0], 6)
    assert abs(whole("drf")(before)[0] - 9) <= 0.01


# Properties of whole tasks under every policy.


@pytest.mark.parametrize("policy", ["ps-dsf", "bf-drf"])
@examples(4, 20)
@given(case=instances())
def test_on_one_agent_it_is_drf(policy: str, case: Instance) -> None:
    """With one agent its capacity is the total, and it is always the best fit."""
    assert (whole(policy, "")(case) == whole("drf")(case)).all()


@examples(4, 20)
@given(case=instances())
def test_on_one_agent_tsf_is_drf_up_to_rounding(case: Instance) -> None:
    """Only tasks are whole, so task shares differ from dominant shares by less than 1/1000."""
    off = np.abs(whole("tsf")(case) - whole("drf")(case)) * case.task
    alone = FINE / case.task
    assert off.max() <= few_tasks(case) + 1 / (alone.min() - 1)


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"choosy"}))
@examples(4, 20)
@given(case=instances())
def test_one_resource_is_shared_by_weight(policy: str, case: Instance) -> None:
    assert single_resource_fairness(whole(policy, "listed"), case) <= few_tasks(case)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("selection", SELECTIONS)
@examples(4, 8)
@given(case=instances(), agents=st.integers(1, 3), seed=st.integers(0, 2**64 - 1))
def test_nothing_more_fits(policy, selection, case: Instance, agents: int, seed: int) -> None:
    """No agent has room for one more task of any user (Pareto efficiency of one agent)."""
    capacity = [case.capacity * (agent + 1) for agent in range(agents)]
    snapshot = static_snapshot(capacity, case.demand, weight=case.weight)
    spec = PolicySpec(policy, selection, mode="characterised", flat=True)
    tasks = placement(snapshot, build(spec).allocate(snapshot, seed))
    left = np.array(capacity) - tasks.T @ case.demand
    assert (left >= 0).all()
    assert not (left[:, None] >= case.demand[None]).all(axis=2).any()


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"choosy"}))
@examples(4, 20)
@given(case=instances())
def test_policies_are_permutation_equivariant(policy: str, case: Instance) -> None:
    assert permutation_equivariance(whole(policy), case) <= few_tasks(case)


# Several agents.


def filled(policy: str, selection: str, capacity, demand, weight=None, seed=0) -> np.ndarray:
    """Whole tasks of each user on each agent."""
    snapshot = static_snapshot(capacity, demand, weight=weight)
    spec = PolicySpec(policy, selection, mode="characterised", flat=True)
    return placement(snapshot, build(spec).allocate(snapshot, seed))


@pytest.mark.parametrize("selection", ["random", "joint", "best_fit"])
def test_drf_on_several_agents_has_no_sharing_incentive(selection: str) -> None:
    """[4]_, footnote 2. Half of each agent would run 100 + 5 tasks of user 1; it gets fewer.

    User 0 needs <1, 1>, user 1 <1, 10>. Agent 1 has <200, 2000>, agent 2 <1800, 100>: user 1
    depends on agent 1. A task of user 1 is 10/2100 of the cluster's memory; for a task of user 0
    the larger part is 1/2000 of the CPUs.
    """
    capacity, demand = [[200, 2000], [1800, 100]], [[1, 1], [1, 10]]
    alone = sum(min(c // 2, m // 2 // 10) for c, m in capacity)
    tasks = filled("drf", selection, capacity, demand).sum(axis=1)
    assert alone == 105
    assert tasks[1] < 0.95 * alone


def gives_all_more(better, tasks: np.ndarray, capacity, demand) -> bool:
    """Whether another placement fits and gives every user more tasks."""
    fits = (np.array(better).T @ demand <= np.array(capacity)).all()
    return bool(fits and (np.sum(better, axis=1) > tasks.sum(axis=1)).all())


def test_ps_dsf_on_several_agents_is_not_pareto_efficient() -> None:
    """[4]_, footnote 2: 'PS-DSF is not necessarily Pareto optimal'.

    Two agents are nearly alike: it gives each user one of them, although a mix would fill both. On
    each agent 300 * <4, 1> + 170 * <2, 6> = <1540, 1320> fits.
    """
    capacity, demand = [[1900, 1400], [1900, 1500]], [[4, 1], [2, 6]]
    tasks = filled("ps-dsf", "joint", capacity, demand)
    assert gives_all_more([[300, 300], [170, 170]], tasks, capacity, demand)


@pytest.mark.parametrize("policy", ["drf", "tsf"])
def test_filling_agents_in_random_order_is_not_pareto_efficient(policy: str) -> None:
    """Table I of [4]_: mostly (5, 5, 5, 5), where (19, 2, 2, 19) would give both twice as much.

    The fluid optimum of DRF and TSF is Pareto efficient (footnote 2); filling with random selection
    only keeps shares equal.
    """
    capacity, demand = [[100, 30], [30, 100]], [[5, 1], [1, 5]]
    tasks = filled(policy, "random", capacity, demand)
    assert gives_all_more([[19, 2], [2, 19]], tasks, capacity, demand)


@pytest.mark.parametrize("policy", ["drf", "ps-dsf"])
@pytest.mark.parametrize("selection", ["random", "joint"])
@examples(4, 20)
@given(
    demands=st.lists(st.tuples(st.integers(4, 6), st.integers(1, 3)), min_size=2, max_size=4),
    sizes=st.lists(st.integers(500, 1000), min_size=2, max_size=3),
    seed=st.integers(0, 2**32),
)
def test_bottleneck_fairness_on_several_agents(policy, selection, demands, sizes, seed) -> None:
    """[4]_, footnote 2, for PS-DSF: what all users need most on every agent is shared equally."""
    demand, capacity = np.array(demands), np.array([[size, size] for size in sizes])
    held = filled(policy, selection, capacity, demand, seed=seed).sum(axis=1) * demand[:, 0]
    # Each agent has less than one of the largest tasks left, which the others may take.
    assert np.ptp(held) <= 6 * (len(sizes) + 1)


@pytest.mark.parametrize("policy", ["drf", "tsf", "ps-dsf"])
@examples(4, 20)
@given(case=instances(), seed=st.integers(0, 2**32))
def test_equal_agents_are_one_pool_up_to_a_few_tasks_each(policy, case: Instance, seed) -> None:
    """No envy, and each user has its part, except for leftovers on agents."""
    equal, agents = replace(case, weight=np.ones(len(case.demand))), 4
    scale = FINE // agents
    tasks = filled(policy, "joint", [equal.capacity * scale] * agents, equal.demand, seed=seed)

    def engine(_: Instance) -> np.ndarray:
        return tasks.sum(axis=1) / (scale * agents)

    assert sharing_incentive(engine, equal) <= agents * few_tasks(equal)
    assert envy_freeness(engine, equal) <= agents * few_tasks(equal)
