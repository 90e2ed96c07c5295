"""Tenants that tell the master whatever it takes."""

from functools import partial
from typing import ClassVar

from allocator.lab.hostile import CREW
from allocator.lab.hostile.tenants import Tenants
from allocator.lab.torture.faults.base import Anywhere, Scene

TURNS = 5
"""For so many intervals they say what they say."""

BELOW = "tenants"


class HostileTenants(Anywhere):
    """Frameworks and agents of one manner of the crew; no session may end for their sake."""

    name: ClassVar[str] = "hostile tenants"
    weight: ClassVar[int] = 8

    def strike(self, scene: Scene) -> None:
        """Let them come, and go after a while."""
        master = scene.master
        manner = scene.rig.chance.choice(CREW)
        tenants = Tenants(master, manner, BELOW)
        scene.rig.findings.manners[manner.name] += 1
        tenants.arrive()
        every_ms = master.options.allocation_interval_ms
        for interval in range(TURNS):
            master.event_heap.after(interval * every_ms, partial(tenants.turn, interval))
        scene.later((TURNS + 1) * every_ms, tenants.depart)
