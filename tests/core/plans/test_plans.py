"""Plans in the core: adopted as events, kept in checkpoints, removed with their clients."""

from dataclasses import replace

import numpy as np
import pytest

from allocator.core import (
    UNBOUNDED,
    AddAgent,
    AdoptPlan,
    AgentInfo,
    Allocator,
    Define,
    EventError,
    FrameworkInfo,
    Kind,
    Plan,
    PolicySpec,
    RemoveAgent,
    RemoveFramework,
    SetDrain,
    SetPolicy,
    Settings,
    SetWeight,
    SetWeights,
    UpdateFramework,
    see,
)
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.policies import build
from allocator.wire.journal.records import operator_record, read_plan
from tests.core.session import CPUS, MEM, Session


def session(policy: str = "cmmf") -> Session:
    """Three agents of four CPUs; of two frameworks the second may use agent 3 only."""
    made = Session(PolicySpec(policy, "listed"))
    for agent in (1, 2, 3):
        made.agent(agent, 4, 4, attributes={"number": str(agent)})
    made.framework(1)
    made.framework(2, labels={"allocator.constraint": "number=3"})
    return made


def planned(made: Session) -> AdoptPlan:
    problem = made.allocator.problem()
    assert problem is not None
    return made.allocator.plan_for(problem)


def test_a_cycle_goes_by_the_plan_that_was_adopted() -> None:
    made = session()
    plan = planned(made)
    made.allocator.step(plan)
    assert sorted((agent, framework) for framework, _, agent, _ in made.cycle(1000)) == [
        (1, 1),
        (2, 1),
        (3, 2),
    ]


@pytest.mark.parametrize("policy", ["cmmf", "pf-exact", "quincy"])
def test_a_plan_holds_although_a_resource_is_new(policy: str) -> None:
    made = session(policy)
    made.allocator.step(planned(made))
    made.allocator.step(Define({7: Kind("gpus")}))
    made.allocator.step(AddAgent(4, AgentInfo("agent-4"), {CPUS: 4000, MEM: 4000, 7: 1000}))
    assert made.cycle(1000)
    assert not made.allocator.last_cycle.policy_error


def test_a_problem_is_a_copy() -> None:
    made = session()
    problem = made.allocator.problem()
    assert problem is not None
    free = problem.free.copy()
    made.cycle(1000)
    assert (problem.free == free).all()
    again = made.allocator.problem()
    assert again is not None
    assert not again.free.any()
    assert again.asks_the_same(problem)
    made.agent(4, 4, 4)
    more = made.allocator.problem()
    assert more is not None
    assert not more.asks_the_same(problem)


def test_a_plan_is_not_about_agents_that_are_drained_and_knows_weights_of_frameworks() -> None:
    made = session()
    made.allocator.step(SetDrain("agent-2"))
    made.allocator.step(SetWeight("", "framework-1", 3.0))
    problem = made.allocator.problem()
    assert problem is not None
    assert np.flatnonzero(problem.capacity.any(axis=1)).tolist() == [1, 3]
    assert problem.weight.tolist() == [0.75, 0.25]


def test_limits_and_guarantees_are_divided_by_weight_below_their_roles() -> None:
    """A third of the limit of ``a`` goes to its own framework, the rest to those in ``a/b``."""
    made = Session(PolicySpec("cmmf", "listed"), {1: "a", 2: "a/b", 3: "c"})
    made.agent(1, 40, 40)
    for framework, role in enumerate((1, 2, 2, 3), 1):
        made.framework(framework, role)
    made.allocator.step(SetWeights({"a/b": 2.0}))
    made.world.quota("a", "cpus:12", "cpus:24")
    made.world.quota("a/b", "", "cpus:6")
    problem = made.allocator.problem()
    assert problem is not None
    row = {
        int(made.state.clients.framework[client]): at
        for at, client in enumerate(problem.client.tolist())
    }
    of_framework = [row[framework] for framework in (1, 2, 3, 4)]
    assert problem.guarantee[of_framework, CPUS].tolist() == [4_000, 4_000, 4_000, 0]
    limit = problem.limit[of_framework, CPUS].tolist()
    assert limit == [8_000, 3_000, 3_000, UNBOUNDED]
    assert (problem.limit[:, MEM] == UNBOUNDED).all()
    before = problem
    made.world.quota("a/b", "", "cpus:8")
    problem = made.allocator.problem()
    assert problem is not None
    assert not problem.asks_the_same(before)


def test_a_framework_that_leaves_is_removed_from_the_plan_even_if_its_row_is_reused() -> None:
    made = session()
    made.allocator.step(planned(made))
    row = made.state.clients.row(2, 1)
    assert made.state.plan is not None
    assert made.state.plan.target[row] > 0
    made.allocator.step(RemoveFramework(2))
    made.framework(2)
    assert made.state.clients.row(2, 1) == row
    assert made.state.plan.target[row] == 0
    assert made.state.plan.group[3] >= 0
    made.allocator.step(RemoveAgent(3))
    assert made.state.plan.group[3] == -1
    made.state.check()


def test_a_plan_that_comes_late_is_not_about_newcomers() -> None:
    made = session()
    problem = made.allocator.problem()
    assert problem is not None
    late = made.allocator.plan_for(problem)
    # As if other clients had had client 2's row, and agent 1's, when the problem was taken.
    frameworks, agents = list(problem.frameworks), list(problem.agents)
    frameworks[made.state.clients.row(2, 1)] = FrameworkInfo("gone", "gone")
    agents[1] = AgentInfo("gone")
    problem = replace(problem, frameworks=tuple(frameworks), agents=tuple(agents))
    fresh = made.allocator.fresh(problem.rows(), late.plan).plan
    assert late.plan.target[made.state.clients.row(2, 1)] > 0
    assert fresh.target[made.state.clients.row(2, 1)] == 0
    assert fresh.target[made.state.clients.row(1, 1)] > 0
    assert (fresh.group[1], fresh.group[2]) == (-1, late.plan.group[2])


def test_a_new_policy_begins_without_a_plan() -> None:
    made = session()
    made.allocator.step(planned(made))
    made.allocator.step(SetPolicy(PolicySpec("drf")))
    assert made.state.plan is None
    assert made.allocator.planning_policy is None
    made.allocator.step(SetPolicy(PolicySpec("ps-dsf-exact")))
    made.allocator.step(planned(made))
    made.allocator.reconfigure(replace(made.allocator.settings, seed=5))
    assert made.state.plan is not None, "the same policy goes on"
    made.allocator.reconfigure(replace(made.allocator.settings, policy=PolicySpec("cmmf")))
    assert made.state.plan is None


def test_an_allocator_may_plan_by_itself() -> None:
    made = session()
    copied = made.allocator.copied()
    twin = Allocator(build, Settings(policy=PolicySpec("cmmf", "listed")), plans=True)
    twin.suppose(copied)
    twin.allocate(1000)
    assert twin.state.plan is not None
    assert made.state.plan is None


@pytest.mark.parametrize("policy", ["cmmf", "ps-dsf-exact", "pf-exact"])
def test_a_plan_goes_through_checkpoints_and_the_journal(policy: str) -> None:
    made = session(policy)
    plan = planned(made)
    again = read_plan(operator_record(plan).plan).plan
    for name in Plan.__slots__:
        before, after = (np.asarray(getattr(each, name)) for each in (plan.plan, again))
        assert before.size == after.size
        assert (before.ravel() == after.ravel()).all()
    made.allocator.step(AdoptPlan(again))
    kept = made.allocator.kept()
    column = to_columns(Detached(kept).value)
    resumed = Allocator(build, Settings(policy=PolicySpec(policy, "listed")))
    resumed.resume(restore(column, resumed.kept()))
    one, other = made.allocator.allocate(2000), resumed.allocate(2000)
    assert one.agent.tolist() == other.agent.tolist()
    assert one.framework.tolist() == other.framework.tolist()


def test_a_plan_that_is_none_changes_nothing() -> None:
    made = session()
    plan = planned(made).plan
    wrong = {
        "inconsistent shapes": {"allowed": plan.allowed[0]},
        "plan.group": {"group": plan.group + 9},
        "plan.target": {"target": -1 - plan.target},
        "plan.part": {"part": np.zeros((len(plan.allowed), 1))},
    }
    for message, change in wrong.items():
        with pytest.raises(EventError, match=message):
            made.allocator.step(AdoptPlan(replace(plan, **change)))
    assert made.state.plan is None


def test_holdings_on_a_group_count_in_later_cycles() -> None:
    """Half of the tasks run already; the other half completes the planned amounts."""
    made = Session(PolicySpec("ps-dsf-exact", "listed", mode="characterised"))
    made.agent(1, 10, 10)
    made.framework(1, labels={"allocator.demand": "cpus:1;mem:1"})
    made.allocator.step(planned(made))
    (alone,) = made.cycle(1000)
    made.use(alone)
    assert alone[3] == {"cpus": 10, "mem": 10}
    made.agent(2, 10, 10)
    made.framework(2, labels={"allocator.demand": "cpus:1;mem:1"})
    made.allocator.step(planned(made))
    (offer,) = made.cycle(2000)
    assert offer == (2, 1, 2, {"cpus": 10, "mem": 10})


def test_the_plan_of_a_snapshot_counts_against_the_trails_memory() -> None:
    made = Session(PolicySpec("ps-dsf-exact", "listed", mode="characterised"))
    made.agent(1, 10, 10)
    made.framework(1, labels={"allocator.demand": "cpus:1;mem:1"})
    before = made.allocator.preview()
    made.allocator.step(planned(made))
    after = made.allocator.preview()
    assert before is not None
    assert after is not None
    assert after.plan is not None
    one, other = see(before), see(after)
    assert one is not None
    assert other is not None
    more = after.plan.held.nbytes + after.plan.agents_held.nbytes
    assert other.nbytes == one.nbytes + more > one.nbytes


def test_a_framework_that_moves_to_another_role_meanwhile_leaves_its_target_behind() -> None:
    """The same framework gets its row again, but the plan was for its previous role."""
    made = session()
    problem = made.allocator.problem()
    assert problem is not None
    plan = made.allocator.plan_for(problem)
    client = made.state.clients.row(1, 1)
    assert plan.plan.target[client] > 0
    info = made.state.frameworks.info[1]
    assert info is not None
    made.allocator.step(UpdateFramework(1, info, (2,)))
    assert made.state.clients.row(1, 2) == client
    fresh = made.allocator.fresh(problem.rows(), plan.plan)
    assert fresh.plan.target[client] == 0
    other = made.state.clients.row(2, 1)
    assert fresh.plan.target[other] == plan.plan.target[other] > 0
