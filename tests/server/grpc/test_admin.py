"""The operators' service on a real channel, over a real core."""

import json
import math
import threading
import time
from typing import Any

import grpc
import numpy as np
import pytest

from allocator import policies
from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Options,
    Revive,
    SetAside,
    SetConstraint,
    SetDemand,
    SetPaused,
    SetQuota,
    SetWeights,
    Suppress,
    Transition,
    UpdateAgent,
    UpdateFramework,
)
from allocator.core.checkpoint import to_columns
from allocator.rule_kinds import RULES
from allocator.server.grpc.questions import QuestionServicer
from allocator.server.views import dump
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.v1.types_pb2 import Quantities
from allocator.wire.journal.checkpoint import mark
from tests.rule_changes import listed, rule_change
from tests.server.in_process import cycle, tell
from tests.server.sidecar_process import await_true

GIB = 1024 * 1000  # thousandths of a MiB

CLUSTER = (
    Options(),
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "eng/ads", 3: "ops"}),
    SetWeights({"eng": 2.0}),
    AddAgent(1, AgentInfo("a1", hostname="h1", attributes={"zone": "a"}), {0: 9000, 1: 18 * GIB}),
    AddFramework(1, FrameworkInfo("id-1", name="spark"), (2,)),
    AddFramework(2, FrameworkInfo("id-2", name="kafka"), (3,)),
    Hold(
        Holdings(
            np.array([1, 2]),
            np.array([2, 3]),
            np.array([1, 1]),
            np.array([0, 1]),
            np.array([[3000, 12 * GIB], [3000, 0]]),
        )
    ),
)
"""NSDI 2011, sec. 4.1, but B has only one task: shares of 2/3 (memory) and 1/3 (CPU)."""

NESTED = UpdateAgent(1, capabilities=frozenset({"HIERARCHICAL_ROLE"}))
"""The agent may serve roles in subtrees."""


def refusal(call, request) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call(request)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    details = caught.value.details()
    assert details
    return details


def settings(stub) -> list[str]:
    """All settings of operators, to see that nothing changed."""
    return [
        str(stub.GetPolicy(pb.GetPolicyRequest())),
        str(stub.ListRules(pb.ListRulesRequest(kind="demand"))),
        str(stub.ListRules(pb.ListRulesRequest(kind="constraint"))),
    ]


def test_status_counts_what_there_is(loop, stub):
    tell(loop, *CLUSTER)
    status = stub.GetStatus(pb.GetStatusRequest())
    assert (status.agents, status.frameworks, status.roles) == (1, 2, 3)
    assert (status.active_agents, status.active_frameworks) == (1, 2)
    assert status.in_session
    assert status.policy.name == "drf"
    assert status.sidecar_id == loop.sidecar_id
    use = {each.name: (each.total, each.held) for each in status.resources}
    assert use == {"cpus": (9000, 6000), "mem": (18 * GIB, 12 * GIB)}
    assert np.isnan(status.cycle_p50_ms)
    cycle(loop, 1000)
    await_true(lambda: stub.GetStatus(pb.GetStatusRequest()).cycle_p50_ms > 0)


def test_shares_are_dominant_shares(loop, stub):
    tell(loop, *CLUSTER, Suppress(2))
    answer = stub.GetShares(pb.GetSharesRequest())
    spark, kafka = answer.clients
    assert (spark.framework_id, spark.framework_name, spark.role) == ("id-1", "spark", "eng/ads")
    assert spark.share == pytest.approx(12 / 18)
    assert spark.dominant_resource == "mem"
    assert dict(zip(spark.held.name, spark.held.amount, strict=True)) == {
        "cpus": 3000,
        "mem": 12 * GIB,
    }
    assert (kafka.share, kafka.dominant_resource) == (pytest.approx(3 / 9), "cpus")
    assert (spark.suppressed, kafka.suppressed) == (False, True)
    assert spark.score == pytest.approx(12 / 18)  # DRF's score is the share
    assert np.isnan(kafka.score)  # it is not served now
    assert [role.role for role in answer.roles] == ["eng", "eng/ads", "ops"]
    eng = answer.roles[0]
    assert (eng.weight, eng.weighted_share) == (2.0, pytest.approx(1 / 3))


def test_shares_show_outstanding_offers_and_waiting_frameworks(loop, stub):
    tell(loop, *CLUSTER, SetConstraint("", "", "zone=a"), Suppress(1))

    def shares(now_ms: int) -> dict[str, pb.Share]:
        cycle(loop, now_ms)
        answer = stub.GetShares(pb.GetSharesRequest())
        assert not any(role.offer_age_s or role.waited_cycles for role in answer.roles)
        return {each.framework_id or each.role: each for each in (*answer.clients, *answer.roles)}

    found = shares(1000)
    # 3 of 9 CPUs and 6 of 18 GB were free.
    assert found["id-2"].offered_share == found["ops"].offered_share == pytest.approx(1 / 3)
    assert (found["id-1"].offered_share, found["eng"].offered_share) == (0, 0)
    # All of the new agent is needed for the guarantee of a role without frameworks.
    info = AgentInfo("a2", attributes={"zone": "a"}, capabilities=frozenset({"HIERARCHICAL_ROLE"}))
    another = AddAgent(2, info, {0: 4000})
    tell(loop, Revive(1), another, SetQuota("vip", {"cpus": 4000}, {}))
    shares(2000)
    found = shares(31_500)
    assert (found["id-2"].offer_age_s, found["id-1"].offer_age_s) == (30.5, 0)
    assert (found["id-2"].waited_cycles, found["id-1"].waited_cycles) == (2, 2)


def test_scores_follow_the_policy(loop, stub):
    tell(loop, *CLUSTER)
    stub.SetPolicy(pb.SetPolicyRequest(policy=spb.Policy(name="asset", flat=True)))
    spark, kafka = stub.GetShares(pb.GetSharesRequest()).clients
    assert spark.score == pytest.approx(3 / 9 + 12 / 18)
    assert kafka.score == pytest.approx(3 / 9)
    stub.SetPolicy(pb.SetPolicyRequest(policy=spb.Policy(name="ps-dsf")))
    assert all(np.isnan(each.score) for each in stub.GetShares(pb.GetSharesRequest()).clients)


def test_shares_of_one_role_and_those_below_it(loop, stub):
    tell(loop, *CLUSTER)
    answer = stub.GetShares(pb.GetSharesRequest(role="eng"))
    assert [each.framework_id for each in answer.clients] == ["id-1"]
    assert [role.role for role in answer.roles] == ["eng", "eng/ads"]
    assert refusal(stub.GetShares, pb.GetSharesRequest(role="enf")) == (
        "role = 'enf': there is no such role; did you mean 'eng'?"
    )


def test_the_policy_can_be_changed(loop, stub):
    policy = spb.Policy(name="choosy", selection="joint", mode="characterised", flat=True)
    policy.parameters["unit"] = "tasks"
    assert stub.SetPolicy(pb.SetPolicyRequest(policy=policy)).policy == policy
    answer = stub.GetPolicy(pb.GetPolicyRequest())
    assert answer.policy == policy
    assert list(answer.policies) == list(policies.POLICIES)
    assert list(answer.selections) == list(policies.SELECTIONS)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            spb.Policy(name="drff"),
            "policy.name: there is no policy 'drff'; choose from drf, ",
        ),
        (spb.Policy(), "policy.name: there is no policy ''; choose from drf, "),
        (
            spb.Policy(name="drf", selection="best"),
            "policy.selection: there is no selection 'best'",
        ),
        (
            spb.Policy(name="drf", mode="x"),
            "policy.mode: there is no mode 'x'; choose from obliv",
        ),
        (
            spb.Policy(name="drf", parameters={"unit": "tasks"}),
            "policy.parameters.unit: the policy drf takes no parameters; remove it",
        ),
    ],
)
def test_a_policy_that_is_none_is_refused_and_nothing_changes(stub, policy, message):
    before = settings(stub)
    assert refusal(stub.SetPolicy, pb.SetPolicyRequest(policy=policy)).startswith(message)
    assert settings(stub) == before


def test_demands_are_set_replaced_and_removed(loop, stub):
    tell(loop, *CLUSTER)

    def rule(cpus: int) -> spb.Demand:
        amounts = Quantities(name=["cpus"], amount=[cpus])
        return spb.Demand(role="eng/*", framework_name="sp*", demand=amounts)

    for cpus in (1000, 2000):
        answer = stub.ChangeRule(rule_change(demand=rule(cpus)))
        assert listed(answer) == [rule(cpus)]
    spark = stub.GetShares(pb.GetSharesRequest()).clients[0]
    assert (list(spark.demand.amount), spark.demand_source) == ([2000], "operator")
    unknown = spb.Demand(role="eng/*", framework_name="sp*")
    (found,) = listed(stub.ChangeRule(rule_change(demand=unknown)))
    assert found == spb.Demand(role="eng/*", framework_name="sp*", demand=Quantities())
    answer = stub.ChangeRule(rule_change(demand=unknown, remove=True))
    assert not answer.rules
    assert not stub.ListRules(pb.ListRulesRequest(kind="demand")).rules


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (Quantities(name=["cpus"], amount=[-1]), "demand.demand.amount[0]"),
        (Quantities(name=["cpus"], amount=[0]), "demand: all amounts are zero"),
        (Quantities(name=["cpus"], amount=[]), "demand.demand"),
        (Quantities(name=["cpus", "cpus"], amount=[1, 1]), "demand.demand.name"),
    ],
)
def test_a_demand_that_is_none_is_refused_and_nothing_changes(stub, demand, message):
    before = settings(stub)
    request = rule_change(demand=spb.Demand(demand=demand), to_all=True)
    assert refusal(stub.ChangeRule, request).startswith(message)
    assert settings(stub) == before


def test_constraints_are_set_and_removed_and_count_at_once(loop, stub):
    tell(loop, *CLUSTER)
    rule = spb.Constraint(framework_name="spark", expression="zone=b")
    request = rule_change(constraint=rule)
    with pytest.raises(grpc.RpcError, match="1 framework would be offered nothing"):
        stub.ChangeRule(request)
    request.force = True
    assert listed(stub.ChangeRule(request)) == [rule]
    decisions = cycle(loop, 1000)
    assert set(decisions.framework.tolist()) == {2}
    answer = stub.ChangeRule(rule_change(constraint=rule, remove=True))
    assert not answer.rules


def test_a_limit_below_what_is_held_warns_until_when_it_keeps_offers_back(loop, stub):
    tell(loop, *CLUSTER)
    limit = Quantities(name=["cpus", "mem"], amount=[1000, 13 * GIB])
    request = rule_change(limit=spb.Limit(role="eng", limit=limit), dry_run=True)
    (warning,) = stub.ChangeRule(request).change.warnings
    assert warning == (
        "that is less than is held there now: 1 framework is offered no cpus until they give"
        " back cpus:2"
    )
    limit.amount[0] = 3000
    request.change.limit.limit.CopyFrom(limit)
    assert not stub.ChangeRule(request).change.warnings


def test_a_limit_of_nothing_is_refused_unless_it_is_forced(loop, stub):
    tell(loop, *CLUSTER)
    limit = Quantities(name=["cpus", "mem"], amount=[0, 99 * GIB])
    request = rule_change(limit=spb.Limit(role="ops", limit=limit))
    with pytest.raises(grpc.RpcError, match=r"no cpus would be granted in 'ops'.*--force"):
        stub.ChangeRule(request)
    request.force = True
    assert listed(stub.ChangeRule(request)) == [request.change.limit]


def test_the_scope_of_a_rule_is_bounded(stub):
    role, few = 4097 * "r", Quantities(name=["cpus"], amount=[1])
    before = settings(stub)
    for request in (
        rule_change(limit=spb.Limit(role=role, limit=few)),
        rule_change(demand=spb.Demand(framework_name=role, demand=few)),
        rule_change(drain=spb.Drain(agent=role)),
    ):
        said = refusal(stub.ChangeRule, request)
        assert "rrr...': has 4097 bytes; at most 4096 are taken, shorten it" in said
        assert len(said) < 200
    assert settings(stub) == before
    assert len(refusal(stub.GetShares, pb.GetSharesRequest(role=role))) < 200
    request = rule_change(limit=spb.Limit(role=role, limit=few), remove=True)
    assert len(refusal(stub.ChangeRule, request)) < 200


def test_only_the_calendar_says_when_a_drain_begins(stub):
    request = rule_change(drain=spb.Drain(agent="a1", from_ms=5))
    said = refusal(stub.ChangeRule, request)
    assert "drain.from_ms = 5: only the calendar sets it" in said
    assert not stub.ListRules(pb.ListRulesRequest(kind="drain")).rules


def test_of_many_wrong_resources_three_are_named(loop, stub):
    tell(loop, *CLUSTER)
    names = [f"nothing-{number}" for number in range(9000)]
    limit = Quantities(name=names, amount=[1000] * len(names))
    said = refusal(stub.ChangeRule, rule_change(limit=spb.Limit(role="ops", limit=limit)))
    assert said.count("no agent has any") == 3
    assert "; and 8,997 more; nothing has changed" in said


@pytest.mark.parametrize("expression", ["", " ; ", "zone=", "=a", "a=|"])
def test_a_constraint_that_is_none_is_refused_and_nothing_changes(stub, expression):
    before = settings(stub)
    request = rule_change(constraint=spb.Constraint(expression=expression), to_all=True)
    assert refusal(stub.ChangeRule, request).startswith("constraint")
    assert settings(stub) == before


def test_a_rule_that_is_not_there_cannot_be_removed(stub):
    for rule in ({"demand": spb.Demand()}, {"constraint": spb.Constraint()}):
        request = rule_change(remove=True, to_all=True, **rule)
        said = refusal(stub.ChangeRule, request)
        assert "there is no rule for any role and any framework" in said


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (spb.OperatorChange(), "change: is missing; name what to set"),
        (spb.OperatorChange(policy=spb.Policy()), "change: policy is not a rule; call SetPolicy"),
        (spb.OperatorChange(shadow=spb.Policy()), "change: shadow is not a rule; call SetShadow"),
        (spb.OperatorChange(policy=spb.Policy(), remove=True), "remove: a policy cannot be"),
    ],
)
def test_invalid_rules_are_refused(stub, change, text):
    assert text in refusal(stub.ChangeRule, pb.ChangeRuleRequest(change=change))


def test_a_rule_to_replace_that_is_none_is_refused(stub):
    request = rule_change(limit=spb.Limit(role="eng"))
    request.instead_of.remove = True
    assert "instead_of.change: is missing" in refusal(stub.ChangeRule, request)


def test_rules_of_an_unknown_kind_cannot_be_listed(stub):
    for kind in ("", "policy", "limits"):
        said = refusal(stub.ListRules, pb.ListRulesRequest(kind=kind))
        assert said.startswith(f"kind = {kind!r}: is not a kind of rule; give one of demand, ")


def test_fair_shares_are_what_the_policy_would_give_from_scratch(loop, stub):
    """NSDI 2011, sec. 4.1: A's tasks need <1, 4>, B's <3, 1>; three and two of them are fair."""
    one, other = {"cpus": 1000, "mem": 4 * GIB}, {"cpus": 3000, "mem": 1 * GIB}
    tell(loop, *CLUSTER, NESTED, SetWeights({"eng": 1.0}))
    tell(loop, SetDemand("", "spark", one), SetDemand("", "kafka", other))
    policy = spb.Policy(name="drf", mode="characterised", selection="listed")
    stub.SetPolicy(pb.SetPolicyRequest(policy=policy))
    plain = stub.GetShares(pb.GetSharesRequest())
    before = loop.call(lambda: mark(to_columns(loop.allocator.copied().value))).result(60)
    answer = stub.GetShares(pb.GetSharesRequest(fair=True))
    found = {each.framework_id: each for each in answer.clients}
    assert [found[name].fair_share for name in ("id-1", "id-2")] == pytest.approx([2 / 3, 2 / 3])
    # A holds its fair share; B has one of two fair tasks.
    errors = [found[name].fairness_error for name in ("id-1", "id-2")]
    assert errors == pytest.approx([0, -1 / 3])
    assert answer.fairness_error_rms == pytest.approx((1 / 9 / 2) ** 0.5)
    roles = {each.role: each for each in answer.roles}
    assert roles["eng"].fair_share == roles["eng/ads"].fair_share == pytest.approx(2 / 3)
    # The questions had no effect on allocations.
    after = loop.call(lambda: mark(to_columns(loop.allocator.copied().value))).result(60)
    assert after == before
    assert math.isnan(plain.clients[0].fair_share)
    assert math.isnan(plain.fairness_error_rms)


def test_a_newcomer_gets_its_part_of_an_allocation_from_scratch(loop, stub):
    """Beside B, whose tasks need <3, 1>, A would get the same as in the paper."""
    tell(loop, *CLUSTER, Suppress(1), SetDemand("", "kafka", {"cpus": 3000, "mem": 1 * GIB}))
    policy = spb.Policy(name="drf", mode="characterised", selection="listed", flat=True)
    stub.SetPolicy(pb.SetPolicyRequest(policy=policy))
    demand = Quantities(name=["cpus", "mem"], amount=[1000, 4 * GIB])
    asked = pb.GetSharesRequest(newcomer_role="ops", newcomer_demand=demand)
    answer = stub.GetShares(asked)
    assert answer.newcomer_share == pytest.approx(2 / 3)
    assert len(answer.clients) == 2
    assert not answer.fair
    assert math.isnan(stub.GetShares(pb.GetSharesRequest(fair=True)).newcomer_share)
    # A role that no framework has joined is valid, also below another.
    tell(loop, NESTED)
    for role in ("new", "new/team", "eng/new"):
        asked = pb.GetSharesRequest(newcomer_role=role, newcomer_demand=demand)
        answer = stub.GetShares(asked)
        assert answer.newcomer_share == pytest.approx(2 / 3)
        assert role not in [each.role for each in answer.roles]
    for role in ("/", "eng/", "a//b"):
        refused = refusal(stub.GetShares, pb.GetSharesRequest(newcomer_role=role))
        assert "is not a role; write it as 'eng' or 'eng/ads'" in refused


def test_suppressed_and_paused_frameworks_have_no_fair_share(loop, stub):
    tell(loop, *CLUSTER, NESTED, Suppress(2), SetPaused(paused=True))
    answer = stub.GetShares(pb.GetSharesRequest(fair=True))
    found = {each.framework_id: each.fair_share for each in answer.clients}
    assert found == {"id-1": 1.0, "id-2": 0.0}


def test_a_dump_is_json_of_everything(loop, stub, monkeypatch):
    monkeypatch.setattr(dump, "PIECE_BYTES", 100)
    tell(loop, *CLUSTER, SetQuota("ops", {"cpus": 1000}, {}))
    stub.ChangeRule(rule_change(constraint=spb.Constraint(expression="!ssd"), to_all=True))
    cycle(loop, 1000)
    one, two, cpus = np.array([1]), np.array([2]), np.array([0])
    taken = Holdings(one, two, one, cpus, np.array([[1000]]))
    tell(loop, Transition(taken))
    pieces = [piece.json for piece in stub.Dump(pb.DumpRequest())]
    assert len(pieces) > 5
    state = json.loads(b"".join(pieces))
    assert state["sidecar_id"] == loop.sidecar_id
    assert state["clock_ms"] == 1000
    assert state["kinds"][1]["name"] == "mem"
    assert state["quotas"] == [{"role": "ops", "guarantees": {"cpus": 1000}, "limits": {}}]
    assert state["settings"]["constraints"][0]["expression"] == "!ssd"
    assert [role["path"] for role in state["roles"]] == ["eng", "eng/ads", "ops"]
    assert state["clients"][0]["framework_id"] == "id-1"
    assert [each["name"] for each in state["frameworks"]] == ["spark", "kafka"]
    assert state["clients"][0]["held"]["mem"] >= 12 * GIB
    (agent,) = state["agents"]
    assert (agent["hostname"], agent["attributes"]) == ("h1", {"zone": "a"})
    assert agent["capacity"] == {"0": 9000, "1": 18 * GIB}
    since_ms = {bool(row["offered"]): row["offered_since_ms"] for row in state["holdings"]}
    assert since_ms == {True: 1000, False: None}
    (remembered,) = state["remembered_demands"]
    assert remembered == {
        "role": "eng/ads",
        "name": "spark",
        "demand": {"cpus": 1000},
        "weight": 1,
        "counts": False,
    }
    held = sum(row["held"].get("0", 0) for row in state["holdings"])
    assert held == agent["held"]["0"]


def test_input_that_was_set_aside_is_in_a_dump(loop, stub):
    tell(loop, *CLUSTER)
    row = SetAside("labels", "unreadable", "is no demand")
    tell(loop, UpdateFramework(1, FrameworkInfo("id-1", set_aside=(row,)), (2,)))
    tell(loop, AddAgent(7, AgentInfo("agent-7", set_aside=(row,)), {0: 1000}))
    state = json.loads(b"".join(piece.json for piece in stub.Dump(pb.DumpRequest())))
    told = [{"field": "labels", "reason": "unreadable", "text": "is no demand"}]
    of_frameworks = {each["framework_id"]: each for each in state["frameworks"]}
    assert of_frameworks["id-1"]["set_aside"] == told
    assert state["agents"][-1]["set_aside"] == told


def test_an_empty_sidecar_can_be_dumped(stub):
    state = json.loads(b"".join(piece.json for piece in stub.Dump(pb.DumpRequest())))
    assert state["agents"] == state["clients"] == state["holdings"] == []


def test_a_dump_has_rules_of_every_kind(loop, stub):
    tell(loop, *CLUSTER)
    amounts = Quantities(name=["cpus"], amount=[1000])
    rules: dict[str, Any] = {
        "demand": spb.Demand(role="eng", demand=amounts),
        "constraint": spb.Constraint(role="eng", expression="!ssd"),
        "weight": spb.FrameworkWeight(role="eng", weight=2.0),
        "gang": spb.Gang(role="eng", tasks=2),
        "limit": spb.Limit(role="eng", limit=amounts),
        "budget": spb.Budget(role="eng", budget=amounts, per="day"),
        "claim": spb.Claim(role="eng", claim=amounts),
        "cap": spb.Cap(role="eng", per="user", cap=amounts),
        "drain": spb.Drain(agent="a1"),
        "pause": spb.Pause(role="eng"),
    }
    assert set(rules) == {kind.name for kind in RULES}
    for name, rule in rules.items():
        stub.ChangeRule(rule_change(force=True, **{name: rule}))
    settings = json.loads(b"".join(each.json for each in stub.Dump(pb.DumpRequest())))["settings"]
    assert all(len(settings[kind.plural]) == 1 for kind in RULES)


def test_a_change_not_started_in_time_is_not_applied(loop, stub):
    before = settings(stub)
    busy = threading.Event()
    work = loop.call(busy.wait)
    request = pb.SetPolicyRequest(policy=spb.Policy(name="tsf"))
    with pytest.raises(grpc.RpcError) as caught:
        stub.SetPolicy(request, timeout=0.2)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    time.sleep(0.3)  # The server's clock may allow slightly more time than ours.
    busy.set()
    work.result(60)
    assert settings(stub) == before


def test_every_call_of_the_service_is_answered():
    """The methods of rules are made of rows, which type checkers do not see."""
    methods = pb.DESCRIPTOR.services_by_name["AdminService"].methods_by_name
    answered = {name for each in QuestionServicer.__mro__[:2] for name in vars(each)}
    assert set(methods) <= answered
