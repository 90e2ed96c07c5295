"""Random agents and frameworks, with whatever Mesos lets them have."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from allocator.core import MILLI
from allocator.lab.frameworks.base import Identity, Quantities
from allocator.lab.master.gates import GPU_CAPABILITY, REGION_AWARE
from allocator.lab.master.resources import (
    AGENT_CAPABILITIES,
    REFINEMENT,
    REVOCABLE,
    SHARED,
    AgentSpec,
    Resource,
    disk,
    reserved,
)

PLAIN = ("cpus", "mem", "disk", "gpus")
PORTS = Resource("ports", scalar=False)

ROLES = ("a", "a/x", "a/x/p", "a/x/p/deep", "a/y", "b", "b/z", "c")
TOP_ROLES = ("a", "b", "c")
REGION = "north"
REGIONS = ("north", "north", "north", "south")
RACKS = ("r1", "r2", "r3")

CAPABILITIES = (GPU_CAPABILITY, REGION_AWARE, REFINEMENT, REVOCABLE, SHARED)
MINIMA: tuple[tuple[Quantities, ...], ...] = (
    (),
    ({"cpus": 400},),
    ({"cpus": 100, "mem": 256 * MILLI}, {"ports": 2 * MILLI}),
)

_T = TypeVar("_T")


class Population:
    """Draws agents and frameworks."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.chance = chance
        self._frameworks = 0

    def agent(self, number: int) -> AgentSpec:
        """An agent of a host of its own; every fourth has GPUs, some are of old."""
        some = self.chance.integers
        old = self.chance.random() < 0.1
        return AgentSpec(
            hostname=f"host-{number}",
            capacity=self.capacity(gpus=number % 4 == 0),
            attributes={"rack": self.one_of(RACKS)},
            special=self._special(number),
            region=self.one_of(REGIONS),
            zone=f"zone-{some(2)}",
            capabilities=frozenset({REFINEMENT}) if old else AGENT_CAPABILITIES,
        )

    def capacity(self, *, gpus: bool = False) -> Quantities:
        """What an agent has that is nobody's in particular."""
        some = self.chance.integers
        capacity = {
            "cpus": int(some(1, 17)) * MILLI,
            "mem": int(some(64, 8_193)) * MILLI,
            "disk": int(some(0, 4_097)) * MILLI,
        }
        if gpus:
            capacity["gpus"] = int(some(1, 5)) * MILLI
        return capacity

    def _special(self, number: int) -> dict[Resource, int]:
        """Ports, static reservations, disks that are one piece, revocable resources."""
        some = self.chance.integers
        special = {PORTS: int(some(0, 12)) * MILLI}
        if self.chance.random() < 0.5:
            role = self.one_of(ROLES)
            for name, most in (("cpus", 8), ("mem", 2_048), ("disk", 2_048)):
                special[reserved(Resource(name), role, static=True)] = int(some(1, most)) * MILLI
        if self.chance.random() < 0.5:
            for each in range(int(some(1, 4))):
                special[disk("mount", f"/mnt/{number}/{each}")] = int(some(100, 1_000)) * MILLI
        if self.chance.random() < 0.3:
            special[disk("path", f"/data/{number}")] = int(some(100, 1_000)) * MILLI
        if self.chance.random() < 0.3:
            special |= self.estimate()
        return {each: amount for each, amount in special.items() if amount}

    def estimate(self) -> dict[Resource, int]:
        """What of the resources in use may be used once more."""
        some = self.chance.integers
        return {
            Resource("cpus", revocable=True): int(some(0, 6)) * MILLI,
            Resource("mem", revocable=True): int(some(0, 1_024)) * MILLI,
        }

    def provided(self, number: int) -> dict[Resource, int]:
        """Disks of a resource provider: space, and pieces that have ids."""
        some = self.chance.integers
        provider = f"provider-{number}"
        space = Resource("disk", provider=provider)
        pieces = {
            replace(space, source=source, source_id=f"{number}-{each}"): 300 * MILLI
            for each, source in enumerate(("block", "block", "raw"))
        }
        pool = replace(space, source="raw")
        return {space: int(some(100, 2_000)) * MILLI, pool: 500 * MILLI, **pieces}

    def framework(self, *, tell_demand: bool) -> Identity:
        """A framework in some roles, with some capabilities, constraints and minima."""
        self._frameworks += 1
        several = self.chance.random() < 0.85
        capabilities = frozenset(each for each in CAPABILITIES if self.chance.random() < 0.5)
        roles = self.roles(3 if several else 1)
        return Identity(
            name=f"tenant-{self._frameworks}",
            roles=roles,
            demand=self.demand(capabilities) if tell_demand and self.chance.random() < 0.7 else {},
            allowed={"rack": frozenset({self.one_of(RACKS), self.one_of(RACKS)})}
            if self.chance.random() < 0.25
            else {},
            capabilities=capabilities,
            minimum=self.minimum(roles),
            several_roles=several,
        )

    def demand(self, capabilities: frozenset[str]) -> Quantities:
        some = self.chance.integers
        demand = {"cpus": int(some(100, 2_001)), "mem": int(some(32, 513)) * MILLI}
        extras = (("disk", 64 * MILLI), ("ports", MILLI))
        demand |= {name: amount for name, amount in extras if self.chance.random() < 0.3}
        if GPU_CAPABILITY in capabilities and self.chance.random() < 0.3:
            demand["gpus"] = MILLI
        return demand

    def roles(self, most: int) -> tuple[str, ...]:
        count = int(self.chance.integers(1, most + 1))
        return tuple(sorted({self.one_of(ROLES) for _ in range(count)}))

    def minimum(self, roles: Sequence[str]) -> dict[str, tuple[Quantities, ...]]:
        """Minima of a framework's own, for some of its roles."""
        return {role: self.one_of(MINIMA) for role in roles if self.chance.random() < 0.2}

    def one_of(self, items: Sequence[_T]) -> _T:
        return one_of(self.chance, items)


def one_of(chance: np.random.Generator, items: Sequence[_T]) -> _T:
    return items[int(chance.integers(len(items)))]
