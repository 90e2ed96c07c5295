"""What explanations, metrics and the status say about budgets."""

import pytest

from allocator.core import DEMAND_LABEL, PolicySpec, SetBudget
from allocator.core.diagnostics.trail import Trail
from allocator.explain import explain, take
from allocator.wire.codec.proto_types import read_quantities
from tests.server.metrics.metering import scrape
from tests.server.metrics.scraping import value
from tests.world.world import World

NOON_MS = 1_795_867_200_000
"""2026-11-28 12:00."""
MINUTE_MS = 60_000
ONE = {DEMAND_LABEL: "cpus:1;mem:1"}


def spent(*, hard: bool) -> World:
    """A role has held 8 CPUs for half an hour, of a budget of 4 CPU hours a day."""
    world = World(PolicySpec("drf", "listed", "characterised"))
    world.allocator.trail = Trail()
    world.allocator.advance(NOON_MS)
    agent = world.agent("cpus:12;mem:12")
    world.bind(roles=["eng", "ops"])
    world.allocator.step(SetBudget("eng", {"cpus": 4000, "mem": 99_000}, "day", hard=hard))
    world.hold(world.framework("eng", name="old"), "eng", agent, "cpus:8;mem:1")
    world.framework("eng", name="new", labels=ONE)
    return world


def over(*, hard: bool) -> World:
    world = spent(hard=hard)
    world.allocator.advance(NOON_MS + 30 * MINUTE_MS)
    return world


def ask(world: World, name: str, kind: str = "framework"):
    return explain(take(world.allocator, kind, name), kind, name)


def test_a_role_over_a_hard_budget_sees_when_it_ends():
    answer = ask(over(hard=True), "new")
    (client,) = answer.clients
    blocker = client.blockers[0]
    text = (
        "the role eng is over its budget of cpus: 4 of 4 hours today; the next period begins on"
        " 2026-11-29 (UTC)"
    )
    assert (blocker.reason, blocker.cause) == ("budget", text)
    assert blocker.until_ms == NOON_MS + 12 * 60 * MINUTE_MS
    assert client.verdict == f"barred from every agent (budget): {text}"
    assert client.open_agents == 0


def test_a_role_over_a_soft_budget_sees_that_others_are_served_first():
    world = over(hard=False)
    world.framework("ops", name="other", labels=ONE)
    world.allocator.allocate(NOON_MS + 31 * MINUTE_MS, None)
    answer = ask(world, "new")
    (note,) = answer.notes
    assert note == (
        "the role eng is over its budget of cpus: 4.133 of 4 hours today; the next period begins"
        " on 2026-11-29 (UTC); until then all others are served first"
    )
    (client,) = answer.clients
    assert not any(each.reason == "budget" for each in client.blockers)
    assert client.forecast == "no forecast: its role is over budget, so all others are served first"
    (loss,) = [loss for cycle in answer.clients[0].cycles for loss in cycle.losses]
    assert loss.why == "its role is within budget, and this one is over it"


def test_an_explanation_says_what_is_left_and_when_it_runs_out():
    world = spent(hard=False)
    world.allocator.advance(NOON_MS + 15 * MINUTE_MS)
    (use,) = ask(world, "eng", "role").budgets
    assert read_quantities(use.used) == {"cpus": 2000, "mem": 250}
    assert read_quantities(use.budget) == {"cpus": 4000, "mem": 99_000}
    assert read_quantities(use.left) == {"cpus": 2000, "mem": 98_750}
    assert use.runs_out_ms == NOON_MS + 30 * MINUTE_MS
    assert (use.end_ms - use.begin_ms, use.over) == (24 * 60 * MINUTE_MS, False)
    world.framework("ops", name="other")
    assert not ask(world, "ops", "role").budgets


@pytest.mark.parametrize("hard", [False, True])
def test_metrics_of_budgets(hard):
    world = spent(hard=hard)
    world.allocator.advance(NOON_MS + 15 * MINUTE_MS)
    found = scrape(world.allocator)
    assert value(found, "budget_used_hours", role="eng", resource="cpus", unit="core") == 2
    assert value(found, "budget_hours", role="eng", resource="mem", unit="byte") == 99 * 2**20
    assert value(found, "budget_runs_out_seconds", role="eng") == 15 * 60


def test_a_role_without_a_budget_says_nothing():
    world = World()
    world.agent("cpus:4;mem:4")
    world.framework("r", name="f")
    assert not ask(world, "f").budgets
