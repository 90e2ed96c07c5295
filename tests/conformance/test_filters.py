"""Refusals: how long they last, what they cover, and what ends them."""

import pytest

from tests.conformance.mesos import mesos
from tests.world.amounts import reserved, resources
from tests.world.world import DAY_S, World


@mesos("OfferFilter")
def test_a_filter_hides_the_agent_until_it_runs_out(world):
    framework = world.framework("role")
    agent = world.agent("cpus:1;mem:512")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent)
    world.decline(offer, refuse_s=2)
    assert len(world.allocator.state.filters) == 1
    assert world.cycle() == []
    assert world.cycle() == [framework.gets(agent)]
    assert len(world.allocator.state.filters) == 0


@mesos("SmallOfferFilterTimeout", "MESOS-4302")
def test_a_short_filter_covers_the_next_cycle(policy):
    world = World(policy, interval_s=60)
    one, two = world.framework("role"), world.framework("role")
    world.agent("cpus:1;mem:512", used={(one, "role"): "cpus:1;mem:512"})
    agent = world.agent("cpus:1;mem:512")
    (offer,) = world.cycle()
    assert offer == two.gets(agent)
    world.decline(offer, refuse_s=1)
    (offer,) = world.cycle()
    assert offer == one.gets(agent)
    world.decline(offer)
    assert world.cycle() == [two.gets(agent)]


@mesos("ReviveOffers")
def test_revive_clears_a_long_filter(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=1000)
    assert world.cycle() == []
    world.revive(framework)
    assert world.cycle() == [framework.gets(agent)]


@mesos("RemoveFilters")
def test_other_attributes_make_an_agent_worth_a_new_look(world):
    framework = world.framework("role")
    agent = world.agent("cpus:1;mem:512")
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=1000)
    assert world.cycle() == []
    world.update_agent(agent, attributes={"foo": "bar", "baz": "quux"})
    assert world.cycle() == [framework.gets(agent)]


@mesos("DeactivateAndReactivateFramework")
def test_who_suppresses_leaves_and_comes_back_is_offered_again(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    world.decline(offer)
    world.suppress(framework)
    world.deactivate(framework)
    assert world.cycle() == []
    world.activate(framework)
    world.revive(framework)
    assert world.cycle() == [framework.gets(agent)]


@mesos("SuppressAndReviveOffers")
def test_nothing_while_suppressed_and_everything_after_revive(world):
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("role1")
    (offer,) = world.cycle()
    world.revive(framework)
    assert world.cycle() == []
    world.decline(offer)
    world.suppress(framework)
    assert world.cycle() == []
    world.revive(framework)
    assert world.cycle() == [framework.gets(agent)]


@mesos("SuppressAndReviveOffersWithMultiRole")
def test_filters_and_suppression_are_per_role(world):
    framework = world.framework("role1", "role2")
    world.suppress(framework, "role1")
    agent = world.agent("cpus:2;mem:1024")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent, role="role2")
    world.decline(offer, refuse_s=DAY_S)
    assert world.cycle() == []
    world.revive(framework, "role1")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent, role="role1")
    world.decline(offer, refuse_s=DAY_S)
    assert world.cycle() == []


@mesos("MESOS-9856")
def test_revive_of_one_role_leaves_the_refusals_of_the_others(world):
    framework = world.framework("role1", "role2")
    agent = world.agent("cpus:2;mem:1024")
    for _ in framework.roles:
        (offer,) = world.cycle()
        world.decline(offer, refuse_s=DAY_S)
    assert world.cycle() == []
    world.revive(framework, "role2")
    (offer,) = world.cycle()
    assert offer == framework.gets(agent, role="role2")
    world.decline(offer, refuse_s=DAY_S)
    assert world.cycle() == []


@mesos("UpdateFrameworkTest.UnsuppressClearsFilters", "MESOS-9932")
def test_a_role_that_is_no_longer_suppressed_forgets_its_refusals(world):
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=DAY_S)
    world.update_framework(framework, suppressed=["role"])
    assert world.cycle() == []
    world.update_framework(framework)
    assert world.cycle() == [framework.gets(agent)]


@mesos("MESOS-9616")
def test_only_what_was_given_back_with_a_filter_is_filtered(world):
    """Of an accepted offer, the unused part has a filter, but what was just reserved has none."""
    framework = world.framework("role")
    agent = world.agent("cpus:4;mem:1024")
    (offer,) = world.cycle()
    plain, own = resources("cpus:1;mem:256"), reserved("cpus:1;mem:256", "role")
    offer = world.convert(offer, plain, own)
    rest = offer.resources - own
    world.decline(offer, part=own)
    world.decline(offer, part=rest, refuse_s=DAY_S)
    # The filter does not cover the reservation, so the agent is offered with it.
    assert world.cycle() == [framework.gets(agent)]


@mesos("MESOS-9616")
def test_a_filter_on_the_reserved_part_does_not_hide_the_rest(world):
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:256;cpus(role):1;mem(role):256")
    (offer,) = world.cycle()
    own = resources("cpus(role):1;mem(role):256")
    world.decline(offer, part=own, refuse_s=DAY_S)
    assert world.cycle() == []
    world.decline(offer, part=offer.resources - own)
    assert world.cycle() == [framework.gets(agent)]


@mesos("MESOS-7660")
def test_a_very_long_refusal_lasts_a_year_and_no_longer_than_it_says(world):
    """The module bounds what a framework asks for; the books keep any such time exactly."""
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=365 * DAY_S)
    assert world.cycle(after_ms=365 * DAY_S * 1000 - 1) == []
    assert world.cycle(after_ms=1) == [framework.gets(agent)]


@mesos("MESOS-9852")
def test_filters_that_ended_take_no_room(world):
    framework = world.framework("role")
    agent = world.agent("cpus:2;mem:1024")
    for attempt in range(200):
        (offer,) = world.cycle()
        world.decline(offer, refuse_s=365 * DAY_S)
        if attempt % 2:
            world.revive(framework)
        else:
            world.update_agent(agent, attributes={"attempt": str(attempt)})
        assert len(world.allocator.state.filters) == 0
    assert len(world.allocator.state.filters.rows.agent) < 50


@pytest.mark.parametrize("ends", ["removed agent", "removed role", "deactivated framework"])
def test_what_ends_a_refusal_before_its_time(world, ends):
    framework = world.framework("role", "other", suppressed=["other"])
    agent = world.agent("cpus:2;mem:1024")
    (offer,) = world.cycle()
    world.decline(offer, refuse_s=DAY_S)
    if ends == "removed agent":
        world.remove_agent(agent)
        agent = world.agent("cpus:2;mem:1024")
    elif ends == "removed role":
        world.update_framework(framework, ["other"], suppressed=["other"])
        assert world.cycle() == []
        world.update_framework(framework, ["role", "other"], suppressed=["other"])
    else:
        world.deactivate(framework)
        world.activate(framework)
    assert len(world.allocator.state.filters) == 0
    assert world.cycle() == [framework.gets(agent, role="role")]
