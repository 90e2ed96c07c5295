"""Grants remain valid as offers: minimums, tasks, shared volumes and leftovers."""

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, PolicySpec
from allocator.core.cycle import cycle as cycles
from allocator.core.plans.plan_source import PlanSource
from allocator.explain import explain, take
from allocator.policies import POLICIES, SELECTIONS
from tests.world.amounts import resources, volume
from tests.world.nouns import total
from tests.world.world import World

ANY = {"minimum": ()}
PATIENCE = 5
LEARN = 2
TASKS = "characterised"
EVERY = pytest.mark.parametrize(
    ("name", "selection"),
    [(name, "") for name in POLICIES] + [("drf", selection) for selection in SELECTIONS],
)


def world(name: str = "drf", selection: str = "", **settings) -> World:
    """A world in which planning policies make a plan before each cycle."""
    made = World(PolicySpec(name, selection, TASKS), settings=settings)
    made.allocator.plan_source = PlanSource(None, plans_here=True)
    return made


@EVERY
@pytest.mark.parametrize("agents", [1, 9])
def test_a_client_that_cannot_reach_its_minimum_blocks_no_others(name, selection, agents):
    w = world(name, selection)
    for _ in range(agents):
        w.agent("cpus:3;mem:3000")
    f = w.framework("r1", labels={DEMAND_LABEL: "cpus:1;mem:100"}, minimum={"r1": ["cpus:4"]})
    g = w.framework("r2", labels={DEMAND_LABEL: "cpus:1;mem:100"})
    offers = w.cycle()
    assert {offer.framework for offer in offers} == {g}
    assert total(offers)[next(iter(resources("cpus:1")))] == 3000 * agents
    assert not w.held(f)


@EVERY
def test_an_offer_has_as_many_tasks_as_its_minimum_requires(name, selection):
    """Of eight CPUs, with equal shares."""
    w = world(name, selection)
    w.agent("cpus:8;mem:8000")
    labels = {DEMAND_LABEL: "cpus:1;mem:100"}
    f = w.framework("r1", labels=labels, minimum={"r1": ["cpus:4"]})
    g = w.framework("r2", labels=labels)
    offers = {offer.framework: offer for offer in w.cycle()}
    assert offers[f].resources >= resources("cpus:4;mem:400")
    assert total(offers.values()) == resources("cpus:8;mem:800")
    if name != "choosy":  # it counts agents, of which there is one
        assert offers[f].resources == offers[g].resources


@EVERY
def test_an_overdue_client_gets_enough_for_an_offer(name, selection):
    """Six CPUs are released each time; the others hold nothing, and want them all."""
    w = world(name, selection, patience_cycles=PATIENCE)
    big, small = w.agent("cpus:32;mem:32000"), w.agent("cpus:6;mem:6000")
    labels = {DEMAND_LABEL: "cpus:1;mem:100"}
    f = w.framework("r1", labels=labels, minimum={"r1": ["cpus:4"]})
    w.hold(f, "r1", big, "cpus:32;mem:32000")
    others = [w.framework(f"other-{each}", labels=labels) for each in range(3)]
    waited = 0
    while True:
        offers = w.cycle()
        assert total(offers) == resources("cpus:6;mem:600")
        if any(offer.framework == f for offer in offers):
            break
        for offer in offers:
            w.decline(offer)
        waited += 1
        assert waited <= PATIENCE + len(others)
    assert total(o for o in offers if o.framework == f)[next(iter(small.resources))] >= 4000


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("also", ["", ";disk:1000", ";disk(r1):1000"])
def test_a_shared_volume_does_for_a_task_that_needs_its_disk(selection, also):
    w = world("drf", selection)
    w.agent(f"cpus:4;mem:4096{also};disk(r1)[volume][shared]:2048")
    labels = {DEMAND_LABEL: "cpus:1;mem:128;disk:2048"}
    w.framework("r1", capabilities=["SHARED_RESOURCES"], labels=labels)
    for _ in range(3):
        (offer,) = w.cycle()
        assert offer.resources >= resources("cpus:4;mem:512") + volume("2048", "r1", shared=True)
        w.decline(offer)


def test_two_frameworks_get_it_by_turns_and_one_that_cannot_share_never():
    w = world()
    w.agent("cpus:4;mem:4096;disk(r1)[volume][shared]:2048")
    labels = {DEMAND_LABEL: "cpus:1;mem:128;disk:2048"}
    capable = [w.framework("r1", capabilities=["SHARED_RESOURCES"], labels=labels) for _ in "ab"]
    w.framework("r1", labels=labels)
    seen = set()
    for _ in range(4):
        (offer,) = w.cycle()
        seen.add(offer.framework)
        w.decline(offer)
    assert seen == set(capable)


def test_a_shared_volume_is_not_part_of_a_learnt_demand():
    w = world(learn_after=LEARN)
    w.agent("cpus:4;mem:4096;disk(r1)[volume][shared]:2048")
    f = w.framework("r1", capabilities=["SHARED_RESOURCES"])
    task = "cpus:1;mem:128;disk(r1)[volume][shared]:2048"
    for _ in range(4):
        (offer,) = w.cycle()
        w.use(offer, task)
        w.decline(offer, part=offer.resources - resources(task))
        w.finish(offer, task)
    known = w.allocator.state.clients.demand[1]
    assert known.tolist() == [1000, 128_000, 0]
    (offer,) = w.cycle()
    assert offer.resources == resources("cpus:4;mem:512") + volume("2048", "r1", shared=True)
    assert not w.held(f) - offer.resources


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("left", ["disk(r1)[volume]:1000", "disk(r1):1000", "ports(r1):5"])
def test_reserved_resources_too_small_for_a_task_are_added_to_the_offer(selection, left):
    w = world("drf", selection)
    w.agent(f"cpus:4;mem:4096;{left}")
    w.framework("r1", labels={DEMAND_LABEL: "cpus:1;mem:128"})
    (offer,) = w.cycle()
    assert offer.resources == resources(f"cpus:4;mem:512;{left}")


def test_reserved_resources_count_towards_the_minimum():
    """One task fits. With the resources reserved to its role that is as much as it wants."""
    w = world()
    w.agent("cpus:1;mem:2048;cpus(r1):4")
    labels = {DEMAND_LABEL: "cpus:1;mem:2048"}
    f = w.framework("r1", labels=labels, minimum={"r1": ["cpus:4"]})
    (offer,) = w.cycle()
    assert offer.framework == f
    assert offer.resources == resources("mem:2048;cpus(r1):4")


def test_an_added_volume_is_not_compared_with_filters_alone():
    """The agent gets a volume after the framework refused a task there: both are a new offer."""
    w = world()
    agent = w.agent("cpus:1;mem:128")
    f = w.framework("r1", labels={DEMAND_LABEL: "cpus:1;mem:128"})
    (offer,) = w.cycle()
    w.decline(offer, refuse_s=1000)
    assert not w.cycle()
    w.update_agent(agent, "cpus:1;mem:128;disk(r1)[volume]:1000")
    (offer,) = w.cycle()
    assert offer == f.gets(agent)
    w.decline(offer, refuse_s=1000)
    assert not w.cycle()


def test_a_demand_that_needs_very_many_tasks_for_an_offer_says_too_little():
    """Such a framework is offered everything free."""
    w = world()
    w.agent("cpus:8;mem:8000")
    tiny = {DEMAND_LABEL: "cpus:0.01;mem:1"}
    f = w.framework("r1", labels=tiny, minimum={"r1": ["cpus:4"]})
    (offer,) = w.cycle()
    assert offer == f.gets(w.agents[1])


def test_minimums_are_tested_on_what_is_granted_together(monkeypatch):
    """No grant of the filling is dropped afterwards."""
    seen = []
    real = cycles.commit

    def noting(state, snapshot, grants, cycle):
        seen.append(cycles.offers_of(snapshot, grants)[2])
        return real(state, snapshot, grants, cycle)

    monkeypatch.setattr(cycles, "commit", noting)
    w = world("drf", "random")
    for cpus in range(1, 9):
        w.agent(f"cpus:{cpus};mem:4000;disk(r1):{100 * cpus}")
    for number, least in enumerate((1, 3, 5)):
        labels = {DEMAND_LABEL: f"cpus:{0.5 + number / 2};mem:500"}
        w.framework("r1", labels=labels, minimum={"r1": [f"cpus:{least}", "mem:3000"]})
    for offer in w.cycle():
        w.decline(offer)
    assert np.concatenate(seen).all()
    assert len(seen[0])


def told(w: World, kind: str, name: str) -> str:
    return str(explain(take(w.allocator, kind, name), kind, name))


def test_an_agent_with_a_shared_volume_is_not_said_to_be_full():
    w = world()
    w.agent("cpus:4;mem:4096;disk(r1)[volume][shared]:2048")
    labels = {DEMAND_LABEL: "cpus:1;mem:128;disk:2048"}
    w.framework("r1", capabilities=["SHARED_RESOURCES"], labels=labels)
    assert "1 of 1 frameworks could be served" in told(w, "agent", "agent-1")


def test_a_minimum_that_cannot_be_reached_is_reported():
    w = world()
    w.agent("cpus:3;mem:3000")
    labels = {DEMAND_LABEL: "cpus:1;mem:100"}
    w.framework("r1", labels=labels, minimum={"r1": ["cpus:4"]})
    assert "an offer there would be less than its minimum" in told(w, "framework", "framework-1")
    assert "1 minimum: a grant would be less than the minimum of an offer" in told(
        w, "agent", "agent-1"
    )
