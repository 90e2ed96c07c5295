"""What frameworks do with their offers."""

import random
from typing import Any

from tests.cluster.amounts import plain, scalar
from tests.cluster.framework import Framework, Manner, Offer


def role_of(offer: Offer) -> str:
    """The role that an offer is made to."""
    return offer["allocation_info"]["role"]


def free_scalars(offer: Offer) -> dict[str, float]:
    """What is unreserved in an offer, by name."""
    free: dict[str, float] = {}
    for resource in offer["resources"]:
        if plain(resource):
            free[resource["name"]] = free.get(resource["name"], 0.0) + resource["scalar"]["value"]
    return free


def task_resources(offer: Offer, cpus: float, mem_mib: float) -> list[Any] | None:
    """Unreserved resources of a task out of an offer; None where there is not enough."""
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
    """Run one task out of an offer while fewer than `at_once` run; decline what is left."""

    def manner(framework: Framework, offer: Offer) -> None:
        resources = task_resources(offer, cpus, mem_mib)
        if resources is None or len(framework.running()) >= at_once:
            framework.decline(offer, refuse_s)
        else:
            framework.launch(offer, resources, seconds)

    return manner


def fickle(seed: int, cpus: float, mem_mib: float, seconds: float, at_once: int) -> Manner:
    """Work, and now and then keep, refuse for a while, suppress and revive."""
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
