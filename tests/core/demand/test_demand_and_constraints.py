"""Sources of demands and constraints, and their precedence."""

import numpy as np
import pytest

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    AddAgent,
    AgentInfo,
    Allocator,
    Define,
    Exclude,
    Kind,
    Options,
    PolicySpec,
    Request,
    SetConstraint,
    SetDemand,
    SetLimit,
    Settings,
    Transition,
    UpdateAllocation,
    parse_constraint,
)
from allocator.core.events import EventError, UpdateAgent
from allocator.policies import build
from tests.core.session import Session

TASKS = PolicySpec("drf", mode="characterised")


def source(session: Session, client: int = 1) -> tuple[str, dict[str, int]]:
    clients = session.state.clients
    return clients.demand_source[client], session.state.space.named(clients.demand[client])


def test_sources_answer_in_order_request_label_operator():
    session = Session(TASKS)
    session.framework(1, labels={DEMAND_LABEL: "cpus:2;mem:1"})
    session.allocator.step(SetDemand("", "", {"cpus": 4000}))
    assert source(session) == ("label", {"cpus": 2000, "mem": 1000})
    session.allocator.step(Request(1, ({"cpus": 3000},)))
    assert source(session) == ("request", {"cpus": 3000})
    session.allocator.step(Request(1, ()))
    assert source(session)[0] == "label"
    session.framework(2)
    assert source(session, 2) == ("operator", {"cpus": 4000})
    session.allocator.step(SetDemand("", "", None))
    assert source(session, 2) == ("", {})


def test_a_rule_matches_role_and_name_by_pattern():
    rules = Settings()
    rules.demands["eng/*", "spark-*"] = SetDemand("eng/*", "spark-*", {"cpus": 1000})
    assert rules.demand_rule("eng/ads", "spark-7") is not None
    assert rules.demand_rule("eng", "spark-7") is None
    assert rules.demand_rule("eng/ads", "marathon") is None


def test_a_label_that_does_not_parse_leaves_the_demand_unknown():
    session = Session(TASKS)
    session.agent(1, 4, 8)
    session.framework(1, labels={DEMAND_LABEL: "two cpus", CONSTRAINT_LABEL: "=;"})
    assert source(session) == ("", {})
    assert session.cycle(1000) == [(1, 1, 1, {"cpus": 4, "mem": 8})]


def test_known_demands_are_served_in_whole_tasks_unknown_ones_with_what_is_free():
    session = Session(TASKS)
    session.agent(1, 5, 100)
    session.framework(1, labels={DEMAND_LABEL: "cpus:2;mem:3"})
    assert session.cycle(1000) == [(1, 1, 1, {"cpus": 4, "mem": 6})]
    session.framework(2)
    assert session.cycle(2000) == [(2, 1, 1, {"cpus": 1, "mem": 94})]


def test_a_demand_that_no_agent_can_meet_gets_nothing():
    session = Session(TASKS)
    session.agent(1, 5, 100)
    session.framework(1, labels={DEMAND_LABEL: "gpus:1"})
    assert session.cycle(1000) == []


def test_the_smallest_acceptance_is_learned_after_some():
    session = Session(TASKS, learn_after=2)
    session.agent(1, 10, 20)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.allocator.step(Transition(session.holdings(1, 1, 1, 4, 4)))
    assert source(session) == ("", {})
    session.allocator.step(Transition(session.holdings(1, 1, 1, 2, 2)))
    assert source(session) == ("learned", {"cpus": 2000, "mem": 2000})
    session.give_back(offer, -1, cpus=4, mem=14)
    assert session.cycle(2000) == [(1, 1, 1, {"cpus": 4, "mem": 4})]


def test_a_framework_that_declines_its_tasks_is_probed_with_all_that_is_free():
    session = Session(TASKS, probe_after=2)
    session.agent(1, 4, 8)
    session.framework(1, labels={DEMAND_LABEL: "cpus:1;mem:1"})
    for now_ms in (1000, 2000):
        (offer,) = session.cycle(now_ms)
        assert offer[3] == {"cpus": 4, "mem": 4}
        session.give_back(offer, 0)
    assert session.cycle(3000) == [(1, 1, 1, {"cpus": 4, "mem": 8})]


@pytest.mark.parametrize(
    ("expression", "attributes", "holds"),
    [
        ("zone=a|b", {"zone": "b"}, True),
        ("zone=a|b", {"zone": "c"}, False),
        ("zone=a", {}, False),
        ("zone!=a", {}, True),
        ("zone!=a", {"zone": "a"}, False),
        ("ssd", {"ssd": ""}, True),
        ("!ssd", {"ssd": ""}, False),
        ("zone=a; ssd", {"zone": "a"}, False),
        ("", {}, True),
    ],
)
def test_expressions(expression: str, attributes: dict[str, str], holds: bool):
    clauses = parse_constraint(expression)
    assert all(clause.holds(attributes) for clause in clauses) == holds


@pytest.mark.parametrize("expression", ["=a", "zone=", "zone=a||b", "!", "!=a"])
def test_a_bad_expression_is_named(expression: str):
    with pytest.raises(ValueError, match="is not a clause"):
        parse_constraint(expression)


def test_labels_operator_rules_and_the_host_exclude_together():
    session = Session()
    for agent, zone in ((1, "a"), (2, "b"), (3, "c")):
        session.agent(agent, 4, 8, zone=zone)
    session.framework(1, labels={CONSTRAINT_LABEL: "zone=a|b"})
    session.allocator.step(SetConstraint("", "", "hostname!=host-1"))
    assert [offer[2] for offer in session.cycle(1000)] == [2]
    session.allocator.step(SetConstraint("", "", None))
    here = np.array([1]), np.array([1]), np.array([1])
    session.allocator.step(Exclude(*here, np.array([True])))
    assert session.cycle(2000) == []
    session.allocator.step(Exclude(*here, np.array([False])))
    assert [offer[2] for offer in session.cycle(3000)] == [1]
    session.allocator.check()


def test_a_changed_attribute_changes_the_relation():
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1, labels={CONSTRAINT_LABEL: "ssd"})
    assert session.cycle(1000) == []
    session.allocator.step(UpdateAgent(1, attributes={"ssd": "yes"}))
    assert len(session.cycle(2000)) == 1


def test_agents_with_gpus_wait_for_frameworks_that_know_them():
    session = Session()
    session.allocator.step(Define(kinds={2: Kind("gpus")}))
    session.agent(1, 4, 8)
    session.allocator.step(UpdateAgent(1, capacity={0: 4000, 1: 8000, 2: 1000}))
    session.framework(1)
    assert session.cycle(1000) == []
    session.framework(2, capabilities=frozenset({"GPU_RESOURCES"}))
    assert session.cycle(2000) == [(2, 1, 1, {"cpus": 4, "mem": 8, "gpus": 1})]


@pytest.mark.parametrize(
    "event",
    [
        SetDemand("", "", {"cpus": 0}),
        SetDemand("x", "", None),
        SetConstraint("x", "", None),
        SetConstraint("", "", "=;"),
    ],
)
def test_a_rule_that_is_none_is_refused_and_changes_nothing(event):
    session = Session()
    with pytest.raises(EventError):
        session.allocator.step(event)
    assert session.allocator.settings == Settings(policy=PolicySpec("drf"))


def test_an_agent_without_gpus_any_more_is_for_all_frameworks():
    """An operation consumes them: then no framework needs the capability."""
    session = Session()
    session.allocator.step(Define(kinds={2: Kind("gpus")}))
    info = AgentInfo("agent-1", hostname="host-1")
    session.allocator.step(AddAgent(1, info, {0: 4000, 1: 8000, 2: 1000}))
    session.framework(1, capabilities=frozenset({"GPU_RESOURCES"}))
    session.framework(2)
    (offer,) = session.cycle(1000)
    assert offer[0] == 1
    session.allocator.step(UpdateAllocation(1, 1, 1, {2: 1000}, {}))
    session.give_back(offer, refuse_ms=60_000)
    assert [offer[0] for offer in session.cycle(2000)] == [2]


def test_a_rule_that_overrides_counts_before_what_the_framework_states():
    session = Session(TASKS)
    session.framework(1, labels={DEMAND_LABEL: "cpus:2;mem:1"})
    session.allocator.step(Request(1, ({"cpus": 3000},)))
    session.allocator.step(SetDemand("", "", {"cpus": 4000}, override=True))
    assert source(session) == ("operator", {"cpus": 4000})
    session.allocator.step(SetDemand("", "", {}, override=True))
    assert source(session) == ("", {})
    session.allocator.step(SetDemand("", "", None))
    assert source(session) == ("request", {"cpus": 3000})


@pytest.mark.parametrize(
    "text",
    ["zone<3", "zone>=3", "zone==a", "!zone=a", "a b", "'zone'=a", "zone=a&b", "!!x", "=a"],
)
def test_a_clause_is_read_strictly(text):
    with pytest.raises(ValueError, match="is not a clause"):
        parse_constraint(f"ssd; {text}")


@pytest.mark.parametrize(
    "text", ["zone=a|b", "rack-1!=x y", "kernel.version=5.10-2", "disks={a,b}", "n=[1-3]", "!a/b:c"]
)
def test_names_and_values_of_mesos_are_taken(text):
    (clause,) = parse_constraint(text)
    assert clause.attribute


def limited(session: Session) -> dict[int, float]:
    """CPUs offered to each framework in a cycle."""
    given: dict[int, float] = {}
    for framework, _, _, amounts in session.cycle(session.state.now_ms + 1000):
        given[framework] = given.get(framework, 0) + amounts.get("cpus", 0)
    return given


def test_a_limit_bounds_from_the_next_cycle_on():
    session = Session(TASKS)
    session.agent(1, 8, 8)
    session.framework(1, labels={DEMAND_LABEL: "cpus:1"})
    role = session.state.roles.path[1]
    session.allocator.step(SetLimit(role, {"cpus": 3000}))
    assert limited(session) == {1: 3}
    session.allocator.step(SetLimit(role, {"cpus": 5000}))
    assert limited(session) == {1: 2}
    session.allocator.step(SetLimit(role, None))
    assert limited(session) == {1: 3}
    with pytest.raises(EventError, match="there is no limit of role"):
        session.allocator.step(SetLimit(role, None))


def test_resources_in_limits_have_a_column_in_each_session():
    """Before any resource is defined: a demand for it counts from the first framework on."""
    session = Session(TASKS)
    limit = {"cpus": 3000, "mem": 9000}
    session.allocator = Allocator(build, Settings(policy=TASKS, limits={"a": limit}))
    for _ in range(2):
        session.allocator.step(Options())
        assert session.state.clients.demand.shape[1] == 2
    session.world.bind("cpus", "mem", roles=session.paths.values())
    session.framework(1, labels={DEMAND_LABEL: "cpus:1"})
    assert source(session) == ("label", {"cpus": 1000})
    session.agent(1, 8, 8)
    assert limited(session) == {1: 3}


def test_all_settings_are_replaced_or_none():
    session = Session(TASKS)
    session.agent(1, 8, 8)
    session.framework(1)
    settings, role = session.allocator.settings, session.state.roles.path[1]
    before = settings.copied()
    good = Settings(
        policy=PolicySpec("tsf", mode="characterised"),
        demands={("", ""): SetDemand("", "", {"cpus": 2000})},
        limits={role: {"cpus": 4000}},
    )
    for wrong in (
        Settings(policy=PolicySpec("nonesuch")),
        Settings(policy=good.policy, constraints={("", ""): SetConstraint("", "", "zone<3")}),
        Settings(policy=good.policy, demands={("", ""): SetDemand("", "", {"cpus": 0})}),
        Settings(policy=good.policy, limits={"a//b": {"cpus": 1}}),
    ):
        with pytest.raises(EventError):
            session.allocator.reconfigure(wrong)
        assert session.allocator.settings == before
    session.allocator.reconfigure(good)
    assert session.allocator.settings == good
    assert source(session) == ("operator", {"cpus": 2000})
    assert limited(session) == {1: 4}
    session.allocator.step(SetDemand("", "", None))
    assert good.demands, "the settings that were given stay as they are"
    session.allocator.check()


@pytest.mark.parametrize("rest_first", [True, False])
def test_the_returned_rest_of_an_accepted_offer_is_no_decline(rest_first: bool):
    """Four acceptances; the rest of each is released before or after all of them."""
    session = Session(TASKS)
    for agent in range(1, 5):
        session.agent(agent, 4, 8)
    session.framework(1)
    offers = session.cycle(1000)
    taken = [Transition(session.holdings(1, 1, agent, 1, 1)) for _, _, agent, _ in offers]

    def give_back_the_rest() -> None:
        for offer in offers:
            session.give_back(offer, 5000, cpus=3, mem=7)

    if rest_first:
        give_back_the_rest()
    for event in taken:
        session.allocator.step(event)
    if not rest_first:
        give_back_the_rest()
    client = session.state.clients.row(1, 1)
    assert session.state.clients.accepts[client] == 4
    assert session.state.clients.declines[client] == 0
    assert not len(session.state.accepted)
    # A later complete release counts as a decline.
    session.give_back((1, 1, 1, {"cpus": 1, "mem": 1}))
    session.agent(5, 4, 8)
    (offer,) = (each for each in session.cycle(20_000) if each[2] == 5)
    session.give_back(offer, 0)
    assert session.state.clients.declines[client] == 1
