"""Operations on offered or free resources: reservations, volumes, conversions."""

from tests.world.amounts import (
    mount_disk,
    resources,
    volume,
)
from tests.world.world import World

SHARED = ("SHARED_RESOURCES",)


def test_a_persistent_volume_is_offered_whole_or_not_at_all():
    """A limit of 8 leaves room for a part of the second disk, which is indivisible."""
    world = World()
    world.quota("role", "", "disk:8")
    agent = world.agent(resources("cpus:2;mem:64") + volume("5") + mount_disk("5"))
    world.framework("role")
    (offer,) = world.cycle()
    rest = agent.resources - offer.resources
    assert list(rest.values()) == [5000]
    assert offer.resources - resources("cpus:2;mem:64") in (volume("5"), mount_disk("5"))
