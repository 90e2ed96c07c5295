"""Frameworks from their subscription to their end, as the master reports it."""

import pytest

from allocator.core import EventError, Request
from tests.conformance.mesos import mesos
from tests.world.world import World

HALF = "cpus:1;mem:512"


@mesos("MasterAllocatorTest.RoleTest")
@pytest.mark.parametrize("path", ["/a", "a/", "a//b", ""])
def test_invalid_roles_are_refused(world, path):
    with pytest.raises(EventError):
        world.roles("a", path)


@mesos("ResourceOffersTest.Request")
def test_a_request_is_what_one_task_needs(policy):
    """The built-in ignores requests; so does a policy that offers all that is free."""
    world = World(policy)
    agent = world.agent("cpus:2;mem:1024")
    framework = world.framework("*")
    world.tell(Request(framework.handle, ({"cpus": 2000},)))
    expected = "cpus:2" if policy.mode == "characterised" else "cpus:2;mem:1024"
    assert world.cycle() == [framework.gets(agent, expected)]


@mesos("RoleTreeTest.RolesTracking")
def test_a_role_is_kept_while_something_names_it(world):
    world.weights(**{"a/b/c": 2.0})
    world.agent("cpus:4;mem:1024")
    framework = world.framework("a/b/c")
    roles, handles = world.allocator.state.roles, world.roles("a", "a/b", "a/b/c")
    assert [roles.weight[handle] for handle in handles] == [1.0, 1.0, 2.0]
    (offer,) = world.cycle()
    world.update_framework(framework, [])
    assert all(roles.is_bound(handle) for handle in handles)
    world.decline(offer)
    # A role that is not named any more is missing from the next snapshot; until then it stays.
    assert all(roles.is_bound(handle) for handle in handles)
    world.allocator.check()
