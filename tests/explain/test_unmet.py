"""Unmet demand, and the agents that it needs, against exhaustive search on small worlds."""

from functools import cache
from math import ceil
from random import Random

import numpy as np
import pytest

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    GANG_LABEL,
    PolicySpec,
    SetLimit,
    SetPaused,
    Suppress,
)
from allocator.core.numba.shared_bits import no_bits
from allocator.explain import Picture, shapes_of, unmet
from allocator.explain.unmet import Shape, Unmet, Want, agents_needed
from tests.core.session import Session
from tests.tiers import long

SPEC = PolicySpec("drf", selection="listed", mode="characterised")


def compute(session: Session) -> Unmet:
    return unmet(Picture(session.allocator, []), shapes_of(session.state))


def cpus(found: Unmet, role: str) -> int:
    at = found.resources.index("cpus")
    return int(found.amounts[role][at]) // 1000 if role in found.amounts else 0


def full(agents: int = 2, size: int = 4, **settings) -> Session:
    """Agents of one size, all used by framework 1 in role b."""
    session = Session(SPEC, **settings)
    for agent in range(1, agents + 1):
        session.agent(agent, size, size)
    session.framework(1, 2, labels={DEMAND_LABEL: f"cpus:{size};mem:{size}"})
    for offer in session.cycle(1000):
        session.use(offer)
    session.allocator.step(Suppress(1, ()))
    return session


def wants(session: Session, framework: int, size: int, tasks: int = 0, role: int = 1) -> None:
    labels = {DEMAND_LABEL: f"cpus:{size};mem:{size}"}
    labels |= {GANG_LABEL: f"tasks:{tasks}"} if tasks else {}
    session.framework(framework, role, labels=labels)


def test_one_task_of_each_client_and_whole_gangs_are_unmet():
    session = full()
    wants(session, 2, 3)
    wants(session, 3, 1, tasks=8)
    found = compute(session)
    assert found.clients == 2
    assert cpus(found, "a") == 3 + 8
    assert found.agents == {"cpus:4;mem:4": 3}
    assert found.text == (
        "cpus:11;mem:11, of 2 clients; at least these agents are missing: 3 of cpus:4;mem:4"
    )


def test_nothing_is_unmet_if_everything_fits():
    session = Session(SPEC)
    for agent in (1, 2):
        session.agent(agent, 4, 4)
    wants(session, 2, 3)
    wants(session, 3, 1, tasks=5)
    found = compute(session)
    assert found.clients == 0
    assert found.agents == {"cpus:4;mem:4": 0}
    assert not found.text
    wants(session, 4, 1)
    assert compute(session).clients == 1, "the one that does not fit beside the others"


def test_demand_that_more_agents_would_not_serve_is_not_unmet():
    def left(session: Session) -> int:
        return compute(session).clients

    session = full()
    wants(session, 2, 5)
    assert left(session) == 0, "it fits no agent of the cluster"
    wants(session, 3, 2)
    assert left(session) == 1
    session.allocator.step(SetLimit("a", {"cpus": 1000}))
    assert left(session) == 0, "its limit is reached"
    session.allocator.step(SetLimit("a", {"cpus": 2000}))
    wants(session, 4, 2)
    assert left(session) == 1, "the limit leaves room for one of two"
    session.allocator.step(SetPaused(paused=True))
    assert left(session) == 0, "the master makes no offers"


def test_clients_that_refuse_suppress_or_declined_are_not_unmet():
    session = full(agents=1)
    session.agent(2, 4, 4)
    wants(session, 2, 4)
    (offer,) = session.cycle(2000)
    assert compute(session).clients == 0, "it has an offer"
    session.give_back(offer, refuse_ms=5000)
    assert compute(session).clients == 0, "it refuses what is free"
    wants(session, 3, 4)
    (offer,) = session.cycle(3000)
    session.use(offer)
    session.cycle(20_000)
    assert compute(session).clients == 1, "framework 3 wants more, framework 2 declined"
    session.allocator.step(Suppress(3, ()))
    assert compute(session).clients == 0


def test_new_agents_have_the_attributes_of_others_of_their_shape():
    session = Session(SPEC)
    session.agent(1, 4, 4, attributes={"zone": "a"})
    session.agent(2, 8, 8, attributes={"zone": "b"})
    session.agent(3, 4, 4, attributes={"zone": "a"})
    session.framework(1, 2, labels={DEMAND_LABEL: "cpus:4;mem:4"})
    for offer in session.cycle(1000):
        session.use(offer)
    session.allocator.step(Suppress(1, ()))
    labels = {DEMAND_LABEL: "cpus:3;mem:3", CONSTRAINT_LABEL: "zone=b"}
    session.framework(2, 1, labels=labels)
    assert compute(session).agents == {"cpus:4;mem:4": 0, "cpus:8;mem:8": 1}


def test_agents_of_about_one_size_have_one_shape():
    session = Session(SPEC)
    for agent, size in ((1, 4000), (2, 4001), (3, 4079), (4, 5000)):
        session.agent(agent, size, size)
    assert [(each.name, each.agents) for each in shapes_of(session.state)] == [
        ("cpus:4000;mem:4000", 3),
        ("cpus:5000;mem:5000", 1),
    ]


# First fit against exhaustive search.


def fewest(capacity: tuple[int, ...], items: list[tuple[int, ...]]) -> int:
    """The fewest agents that hold all items."""

    @cache
    def search(left: tuple[tuple[int, ...], ...], bins: tuple[tuple[int, ...], ...]) -> int:
        if not left:
            return len(bins)
        item, rest = left[0], left[1:]
        best = search(rest, tuple(sorted((*bins, _minus(capacity, item)))))
        for each in dict.fromkeys(bins):
            if all(a >= b for a, b in zip(each, item, strict=True)):
                more = [*bins]
                more.remove(each)
                best = min(best, search(rest, tuple(sorted((*more, _minus(each, item))))))
        return best

    return search(tuple(sorted(items, reverse=True)), ())


def _minus(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def naive(capacity: tuple[int, ...], items: list[tuple[int, ...]]) -> int:
    """First fit, one item after the other."""
    bins: list[tuple[int, ...]] = []
    for item in items:
        for at, rest in enumerate(bins):
            if all(a >= b for a, b in zip(rest, item, strict=True)):
                bins[at] = _minus(rest, item)
                break
        else:
            bins.append(_minus(capacity, item))
    return len(bins)


def pack(seed: int) -> None:
    chance = Random(seed)
    capacity = chance.randint(4, 10), chance.randint(4, 10)
    groups = sorted(
        (
            ((chance.randint(0, 4), chance.randint(1, 4)), chance.randint(1, 4))
            for _ in range(chance.randint(1, 3))
        ),
        key=lambda each: -max(a / b for a, b in zip(each[0], capacity, strict=True)),
    )
    items: list[tuple[int, ...]] = [item for item, count in groups for _ in range(count)]
    shape = Shape("it", 1, np.array(capacity), no_bits(1, 1))
    wants = [Want([1], np.array(item), count) for item, count in groups]
    found = agents_needed(wants, [shape])["it"]
    assert found == naive(capacity, items)
    volume = max(
        ceil(sum(item[at] for item in items) / capacity[at]) for at in range(len(capacity))
    )
    best = fewest(capacity, items[:9])
    if len(items) <= 9:
        # With two resources first fit needs at most 2.7 times as many (Garey, Graham, Johnson,
        # Yao. "Resource constrained scheduling as generalized bin packing." 1976).
        assert volume <= best <= found <= 2.7 * best + 1


def test_agents_needed_are_few():
    for seed in range(60):
        pack(seed)


@pytest.mark.parametrize("seeds", long(*(range(n, n + 500) for n in range(0, 5000, 500))))
def test_agents_needed_are_few_in_thousands_of_packings(seeds):
    for seed in seeds:
        pack(seed)


def test_a_crowd_costs_little_and_is_bounded():
    session = Session(SPEC, {number: f"r{number}" for number in range(1, 1001)})
    for agent in (1, 2):
        session.agent(agent, 4, 4)
    chance = Random(1)
    for framework in range(1, 301):
        amount = chance.choice(["0.001", "3.999", "4", str(10**9), f"{framework / 100}"])
        labels = {DEMAND_LABEL: f"cpus:{amount};mem:1"}
        labels |= {GANG_LABEL: "tasks:100000"} if framework % 3 == 0 else {}
        session.framework(framework, 1 + framework % 1000, labels=labels)
    found = compute(session)
    assert 0 < found.clients < 300
    assert list(found.agents) == ["cpus:4;mem:4"]
    assert found.agents["cpus:4;mem:4"] >= 25_000, "gangs larger than the cluster count whole"
