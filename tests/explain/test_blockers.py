"""Each cause that keeps agents from a framework is named and counted, with its fix."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    GANG_LABEL,
    AgentColumns,
    Clause,
    Outcomes,
    PolicySpec,
    Reason,
    Rule,
    SetCap,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    Trail,
    Transition,
)
from allocator.core.checkpoint import to_columns
from allocator.core.demand.durations import bucket_of
from allocator.core.filters import table
from allocator.explain import (
    UnknownSubjectError,
    cycles,
    explain,
    explaining,
    take,
)
from allocator.explain.barring import PairChecker
from allocator.policies.filling import servable_pairs
from allocator.v1.explain_pb2 import Blocker, ExplainResponse
from allocator.wire.codec.proto_types import read_quantities
from allocator.wire.journal.checkpoint import mark
from tests.core.cycle.test_backfilling import Cluster
from tests.counting import count_calls
from tests.world.nouns import Offer
from tests.world.rows import given_back, holdings
from tests.world.world import World

CHARACTERISED = PolicySpec("drf", mode="characterised")


def world(policy: PolicySpec | None = None, **options) -> World:
    made = World(policy, **options)
    made.allocator.trail = Trail()
    return made


def ask(world: World, name: str, kind: str = "framework") -> ExplainResponse:
    return explain(take(world.allocator, kind, name), kind, name)


def blockers(world: World, name: str = "f") -> dict[str, Blocker]:
    (client,) = ask(world, name).clients
    return {each.reason: each for each in client.blockers}


def test_nothing_keeps_an_agent_back_that_the_next_cycle_gives():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    (client,) = ask(a, "f").clients
    assert not client.blockers
    assert client.open_agents == 1
    assert client.verdict == "it may be offered 1 of 1 agent: the next cycle decides"
    assert [offer.framework.handle for offer in a.cycle()] == [1]


def test_a_suppressed_framework_sees_since_when():
    a = world()
    a.agent("cpus:4;mem:4")
    f = a.framework("r", name="f")
    a.cycle()
    a.suppress(f)
    suppressed_ms = a.now_ms
    a.cycle()
    found = blockers(a)["suppressed"]
    assert (found.agents, found.since_ms) == (1, suppressed_ms)
    assert "REVIVE" in found.mend


def test_too_many_refusals_of_a_framework_are_a_cause(monkeypatch):
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    (offer,) = a.cycle()
    a.decline(offer, refuse_s=60)
    monkeypatch.setattr(table, "FRAMEWORK_FILTERS_MAX", 1)
    assert a.cycle() == []
    (client,) = ask(a, "f").clients
    causes = [each.cause for each in client.blockers]
    assert (
        "the framework has as many refusals in force as one may have, in all of its roles" in causes
    )
    assert client.open_agents == 0
    assert client.forecast == "no forecast: the framework has too many refusals in force"


def test_a_cause_is_counted_with_what_it_alone_keeps_back():
    """One agent is excluded by a rule, one by that and by its GPUs, one by nothing."""
    a = world()
    a.agent("cpus:4;mem:4", attributes={"zone": "b"})
    a.agent("cpus:4;mem:4;gpus:1", attributes={"zone": "b"})
    a.agent("cpus:4;mem:4", attributes={"zone": "a"})
    a.framework("r", name="f")
    a.tell(SetConstraint("r", "", "zone=a"))
    found = blockers(a)
    rule, gpus = found["constraint"], found["capability"]
    assert (rule.agents, rule.alone, list(rule.examples)) == (2, 1, ["host-1", "host-2"])
    assert rule.cause == "zone=a, an operator's rule for role 'r' ('zone=a')"
    assert rule.mend == "mesos-allocator constraint remove --role 'r'"
    assert (gpus.agents, gpus.alone) == (1, 0)
    assert "GPU_RESOURCES" in gpus.mend


def test_labels_and_offer_constraints_are_distinguished_from_operators_rules():
    a = world()
    a.agent("cpus:4;mem:4")
    b = a.agent("cpus:4;mem:4", attributes={"ssd": ""})
    f = a.framework("r", name="f", labels={"allocator.constraint": "ssd"})
    a.exclude(f, "r", b)
    (client,) = ask(a, "f").clients
    causes = {each.cause: each.examples for each in client.blockers}
    assert causes == {
        "ssd, of the framework's label allocator.constraint": ["host-1"],
        "the framework's own offer constraints, as the master evaluates them": ["host-2"],
    }


def test_refusals_say_until_when():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    (offer,) = a.cycle()
    a.decline(offer, refuse_s=60)
    found = blockers(a)["filter"]
    assert (found.agents, found.until_ms) == (1, a.now_ms + 60_000 - 1)
    assert "REVIVE" in found.mend
    (client,) = ask(a, "f").clients
    (fate,) = client.offers
    assert (fate.agent, fate.outcome, fate.then, fate.refused_ms) == (
        "host-1",
        "offered",
        "declined",
        60_000,
    )


def declining(world: World, times: int, refuse_s: float = 5) -> None:
    for _ in range(times):
        for offer in world.cycle(after_ms=10_000):
            world.decline(offer, refuse_s)


def test_a_framework_that_keeps_declining_whole_agents_is_not_advised_to_wait():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    declining(a, 2)
    assert "REVIVE" in blockers(a)["filter"].mend
    declining(a, 1)
    found = blockers(a)["filter"]
    assert found.cause.startswith("the framework declined 3 whole agents, and accepted nothing;")
    assert not {"wait", "REVIVE"} & set(found.mend.split())
    assert "needs more" not in found.mend
    assert "one task may need more than any agent has" in found.mend


def test_declines_of_whole_agents_without_filters_do_not_announce_the_next_cycle():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    declining(a, 3, refuse_s=-1)
    (client,) = ask(a, "f").clients
    assert client.open_agents == 1
    assert client.verdict.startswith("it declined 3 whole agents, and accepted nothing: one task")


def test_the_turn_is_explained_after_accepts_partial_declines_or_a_stated_demand():
    parts, accepts, says = world(), world(), world()
    for each in (parts, accepts, says):
        each.agent("cpus:4;mem:4")
        each.framework("r", name="f")
        if each is says:
            each.tell(SetDemand("", "f", {"cpus": 1000, "mem": 1000}))
        if each is parts:
            g = each.framework("q", name="g")
            each.hold(g, "q", each.agents[1], "cpus:1;mem:1")
            each.suppress(g)
        declining(each, 3)
    (offer,) = accepts.cycle(after_ms=10_000)
    accepts.use(offer, "cpus:1;mem:1")
    accepts.decline(offer, refuse_s=5, part="cpus:3;mem:3")
    for each in (parts, accepts, says):
        assert "whole agents" not in blockers(each)["filter"].cause


def test_a_limit_names_its_role_and_what_it_consumes():
    a = world()
    a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    f = a.framework("eng/ads", name="f")
    a.quota("eng", limit="cpus:4;mem:4")
    for offer in a.cycle():
        a.use(offer)
    assert len(a.held(f)) == 2
    found = blockers(a)["limit"]
    assert found.agents == 2
    assert found.cause == "the limit of the role eng: cpus:4;mem:4 of cpus:4;mem:4 is consumed"
    (quota,) = ask(a, "f").quotas
    assert (quota.role, read_quantities(quota.consumed)) == ("eng", {"cpus": 4000, "mem": 4000})


def test_headroom_names_the_role_of_the_guarantee():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    a.quota("vip", guarantee="cpus:4;mem:4")
    found = blockers(a)["headroom"]
    assert found.agents == found.alone == 1
    assert "vip (cpus:4;mem:4)" in found.cause


def test_a_bound_on_what_lies_on_offer_is_a_cap():
    a = world(settings={"outstanding_max": 0.5})
    a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    a.cycle()
    cause = "it has cpus:4;mem:4 on offer and not in use; one framework may have 50 %"
    assert blockers(a)["cap"].cause == cause


@pytest.mark.parametrize(
    ("per", "who"),
    [
        ("framework", "it"),
        ("principal", "principal 'etl'"),
        ("user", "every framework without a user together"),
    ],
)
def test_a_cap_inside_a_role_names_role_and_holder(per, who):
    a = world()
    a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    a.framework("eng/ads", name="f", principal="etl")
    a.tell(SetCap("eng", per, {"cpus": 4000}))
    a.cycle()
    found = blockers(a)["cap"]
    cause = f"the cap per {per} of the role eng: {who} has cpus:4 of cpus:4"
    assert (found.cause, found.agents, found.mend) == (cause, 2, "raise the cap, or wait")


def test_a_cap_on_tasks_or_agents_names_both_numbers():
    a = world()
    for _ in range(3):
        a.agent("cpus:4;mem:4")
    a.framework("eng/ads", name="f", principal="etl")
    a.tell(SetCap("eng", "principal", {"agents": 2000}))
    a.cycle()
    found = blockers(a)["cap"]
    whose = "the cap per principal of the role eng: principal 'etl'"
    cause = f"{whose} has something on 2 of 2 agents"
    assert (found.cause, found.agents, found.mend) == (cause, 1, "raise the cap, or wait")
    a.tell(SetDemand("", "f", {"cpus": 4000, "mem": 4000}))
    a.tell(SetCap("eng", "principal", {"tasks": 2000}))
    assert blockers(a)["cap"].cause == f"{whose} has 2 of 2 tasks"


def test_a_bound_below_the_minimum_of_an_offer_says_so():
    """Nothing is on offer, so answering would not help."""
    a = world(settings={"outstanding_max": 0.1}, minimum=({"cpus": 1000},))
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    assert a.cycle() == []
    found = blockers(a)["cap"]
    assert found.cause == "one framework may have 10 % on offer: less than the minimum of an offer"
    assert "outstanding_max" in found.mend


def test_a_task_that_fits_no_agent_names_the_resource_and_the_largest():
    a = world(CHARACTERISED)
    a.agent("cpus:4;mem:4")
    a.agent("cpus:8;mem:2")
    a.demand(a.framework("r"), "cpus:9;mem:1")
    found = blockers(a, "framework-1")["too large"]
    assert found.agents == 2
    assert found.cause == "one task needs cpus:9; the largest agent has cpus:8"
    assert "demand set" in found.mend


def test_agents_that_others_hold_name_the_largest_holders():
    a = world()
    agent = a.agent("cpus:4;mem:4")
    hog = a.framework("r", name="hog")
    (offer,) = a.cycle()
    a.use(offer)
    a.framework("s", name="f")
    found = blockers(a)["full"]
    assert found.agents == 1
    assert "hog 100 %" in found.cause
    answer = ask(a, "host-1", "agent")
    assert answer.verdict == "its free resources make no offer for any framework"
    assert [(each.framework, each.share) for each in answer.holders] == [("hog", 1.0)]
    assert (agent.handle, hog.handle) == (1, 1)


def test_reserved_and_revocable_resources_are_out_of_reach():
    a = world()
    a.agent("cpus(vip):4")
    a.agent("cpus[revocable]:4")
    a.framework("r", name="f")
    found = blockers(a)
    assert found["reserved"].cause == "the free resources are reserved to the role vip"
    assert found["reserved"].examples == ["host-1"]
    assert found["capability"].cause == "the free resources need REVOCABLE_RESOURCES"


def test_reservations_below_the_minimum_are_no_fault_of_the_other_role():
    """Only both together would reach the minimum; the other role's holdings would not, either."""
    a = world()
    a.agent("cpus(r1):3;cpus(r2):3")
    a.framework("r1", name="f", minimum={"r1": ["cpus:4"]})
    found = blockers(a)
    assert list(found) == ["minimum"]
    assert found["minimum"].cause == (
        "at most cpus:3 are free for it there, less than the minimum of an offer, cpus:4"
    )
    assert found["minimum"].mend.startswith("lower the minimum")


def test_a_reservation_that_would_make_an_offer_is_blamed():
    a = world()
    a.agent("cpus(r1):3;cpus(r2):4")
    a.framework("r1", name="f", minimum={"r1": ["cpus:4"]})
    assert blockers(a)["reserved"].cause == "the free resources are reserved to the role r2"


def test_below_the_masters_minimum_is_said_so():
    a = world(minimum=({"cpus": 10}, {"mem": 32_000}))
    a.agent("cpus(r1):0.009;cpus(r2):0.009")
    a.framework("r1", name="f")
    assert blockers(a)["minimum"].cause.endswith("the minimum of an offer, cpus:0.01 or mem:32")


GANG = {DEMAND_LABEL: "cpus:2;mem:2", GANG_LABEL: "tasks:4"}


def test_a_gang_without_room_for_all_of_it():
    a = world(CHARACTERISED)
    agents = [a.agent("cpus:4;mem:4") for _ in range(3)]
    g = a.framework("s", name="g", labels={DEMAND_LABEL: "cpus:3;mem:3"})
    for agent in agents[1:]:
        a.hold(g, "s", agent, "cpus:2;mem:2")
    a.framework("r", name="f", labels=GANG)
    assert "gang" not in blockers(a), "two tasks on one agent, and one on each of the others"
    a.hold(g, "s", agents[2], "cpus:2;mem:2")
    found = blockers(a)["gang"]
    assert found.cause == "its gang starts 4 tasks at once; there is room for 3 on 2 agents now"
    assert (found.agents, found.alone) == (2, 2)


def test_a_gang_that_is_larger_than_what_there_is():
    a = world(CHARACTERISED)
    a.agent("cpus:6;mem:4")
    a.agent("cpus:2;mem:2", attributes={"rack": "1"})
    a.framework("r", name="f", labels=GANG)
    text = "its gang starts 4 tasks at once; the agents that it may use, and its limits, have room"
    assert blockers(a)["gang"].cause == f"{text} for 3"
    a.allocator.step(SetConstraint("r", "", "!rack"))
    assert blockers(a)["gang"].cause == f"{text} for 2"
    a.allocator.step(SetLimit("r", {"cpus": 3000}))
    assert blockers(a)["gang"].cause == f"{text} for 1"


def test_a_gang_that_collected_more_than_its_share():
    a = world(CHARACTERISED, settings={"patience_cycles": 1, "collect_ms": 10_000})
    agents = [a.agent("cpus:4;mem:4") for _ in (1, 2)]
    small = a.framework("s", labels={DEMAND_LABEL: "cpus:1;mem:1"})
    for offer in a.cycle():
        a.use(offer)
    a.framework("r", name="f", labels=GANG)
    a.finish(Offer(small, "s", agents[0], a.held(small)), "cpus:4;mem:4")
    for offer in a.cycle():
        a.use(offer)
    a.finish(Offer(small, "s", agents[0], a.held(small)), "cpus:4;mem:4")
    kept = 0
    while not (offers := a.cycle()):
        kept += 1
    assert kept == 10  # then the held amounts are offered to others
    for offer in offers:
        a.decline(offer)
    assert blockers(a)["gang"].cause.endswith("; gangs of its principal may collect again in 10 s")


def test_a_gang_that_collects_and_who_waits_for_it():
    a = world(CHARACTERISED, settings={"patience_cycles": 2})
    agents = [a.agent("cpus:4;mem:4", hostname=f"h{number}") for number in (1, 2)]
    small = a.framework("s", name="g", labels={DEMAND_LABEL: "cpus:1;mem:1"})
    for offer in a.cycle():
        a.use(offer)
    a.framework("r", name="f", labels=GANG)

    def end(agent: int, part: str) -> None:
        a.finish(Offer(small, "s", agents[agent], a.held(small)), part)

    for _ in range(2):
        end(0, "cpus:1;mem:1")
        for offer in a.cycle():
            a.use(offer)
    end(0, "cpus:3;mem:3")
    assert a.cycle() == []
    a.now_ms += 40_000
    a.allocator.advance(a.now_ms)
    found = blockers(a)["gang"]
    assert found.cause == (
        "collecting: 1 of 4 tasks for 40 s on agents h1, h2; none of it is lent to others:"
        " too few tasks like those on its agents have ended to forecast its start"
    )
    assert found.agents == 2
    found = blockers(a, "g")["gang"]
    assert (
        found.cause
        == "free resources there are kept for a gang of another framework, which collects; "
        "too few tasks of this framework have ended to lend it some of that"
    )
    assert found.examples == ["h1"]


def test_a_gang_that_lends_says_how_long_and_when_it_begins():
    cluster = Cluster()
    cluster.gang_waits(others=("middle", "short"))
    cluster.learn("a", "middle", 80)
    cluster.cycle()
    allocator = cluster.session.allocator
    allocator.trail = Trail()
    (gang,) = explain(take(allocator, "framework", "gang"), "framework", "gang").clients
    (found,) = [each for each in gang.blockers if each.reason == "gang"]
    assert found.cause == (
        "collecting: 0 of 2 tasks for 1 s on agents h1, h2; 1 agent lent to tasks of others"
        " that end within 81 s"
    )
    assert gang.verdict == found.cause
    cluster.session.give_back(cluster.offers[0])
    (other,) = explain(take(allocator, "framework", "middle"), "framework", "middle").clients
    (found,) = [each for each in other.blockers if each.reason == "gang"]
    assert found.cause == (
        "free resources there are kept for a gang of another framework, which collects and is"
        " expected to start in 81 to 113 s (p50 to p95);"
        " 95 % of this framework's tasks end within 96 s"
    )


def test_agents_that_are_offered_to_no_framework():
    a = world()
    gone = a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    a.deactivate_agent(gone)
    a.whitelist("host-1")
    found = blockers(a)
    assert found["agent inactive"].examples == ["host-1"]
    assert found["whitelist"].examples == ["host-2"]
    assert "inactive" in ask(a, "agent-1", "agent").verdict
    assert "whitelist" in ask(a, "agent-2", "agent").verdict


def test_an_agent_that_is_drained_before_tasks_would_end_says_when():
    a = world()
    a.now_ms = 1_795_000_000_000
    a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    for offer in a.cycle():
        a.decline(offer)
    for host, minutes in ((1, 90), (2, 100)):
        a.tell(SetDrain(f"host-{host}", from_ms=a.now_ms + minutes * 60_000))
    when = "its tasks would not end before drains, the first at 2026-11-18 12:36 UTC; "
    unknown = "too few of them have ended to know how long they run"
    assert blockers(a)["drained soon"].cause == when + unknown
    state = a.allocator.state
    ends = {int(bucket_of(np.array([5_000_000]))[0]): 30}
    state.memory.durations.teach(state.settings, ("r", "name", "f"), ends, state.memory.elapsed_ms)
    a.cycle()
    (found,) = blockers(a).values()
    assert found.cause == f"{when}95 % of them end within 6144 s"
    assert (found.agents, found.alone) == (2, 2)
    agent = ask(a, "agent-1", "agent")
    assert agent.verdict.startswith("of 1 frameworks that want offers none can be served")
    assert any(each.startswith("it is drained from 2026-11-18 12:36 UTC") for each in agent.notes)


def test_an_outranked_client_sees_by_which_others_and_with_which_scores():
    """DRF: g holds nothing, f half of the cluster; the freed agent goes to g."""
    a = world()
    one = a.agent("cpus:4;mem:4")
    a.agent("cpus:4;mem:4")
    f = a.framework("r", name="f")
    a.hold(f, "r", one, "cpus:4;mem:4")
    a.framework("s", name="g")
    a.cycle()
    (client,) = ask(a, "f").clients
    (loss,) = client.cycles[0].losses
    assert (loss.winner_framework, loss.agents, list(loss.examples)) == ("g", 1, ["host-2"])
    assert (loss.winner.name, loss.winner.score) == ("s", 0.0)
    assert (loss.loser.name, loss.loser.score) == ("r", 0.5)
    assert loss.why == "the smaller score comes first"
    outranked = {each.reason: each for each in client.blockers}["outranked"]
    assert "g in s came first" in outranked.cause
    (account,) = ask(a, "host-2", "agent").cycles
    assert [given.framework for given in account.given] == ["g"]
    assert [loss.loser.name for loss in account.losses] == ["r"]


def test_of_many_clients_served_first_the_rest_is_summarized():
    """An answer stays short, however many frameworks got the agents of a cycle."""
    a = world()
    f = a.framework("r", name="f")
    one = a.agent("cpus:4;mem:4")
    a.hold(f, "r", one, "cpus:4;mem:4")
    for number in range(30):
        a.agent("cpus:4;mem:4")
        a.framework("r", name=f"g-{number}")
    a.cycle()
    (client,) = ask(a, "f").clients
    *named, rest = sorted(client.cycles[0].losses, key=lambda loss: not loss.winner_role)
    assert len(named) == cycles.WINNERS
    assert (rest.winner_framework, rest.agents) == ("20 others", 20)
    assert sum(loss.agents for loss in client.cycles[0].losses) == 30
    assert "others" not in blockers(a, "f")["outranked"].cause


def test_a_pause_is_reported_to_all():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    a.pause()
    answer = ask(a, "f")
    assert answer.notes == ["the master makes no offers yet"]
    assert answer.clients[0].blockers[0].reason == "paused"


def test_a_role_is_answered_by_its_frameworks_and_those_below():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("eng", name="f", suppressed=["eng"])
    a.framework("eng/ads", name="g", suppressed=["eng/ads"])
    a.framework("ops", name="h")
    answer = ask(a, "eng", "role")
    assert sorted(client.framework_name for client in answer.clients) == ["f", "g"]
    assert answer.verdict == "2 frameworks: 2 suppressed"
    assert [(each.reason, each.frameworks) for each in answer.tallies] == [("suppressed", 2)]


def test_the_first_line_counts_each_reason_once_and_omits_none():
    a = world(CHARACTERISED)
    a.agent("cpus:4;mem:4")
    for number in range(5):
        a.framework("r", name=f"quiet-{number}", suppressed=["r"])
    a.framework("r", name="large-1")
    a.framework("r", name="large-2")
    a.tell(SetDemand("", "large-1", {"cpus": 9000}))
    a.tell(SetDemand("", "large-2", {"cpus": 99000}))
    answer = ask(a, "r", "role")
    assert answer.verdict == "7 frameworks: 5 suppressed, 2 too large"
    assert len(answer.tallies) == 3, "the two are too large for causes of their own"


def test_reasons_that_are_not_named_are_counted(monkeypatch):
    monkeypatch.setattr(explaining, "REASONS_TOLD", 1)
    a = world(CHARACTERISED)
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f", suppressed=["r"])
    a.framework("r", name="g", suppressed=["r"])
    a.framework("r", name="large")
    a.tell(SetDemand("", "large", {"cpus": 9000}))
    assert ask(a, "r", "role").verdict == "3 frameworks: 2 suppressed, 1 other"


def test_a_framework_in_several_roles_is_one_framework():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("eng", "eng/ads", "ops", name="f", suppressed=["eng", "eng/ads", "ops"])
    assert ask(a, "f").verdict == "in 3 roles: 3 suppressed"
    assert ask(a, "eng", "role").verdict == "1 framework in 2 roles: 2 suppressed"
    a.framework("eng", name="g", suppressed=["eng"])
    assert ask(a, "eng", "role").verdict == "2 frameworks as 3 clients: 3 suppressed"


def test_frameworks_in_several_roles_are_counted_and_named_once():
    """One agent, wanted by two frameworks in three roles each."""
    a = world()
    a.agent("cpus:4;mem:4")
    for name in ("tenant-6", "tenant-7"):
        a.framework("r", "s", "t", name=name)
    answer = ask(a, "host-1", "agent")
    assert answer.verdict == "2 of 2 frameworks could be served: the next cycle decides"
    (tally,) = answer.tallies
    assert (tally.frameworks, list(tally.examples)) == (2, ["tenant-6", "tenant-7"])
    (tally,) = ask(a, "tenant-6").tallies
    assert (tally.frameworks, list(tally.examples)) == (1, ["tenant-6"])


def test_an_unknown_name_is_an_error_that_lists_all_names():
    a = world()
    a.framework("r", name="spark")
    with pytest.raises(UnknownSubjectError) as caught:
        take(a.allocator, "framework", "sparc")
    assert "spark" in caught.value.known


def test_every_caller_uses_one_compiled_type_of_the_loop():
    """Answers use the types that `warm` compiles; another type would be compiled during a call."""
    a = world(CHARACTERISED)
    a.agent("cpus:4;mem:4;cpus(r):1")
    f = a.framework("r", name="f")
    a.quota("r", limit="cpus:8;mem:8")
    a.demand(f, "cpus:1;mem:1")
    for offer in a.cycle():
        a.decline(offer, refuse_s=10)
    ask(a, "f")
    ask(a, "host-1", "agent")
    servable_pairs.warm()
    loop: Any = servable_pairs._look_at_all
    assert len(loop.dispatcher.signatures) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [("framework", "f"), ("role", "eng"), ("agent", "host-1"), ("role", "nobody")],
)
def test_a_question_changes_nothing_but_expired_filters(kind, name):
    """A replay refreshes filters where a question did, without knowing the question."""
    a = world()
    a.agent("cpus:4;mem:4;cpus(eng):1")
    a.framework("eng/ads", name="f")
    a.quota("eng", limit="cpus:4;mem:4")
    for offer in a.cycle():
        a.decline(offer, refuse_s=10)
    a.allocator.preview()
    before = mark(to_columns(a.allocator.copied().value))
    if name == "nobody":
        with pytest.raises(UnknownSubjectError):
            take(a.allocator, kind, name)
    else:
        ask(a, name, kind)
    assert mark(to_columns(a.allocator.copied().value)) == before


def test_an_accepted_offer_is_reported_as_such_even_if_its_rest_returns_first():
    """As a master does: it releases the rest with the refusal, and then books the task.

    Between the two, the task's resources are unknown.
    """
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    (offer,) = a.cycle()
    rest, used = (
        holdings((offer.framework.handle, 1, 1, cpus, cpus), kinds=(0, 1)) for cpus in (3000, 1000)
    )

    def fate() -> tuple[str, int]:
        (client,) = ask(a, "f").clients
        return client.offers[0].then, client.offers[0].refused_ms

    a.allocator.step(given_back(rest, 5000))
    assert fate() == ("held", 0)
    a.allocator.step(Transition(used))
    assert fate() == ("accepted", 0)


def test_a_partial_offer_that_comes_back_whole_was_declined():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    made = a.allocator.allocate(a.now_ms + 1000)
    part = np.array([[1000, 1000]])
    kinds = np.array([0, 1])
    a.allocator.step(Outcomes(made.first_decision, np.array([Reason.PARTIAL]), kinds, part))
    back = holdings((1, 1, 1, 1000, 1000), kinds=(0, 1))
    a.allocator.step(given_back(back, 5000))
    (client,) = ask(a, "f").clients
    assert (client.offers[0].outcome, client.offers[0].then) == ("partial", "declined")


def test_input_that_was_set_aside_is_reported():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f", labels={"allocator.demand": "cpus:9e999999"})
    (row,) = ask(a, "f").set_aside
    assert (row.said_by, row.field, row.reason) == ("f", "labels", "unreadable")
    assert "the demand counts as unknown" in row.text
    assert ask(a, "r", "role").set_aside == [row]


def crowd(agents: int, roles: int) -> World:
    """A framework in many roles whose long label excludes every agent."""
    a = world()
    for agent in range(agents):
        a.agent("cpus:4;mem:4", attributes={"rack": f"r{agent % 5}"})
    clauses = [f"rack!=r{rack}" for rack in range(5)] + [f"x{number}" for number in range(100)]
    names = [f"role-{number}" for number in range(roles)]
    a.framework(*names, name="f", labels={CONSTRAINT_LABEL: ";".join(clauses)})
    a.framework("other", name="g")
    for _ in range(3):
        a.cycle()
    return a


def test_conditions_are_judged_by_value_and_not_agent_by_agent(monkeypatch):
    """Otherwise one question about such a framework delays all others."""
    a = crowd(200, 10)
    picture = take(a.allocator, "framework", "f")
    agents = count_calls(monkeypatch, Rule, "allows")
    clauses = count_calls(monkeypatch, Clause, "holds")
    columns = count_calls(monkeypatch, AgentColumns, "put")
    cycles_laid_out = count_calls(monkeypatch, PairChecker, "__init__")
    lifted = count_calls(monkeypatch, PairChecker, "_lift")
    found = explain(picture, "framework", "f")
    for client in found.clients:
        assert Counter(each.reason for each in client.blockers)["constraint"] == 105
    assert not agents + clauses
    assert columns["put"] == 1
    assert cycles_laid_out["__init__"] <= 1 + len(picture.cycles)
    assert lifted["_lift"] <= 4 * cycles_laid_out["__init__"]


def test_partial_results_are_reported_when_the_time_is_up():
    a = crowd(3, 8)
    picture = take(a.allocator, "framework", "f")
    whole = explain(picture, "framework", "f")
    assert (len(whole.clients), whole.left_out, list(whole.notes)) == (8, 0, [])
    looks = iter([True] * 5)
    part = explain(picture, "framework", "f", 10, lambda: next(looks, False))
    assert 0 < len(part.clients) < 8
    assert list(part.clients) == whole.clients[: len(part.clients)]
    assert part.left_out == 8 - len(part.clients)
    (note,) = part.notes
    assert note.startswith(f"there was only time to examine {len(part.clients)} of 8;")
    # There is always an explanation.
    assert len(explain(picture, "framework", "f", 10, lambda: False).clients) == 1


def test_cycles_of_an_agent_are_reported_while_there_is_time():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    for _ in range(3):
        for offer in a.cycle():
            a.decline(offer)
    picture = take(a.allocator, "agent", "host-1")
    whole = explain(picture, "agent", "host-1")
    looks = iter([True])
    part = explain(picture, "agent", "host-1", 10, lambda: next(looks, False))
    assert (len(whole.cycles), len(part.cycles)) == (3, 1)
    assert part.cycles[0] == whole.cycles[0]
    assert part.verdict == whole.verdict


def test_use_over_time_is_reported_if_it_is_recorded():
    for half_life_ms in (0, 64_000):
        a = world(settings={"half_life_ms": half_life_ms})
        agent = a.agent("cpus:4;mem:4")
        framework = a.framework("r", name="f")
        a.hold(framework, "r", agent, "cpus:2")
        for now_ms in (0, 64_000):
            a.allocator.advance(now_ms)
        (client,) = ask(a, "f").clients
        assert client.used_share == pytest.approx(0.25 if half_life_ms else 0)
