"""Who is offered what is reserved."""

import pytest

from tests.conformance.mesos import mesos
from tests.world.amounts import reserved, reserved_to, resources, unreserved
from tests.world.world import MODERN_AGENT


@mesos("Reservations")
def test_reservations_are_offered_to_their_role_alone(world):
    agents = [
        world.agent("cpus(role1):2;mem(role1):1024"),
        world.agent("cpus(role2):2;mem(role2):1024;cpus:1;mem:1024"),
        world.agent("cpus(role3):1;mem(role3):1024"),
    ]
    one = world.framework("role1")
    offers = world.cycle()
    assert offers == [one.gets(agents[0]), one.gets(agents[1], unreserved(agents[1].resources))]
    two = world.framework("role2")
    assert world.cycle() == [two.gets(agents[1], reserved_to(agents[1].resources, "role2"))]


@mesos("OfferAncestorReservationsToDescendantChild")
def test_reservations_of_a_role_are_offered_below_it(world):
    framework = world.framework("a/b/c")
    agent = world.agent("cpus(a):1;mem(a):512")
    assert world.cycle() == [framework.gets(agent)]
    agent = world.agent("cpus:2;mem:1024;cpus(a/b):4;mem(a/b):2048")
    assert world.cycle() == [framework.gets(agent)]


@pytest.mark.parametrize("role", ["a", "a/x", "a/b/c", "ab", "b"])
def test_reservations_are_not_offered_above_or_beside(world, role):
    world.framework(role, minimum={role: []})
    world.agent("cpus(a/b):4;mem(a/b):2048")
    offers = world.cycle()
    assert bool(offers) == (role == "a/b/c")


@pytest.mark.parametrize("refined", [True, False])
def test_a_framework_that_does_not_know_of_refinement_never_sees_it(world, refined):
    agent = world.agent(
        resources("cpus:1;mem:64")
        + reserved("cpus:1;mem:64", "eng")
        + reserved("cpus:1;mem:64", "eng", "eng/ads")
    )
    capabilities = ["RESERVATION_REFINEMENT"] if refined else []
    framework = world.framework("eng/ads", capabilities=capabilities)
    simple = resources("cpus:1;mem:64") + reserved("cpus:1;mem:64", "eng")
    assert world.cycle() == [framework.gets(agent, None if refined else simple)]


def test_an_agent_need_not_know_of_refinement_for_other_reservations(world):
    framework = world.framework("eng/ads")
    know = MODERN_AGENT - {"RESERVATION_REFINEMENT"}
    agent = world.agent("cpus(eng):1;mem(eng):64", capabilities=know)
    assert world.cycle() == [framework.gets(agent)]
