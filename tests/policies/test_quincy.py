"""Quincy live: placement on agents by data, racks, waiting and fair bounds."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    MILLI,
    AgentInfo,
    FrameworkInfo,
    Plan,
    PlanningPolicy,
    PlanProblem,
    PolicySpec,
    attributes_of,
)
from allocator.core.books.quota import QuotaTree, parts_of_clients
from allocator.core.constraints import parse_constraint
from allocator.policies import build
from allocator.policies.plan_guided import bits_of, group_agents
from allocator.policies.quincy import PREFERENCE_LABEL
from allocator.testing import problem_of, static_snapshot
from tests.world.world import World

quincy = import_module("allocator.policies.quincy")  # the package exports a function of this name

# Four agents of one place each, in two racks.
AGENTS = tuple(
    [None] + [AgentInfo(f"a{n}", f"host{n}", {"rack": f"r{(n + 1) // 2}"}) for n in range(1, 5)]
)


def problem(
    prefers: Mapping[int, str] | None = None, clients: int = 4, agents: int = 4, **more
) -> PlanProblem:
    snapshot = static_snapshot([[4, 4]] * agents, [[4, 4]] * clients, **more)
    labels = [{PREFERENCE_LABEL: text} if text else {} for text in
              ((prefers or {}).get(client, "") for client in range(clients))]  # fmt: skip
    frameworks = tuple(
        FrameworkInfo(f"f{row}", f"f{row}", labels=label) for row, label in enumerate(labels)
    )
    return replace(problem_of(snapshot), agents=AGENTS[: agents + 1], frameworks=frameworks)


def plan(asked: PlanProblem, **parameters: str) -> Plan:
    policy = build(PolicySpec("quincy", parameters=parameters))
    assert isinstance(policy, PlanningPolicy)
    return policy.plan(asked)


def places(asked: PlanProblem, **parameters: str) -> list[list[int]]:
    """The clients on each agent."""
    made, clients = plan(asked, **parameters), np.arange(len(asked.client))
    there = bits_of(np.vstack([made.allowed, 0 * made.allowed[:1]]), clients)
    return [np.flatnonzero(there[group]).tolist() for group in made.group[1:]]


def test_tasks_run_where_their_data_are() -> None:
    asked = problem({0: "hostname=host4", 1: "hostname=host1", 2: "hostname=host3"})
    assert places(asked) == [[1], [3], [2], [0]]


def test_next_best_is_the_rack_of_the_data() -> None:
    """Both want agent 3; one gets agent 4 in the same rack rather than one of the other rack."""
    there = places(problem({0: "hostname=host3", 1: "hostname=host3"}))
    assert sorted(there[2] + there[3]) == [0, 1]


def test_a_place_that_a_client_has_is_kept() -> None:
    holder = np.array([1 << 32 | 2, 2 << 32 | 3, 3 << 32 | 0, 4 << 32 | 1])
    assert places(replace(problem(), holder=holder)) == [[2], [3], [0], [1]]


def test_data_elsewhere_are_worth_a_move_only_where_they_cost_more() -> None:
    holder = np.array([1 << 32 | 0, 2 << 32 | 1, 3 << 32 | 2, 4 << 32 | 3])
    asked = replace(problem({0: "hostname=host4"}), holder=holder)
    assert places(asked, transfer="20") == [[3], [1], [2], [0]]
    assert places(asked, transfer="1") == [[0], [1], [2], [3]]


def test_the_longest_waiting_client_is_placed_first_where_places_are_few() -> None:
    asked = problem(clients=3, agents=1)
    for waits in range(3):
        waited = np.where(np.arange(3) == waits, 60.0, 1.0)
        assert places(replace(asked, waiting_s=waited), least="0") == [[waits]]


def test_shares_are_bounded_by_weights() -> None:
    asked = problem(clients=2, weight=[3, 1])
    assert plan(asked).target.tolist() == [0.75, 0.25]
    greedy = plan(problem({0: ""}, clients=2, weight=[3, 1]), most="4", least="1").target
    assert greedy.sum() == 1
    assert (greedy >= [0.75, 0.25]).all()


def test_constraints_hold_and_who_fits_nowhere_has_no_place() -> None:
    allowed = [[True, False, False, False], [False] * 4, [True] * 4, [True] * 4]
    asked = problem({0: "rack=r2", 1: "rack=r2"}, allowed=allowed)
    there = places(asked)
    assert there[0] == [0]
    assert all(1 not in some for some in there)
    assert plan(asked).target[1] == 0


@pytest.mark.parametrize("text", ["=", "hostname>3", "hostname=nowhere"])
def test_a_preference_that_says_nothing_is_none(text: str) -> None:
    assert plan(problem({0: text})).target.tolist() == [0.25] * 4


_names = st.sampled_from(["rack", "disk"])
_values = st.sampled_from(["", "1", "2"])
_agents = st.lists(
    st.none() | st.builds(AgentInfo, st.just("a"), _values, st.dictionaries(_names, _values)),
    max_size=6,
)
_clauses = st.lists(
    st.tuples(_names, st.sampled_from(["{}=1", "{}!=1", "{}=1|2", "{}!=2|3", "{}", "!{}"])),
    max_size=4,
)


@given(_agents, _clauses)
def test_preferences_are_judged_by_value_as_agent_by_agent(agents, clauses) -> None:
    label = ";".join(form.format(name) for name, form in clauses)
    mine, in_rack = quincy._Attributes(tuple(agents)).wish(label)
    said = [None if info is None else attributes_of(info) for info in agents]
    rule = parse_constraint(label)
    wanted = [its is not None and all(clause.holds(its) for clause in rule) for its in said]
    assert mine.tolist() == wanted
    racks = {its.get("rack", "") for its, want in zip(said, wanted, strict=True) if want and its}
    found = [want or (its or {}).get("rack", "") in racks - {""}
             for its, want in zip(said, wanted, strict=True)]  # fmt: skip
    assert in_rack.tolist() == found


def test_a_preference_for_too_many_agents_counts_as_none(monkeypatch) -> None:
    """Each of four clients may prefer two agents, with those in the same racks."""
    monkeypatch.setattr(quincy, "PREFERRED_MAX", 8)
    asked = problem({0: "hostname=host4", 1: "rack"})
    near, in_rack = quincy._near(asked, group_agents(asked))
    assert [np.flatnonzero(near[row]).tolist() for row in (0, 1)] == [[4], []]
    assert [np.flatnonzero(in_rack[row]).tolist() for row in (0, 1)] == [[3, 4], []]


def test_too_many_pairs_for_a_plan_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(quincy, "PAIRS_MAX", 15)
    with pytest.raises(ValueError, match="4 clients and 4 agents make more than 15 pairs"):
        plan(problem())
    assert plan(problem(clients=3)).target.any()


def test_an_agent_has_as_many_places_as_tasks_of_the_average_size_fit() -> None:
    asked = problem_of(static_snapshot([[8, 8], [4, 4]], [[1, 1], [3, 3]]))
    asked = replace(asked, agents=(None,) * 3, frameworks=(None,) * 2)
    # Six places, three each; a task of the second is three times as large.
    np.testing.assert_allclose(plan(asked).target, [3 / 12, 9 / 12])


def test_unknown_demands_take_an_agent() -> None:
    asked = problem_of(static_snapshot([[4, 4]] * 4, clients=2))
    np.testing.assert_allclose(plan(asked).target, [2.0, 2.0])


def bounded(asked: PlanProblem, limit: dict[int, int], guarantee: dict[int, int]) -> PlanProblem:
    """Set upper and lower bounds for some clients, of each resource."""
    made = replace(asked, limit=asked.limit.copy(), guarantee=asked.guarantee.copy())
    for row, amount in limit.items():
        made.limit[row] = amount
    for row, amount in guarantee.items():
        made.guarantee[row] = amount
    return made


def counts(asked: PlanProblem, **parameters: str) -> list[int]:
    there = [client for agent in places(asked, **parameters) for client in agent]
    return [there.count(client) for client in range(len(asked.client))]


def test_a_limit_bounds_its_client_alone() -> None:
    """A task takes 4 of both: a limit of 7 gives one place, a limit of 3 none."""
    asked = bounded(problem(clients=2), {0: 7_000}, {})
    assert counts(asked, most="4") == [1, 3]
    assert counts(bounded(asked, {0: 3_000}, {}), most="4") == [0, 4]


def test_a_guarantee_gives_its_client_more_than_a_fair_share() -> None:
    """Three of four places, although a fair share is two, because the other waited for an hour."""
    asked = bounded(problem(clients=2), {}, {0: 12_000})
    asked = replace(asked, waiting_s=np.array([0.0, 3600.0]))
    assert counts(asked) == [3, 1]
    assert counts(replace(asked, guarantee=0 * asked.guarantee)) == [2, 2]


def test_a_limit_comes_before_a_guarantee() -> None:
    assert counts(bounded(problem(clients=2), {0: 4_000}, {0: 12_000})) == [1, 2]


def test_a_satisfied_client_keeps_its_part_and_others_do_not_count_on_it() -> None:
    """Client 0 holds three of four agents, and wants nothing; with client 1 its part is two."""
    holder = np.array([1 << 32 | 0, 2 << 32 | 0, 3 << 32 | 0])
    held = np.zeros((2, 2), np.int64)
    held[0] = 12_000
    asked = replace(problem(clients=2), holder=holder, held=held, wants=np.array([False, True]))
    there = places(asked)
    assert sorted(map(tuple, there)) == [(0,), (0,), (1,), (1,)]
    assert there[3] == [1]
    assert plan(asked).leave.tolist() == []
    (leave,) = plan(asked, preempt="on").leave.tolist()
    assert (leave & (2**32 - 1), there[(leave >> 32) - 1]) == (0, [1])


def test_the_same_clients_are_asked_to_leave_again() -> None:
    holder = np.array([agent << 32 | 0 for agent in (1, 2, 3, 4)])
    asked = replace(problem(clients=2), holder=holder)
    for agent in (1, 2, 3, 4):
        before = np.array([agent << 32 | 0])
        leave = plan(replace(asked, leave=before), preempt="on").leave.tolist()
        assert len(leave) == 2
        assert before[0] in leave


TASK = {DEMAND_LABEL: "cpus:1;mem:1"}


def first_cycle(world: World) -> np.ndarray:
    """Tasks of each framework on each agent, (F, A), in a cluster of one-CPU tasks."""
    world.allocator.plan_source.plans_here = True
    made = world.allocator.allocate(1000)
    tasks = np.zeros((len(world.frameworks), len(world.agents)), np.int64)
    cpus = made.amount[:, made.kind.tolist().index(0)]
    np.add.at(tasks, (made.framework - 1, made.agent - 1), cpus // MILLI)
    return tasks


def quincy_world(agents: list[str]) -> World:
    world = World(PolicySpec("quincy", mode="characterised"), settings={"learn_demand": False})
    for number, has in enumerate(agents, 1):
        world.agent(has, hostname=f"host{number}")
    return world


@pytest.mark.parametrize("count", [2, 3, 7, 11])
def test_equal_frameworks_have_equally_many_places(count: int) -> None:
    """As many agents with room for exactly two tasks; 2 / 1.0000000000000002 is not one place."""
    world = quincy_world(["cpus:2;mem:2"] * count)
    for _ in range(count):
        world.framework("r", labels=TASK)
    assert first_cycle(world).sum(axis=1).tolist() == [2] * count


def misplaced(count: int) -> int:
    """Frameworks of one role, with a limit of a task each, whose data are elsewhere."""
    agents = 2 * count
    snapshot = static_snapshot([[1, 1]] * agents, [[1, 1]] * count)
    info = (None, *(AgentInfo(f"a{n}", f"host{n}") for n in range(1, agents + 1)))
    labels = [{PREFERENCE_LABEL: f"hostname=host{2 * n + 1}"} for n in range(count)]
    frameworks = tuple(FrameworkInfo(f"f{n}", "", labels=each) for n, each in enumerate(labels))
    weight = np.full(count, 1 / count)
    tree = QuotaTree(["r"], np.array([-1]), np.array([[count * MILLI] * 2]),
                     np.zeros((1, 2), np.int64), np.full((1, 2), -1), np.zeros(2, np.int64),
                     np.zeros(2, np.int64))  # fmt: skip
    limit, guarantee = parts_of_clients(tree, np.zeros(count, np.int64), weight)
    asked = replace(
        problem_of(snapshot), agents=info, frameworks=frameworks, limit=limit, guarantee=guarantee
    )
    return sum(client not in there for client, there in enumerate(places(asked)[::2]))


@pytest.mark.parametrize("count", [4, 8, 9, 10, 11, 12, 18, 20])
def test_a_limit_of_a_task_for_each_lets_each_have_its_place(count: int) -> None:
    assert misplaced(count) == 0


@pytest.mark.long
def test_a_limit_of_a_task_for_each_lets_any_number_have_its_place() -> None:
    assert [count for count in range(1, 101) if misplaced(count)] == []


@pytest.mark.parametrize("selection", ["random", "joint", "round_robin"])
@pytest.mark.parametrize("seed", range(8))
def test_the_first_filling_gives_what_the_plan_says(selection: str, seed: int) -> None:
    """Four places for the first client, two for the second, which has half the weight and may use
    the second agent only.

    Places that the first takes there beyond its one are lost to the second: the result was (5, 1).
    """
    policy = PolicySpec("quincy", selection, "characterised")
    settings = {"learn_demand": False, "seed": seed}
    world = World(policy, settings=settings)
    for number in (1, 2):
        world.agent("cpus:3;mem:3", hostname=f"host{number}")
    world.weights(a=2.0)
    world.framework("a", labels=TASK)
    only = {CONSTRAINT_LABEL: "hostname=host2"}
    world.framework("b", labels=TASK | only)
    tasks = first_cycle(world)
    assert tasks.sum(axis=1).tolist() == [4, 2]


def test_in_a_tree_of_roles_places_are_ranked_by_client() -> None:
    """Alone in its role on the first agent, a framework took the share of the whole role."""
    world = quincy_world(["cpus:60;mem:60", "cpus:60;mem:60"])
    world.framework("a/x", labels=TASK | {CONSTRAINT_LABEL: "hostname=host1"})
    for _ in range(3):
        world.framework("a/y", labels=TASK | {CONSTRAINT_LABEL: "hostname=host2"})
    world.framework("b", labels=TASK)
    world.weights(**{"a/x": 1.0, "a/y": 9.0})
    tasks = first_cycle(world)
    # Of 120 places `a` should have 60: six, and three times 18.
    assert tasks.sum(axis=1).tolist() == [6, 18, 18, 18, 60]
