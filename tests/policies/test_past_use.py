"""Which properties of DRF hold for one allocation when past use counts (`usage_weight` = k).

Past use u of each user is played, then all is free, and one cycle allocates it. The user with the
smallest ``max over r of (held[r] + k * u[r]) / total[r]`` is served next. This is the rule of
Stateful DRF [1]_ with the *commitments* ``k * u``, as its authors implemented it [2]_. There only
the use beyond an equal part is committed; here all use is. The paper itself was not at hand: its
abstract claims that the rule is strategy-proof, gives an incentive to share, and is efficient.

Stated and tested here, for one allocation with any commitments c (a level t is reached at which
some resource is used up, and each served user has ``max over r of held[r] + c[r] = t``):

- A user cannot gain by a lie, nothing more fits, and no user gets less when another one leaves.
- A user gets its part of the cluster, less its largest commitment; so without past use it has the
  whole sharing incentive: parts with commitments add up to at least 1 on a resource that is used
  up, so t is at least an equal part.
- A user envies no one whose commitments are at least its own.

The other properties of DRF do not hold if k is above 0, and hold if it is 0, whatever the past.

References
----------
.. [1] Sadok, Campista, Costa. "Stateful DRF: Considering the Past in a Multi-Resource Allocation."
   IEEE Transactions on Computers 70(7), 2021.
.. [2] The simulator of [1]_, https://github.com/hsadok/sdrf, ``sdrf/helpers/c_live_tree``.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import measures
from allocator.core import DEMAND_LABEL, PolicySpec
from tests.policies.test_properties import (
    NEED_MAX,
    PROPERTIES,
    REFUSED,
    Instance,
    Tasks,
    example,
    instances,
)
from tests.tiers import examples
from tests.world.world import World

FINE = 200
"""Factor by which the agent is larger than in the instance."""

HALF_LIFE_MS = 640_000
HELD_MS = 3 * HALF_LIFE_MS
REMEMBERED = 1 - 0.5**3
"""The average of what was held for that time."""

NAMES = ("cpus", "mem", "disk")

KEPT = (
    *("strategy_proofness", "pareto_efficiency", "population_monotonicity", "scale_invariance"),
)
LOST = ("sharing_incentive", "envy_freeness", "single_resource_fairness", "bottleneck_fairness")
ALL = [name for name in PROPERTIES if ("drf", name) not in REFUSED]


@dataclass(frozen=True)
class Lived(Instance):
    """Users with a past; `past` (U, R): the part of the capacity that each of them held."""

    past: np.ndarray


def filled(k: float) -> Tasks:
    """Tasks of each user in the first cycle after the past, divided by `FINE`."""

    def tasks(case: Instance) -> np.ndarray:
        users, columns = case.demand.shape
        roles = [f"user-{user}" for user in range(users)]
        world = World(
            PolicySpec("drf", "listed", "characterised"),
            settings={"half_life_ms": HALF_LIFE_MS, "usage_weight": k, "patience_cycles": 0},
            minimum=(),
        )
        world.weights(**dict(zip(roles, case.weight.tolist(), strict=True)))
        capacity = case.capacity * FINE
        earlier = world.agent(_text(capacity))
        frameworks = [
            world.framework(role, labels={DEMAND_LABEL: _text(need)})
            for role, need in zip(roles, case.demand, strict=True)
        ]
        assert isinstance(case, Lived)
        world.allocator.advance(1)
        for framework, role, part in zip(frameworks, roles, case.past, strict=False):
            if part[:columns].any():
                amounts = (capacity * part[:columns]).astype(int)
                world.hold(framework, role, earlier, _text(amounts))
        world.allocator.advance(1 + HELD_MS)
        world.remove_agent(earlier)
        world.agent(_text(capacity))
        world.now_ms = world.allocator.state.now_ms
        first = NAMES[0]
        got = np.zeros(users)
        for offer in world.cycle(after_ms=0):
            (cpus,) = (each for kind, each in offer.resources.items() if kind.name == first)
            user = frameworks.index(offer.framework)
            got[user] += cpus / 1000 / case.demand[user, 0]
        return got / FINE

    return tasks


def _text(amounts: np.ndarray) -> str:
    pairs = zip(NAMES, amounts.tolist(), strict=False)
    return ";".join(f"{name}:{amount}" for name, amount in pairs if amount)


@st.composite
def lives(draw: st.DrawFn) -> Lived:
    """Users that held up to a quarter of each resource."""
    case = draw(instances())
    part = st.lists(st.integers(0, 4), min_size=len(NAMES), max_size=len(NAMES))
    past = np.array([draw(part) for _ in case.demand]) / 16
    return Lived(**vars(case), past=past)


def few_tasks(case: Instance) -> float:
    """As for whole tasks in `test_properties`, for smaller agents."""
    return 2 * NEED_MAX * 2 * float(case.task.max()) / FINE


def committed(case: Lived, k: float) -> np.ndarray:
    """What counts of the past, (U, R), as parts of the capacity."""
    return k * REMEMBERED * case.past[:, : case.demand.shape[1]]


@pytest.mark.parametrize("name", KEPT)
@examples(4, 20)
@given(case=lives(), k=st.sampled_from([0.3, 0.7, 1.0]))
def test_some_properties_hold_whatever_past_use_counts(name: str, case: Lived, k: float) -> None:
    assert PROPERTIES[name](filled(k), case) <= few_tasks(case)


@pytest.mark.parametrize("name", sorted({*ALL} - {"permutation_equivariance"}))
@examples(3, 20)
@given(case=lives())
def test_all_properties_of_drf_hold_with_weight_0(name: str, case: Lived) -> None:
    """Averages are computed, but do not count; the order of users would change their pasts."""
    assert PROPERTIES[name](filled(0.0), case) <= few_tasks(case)


ONE_HELD_ALL = example([[1, 1], [1, 1]], [12, 12])


@pytest.mark.parametrize("name", LOST)
def test_the_others_do_not_hold(name: str) -> None:
    """User 0 held everything, and now gets (1 - 0.875 k) / 2 of it."""
    past = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    case = Lived(**vars(ONE_HELD_ALL), past=past)
    assert PROPERTIES[name](filled(1.0), case) >= REMEMBERED / 2 - few_tasks(case)
    assert PROPERTIES[name](filled(0.0), case) <= few_tasks(case)
    share = filled(0.4)(case)[0] * case.task[0]
    assert share == pytest.approx((1 - 0.4 * REMEMBERED) / 2, abs=few_tasks(case))


def test_every_property_is_named_once() -> None:
    assert {*KEPT, *LOST, "permutation_equivariance"} == set(ALL)


@examples(5, 30)
@given(case=lives(), k=st.sampled_from([0.3, 0.7, 1.0]))
def test_users_get_their_part_less_what_they_are_committed_to(case: Lived, k: float) -> None:
    part = case.weight / case.weight.sum()
    share = filled(k)(case) * case.task
    assert (share >= part - committed(case, k).max(axis=1) - few_tasks(case)).all()


@examples(5, 30)
@given(case=lives(), k=st.sampled_from([0.3, 0.7, 1.0]))
def test_users_envy_none_who_are_committed_to_more(case: Lived, k: float) -> None:
    """In proportion to their weights."""
    tasks, past = filled(k)(case), committed(case, k) / case.weight[:, None]
    for user, mine in enumerate(past):
        for other, its in enumerate(past):
            if (its < mine).any():
                continue
            bundle = tasks[other] * case.demand[other] * case.weight[user] / case.weight[other]
            more = measures.tasks_of(bundle, case.demand[user]) - tasks[user]
            assert float(more) * case.task[user] <= few_tasks(case) * case.weight.max() * 2
