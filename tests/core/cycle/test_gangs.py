"""Gangs: room for all tasks in one cycle, or no offer."""

import pytest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    Grants,
    Policy,
    PolicySpec,
    SetGang,
    SetLimit,
    SetQuota,
    Snapshot,
)
from allocator.core.cycle.gangs import TURNS_MAX
from allocator.policies import POLICIES
from tests.core.session import Session

TASK = "cpus:2;mem:2"


def mpi(tasks: int = 4, demand: str = TASK) -> dict[str, str]:
    return {DEMAND_LABEL: demand, GANG_LABEL: f"tasks:{tasks}"}


def begun(spec: PolicySpec, *agents: int) -> Session:
    session = Session(spec)
    for handle, cpus in enumerate(agents, 1):
        session.agent(handle, cpus, cpus)
    return session


def cpus(offers, framework: int) -> list[int]:
    """CPUs that a framework was offered, by agent."""
    return sorted(units["cpus"] for who, _, _, units in offers if who == framework)


MODES = ("characterised", "oblivious")


@pytest.fixture(params=[(name, mode) for name in POLICIES for mode in MODES], ids=str)
def spec(request) -> PolicySpec:
    name, mode = request.param
    return PolicySpec(name, mode=mode)


def test_a_gang_that_fits_is_offered_at_once_across_agents(spec):
    session = begun(spec, 3, 3, 3, 3)
    session.framework(1, labels=mpi(4))
    offers = session.cycle(1000)
    assert len(cpus(offers, 1)) == 4
    assert min(cpus(offers, 1)) >= 2
    session.allocator.check()


def test_a_gang_that_does_not_fit_is_offered_nothing_and_others_take_the_room(spec):
    session = begun(spec, 3, 3, 3)
    session.framework(1, labels=mpi(4))
    session.framework(2, labels={DEMAND_LABEL: TASK})
    offers = session.cycle(1000)
    assert cpus(offers, 1) == []
    assert len(cpus(offers, 2)) == 3


def test_of_two_gangs_for_one_place_one_is_served(spec):
    """Served task by task, each would get two of the four places, and wait for the other's."""
    session = begun(spec, 2, 2, 2, 2)
    for framework, role in ((1, 1), (2, 2)):
        session.framework(framework, role, labels=mpi(4))
    offers = session.cycle(1000)
    assert sorted(map(len, (cpus(offers, 1), cpus(offers, 2)))) == [0, 4]


@pytest.mark.parametrize("mode", MODES)
def test_an_oblivious_gang_takes_whole_agents_until_it_fits(mode):
    session = begun(PolicySpec("drf", "listed", mode), 5, 5, 5)
    session.framework(1, labels=mpi(3))
    session.framework(2, 2, labels={DEMAND_LABEL: "cpus:1;mem:1"})
    offers = session.cycle(1000)
    # Two tasks fit on an agent, so two agents suffice.
    assert cpus(offers, 1) == ([2, 4] if mode == "characterised" else [5, 5])
    assert sum(cpus(offers, 2)) == (9 if mode == "characterised" else 5)


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_that_leaves_less_than_a_gang_leaves_nothing(mode):
    for limit, given in ((7, 0), (8, 4)):
        session = begun(PolicySpec("drf", "listed", mode), 2, 2, 2, 2, 2)
        session.allocator.step(SetLimit("a", {"cpus": limit * 1000}))
        session.framework(1, labels=mpi(4))
        assert len(cpus(session.cycle(1000), 1)) == given


@pytest.mark.parametrize("mode", MODES)
def test_resources_kept_for_a_guarantee_do_not_count_for_a_gang(mode):
    for guarantee, given in ((3, 0), (2, 4)):
        session = begun(PolicySpec("drf", "listed", mode), 2, 2, 2, 2, 2)
        session.allocator.step(SetQuota("b", {"cpus": guarantee * 1000}, {}))
        session.framework(1, labels=mpi(4))
        assert len(cpus(session.cycle(1000), 1)) == given


def test_grants_before_the_turn_of_a_gang_stay_with_others():
    """DRF serves the client with the lowest share, until both are equal."""
    for free, gang, other in ((10, [], [10]), (12, [8], [4])):
        session = begun(PolicySpec("drf", "listed", "characterised", flat=True), 4)
        session.framework(1, labels={DEMAND_LABEL: TASK})
        for offer in session.cycle(1000):
            session.use(offer)
        session.framework(2, 2, labels={DEMAND_LABEL: TASK})
        session.allocator.step(SetGang("a", "", 4))
        session.agent(2, free, free)
        offers = session.cycle(2000)
        # Framework 2 has two tasks when the gang's turn comes.
        assert (cpus(offers, 1), cpus(offers, 2)) == (gang, other)


def test_a_gang_of_an_unknown_demand_is_served_task_by_task():
    session = begun(PolicySpec("drf", "listed", "characterised"), 2)
    session.framework(1, labels={GANG_LABEL: "tasks:4"})
    assert cpus(session.cycle(1000), 1) == [2]


def test_a_cycle_over_some_agents_makes_no_part_of_a_gang():
    session = begun(PolicySpec("drf", "listed", "characterised"), 4, 4)
    session.framework(1, labels=mpi(4))
    assert session.cycle(1000, agents=[1]) == []
    assert cpus(session.cycle(2000), 1) == [4, 4]


def test_an_operators_rule_makes_a_gang():
    session = begun(PolicySpec("drf", "listed", "characterised"), 2, 2, 2)
    session.allocator.step(SetGang("a", "", 4))
    session.framework(1, labels={DEMAND_LABEL: TASK})
    assert session.cycle(1000) == []
    session.allocator.step(SetGang("a", "", 3))
    assert len(cpus(session.cycle(2000), 1)) == 3


class Counting:
    """A policy that counts its calls."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self.asked = policy, 0

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        self.asked += 1
        return self._policy.allocate(snapshot, seed)


def test_a_cycle_has_a_bounded_number_of_questions_and_nothing_costs_one_without_a_gang():
    """One call for the turns, and one for each gang that may fit; no other gangs exist here."""
    for labels, asked in ((mpi(2), TURNS_MAX + 1), ({DEMAND_LABEL: TASK}, 1)):
        session = Session(PolicySpec("drf", mode="characterised", flat=True))
        for handle in range(1, 4 * TURNS_MAX):
            session.agent(handle, 4, 4)
            session.framework(handle, labels=labels)
        policy = Counting(session.allocator.policy)
        session.allocator._use(policy)
        assert session.cycle(1000)
        assert policy.asked == asked


def test_gangs_that_never_fit_do_not_keep_others_from_a_turn():
    session = begun(PolicySpec("drf", mode="characterised", flat=True), 8)
    many = 3 * TURNS_MAX
    for framework in range(1, many):
        session.framework(framework, labels=mpi(5))
    session.framework(many, labels=mpi(4))
    for cycle in range(1, 30):
        if session.cycle(1000 * cycle):
            assert session.state.held_by_column()[:, 0].max() == 8000
            return
    pytest.fail("the gang that fits was never offered")


def test_tiny_tasks_are_counted_in_lots():
    session = begun(PolicySpec("drf", "listed", "characterised"), 64)
    session.framework(1, labels=mpi(1000, "cpus:0.001;mem:0.001"))
    (given,) = session.allocator.allocate(1000).amount.tolist()
    assert 1000 <= min(given) < 1100
