"""Random agents and frameworks that use every feature of Mesos."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from allocator.core import MILLI
from laboratory.frameworks.base import Conversion, Identity, Master, Offer, Quantities, Task
from laboratory.master.gates import GPU_CAPABILITY, REGION_AWARE
from laboratory.resources import (
    AGENT_CAPABILITIES,
    REFINEMENT,
    REVOCABLE,
    SHARED,
    AgentSpec,
    Amount,
    Resource,
    disk,
    lineage,
    minus,
    plus,
    reserved,
    unreserved,
    volume,
    without_volume,
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
        """An agent on a host of its own; every fourth has GPUs, some are of an old version."""
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
        """Plain resources of an agent."""
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
        """Ports, static reservations, disks, revocable resources."""
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
        """Revocable resources: an estimate of those allocated but unused."""
        some = self.chance.integers
        return {
            Resource("cpus", revocable=True): int(some(0, 6)) * MILLI,
            Resource("mem", revocable=True): int(some(0, 1_024)) * MILLI,
        }

    def provided(self, number: int) -> dict[Resource, int]:
        """Disks of a resource provider: space, and indivisible ones with ids."""
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
        """A framework with random roles, capabilities, constraints and minimums."""
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
        """Minimums of a framework, for some of its roles."""
        return {role: self.one_of(MINIMA) for role in roles if self.chance.random() < 0.2}

    def one_of(self, items: Sequence[_T]) -> _T:
        return one_of(self.chance, items)


def one_of(chance: np.random.Generator, items: Sequence[_T]) -> _T:
    return items[int(chance.integers(len(items)))]


# Operations that a framework may ask for, given an offer.

VOLUMES = ("v0", "v1", "v2")
PRINCIPALS = ("", "ops", "batch")


@dataclass(frozen=True, slots=True)
class OperationSampler:
    """Draws operations that are possible with an offer.

    role: of the offer.
    """

    chance: np.random.Generator
    role: str
    capabilities: frozenset[str]

    def draw(self, there: dict[Resource, int]) -> Conversion | None:
        """Draw one operation on a resource that allows it; None if there is no such resource."""
        possible, turned = one_of(
            self.chance,
            (
                (self._reservable, self._reserve),
                (self._unreservable, self._unreserve),
                (_creatable, self._create),
                (_creatable, self._create),
                (_is_volume, self._destroy),
                (lambda each, _: _elastic(each) and without_volume(each) in there, self._grow),
                (lambda each, amount: _elastic(each) and amount > MILLI, self._shrink),
            ),
        )
        some = [each for each, amount in there.items() if possible(each, amount)]
        return turned(one_of(self.chance, some), there) if some else None

    def _reservable(self, each: Resource, _amount: int) -> bool:
        """Whether it is unreserved, or reserved to an ancestor and can be refined."""
        above = lineage(self.role)[:-1] if REFINEMENT in self.capabilities else []
        free = not each.reservations or each.role in above
        return free and not each.revocable and not each.persistence

    def _unreservable(self, each: Resource, _amount: int) -> bool:
        reserved_later = bool(each.reservations) and not each.reservations[-1].static
        return reserved_later and not each.persistence

    def _reserve(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        amount = self._part(one, there[one])
        made = reserved(
            one,
            self.role,
            principal=one_of(self.chance, PRINCIPALS),
            labels=(("purpose", f"p{self.chance.integers(20)}"),),
        )
        return Conversion({one: amount}, {made: amount})

    def _unreserve(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        amount = self._part(one, there[one])
        return Conversion({one: amount}, {unreserved(one): amount})

    def _create(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        amount = self._part(one, there[one])
        shared = SHARED in self.capabilities and self.chance.random() < 0.5
        made = volume(one, one_of(self.chance, VOLUMES), shared=shared)
        return Conversion({one: amount}, {made: amount})

    def _destroy(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        return Conversion({one: there[one]}, {without_volume(one): there[one]})

    def _grow(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        space = without_volume(one)
        more = self._part(space, there[space])
        return Conversion({one: there[one], space: more}, {one: there[one] + more})

    def _shrink(self, one: Resource, there: dict[Resource, int]) -> Conversion:
        less = int(self.chance.integers(1, there[one]))
        return Conversion({one: there[one]}, {one: there[one] - less, without_volume(one): less})

    def _part(self, resource: Resource, there: int) -> int:
        """A random part of it; all if it is indivisible."""
        if resource.indivisible or self.chance.random() < 0.3:
            return there
        step = 1 if resource.scalar else MILLI
        return int(self.chance.integers(1, there // step + 1)) * step


def _creatable(each: Resource, _amount: int) -> bool:
    on_disk = each.name == "disk" and each.source not in {"block", "raw"}
    return on_disk and bool(each.reservations) and not each.persistence


def _is_volume(each: Resource, _amount: int) -> bool:
    return bool(each.persistence)


def _elastic(resource: Resource) -> bool:
    """Whether a volume can grow and shrink: it is on a divisible disk and not shared."""
    return bool(resource.persistence) and not resource.source and not resource.shared


REFUSE_MS = (-1, 0, 500, 1_000, 5_000, 5_000, 30_000)
LIFE_MS_MAX = 15_000


class RandomFramework:
    """Accepts or declines offers at random, reserves and creates, suppresses and revives."""

    def __init__(self, identity: Identity, chance: np.random.Generator) -> None:
        self.identity = identity
        self.chance = chance
        self.gone = False

    def subscribed(self, master: Master) -> None:
        self._master = master

    def offered(self, offers: list[Offer]) -> None:
        """Answer each offer; an answer may rescind other offers."""
        for offer in offers:
            if not offer.live:
                continue
            if self.chance.random() < 0.35:
                self._master.decline([offer], self._refuse_ms())
            else:
                self._use(offer)
        draw = self.chance.random()
        if draw < 0.15:
            roles = self._some_roles()
            self._master.suppress(self, roles)
            self._master.event_heap.after(self._some_ms(), partial(self._revive, roles))
        elif draw < 0.2:
            self._master.revive(self, self._some_roles())

    def lost(self, tasks: list[Task]) -> None:
        """Do nothing: tasks are not run again."""

    def leave(self) -> None:
        self.gone = True
        self._master.unsubscribe(self)

    def _use(self, offer: Offer) -> None:
        """Apply an operation or none, and launch up to two tasks with the rest."""
        path = self._master.path(offer.role)
        wishes = OperationSampler(self.chance, path, self.identity.capabilities)
        conversions: list[Conversion] = []
        there = self._master.resources_of(offer.amount)
        if self.chance.random() < 0.5:
            wish = wishes.draw(there)
            conversions += [wish] if wish is not None else []
        left = offer.amount
        for conversion in conversions:
            left = minus(left, self._master.row(conversion.consumed))
        tasks = self._tasks(left)
        if not tasks and not conversions:
            self._master.decline([offer], self._refuse_ms())
            return
        for task in self._master.accept(offer, tasks, self._refuse_ms(), conversions):
            self._master.event_heap.after(self._some_ms(), partial(self._finish, task))

    def _tasks(self, there: Amount) -> list[Amount]:
        """Up to two tasks; both may use the same shared volume."""
        tasks: list[Amount] = []
        left: Amount = there
        for _ in range(int(self.chance.integers(1, 3))):
            has = self._master.resources_of(left)
            task = self._master.row({each: self._part(each, n) for each, n in has.items()})
            if any(task):
                tasks.append(task)
                used = self._master.resources_of(task)
                shared = {each: amount for each, amount in used.items() if each.shared}
                left = plus(minus(left, task), self._master.row(shared))
        return tasks

    def _part(self, resource: Resource, there: int) -> int:
        if resource.indivisible or resource.shared:
            return there if self.chance.random() < 0.5 else 0
        step = 1 if resource.scalar else MILLI
        whole = self.chance.random() < 0.3
        return there if whole else int(self.chance.integers(0, there // step + 1)) * step

    def _finish(self, task: Task) -> None:
        if task.live:
            self._master.end(task)

    def _revive(self, roles: tuple[str, ...]) -> None:
        """Revive those of the roles that it still has."""
        still = tuple(role for role in roles if role in self.identity.roles)
        if not self.gone and (still or not roles):
            self._master.revive(self, still)

    def _some_roles(self) -> tuple[str, ...]:
        """Some of its roles; none means all of them."""
        return tuple(role for role in self.identity.roles if self.chance.random() < 0.4)

    def _refuse_ms(self) -> int:
        return int(self.chance.choice(REFUSE_MS))

    def _some_ms(self) -> int:
        return int(self.chance.integers(1, LIFE_MS_MAX))
