"""A cycle that asks the policy several times: later rounds know what earlier ones granted."""

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, PolicySpec, SetClaim
from allocator.core.cycle import derived
from allocator.core.snapshot import Grants
from allocator.testing import static_snapshot
from tests.world.world import World

ONE = {DEMAND_LABEL: "cpus:1;mem:1"}


def granted(world: World) -> list[int]:
    """CPUs offered to each framework in one cycle."""
    world.cycle()
    state = world.allocator.state
    held = state.ledger.books.client_held[state.space.names.index("cpus")]
    found = np.zeros(1 + int(state.clients.framework.max()), np.int64)
    np.add.at(found, state.clients.framework, held)
    return (found[1:] // 1000).tolist()


def claimed(policy: PolicySpec, has: str, cpus: int) -> World:
    """An agent, and a role `b` with a claim to some of its CPUs."""
    world = World(policy, settings={"learn_demand": False})
    world.allocator.plan_source.plans_here = True
    world.agent(has)
    world.tell(SetClaim("b", {"cpus": 1000 * cpus}))
    return world


@pytest.mark.parametrize("selection", ["listed", "joint"])
def test_a_shared_volume_of_an_earlier_round_serves_further_tasks(selection):
    policy = PolicySpec("drf", selection, "characterised")
    world = claimed(policy, "cpus:4;mem:4;disk(b)[volume][shared]:2048", 1)
    labels = {DEMAND_LABEL: "cpus:1;mem:1;disk:2048"}
    world.framework("b", labels=labels, capabilities=["SHARED_RESOURCES"])
    assert granted(world) == [4]


@pytest.mark.parametrize("minimum", [["cpus:2"], ["cpus:3"]])
def test_less_than_a_minimum_joins_an_offer_of_an_earlier_round(minimum):
    world = claimed(PolicySpec("drf", "listed", "oblivious"), "cpus:4;mem:4", 3)
    world.framework("b", minimum={"b": minimum})
    world.framework("a", minimum={"a": ["cpus:2"]})
    assert granted(world) == [4, 0]


def test_the_parts_of_a_plan_include_what_earlier_rounds_granted():
    world = claimed(PolicySpec("quincy", "listed", "characterised"), "cpus:12;mem:12", 4)
    world.framework("a", labels=ONE)
    world.framework("b", labels=ONE)
    assert granted(world) == [6, 6]


def test_agents_are_counted_once_over_all_rounds():
    snapshot = static_snapshot(capacity=[[4, 4], [4, 4]], demand=[[1, 1], [1, 1]])
    one = np.ones(1, np.int64)
    grants = Grants(one, one, one, 1000 * np.ones((1, 2), np.int64))
    before = snapshot.agents_held.tolist()
    once = derived.after(snapshot, [grants])
    twice = derived.after(once, [grants])
    assert (once.agents_held - before).tolist() == (twice.agents_held - before).tolist() == [0, 1]
    assert twice.earlier is not None
    assert len(twice.earlier) == 2
