"""A cycle without decisions says whether a rule explains that; otherwise it is a defect."""

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, Grants, PolicySpec, SetDrain, SetLimit, SetQuota, Suppress
from tests.core.session import Session

DRF = PolicySpec("drf", "listed", "characterised", flat=True)
TASK = {DEMAND_LABEL: "cpus:1;mem:1"}


class Idle:
    """A policy that makes no grants."""

    def allocate(self, snapshot, _seed):
        return Grants.none(len(snapshot.resources))


def idle(demand=TASK) -> Session:
    made = Session(DRF)
    made.allocator._policy = Idle()
    made.framework(1, 1, labels=demand)
    made.agent(1, 4, 4, hostname="h1")
    return made


def holds_back(made: Session, now_ms: int = 1000, agents=None) -> bool:
    decisions = made.allocator.allocate(now_ms, agents)
    assert not len(decisions)
    return decisions.holds_back


def test_a_policy_that_gives_nothing_though_it_could_does_not_hold_back():
    assert not holds_back(idle())
    assert not holds_back(idle(demand={}))


def test_where_it_gives_something_nothing_is_held_back():
    made = idle()
    made.allocator._policy = made.allocator._build(DRF)
    decisions = made.allocator.allocate(1000)
    assert len(decisions)
    assert not decisions.holds_back


@pytest.mark.parametrize("agents", [None, np.array([1])])
def test_a_drain_holds_back_and_a_cycle_over_some_agents_says_nothing(agents):
    made = idle()
    made.allocator.step(SetDrain("h1"))
    assert holds_back(made, agents=agents) is (agents is None)


def test_a_demand_that_fits_nowhere_holds_back():
    assert holds_back(idle({DEMAND_LABEL: "cpus:9;mem:1"}))


def test_suppressed_clients_do_not_take_part():
    made = idle()
    made.allocator.step(Suppress(1, (1,)))
    assert holds_back(made)


def test_an_operators_limit_holds_back_and_one_that_leaves_room_does_not():
    for cpus, kept in ((0, True), (100_000, False)):
        made = idle()
        made.allocator.step(SetLimit(made.paths[1], {"cpus": cpus}))
        assert holds_back(made) is kept


def test_headroom_for_the_guarantee_of_another_role_explains_an_empty_cycle():
    made = idle()
    made.allocator.step(SetQuota(made.paths[2], {"cpus": 4000}, {}))
    assert holds_back(made)


def test_a_policy_that_fails_holds_nothing_back():
    class Failing:
        def allocate(self, snapshot, seed):
            raise ValueError("no")

    made = idle()
    made.allocator._policy = Failing()
    assert not holds_back(made)
