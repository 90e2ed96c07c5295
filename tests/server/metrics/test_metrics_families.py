"""The contents of one scrape, in numbers that can be checked by hand."""

import math

import pytest

from allocator import policies
from allocator.core import (
    DEMAND_LABEL,
    NOWHERE,
    ActivateAgent,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Hold,
    Kind,
    RemoveFramework,
    SetDemand,
    SetDrain,
    Settings,
    SetWhitelist,
    Suppress,
    Transition,
)
from allocator.server.metrics.family import LABEL_LENGTH_MAX, label
from allocator.server.reports.report import COMMON_MAX
from allocator.wire import SessionCounts
from tests.server.metrics.metering import GIB, crowd, nsdi, scrape
from tests.server.metrics.scraping import series, value
from tests.world.rows import holdings
from tests.world.world import World


def test_amounts_are_in_base_units():
    found = scrape(nsdi())
    assert value(found, "capacity", resource="cpus", unit="core") == 9
    assert value(found, "capacity", resource="mem", unit="byte") == 18 * 2**30
    assert value(found, "framework_held", framework="id-A", resource="cpus") == 3
    assert value(found, "framework_held", framework="id-A", resource="mem") == 12 * 2**30
    assert value(found, "held", resource="mem") == 14 * 2**30
    assert value(found, "utilisation_ratio", resource="cpus") == 1
    assert value(found, "utilisation_ratio", resource="mem") == 14 / 18


def test_offered_is_the_part_that_is_not_in_use():
    allocator = nsdi()
    allocator.step(RemoveFramework(2))
    decisions = allocator.allocate(1000)
    assert len(decisions) == 2
    found = scrape(allocator)
    assert value(found, "offered", resource="cpus") == 6
    assert value(found, "framework_offered", framework="id-A", resource="cpus") == 6
    assert value(found, "role_offered", role="eng", resource="cpus") == 6
    assert value(found, "held", resource="cpus") == 9
    assert value(found, "decisions_outstanding") == 2
    allocator.step(Transition(holdings((1, 3, 2, 1500, 0))))
    assert value(scrape(allocator), "offered", resource="cpus") == 4.5


def test_shares_are_those_of_the_paper():
    found = scrape(nsdi())
    for framework in ("id-A", "id-B"):
        share = value(found, "framework_dominant_share", framework=framework)
        assert share == pytest.approx(2 / 3)
    # Flat: every client competes with the weight of its role; eng/ads has 4.
    assert value(found, "framework_weighted_share", framework="id-A") == pytest.approx(1 / 6)
    assert value(found, "framework_weighted_share", framework="id-B") == pytest.approx(2 / 3)
    hierarchical = scrape(nsdi(flat=False))
    # Inside a role frameworks have equal weights.
    share = value(hierarchical, "framework_weighted_share", framework="id-A")
    assert share == pytest.approx(2 / 3)


def test_a_role_has_what_those_below_it_have():
    found = scrape(nsdi())
    for role, weight in (("eng", 2), ("eng/ads", 4)):
        assert value(found, "role_held", role=role, resource="cpus") == 3
        assert value(found, "role_weight", role=role) == weight
        assert value(found, "role_dominant_share", role=role) == pytest.approx(2 / 3)
        assert value(found, "role_weighted_share", role=role) == pytest.approx(2 / 3 / weight)
    assert value(found, "roles") == 3


def test_use_over_time_is_shown_if_it_is_kept():
    allocator = nsdi()
    assert not series(scrape(allocator), "role_used_share")
    settings = allocator.settings.copied()
    settings.half_life_ms = 64_000
    allocator.reconfigure(settings)
    now_ms = allocator.state.now_ms
    for later_ms in (0, 64_000):
        allocator.advance(now_ms + later_ms)
    found = scrape(allocator)
    for role in ("eng", "eng/ads"):
        share = value(found, "role_dominant_share", role=role)
        assert value(found, "role_used_share", role=role) == pytest.approx(share / 2)


def test_fairness_in_one_number():
    found = scrape(nsdi())
    # Weighted shares of 1/6 and 2/3: (5/6)**2 / (2 * (1/36 + 16/36)) = 25/34.
    assert value(found, "jain_index", among="frameworks") == pytest.approx(25 / 34)
    # Of the roles below the root, eng has 2/3 over weight 2, ops 2/3: 1 / (2 * (1/9 + 4/9)).
    assert value(found, "jain_index", among="roles") == pytest.approx(9 / 10)
    # No demand is known.
    assert value(found, "envy_max_tasks") == 0


def test_envy_counts_tasks():
    allocator = nsdi(flat=False)
    allocator.step(SetDemand("", "A", {"cpus": 1000, "mem": 1 * GIB}))
    # A runs 3 tasks of <1 CPU, 1 GB>; with B's 6 CPUs and 2 GB it could run 2: no envy.
    assert value(scrape(allocator), "envy_max_tasks") == 0
    allocator.step(SetDemand("", "A", {"cpus": 1000}))
    # With a demand of <1 CPU> it runs 3, and could run 6.
    found = scrape(allocator)
    assert value(found, "envy_max_tasks") == 3
    assert value(found, "framework_demand", framework="id-A", resource="cpus") == 1
    assert not series(found, "framework_demand", framework="id-B")


def test_demands_are_counted_by_where_they_come_from_and_what_is_remembered_of_them():
    allocator = nsdi()
    allocator.step(SetDemand("", "A", {"cpus": 1000, "mem": 1 * GIB}))
    taken = holdings((2, 2, 2, 1000, 1 * GIB))
    for _ in range(3):
        allocator.step(Transition(taken))
    allocator.step(AddFramework(3, FrameworkInfo("id-C", name="B"), (2,)))
    allocator.step(AddFramework(4, FrameworkInfo("id-D", name="new"), (2,)))
    found = scrape(allocator)
    sources = {dict(labels)["source"]: n for labels, n in series(found, "demand_clients").items()}
    assert {source: n for source, n in sources.items() if n} == {
        "operator": 1,
        "learned": 1,
        "prior": 1,
        "unknown": 1,
    }
    assert value(found, "demands_remembered", certain="yes") == 1
    assert value(found, "demands_remembered", certain="no") == 0
    allocator.step(Transition(holdings((3, 2, 2, 1000, 0))))
    found = scrape(allocator)
    assert value(found, "priors_total", result="refuted") == 1
    assert value(found, "priors_total", result="confirmed") == 0
    assert value(found, "demand_probes_total") == 0


def test_agents_and_frameworks_are_counted_by_state():
    allocator = nsdi()
    allocator.step(AddAgent(3, AgentInfo("a3", hostname="h3"), {0: 1000}))
    allocator.step(SetWhitelist(frozenset({"h3"})))
    allocator.step(ActivateAgent(1, active=False))
    found = scrape(allocator)
    states = ("active", "inactive", "unlisted", "drained")
    assert [value(found, "agents", state=state) for state in states] == [1, 1, 1, 0]
    allocator.step(SetDrain("h3"))
    found = scrape(allocator)
    assert [value(found, "agents", state=state) for state in states] == [0, 1, 1, 1]
    assert value(found, "frameworks", state="active") == 2


def test_frameworks_without_demand_do_not_count_as_treated_unfairly():
    allocator = nsdi()
    allocator.step(AddFramework(3, FrameworkInfo("id-C", name="C"), (2,)))
    assert value(scrape(allocator), "jain_index", among="frameworks") < 25 / 34
    allocator.step(Suppress(3))
    found = value(scrape(allocator), "jain_index", among="frameworks")
    assert found == pytest.approx(25 / 34)


def test_series_of_a_departed_framework_are_gone():
    allocator = nsdi()
    before = {name for (name, labels) in scrape(allocator) if ("framework", "id-B") in labels}
    assert "framework_held" in before
    allocator.step(RemoveFramework(2))
    found = scrape(allocator)
    assert not [labels for _, labels in found if ("framework", "id-B") in labels]
    assert value(found, "held", resource="cpus") == 3


def test_the_number_of_series_is_bounded_and_nothing_is_lost():
    allocator = crowd(frameworks=300, roles=30)
    found = scrape(allocator, frameworks_max=10, roles_max=5)
    shown = {dict(labels)["framework"] for labels in series(found, "framework_held")}
    assert shown == {f"id-{number}" for number in range(291, 301)} | {"other"}
    held = series(found, "framework_held", resource="cpus")
    assert sum(held.values()) == pytest.approx(sum(range(301)) / 1000)
    assert value(found, "framework_held", framework="other", resource="cpus") == pytest.approx(
        sum(range(291)) / 1000
    )
    roles = {dict(labels)["role"] for labels in series(found, "role_held")}
    assert len(roles) == 6
    total = sum(series(found, "role_held", resource="cpus").values())
    assert total == pytest.approx(sum(range(301)) / 1000)
    more = scrape(crowd(frameworks=600, roles=60), frameworks_max=10, roles_max=5)
    assert len(more) == len(found)


def test_a_bound_of_nothing_leaves_the_sums():
    found = scrape(crowd(frameworks=3, roles=3), frameworks_max=0, roles_max=0)
    assert len(series(found, "framework_held", resource="cpus")) == 1
    assert value(found, "framework_held", framework="other", resource="cpus") == 0.006
    assert value(found, "role_held", role="other", resource="cpus") == 0.006


def test_a_role_that_is_called_other_does_not_collide():
    allocator = crowd(frameworks=1, roles=1)
    allocator.step(Define({}, {2: "other"}))
    allocator.step(AddFramework(2, FrameworkInfo("other", name="other"), (2,)))
    allocator.step(Hold(holdings((2, 2, 1, 5000, 0))))
    found = scrape(allocator)
    assert value(found, "role_held", role="other", resource="cpus") == 5
    held = series(found, "framework_held", framework="other", resource="cpus")
    assert sorted(held.values()) == [0, 5]


def test_long_names_are_cut_but_stay_apart():
    long = "x" * 5000
    assert label(long) != label(long + "y")
    assert len(label(long)) == LABEL_LENGTH_MAX
    assert label("short") == "short"


def test_names_of_roles_and_frameworks_tell_a_terminal_nothing():
    """Roles that differ only in control characters have separate series."""
    world = World()
    world.agent("cpus:4;mem:1024")
    for number, sign in enumerate("\x1b\x07\u202e"):
        world.framework(f"r{sign}", framework_id=f"id{number}{sign}[2J", name=f"{sign}]0;title")
    found = scrape(world.allocator)
    values = {text for _, labels in found for _, text in labels}
    assert all(text.isprintable() for text in values)
    assert len({text for text in values if text.startswith("r?~")}) == 3
    assert len({text for text in values if text.startswith("id")}) == 3


def test_counters_are_there_before_anything_happens():
    found = scrape(nsdi())
    assert value(found, "events_total", type="release") == 0
    assert value(found, "outcomes_total", reason="offered") == 0
    assert value(found, "errors_total", code="books") == 0
    assert value(found, "sessions_closed_total", reason="left") == 0
    assert not series(found, "outcomes_total", reason="unspecified")


def test_counters_say_what_was_counted():
    counts = SessionCounts(batches=4, cycles=3, decisions=2, reclaims=5, sessions_opened=1)
    counts.events["release"] = 7
    counts.outcomes["offered"] = 2
    counts.errors["value"] = 1
    counts.mended["framework.user"] = 3
    found = scrape(nsdi(), counts)
    for name in ("batches", "cycles", "decisions", "sessions_opened"):
        assert value(found, f"{name}_total") == getattr(counts, name)
    assert value(found, "events_total", type="release") == 7
    assert value(found, "outcomes_total", reason="offered") == 2
    assert value(found, "errors_total", code="value") == 1
    assert value(found, "mended_total", field="framework.user") == 3
    assert value(found, "mended_total", field="agent.agent_id") == 0
    assert value(found, "journal_errors_total") == 2
    assert value(found, "cycle_duration_seconds_bucket", le="0.1") == 3
    assert value(found, "cycle_duration_seconds_count") == 4
    assert value(found, "cycle_duration_seconds_sum") == 1.5
    assert (value(found, "sessions"), value(found, "in_session")) == (3, 1)
    assert value(found, "report_age_seconds") == 0.25
    assert value(found, "reclaims") == 5


def test_the_policy_is_a_label():
    found = scrape(nsdi(flat=False))
    labels = {"name": "drf", "mode": "oblivious", "competition": "hierarchical"}
    assert value(found, "policy_info", **labels) == 1


def test_an_empty_allocator_can_be_scraped():
    found = scrape(Allocator(policies.build, Settings()))
    assert value(found, "jain_index", among="frameworks") == 1
    assert value(found, "capacity", resource="cpus") == 0
    assert not series(found, "utilisation_ratio")
    assert not any(math.isnan(number) for number in found.values())


def test_the_longest_waiting_have_series_regardless_of_their_share():
    allocator = crowd(10, 2)
    allocator.state.clients.waited[allocator.state.clients.row(1, 1 + 1 % 2)] = 50
    found = scrape(allocator, frameworks_max=4)
    waited = series(found, "framework_waited_cycles")
    assert {dict(labels)["framework"]: number for labels, number in waited.items()} == {
        "id-1": 50,
        "id-8": 0,
        "id-9": 0,
        "id-10": 0,
        "other": 0,
    }


def test_names_invented_by_tenants_make_no_series():
    """Names that a framework invents add no series; those of an agent a bounded number for each."""
    allocator = nsdi()
    before = scrape(allocator)
    label = ";".join(f"name-{n}:1" for n in range(60))
    for framework in range(10, 30):
        info = FrameworkInfo(f"f{framework}", labels={DEMAND_LABEL: label})
        allocator.step(AddFramework(framework, info, (1,), (1,)))
    found = scrape(allocator)
    assert not [key for key in found if "name-" in str(key) or NOWHERE in str(key)]
    assert value(found, "set_aside", reason="unknown") == 20
    assert value(before, "set_aside", reason="unknown") == 0
    kinds = {10 + n: Kind(f"made-up-{n}") for n in range(200)}
    allocator.step(Define(kinds=kinds))
    allocator.step(AddAgent(9, AgentInfo("a9"), dict.fromkeys(kinds, 1000)))
    more = [key for key in scrape(allocator) if "made-up" in str(key)]
    assert len([key for key in more if key[0] == "capacity"]) >= 200
    of_frameworks = [key for key in more if key[0].startswith("framework_held")]
    frameworks = {dict(key[1])["framework"] for key in of_frameworks}
    assert len(of_frameworks) <= COMMON_MAX * len(frameworks)
