"""Reservations count against a quota, used or not, and are never held back for another role."""

import pytest

from allocator.core import EventError
from tests.world.world import World

ONE = "cpus:1;mem:1024"


def test_guarantees_are_of_roles_at_the_top():
    """As in Mesos, whose master refuses others."""
    world = World()
    with pytest.raises(EventError):
        world.quota("a/b", ONE)
