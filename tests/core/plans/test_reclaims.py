"""Requests to leave agents: for a plan, or where maintenance is scheduled."""

import numpy as np

from allocator.core import (
    RECLAIMS_MAX,
    AdoptPlan,
    Allocator,
    Hold,
    InverseOffer,
    Plan,
    PolicySpec,
    RemoveAgent,
    RemoveFramework,
    SetPaused,
    SetUnavailability,
    Suppress,
    asked_rows,
)
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.explain import explain, take
from allocator.policies import build
from allocator.server.reports import report
from allocator.server.views import status_warnings
from allocator.wire.journal.records import operator_record, read_plan
from tests.core.session import Offer, Session
from tests.server.metrics.metering import scrape
from tests.server.metrics.scraping import value


def crowded(preempt: str = "on") -> tuple[Session, list[Offer]]:
    """Framework 1 uses all of four agents; then framework 2 comes. A plan gives two to each."""
    made = Session(PolicySpec("quincy", "listed", parameters={"preempt": preempt}))
    for agent in (1, 2, 3, 4):
        made.agent(agent, 4, 4)
    made.framework(1)
    offers = made.cycle(1000)
    for offer in offers:
        made.use(offer)
    made.framework(2, 2)
    adopt(made)
    return made, offers


def adopt(made: Session) -> None:
    problem = made.allocator.problem()
    assert problem is not None
    made.allocator.step(made.allocator.plan_for(problem))


def schedule(made: Session, *agents: int) -> None:
    for agent in agents:
        made.allocator.step(SetUnavailability(agent, 10**9, 0))


def hold(made: Session, framework: int, role: int, agent: int) -> None:
    made.allocator.step(Hold(made.holdings(framework, role, agent, 1, 1)))


def asked(made: Session, now_ms: int, agents: list[int] | None = None) -> list[tuple[int, int]]:
    some = None if agents is None else np.array(agents)
    found = made.allocator.allocate(now_ms, some).reclaims
    return list(zip(found.framework.tolist(), found.agent.tolist(), strict=True))


def test_no_framework_is_asked_unless_the_operator_allows_it() -> None:
    made, _ = crowded()
    assert asked(made, 2000) == []
    made, _ = crowded(preempt="off")
    schedule(made, 1, 2, 3, 4)
    assert asked(made, 2000) == []


def test_a_framework_above_its_target_is_asked_and_the_other_gets_what_returns() -> None:
    made, offers = crowded()
    schedule(made, 1, 2, 3, 4)
    first = asked(made, 2000)
    assert [framework for framework, _ in first] == [1, 1]
    assert asked(made, 3000) == first
    assert asked(made, 4000, [1, 2, 3, 4]) == []  # a cycle over some agents makes no requests
    agent = first[0][1]
    made.give_back(offers[[offer[2] for offer in offers].index(agent)])
    assert [offer[:3] for offer in made.cycle(5000)] == [(2, 2, agent)]
    adopt(made)
    assert asked(made, 6000) == first[1:]


def test_a_framework_that_returned_is_not_asked_for_the_same_plan() -> None:
    made, offers = crowded()
    schedule(made, 1, 2, 3, 4)
    left, stays = asked(made, 2000)
    made.give_back(offers[[offer[2] for offer in offers].index(left[1])])
    # The other left meanwhile, so the first one may stay, in the same cycle.
    made.allocator.step(RemoveFramework(2))
    assert [offer[:3] for offer in made.cycle(3000)] == [(1, 1, left[1])]
    assert asked(made, 4000) == [stays]
    problem = made.allocator.problem()
    assert problem is not None
    assert (problem.leave >> 32).tolist() == [stays[1]]


def test_a_plan_that_comes_late_does_not_ask_who_came_back_meanwhile() -> None:
    made, offers = crowded()
    schedule(made, 1, 2, 3, 4)
    problem = made.allocator.problem()
    assert problem is not None
    left, stays = asked(made, 2000)
    made.give_back(offers[[offer[2] for offer in offers].index(left[1])])
    made.allocator.step(RemoveFramework(2))
    made.cycle(3000)
    made.allocator.step(made.allocator.plan_for(problem))
    assert asked(made, 4000) == [stays]


def test_only_where_maintenance_is_scheduled_and_only_while_nothing_is_paused() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    first, second = asked(made, 2000)
    made.allocator.step(SetUnavailability(first[1], -1, 0))
    assert asked(made, 3000) == [second]
    made.allocator.step(SetPaused(True))
    assert asked(made, 4000) == []


def test_a_framework_that_should_stay_in_one_of_its_roles_is_not_asked() -> None:
    made = Session(PolicySpec("quincy", "listed"))
    made.agent(1, 4, 4)
    made.agent(2, 4, 4)
    made.framework(1, 1, 2)
    hold(made, 1, 1, 1)
    hold(made, 1, 2, 1)
    hold(made, 1, 2, 2)
    schedule(made, 1, 2)
    clients = made.state.clients
    of_role = {int(clients.role[row]): row for row in np.flatnonzero(clients.framework == 1)}
    leave = np.array([1 << 32 | of_role[1], 2 << 32 | of_role[2]])
    none = np.zeros(len(clients.framework))
    plan = Plan(none, np.full(3, -1), np.zeros((0, 1), np.uint64), np.zeros((0, 2)), leave=leave)
    made.allocator.step(AdoptPlan(plan))
    assert asked(made, 1000) == [(1, 2)]


def test_the_number_of_requests_to_leave_is_limited() -> None:
    made = Session(PolicySpec("quincy", "listed"))
    count = RECLAIMS_MAX + 20
    made.framework(1)
    client = int(np.flatnonzero(made.state.clients.framework == 1)[0])
    for agent in range(1, count + 1):
        made.agent(agent, 4, 4)
        hold(made, 1, 1, agent)
        schedule(made, agent)
    leave = np.arange(1, count + 1) << 32 | client
    empty = np.zeros((0, 1), np.uint64), np.zeros((0, 2))
    plan = Plan(np.zeros(client + 1), np.full(count + 1, -1), *empty, leave=leave)
    made.allocator.step(AdoptPlan(plan))
    first, second = asked(made, 1000), asked(made, 2000)
    assert len(first) == len(second) == RECLAIMS_MAX
    assert {*first, *second} == {(1, agent) for agent in range(1, count + 1)}


def test_a_journal_and_a_checkpoint_keep_who_is_asked() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    plan = made.state.plan
    assert plan is not None
    again = read_plan(operator_record(AdoptPlan(plan)).plan).plan
    assert again.leave.tolist() == plan.leave.tolist()
    assert again.seen_ms == plan.seen_ms == 1000
    kept = made.allocator.kept()
    resumed = Allocator(build, made.allocator.settings)
    resumed.resume(restore(to_columns(Detached(kept).value), resumed.kept()))
    first = asked(made, 2000)
    made.allocator = resumed
    assert asked(made, 2000) == first != []
    # A framework that has left is not asked, although another one has its row.
    made.allocator.step(RemoveFramework(1))
    assert asked(made, 3000) == []
    assert made.state.plan is not None
    assert not len(made.state.plan.leave)


def test_offers_to_a_newcomer_do_not_change_which_frameworks_are_asked() -> None:
    """An offer alone does not make a client resident on an agent, however many plans are made."""
    made = Session(PolicySpec("quincy", "listed", parameters={"preempt": "on"}))
    for agent in (1, 2, 3, 4):
        made.agent(agent, 4, 4)
    made.framework(1)
    for agent in (1, 2, 3, 4):
        hold(made, 1, 1, agent)
    made.allocator.step(Suppress(1))
    schedule(made, 1, 2, 3, 4)
    made.framework(2, 2)
    adopt(made)
    first = asked(made, 2000, None)
    assert len(first) == 2
    # The free resources of all agents are on offer to the second framework now.
    for now_ms in (3000, 4000):
        adopt(made)
        assert asked(made, now_ms) == first
    since = {each.since_ms for each in made.state.asked.values()}
    assert since == {2000}
    assert {each.for_whom for each in made.state.asked.values()} == {("framework-2",)}


def test_reclaims_that_a_new_plan_does_not_need_end() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    assert len(asked(made, 2000)) == len(made.state.asked) == 2
    made.allocator.step(RemoveFramework(2))
    adopt(made)
    assert asked(made, 3000) == []
    assert made.state.asked == {}


def test_a_framework_that_refuses_is_not_asked_while_another_can_be() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    first = asked(made, 2000)
    for framework, agent in first:
        made.allocator.step(InverseOffer(framework, agent, "DECLINE", 5000))
    problem = made.allocator.problem()
    assert problem is not None
    assert not len(problem.leave)
    assert (problem.refused >> 32).tolist() == sorted(agent for _, agent in first)
    adopt(made)
    second = asked(made, 3000)
    assert len(second) == 2
    assert not set(first) & set(second)


def test_asked_frameworks_are_in_checkpoints_and_forgotten_when_they_leave() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    (_, one), (_, other) = asked(made, 2000)
    resumed = Allocator(build, made.allocator.settings)
    resumed.resume(restore(to_columns(Detached(made.allocator.kept()).value), resumed.kept()))
    assert resumed.state.asked == made.state.asked
    made.allocator.step(RemoveAgent(one))
    assert sorted(made.state.asked) == [(1, other)]
    made.allocator.step(RemoveFramework(1))
    assert made.state.asked == {}


def test_text_and_numbers_say_which_framework_is_asked_since_when_and_for_which() -> None:
    made, _ = crowded()
    schedule(made, 1, 2, 3, 4)
    (_, one), (_, other) = asked(made, 2000)
    made.allocator.step(InverseOffer(1, other, "ACCEPT", 0))
    made.allocator.advance(5000)
    words = {str(row) for row in asked_rows(made.state)}
    begun = "framework-1 is asked to leave agent-{} for framework-2, since 3 s; it "
    assert words == {
        begun.format(one) + "has not answered",
        begun.format(other) + "answered ACCEPT",
    }
    assert (
        set(explain(take(made.allocator, "framework", "framework-1"), "framework", "1").notes)
        == words
    )
    notes = explain(take(made.allocator, "agent", f"agent-{one}"), "agent", "1").notes
    assert notes == [begun.format(one) + "has not answered"]
    assert explain(take(made.allocator, "framework", "framework-2"), "framework", "2").notes == []
    found = scrape(made.allocator)
    labels = {"framework": "framework-1", "agent": f"agent-{one}", "for": "framework-2"}
    assert value(found, "reclaim_seconds", **labels) == 3
    (warning,) = status_warnings._asked(report.read(made.allocator))
    assert warning.what == "asked to leave"
    assert warning.text.endswith("; and 1 more")
