"""Hierarchical dominant resource fairness, with whole agents, as in the built-in allocator."""

from tests.conformance.mesos import mesos
from tests.world.world import World

FULL = "cpus:2;mem:1024"


@mesos("MESOS-5377")
def test_scarce_gpus_make_no_dominant_share_unless_they_count():
    """The first framework holds the only GPU; if it counted, its share would be 1."""
    taken = {}
    for excluded in (frozenset({"gpus"}), frozenset()):
        world = World(fairness_excluded=excluded)
        one = world.framework("a", capabilities=["GPU_RESOURCES"])
        two = world.framework("b")
        world.agent("cpus:1;mem:512;gpus:1", used={(one, "a"): "cpus:1;mem:512;gpus:1"})
        world.agent("cpus:2;mem:1024", used={(two, "b"): "cpus:2;mem:1024"})
        world.agent("cpus:1;mem:512")
        (offer,) = world.cycle()
        taken[bool(excluded)] = offer.framework is one
    assert taken == {True: True, False: False}
