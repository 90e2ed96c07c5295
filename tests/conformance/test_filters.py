"""Refusals: their duration, extent and end."""

import pytest

from tests.conformance.mesos import mesos
from tests.world.world import DAY_S


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
    assert len(world.allocator.state.filters.rows.agent) < 100, "of 200 refusals"


@pytest.mark.parametrize("ends", ["removed agent", "removed role", "deactivated framework"])
def test_events_that_end_a_refusal_early(world, ends):
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
