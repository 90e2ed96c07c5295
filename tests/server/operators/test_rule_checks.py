"""The frameworks that a rule applies to, and warnings about it, for frameworks of several roles."""

import random

import pytest

from allocator.core import (
    OperatorChange,
    SetConstraint,
    SetDemand,
    SetLimit,
    SetQuota,
    SetWeight,
    matches,
)
from allocator.rule_kinds import Doubt
from allocator.server.config import load_all
from allocator.server.operators.rule_checks import (
    Cluster,
    doubts_of,
    match_of,
    rules_with_unknown_names,
)
from allocator.server.operators.setting_rows import mistyped_names
from allocator.wire.settings.overlay import KeptChange, Overlay
from tests.world.world import World

ROLES = ("c", "d", "d/e", "f")


def world(*frameworks: tuple[str, ...], **options) -> World:
    made = World(**options)
    made.agent("cpus:4;mem:4096", attributes={"zone": "a"})
    for number, roles in enumerate(frameworks, 1):
        made.framework(*roles, name=f"tenant-{number}")
    return made


def told(made: World, change: OperatorChange):
    cluster = Cluster(made.allocator, change)
    after = cluster.settings.copied()
    after.put(change)
    match = match_of(cluster, change, after)
    return match, list(doubts_of(cluster, change, after, match))


@pytest.mark.parametrize("seed", range(20))
def test_each_framework_is_counted_once(seed):
    draw = random.Random(seed)
    frameworks = [tuple(draw.sample(ROLES, draw.randint(1, 4))) for _ in range(draw.randint(1, 9))]
    made, role = world(*frameworks), draw.choice(ROLES)
    about = sum(any(matches(role, each) for each in roles) for roles in frameworks)
    for change in (
        SetDemand(role, "", {"cpus": 1000}),
        SetWeight(role, "", 2.0),
        SetConstraint(role, "", "zone=b"),
    ):
        match, _ = told(made, change)
        assert (match.frameworks, match.frameworks_total) == (about, len(frameworks))
    assert match.frameworks_without_agents == about
    below = sum(any(f"{each}/".startswith(f"{role}/") for each in roles) for roles in frameworks)
    assert told(made, SetLimit(role, {"cpus": 1000}))[0].frameworks == below


def test_a_framework_with_agents_in_another_role_is_not_shut_out():
    made = world(("c", "d"), ("c", "d"))
    made.tell(SetConstraint("c", "", "zone=b"))
    match, doubts = told(made, SetConstraint("", "", "zone=a"))
    assert (match.frameworks, match.frameworks_without_agents) == (2, 2)
    assert [each.text for each in doubts] == [
        "with their other rules, 2 of 2 frameworks would have no agent left in one of their roles"
    ]
    assert doubts[0].why is None
    (doubt,) = told(made, SetConstraint("c", "", "zone=a;!ssd"))[1]
    assert doubt.why is None, "it replaces the rule that shut them out"
    made.tell(SetConstraint("d", "", "zone=b"))
    (doubt,) = told(made, SetConstraint("", "", "zone=a"))[1]
    assert doubt.why is Doubt.NO_AGENT_LEFT


def test_names_in_rules_and_quotas_are_judged_by_what_agents_have():
    made = world(("c",))
    made.tell(SetLimit("c", {"cpu": 1000}))
    made.tell(SetDemand("", "x*", {"mem": 1000}))
    made.tell(SetConstraint("c", "", "zone=z; !ssd; zoen=a"))
    made.tell(SetQuota("f", {"gpu": 1000}, {}))
    assert list(rules_with_unknown_names(Cluster(made.allocator))) == [
        "the constraint of role c: no agent has an attribute 'zoen'; did you mean 'zone'?",
        "the limit of role c: no agent has any 'cpu'; did you mean 'cpus'?",
        "the master's quota (guarantee) of role f: no agent has any 'gpu'",
    ]


def test_an_unreachable_minimum_of_the_master_is_reported():
    minimum = ({"cpu": 10}, {"memory": 32_000})
    found = list(rules_with_unknown_names(Cluster(world(("c",), minimum=minimum).allocator)))
    assert [each.partition(": ")[0] for each in found] == [
        "the master's min_allocatable_resources"
    ] * 2
    either = ({"cpu": 10}, {"mem": 32_000})
    assert not list(rules_with_unknown_names(Cluster(world(("c",), minimum=either).allocator)))


def test_before_agents_are_known_names_similar_to_those_of_mesos_are_reported(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("""
[[limit]]
role = "a"
resources = "cpu:1;tokens:2"
[[limit]]
role = "b"
resources = "cpu:1"
[[demand]]
role = "b"
resources = "cpus(prod):1;mem(*):1"
""")
    kept = Overlay()
    for change in (SetLimit("b", {"cpus": 1000}), SetLimit("c", {"Mem": 1000})):
        kept.changes[change.key] = KeptChange(change, "somebody", 1)
    none = "is not one of Mesos's own resources; did you mean"
    assert list(mistyped_names(load_all(file, {}), kept)) == [
        f"{file}:8: demand of role b: 'cpus(prod)' {none} 'cpus'?",
        f"{file}:2: limit of role a: 'cpu' {none} 'cpus'?",
        f"set by an operator: limit of role c: 'Mem' {none} 'mem'?",
    ]
