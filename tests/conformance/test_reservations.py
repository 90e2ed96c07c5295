"""Frameworks that are offered reserved resources."""

import pytest

from tests.world.amounts import reserved, resources
from tests.world.world import MODERN_AGENT


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
