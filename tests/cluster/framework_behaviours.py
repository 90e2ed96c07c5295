"""Manners of frameworks: how they handle offers."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.cluster.amounts import plain, reserved, scalar
from tests.cluster.framework import Framework, Manner, Offer


def role_of(offer: Offer) -> str:
    """The role that an offer is made to."""
    return offer["allocation_info"]["role"]


def free_scalars(offer: Offer) -> dict[str, float]:
    """Unreserved resources in an offer, by name."""
    free: dict[str, float] = {}
    for resource in offer["resources"]:
        if plain(resource):
            free[resource["name"]] = free.get(resource["name"], 0.0) + resource["scalar"]["value"]
    return free


def task_resources(offer: Offer, cpus: float, mem_mib: float) -> list[Any] | None:
    """Unreserved resources of a task out of an offer; None if there is not enough."""
    free = free_scalars(offer)
    if free.get("cpus", 0) < cpus or free.get("mem", 0) < mem_mib:
        return None
    role = role_of(offer)
    return [scalar("cpus", cpus, role), scalar("mem", mem_mib, role)]


def refuse(seconds: float = 0.0) -> Manner:
    """Decline everything."""
    return lambda framework, offer: framework.decline(offer, seconds)


def work(
    cpus: float, mem_mib: float, seconds: float, at_once: int, refuse_s: float = 0.0
) -> Manner:
    """Run one task on an offer while fewer than `at_once` run; decline the rest."""

    def manner(framework: Framework, offer: Offer) -> None:
        resources = task_resources(offer, cpus, mem_mib)
        if resources is None or len(framework.running()) >= at_once:
            framework.decline(offer, refuse_s)
        else:
            framework.launch(offer, resources, seconds)

    return manner


def fickle(seed: int, cpus: float, mem_mib: float, seconds: float, at_once: int) -> Manner:
    """Work, and occasionally keep, refuse for a while, suppress and revive."""
    chance = random.Random(seed)
    working = work(cpus, mem_mib, seconds, at_once)

    def manner(framework: Framework, offer: Offer) -> None:
        draw = chance.random()
        if draw < 0.6:
            working(framework, offer)
        elif draw < 0.75:
            framework.decline(offer, chance.choice((0.0, 0.5, 2.0)))
        elif draw < 0.85:
            framework.decline_all(0.0)
        elif draw < 0.95:
            framework.decline(offer, 30.0)
            framework.call("REVIVE", roles=[role_of(offer)])
        else:
            framework.decline(offer, 0.0)
            framework.call("SUPPRESS", roles=[role_of(offer)])
            framework.call("REVIVE", roles=[role_of(offer)])

    return manner


class Steward:
    """A framework that reserves, makes volumes, grows, shrinks and destroys them, and unreserves.

    done: operations asked for, by type.
    """

    def __init__(self, seed: int, at_once: int = 2) -> None:
        self._random = random.Random(seed)
        self._at_once = at_once
        self._names = (f"volume-{seed}-{number}" for number in itertools.count())
        self.done: Counter[str] = Counter()

    def __call__(self, framework: Framework, offer: Offer) -> None:
        """Apply one possible operation to the offer, or decline."""
        ways = list(self._ways(offer))
        if not ways or self._random.random() < 0.15:
            framework.decline(offer, self._random.choice((0.0, 0.0, 1.0)))
            return
        kind, fields = self._random.choice(ways)
        if kind == "LAUNCH":
            if len(framework.running()) < self._at_once:
                self.done[kind] += bool(framework.launch(offer, fields["resources"], 3))
            else:
                framework.decline(offer)
            return
        self.done[kind] += framework.accept(offer, [{"type": kind, kind.lower(): fields}])

    def _ways(self, offer: Offer) -> Iterator[tuple[str, dict[str, Any]]]:
        role = role_of(offer)
        mine = [each for each in offer["resources"] if each.get("reservations")]
        volumes = [each for each in mine if "disk" in each]
        space = [each for each in mine if each["name"] == "disk" and "disk" not in each]
        for resource in offer["resources"]:
            if plain(resource) and resource["scalar"]["value"] >= 1:
                yield "RESERVE", {"resources": [reserved(self._part(resource, 0.3), role)]}
        for resource in mine:
            if "disk" not in resource:
                yield "UNRESERVE", {"resources": [self._part(resource, 1.0)]}
        for resource in space:
            yield "CREATE", {"volumes": [self._volume(resource)]}
        for volume in volumes:
            yield "DESTROY", {"volumes": [volume]}
            for addition in space:
                yield "GROW_VOLUME", {"volume": volume, "addition": self._part(addition, 0.5)}
            # If its reservation also has free space, Mesos itself loses the space of a shrunk
            # volume.
            if volume["scalar"]["value"] > 2 and not space:
                yield "SHRINK_VOLUME", {"volume": volume, "subtract": {"value": 1}}
            task = task_resources(offer, 0.1, 32)
            if task is not None:
                yield "LAUNCH", {"resources": [*task, volume]}

    def _part(self, resource: Any, most: float) -> dict[str, Any]:
        """Some of a resource, up to a fraction of it."""
        value = resource["scalar"]["value"]
        part = value if most == 1.0 and self._random.random() < 0.5 else value * most
        part = round(part * self._random.choice((1.0, 0.5, 0.25)), 3)
        return {**resource, "scalar": {"value": max(part, 0.001)}}

    def _volume(self, space: Any) -> dict[str, Any]:
        disk = {
            "persistence": {"id": next(self._names)},
            "volume": {"container_path": "data", "mode": "RW"},
        }
        return {**self._part(space, 0.5), "disk": disk}
