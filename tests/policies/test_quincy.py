"""Quincy live: whose place each agent is, by data, racks, waiting and fair bounds."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from allocator.core import AgentInfo, FrameworkInfo, Plan, PlanningPolicy, PolicySpec, Problem
from allocator.policies import build
from allocator.policies.quincy import PREFERENCE_LABEL
from allocator.testing import problem_of, static_snapshot

# Four agents of one place each, in two racks.
AGENTS = tuple(
    [None] + [AgentInfo(f"a{n}", f"host{n}", {"rack": f"r{(n + 1) // 2}"}) for n in range(1, 5)]
)


def problem(
    prefers: Mapping[int, str] | None = None, clients: int = 4, agents: int = 4, **more
) -> Problem:
    snapshot = static_snapshot([[4, 4]] * agents, [[4, 4]] * clients, **more)
    labels = [{PREFERENCE_LABEL: text} if text else {} for text in
              ((prefers or {}).get(client, "") for client in range(clients))]  # fmt: skip
    frameworks = tuple(
        FrameworkInfo(f"f{row}", f"f{row}", labels=label) for row, label in enumerate(labels)
    )
    return replace(problem_of(snapshot), agents=AGENTS[: agents + 1], frameworks=frameworks)


def plan(asked: Problem, **parameters: str) -> Plan:
    policy = build(PolicySpec("quincy", parameters=parameters))
    assert isinstance(policy, PlanningPolicy)
    return policy.plan(asked)


def places(asked: Problem, **parameters: str) -> list[list[int]]:
    """The clients of each agent."""
    made = plan(asked, **parameters)
    bits = [int(made.allowed[group, 0]) if group >= 0 else 0 for group in made.group[1:]]
    return [[client for client in range(64) if word >> client & 1] for word in bits]


def test_tasks_run_where_their_data_are() -> None:
    asked = problem({0: "hostname=host4", 1: "hostname=host1", 2: "hostname=host3"})
    assert places(asked) == [[1], [3], [2], [0]]


def test_next_best_is_the_rack_of_the_data() -> None:
    """Both want agent 3; one gets agent 4 beside it rather than one of the other rack."""
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


def test_who_waited_longest_comes_first_where_places_are_few() -> None:
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


def test_an_agent_has_as_many_places_as_tasks_of_the_average_size_fit() -> None:
    asked = problem_of(static_snapshot([[8, 8], [4, 4]], [[1, 1], [3, 3]]))
    asked = replace(asked, agents=(None,) * 3, frameworks=(None,) * 2)
    # Six places, three each; a task of the second is three times as large.
    np.testing.assert_allclose(plan(asked).target, [3 / 12, 9 / 12])


def test_unknown_demands_take_an_agent() -> None:
    asked = problem_of(static_snapshot([[4, 4]] * 4, clients=2))
    np.testing.assert_allclose(plan(asked).target, [2.0, 2.0])


def bounded(asked: Problem, limit: dict[int, int], guarantee: dict[int, int]) -> Problem:
    """Bound some clients, by what they may have, and what they are owed, of each resource."""
    made = replace(asked, limit=asked.limit.copy(), guarantee=asked.guarantee.copy())
    for row, amount in limit.items():
        made.limit[row] = amount
    for row, amount in guarantee.items():
        made.guarantee[row] = amount
    return made


def counts(asked: Problem, **parameters: str) -> list[int]:
    there = [client for agent in places(asked, **parameters) for client in agent]
    return [there.count(client) for client in range(len(asked.client))]


def test_a_limit_bounds_its_client_alone() -> None:
    """A task takes 4 of both: who may have 7 has one place, who may have 3 none."""
    asked = bounded(problem(clients=2), {0: 7_000}, {})
    assert counts(asked, most="4") == [1, 3]
    assert counts(bounded(asked, {0: 3_000}, {}), most="4") == [0, 4]


def test_a_guarantee_gives_its_client_more_than_a_fair_share() -> None:
    """Three of four places, though a fair share is two, and the other waited for an hour."""
    asked = bounded(problem(clients=2), {}, {0: 12_000})
    asked = replace(asked, waiting_s=np.array([0.0, 3600.0]))
    assert counts(asked) == [3, 1]
    assert counts(replace(asked, guarantee=0 * asked.guarantee)) == [2, 2]


def test_a_limit_comes_before_a_guarantee() -> None:
    assert counts(bounded(problem(clients=2), {0: 4_000}, {0: 12_000})) == [1, 2]


def test_whoever_wants_no_more_keeps_its_part_and_others_are_not_counted_on_it() -> None:
    """Client 0 holds three of four agents, and wants nothing; with client 1 two are its part."""
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


def test_who_was_asked_to_leave_is_asked_again() -> None:
    holder = np.array([agent << 32 | 0 for agent in (1, 2, 3, 4)])
    asked = replace(problem(clients=2), holder=holder)
    for agent in (1, 2, 3, 4):
        before = np.array([agent << 32 | 0])
        leave = plan(replace(asked, leave=before), preempt="on").leave.tolist()
        assert len(leave) == 2
        assert before[0] in leave
