"""Agents, frameworks and roles as operators list them, from a real core."""

import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    FrameworkInfo,
    RemoveAgent,
    SetDrain,
    SetLimit,
    SetQuota,
    SetUnavailability,
    Suppress,
)
from allocator.server.views.lists import agents as listed
from allocator.server.views.lists.bounds import LISTED
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.v1.types_pb2 import Quantities
from tests.rule_changes import rule_change
from tests.server.grpc.test_admin import CLUSTER, GIB, refusal
from tests.server.in_process import cycle, tell


def named(amounts: Quantities) -> dict[str, int]:
    return dict(zip(amounts.name, amounts.amount, strict=True))


OTHER = AddAgent(
    2, AgentInfo("a2", hostname="h10", attributes={"zone": "b"}, zone="z"), {0: 4000, 1: 8 * GIB}
)
"""An agent in addition to that of `CLUSTER`, without holdings."""


def agents(stub, **fields) -> list[str]:
    return [each.agent_id for each in stub.ListAgents(pb.ListAgentsRequest(**fields)).agents]


def frameworks(stub, **fields) -> list[str]:
    found = stub.ListFrameworks(pb.ListFrameworksRequest(**fields)).frameworks
    return [each.framework_id for each in found]


def test_an_agent_says_what_is_free_and_who_holds_the_rest(loop, stub):
    tell(loop, *CLUSTER, OTHER)
    full, empty = stub.ListAgents(pb.ListAgentsRequest()).agents
    assert (full.agent_id, full.hostname, dict(full.attributes)) == ("a1", "h1", {"zone": "a"})
    assert named(full.total) == {"cpus": 9000, "mem": 18 * GIB}
    assert named(full.used) == {"cpus": 6000, "mem": 12 * GIB}
    assert named(full.free) == {"cpus": 3000, "mem": 6 * GIB}
    assert named(full.offered) == {}
    assert full.held_share == pytest.approx(2 / 3)
    spark, kafka = full.holders
    assert (spark.framework, spark.framework_id, spark.role) == ("spark", "id-1", "eng/ads")
    assert (kafka.framework, kafka.share) == ("kafka", pytest.approx(3 / 9))
    assert (full.frameworks, empty.frameworks, list(empty.holders)) == (2, 0, [])
    assert empty.zone == "z"
    assert list(full.states) == ["active"]


def test_agents_are_chosen_by_name_attributes_holder_and_state(loop, stub):
    off = AddAgent(3, AgentInfo("a3", hostname="h11"), {0: 1000}, active=False)
    tell(loop, *CLUSTER, OTHER, SetUnavailability(2, 5000, 60_000), off)
    assert agents(stub) == ["a1", "a2", "a3"]
    assert agents(stub, names=["h10"]) == agents(stub, names=["a2"]) == ["a2"]
    assert agents(stub, attributes="zone=b|c") == ["a2"]
    assert agents(stub, framework="spark") == agents(stub, framework="id-2") == ["a1"]
    assert agents(stub, role="eng") == ["a1"]
    assert agents(stub, state="maintenance") == ["a2"]
    assert agents(stub, state="inactive") == ["a3"]
    (one,) = stub.ListAgents(pb.ListAgentsRequest(names=["a2"])).agents
    assert (one.unavailable_from_ms, one.unavailable_for_ms) == (5000, 60_000)
    assert list(one.states) == ["active", "maintenance"]


def test_an_answer_is_bounded_and_counts_what_it_leaves_out(loop, stub):
    more = [
        AddAgent(row, AgentInfo(f"m{row}", hostname=f"node-{row}"), {0: 1000})
        for row in range(2, LISTED + 12)
    ]
    tell(loop, *CLUSTER, *more)
    answer = stub.ListAgents(pb.ListAgentsRequest())
    assert (len(answer.agents), answer.left_out) == (LISTED, 11)
    # Numbers in names sort as numbers.
    hosts = [each.hostname for each in stub.ListAgents(pb.ListAgentsRequest(limit=10)).agents]
    assert hosts == ["h1", *(f"node-{row}" for row in range(2, 11))]
    told = refusal(stub.ListAgents, pb.ListAgentsRequest(limit=10_001))
    assert told.startswith("limit = 10001: at most 10000 are listed")


def test_a_drained_agent_shows_since_when_and_by_which_operator(loop, stub):
    tell(loop, *CLUSTER, OTHER, SetDrain("a2"))
    stub.ChangeRule(rule_change(drain=spb.Drain(agent="h1"), force=True))
    mine, other = stub.ListAgents(pb.ListAgentsRequest(state="drained")).agents
    assert (mine.drain.key, mine.drain.scope, mine.drain.source) == (
        "drain",
        "agent h1",
        "operator",
    )
    assert mine.drain.set_at_ms > 0
    assert (other.drain.scope, other.drain.set_at_ms) == ("agent a2", 0)
    (active,) = stub.ListAgents(pb.ListAgentsRequest(names=["a2"])).agents
    assert list(active.states) == ["drained"]


def test_a_framework_says_what_it_has_and_needs_in_each_role(loop, stub):
    tell(loop, *CLUSTER)
    kafka, spark = stub.ListFrameworks(pb.ListFrameworksRequest()).frameworks
    assert (spark.framework_id, spark.name, spark.role_count) == ("id-1", "spark", 1)
    assert named(spark.held) == {"cpus": 3000, "mem": 12 * GIB}
    (share,) = spark.roles
    assert (share.role, share.dominant_resource) == ("eng/ads", "mem")
    assert share.share == pytest.approx(12 / 18)
    assert list(kafka.states) == ["active"]


def test_offered_and_used_resources_are_distinguished(loop, stub):
    tell(loop, *CLUSTER, Suppress(1))
    cycle(loop, 1000)
    (agent,) = stub.ListAgents(pb.ListAgentsRequest()).agents
    assert named(agent.offered) == {"cpus": 3000, "mem": 6 * GIB}
    assert (named(agent.free), named(agent.used)["cpus"]) == ({}, 6000)
    (kafka,) = stub.ListFrameworks(pb.ListFrameworksRequest(names=["kafka"])).frameworks
    assert named(kafka.offered) == named(agent.offered)
    assert named(kafka.held) == {"cpus": 6000, "mem": 6 * GIB}


def test_frameworks_are_chosen_by_name_role_agent_and_state(loop, stub):
    idle = AddFramework(3, FrameworkInfo("id-3", name="idle"), (3,), active=False)
    tell(loop, *CLUSTER, OTHER, idle, Suppress(2))
    assert frameworks(stub) == ["id-3", "id-2", "id-1"]  # by name
    assert frameworks(stub, names=["spark", "id-3"]) == ["id-3", "id-1"]
    assert frameworks(stub, role="eng") == ["id-1"]
    assert frameworks(stub, agent="h1") == ["id-2", "id-1"]
    assert frameworks(stub, agent="a2") == []
    assert frameworks(stub, state="suppressed") == ["id-2"]
    assert frameworks(stub, state="inactive") == ["id-3"]
    assert frameworks(stub, limit=1) == ["id-3"]


def test_a_framework_that_has_no_role_is_listed_too(loop, stub):
    tell(loop, *CLUSTER, AddFramework(3, FrameworkInfo("id-3", name="new"), ()))
    (new,) = stub.ListFrameworks(pb.ListFrameworksRequest(names=["new"])).frameworks
    assert (new.role_count, list(new.states), named(new.held)) == (0, ["active"], {})


def test_a_role_has_its_quota_and_what_is_below_it(loop, stub):
    quota = SetQuota("eng", {"cpus": 2000}, {"cpus": 8000})
    tell(loop, *CLUSTER, quota, SetLimit("ops", {"mem": 4 * GIB}))
    answer = stub.ListRoles(pb.ListRolesRequest())
    eng, ads, ops = answer.roles
    assert [each.role for each in answer.roles] == ["eng", "eng/ads", "ops"]
    assert (eng.weight, eng.frameworks, ads.frameworks) == (2.0, 1, 1)
    assert (named(eng.guarantee), named(eng.limit)) == ({"cpus": 2000}, {"cpus": 8000})
    assert named(eng.consumed) == {"cpus": 3000}
    assert named(eng.held) == named(ads.held) == {"cpus": 3000, "mem": 12 * GIB}
    assert named(ops.limit) == {"mem": 4 * GIB}
    assert ops.share == pytest.approx(3 / 9)
    below = stub.ListRoles(pb.ListRolesRequest(role="eng", limit=1))
    assert ([each.role for each in below.roles], below.left_out) == (["eng"], 1)
    (one,) = stub.ListRoles(pb.ListRolesRequest(names=["ops"])).roles
    assert one.role == "ops"


@pytest.mark.parametrize(
    ("call", "request_", "said"),
    [
        ("ListAgents", pb.ListAgentsRequest(names=["h2"]), "agent = 'h2': there is no such agent"),
        (
            "ListAgents",
            pb.ListAgentsRequest(state="drain"),
            "state = 'drain': there is no such state; choose from active, inactive, unlisted, drai",
        ),
        ("ListAgents", pb.ListAgentsRequest(attributes="=a"), "attributes: "),
        (
            "ListAgents",
            pb.ListAgentsRequest(framework="sparc"),
            "framework = 'sparc': there is no such framework",
        ),
        (
            "ListFrameworks",
            pb.ListFrameworksRequest(names=["sparc"]),
            "framework = 'sparc': there is no such framework",
        ),
        (
            "ListFrameworks",
            pb.ListFrameworksRequest(agent="h2"),
            "agent = 'h2': there is no such agent",
        ),
        ("ListRoles", pb.ListRolesRequest(names=["opps"]), "role = 'opps': there is no such role"),
    ],
)
def test_unknown_objects_are_refused(loop, stub, call, request_, said):
    tell(loop, *CLUSTER)
    assert refusal(getattr(stub, call), request_).startswith(said)


def test_a_state_that_there_is_not_is_refused(stub):
    told = refusal(stub.ListFrameworks, pb.ListFrameworksRequest(state="x"))
    assert told.startswith("state = 'x'")


def test_an_agent_that_goes_while_it_is_listed_is_left_out(loop, stub):
    tell(loop, *CLUSTER, OTHER)
    request = pb.ListAgentsRequest()
    found = loop.call(lambda: listed.candidates(loop.allocator, request)).result(60)
    chosen, _ = listed.choose(found, request)
    tell(loop, RemoveAgent(2))
    copied = loop.call(lambda: listed.AgentsCopy(loop.allocator, chosen, found.info)).result(60)
    assert [each.agent_id for each in listed.write(copied)] == ["a1"]
