"""What one scrape says of a state, in numbers that can be checked by hand."""

import math

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from allocator import policies
from allocator.core import (
    ActivateAgent,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Options,
    PolicySpec,
    RemoveFramework,
    SetDemand,
    Settings,
    SetWeights,
    SetWhitelist,
    Suppress,
    Transition,
)
from allocator.server import report
from allocator.server.families import LABEL_LENGTH_MAX, Scrape, StateCollector, label
from allocator.wire import Counts
from tests.server.scraping import Samples, samples, series, value

GIB = 1024 * 1000  # thousandths of a MiB
NESTED = frozenset({"HIERARCHICAL_ROLE"})


def holdings(*rows: tuple[int, int, int, int, int]) -> Holdings:
    """Rows of (framework, role, agent, thousandths of cpus, thousandths of MiB)."""
    table = np.array(rows, np.int64).reshape(-1, 5)
    return Holdings(table[:, 0], table[:, 1], table[:, 2], np.array([0, 1]), table[:, 3:])


def nsdi(*, flat: bool = True) -> Allocator:
    """9 CPUs and 18 GB on two agents; A uses 3 and 12, B uses 6 and 2 (NSDI 2011, sec. 4.1)."""
    spec = PolicySpec("drf", flat=flat)
    allocator = Allocator(policies.build, Settings(policy=spec))
    for event in (
        Options(),
        Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops", 3: "eng/ads"}),
        AddAgent(1, AgentInfo("a1", capabilities=NESTED), {0: 5000, 1: 10 * GIB}),
        AddAgent(2, AgentInfo("a2", capabilities=NESTED), {0: 4000, 1: 8 * GIB}),
        AddFramework(1, FrameworkInfo("id-A", name="A"), (3,)),
        AddFramework(2, FrameworkInfo("id-B", name="B"), (2,)),
        SetWeights({"eng": 2.0, "eng/ads": 4.0}),
        Hold(holdings((1, 3, 1, 3000, 10 * GIB), (1, 3, 2, 0, 2 * GIB))),
        Hold(holdings((2, 2, 2, 4000, 2 * GIB), (2, 2, 1, 2000, 0))),
    ):
        allocator.step(event)
    return allocator


def scrape(
    allocator: Allocator, counts: Counts | None = None, *, frameworks_max=100, roles_max=100
) -> Samples:
    taken = Scrape(
        report=report.read(allocator),
        counts=counts or Counts(),
        cycle_buckets=[("0.1", 3), ("+Inf", 4)],
        cycle_total_s=1.5,
        journal_errors=2,
        sessions=3,
        filters_forgotten=0,
        in_session=True,
        age_s=0.25,
    )
    registry = CollectorRegistry()
    limits = {"frameworks_max": frameworks_max, "roles_max": roles_max}
    registry.register(StateCollector(lambda: taken, **limits))
    return samples(generate_latest(registry).decode())


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
    # Flat: everybody competes with the weight of his role; eng/ads has 4.
    assert value(found, "framework_weighted_share", framework="id-A") == pytest.approx(1 / 6)
    assert value(found, "framework_weighted_share", framework="id-B") == pytest.approx(2 / 3)
    hierarchical = scrape(nsdi(flat=False))
    # Inside a role frameworks are equals.
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


def test_fairness_in_one_number():
    found = scrape(nsdi())
    # Weighted shares of 1/6 and 2/3: (5/6)**2 / (2 * (1/36 + 16/36)) = 25/34.
    assert value(found, "jain_index", among="frameworks") == pytest.approx(25 / 34)
    # Of the roles below the root, eng has 2/3 over weight 2, ops 2/3: 1 / (2 * (1/9 + 4/9)).
    assert value(found, "jain_index", among="roles") == pytest.approx(9 / 10)
    # Nobody's demand is known.
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


def test_agents_and_frameworks_are_counted_by_state():
    allocator = nsdi()
    allocator.step(AddAgent(3, AgentInfo("a3", hostname="h3"), {0: 1000}))
    allocator.step(SetWhitelist(frozenset({"h3"})))
    allocator.step(ActivateAgent(1, active=False))
    found = scrape(allocator)
    states = ("active", "inactive", "unlisted")
    assert [value(found, "agents", state=state) for state in states] == [1, 1, 1]
    assert value(found, "frameworks", state="active") == 2


def test_whoever_wants_nothing_does_not_count_as_treated_unfairly():
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


def crowd(frameworks: int, roles: int) -> Allocator:
    """So many frameworks; each holds its number of thousandths of a CPU in role number % roles."""
    allocator = Allocator(policies.build, Settings())
    paths = {role + 1: f"role{role}" for role in range(roles)}
    allocator.step(Options())
    allocator.step(Define({0: Kind("cpus"), 1: Kind("mem")}, paths))
    allocator.step(AddAgent(1, AgentInfo("a"), {0: 10**9, 1: 10**9}))
    for number in range(1, frameworks + 1):
        info = FrameworkInfo(f"id-{number}", name="same for all")
        allocator.step(AddFramework(number, info, (1 + number % roles,)))
    rows = [(each, 1 + each % roles, 1, each, 0) for each in range(1, frameworks + 1)]
    allocator.step(Hold(holdings(*rows)))
    return allocator


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


def test_counters_are_there_before_anything_happens():
    found = scrape(nsdi())
    assert value(found, "events_total", type="release") == 0
    assert value(found, "outcomes_total", reason="offered") == 0
    assert value(found, "errors_total", code="books") == 0
    assert value(found, "sessions_closed_total", reason="left") == 0
    assert not series(found, "outcomes_total", reason="unspecified")


def test_counters_say_what_was_counted():
    counts = Counts(batches=4, cycles=3, decisions=2, sessions_opened=1)
    counts.events["release"] = 7
    counts.outcomes["offered"] = 2
    counts.errors["value"] = 1
    found = scrape(nsdi(), counts)
    for name in ("batches", "cycles", "decisions", "sessions_opened"):
        assert value(found, f"{name}_total") == getattr(counts, name)
    assert value(found, "events_total", type="release") == 7
    assert value(found, "outcomes_total", reason="offered") == 2
    assert value(found, "errors_total", code="value") == 1
    assert value(found, "journal_errors_total") == 2
    assert value(found, "cycle_duration_seconds_bucket", le="0.1") == 3
    assert value(found, "cycle_duration_seconds_count") == 4
    assert value(found, "cycle_duration_seconds_sum") == 1.5
    assert (value(found, "sessions"), value(found, "in_session")) == (3, 1)
    assert value(found, "report_age_seconds") == 0.25


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
