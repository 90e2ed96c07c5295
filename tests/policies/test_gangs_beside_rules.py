"""Gangs beside caps, budgets, claims, pauses, drains that begin soon, trees of roles, and plans.

Rules change while gangs wait and collect. Each cycle of a random world is judged from the master's
view, as in `test_nothing_is_left`.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from allocator.core import SetBudget, SetCap, SetClaim, SetDrain, SetGang, SetPause
from allocator.core.cycle import collecting, gangs
from allocator.core.demand.durations import SAMPLES_MIN
from allocator.core.snapshot import Grants
from tests.policies.test_gangs import has_room, offered_together, requested, room
from tests.policies.test_nothing_is_left import (
    CAPS,
    PATIENCE,
    ROLES,
    Left,
    Seen,
    dropped,
    make,
    noted,
    over_caps,
    over_counts,
)
from tests.tiers import long
from tests.world.nouns import Offer

AHEAD_MS = 6_000
COLLECT_MS = 8_000
CYCLES = 14


class Life:
    """A world with gangs whose rules change, and whose frameworks use, refuse and release.

    `met`: how often the pairs of a gang and a rule occurred.
    """

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.world = world = make(chance, rules=True)
        settings = world.allocator.settings
        settings.patience_cycles = PATIENCE
        settings.collect_ms, settings.drain_ahead_ms = COLLECT_MS, AHEAD_MS
        for role in chance.sample(ROLES, 2):
            world.allocator.step(SetGang(role, "", chance.randint(1, 6)))
        self.unlike = requested(world, chance) if seed % 3 == 0 else {}
        durations = world.allocator.state.memory.durations
        for role in chance.sample(ROLES, 3):
            ends = {chance.randint(0, 6): 2 * SAMPLES_MIN}
            durations.teach(settings, (role, "name", "framework-#"), ends, 0)
        self.used = list[Offer]()
        self.met = Counter[str]()

    def change(self) -> None:
        """Change one rule."""
        chance, world = self.chance, self.world
        step, settings = world.allocator.step, world.allocator.settings
        role = chance.choice(ROLES)
        match chance.randrange(6):
            case 0:
                step(SetPause(role, role not in settings.pauses))
            case 1:
                budget = None if (role,) in settings.budgets else {"cpus": 1}
                step(SetBudget(role, budget, "day", hard=chance.random() < 0.5))
            case 2:
                role, per, cap = chance.choice(CAPS)
                step(SetCap(role, per, None if (role, per) in settings.caps else cap))
            case 3:
                host = f"host-{chance.choice(sorted(world.agents))}"
                from_ms = world.now_ms + chance.randint(2_000, 12_000)
                drained = host not in settings.drains
                step(SetDrain(host, drained, from_ms if drained else 0))
            case 4:
                step(SetClaim(role, None if (role,) in settings.claims else {"cpus": 2000}))
            case 5:
                step(SetGang(role, "", chance.randint(1, 6)))

    def answer(self, offers: list[Offer]) -> None:
        """End some tasks, and use, refuse or release offers."""
        for offer in [offer for offer in self.used if self.chance.random() < 0.25]:
            self.used.remove(offer)
            self.world.finish(offer)
        for offer in offers:
            how = self.chance.random()
            if how < 0.6:
                self.world.use(offer)
                self.used.append(offer)
            else:
                self.world.decline(offer, refuse_s=3 if how < 0.7 else -1)

    def play(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Seen, bool]]:
        """Run cycles; yields each, and whether it was over all agents."""
        agents = list(self.world.agents.values())
        with noted(monkeypatch) as seen:
            for _ in range(CYCLES):
                if self.chance.random() < 0.4:
                    self.change()
                whole = self.chance.random() < 0.85
                some = [] if whole else self.chance.sample(agents, 1)
                offers = self.world.cycle(*some)
                yield from ((each, whole) for each in seen)
                seen.clear()
                self.answer(offers)


# What must not happen. Each returns the clients concerned, or pairs.


def unmade(_: Life, seen: Seen) -> list[tuple[int, int]]:
    """Grants that make no offer."""
    return dropped(seen)


def over(life: Life, seen: Seen) -> list[tuple[str, ...]]:
    """Caps that are exceeded."""
    return [*over_caps(life.world, seen), *over_counts(life.world, seen)]


def parts(life: Life, seen: Seen) -> list[int]:
    """Gangs that are granted, without room for all of their tasks."""
    found, its = [], seen.snapshot.gangs
    if its is None:
        return []
    framework = life.world.allocator.state.clients.framework
    for client, tasks in zip(its.client.tolist(), its.tasks.tolist(), strict=True):
        if client not in seen.grants.client:
            continue
        if client in its.unlike:
            whole = has_room(seen, client, life.unlike[int(framework[client])])
        else:
            whole = room(seen, client) >= tasks
        found += [] if whole else [client]
    offered_together(life.world, seen)
    return found


def left(_: Life, seen: Seen) -> list[tuple[int, int]]:
    """Pairs of a client without a gang and an agent that could still be offered to it."""
    its = seen.snapshot.gangs
    of_gangs = [] if its is None else its.client.tolist()
    kept = [] if its is None else its.collects_on.tolist()
    pairs = Left(seen).pairs()
    return [(who, where) for who, where in pairs if who not in of_gangs and where not in kept]


def idle(_: Life, seen: Seen) -> list[int]:
    """Gangs that fit on plain free resources although nothing is granted.

    Those that state minimums, or are under a cap on agents, are left out.
    """
    its, snapshot = seen.snapshot.gangs, seen.snapshot
    if its is None or len(seen.grants) or len(its.collects):
        return []
    counts = snapshot.counts
    capped = np.zeros(len(snapshot.demand)) if counts is None else counts.limits_agents()
    first, end = snapshot.minimum_rows.T
    found, rest = [], Left(seen)
    for client, tasks in zip(its.client.tolist(), its.tasks.tolist(), strict=True):
        demand = snapshot.demand[client]
        bounds = [rest.bound_left[bound] for bound in rest.bounds(client)]
        if client in its.unlike or capped[client] or first[client] < end[client]:
            continue
        if any((bound < tasks * demand).any() for bound in bounds):
            continue
        fits = sum(
            int((rest.free[agent] // np.maximum(demand, 1))[demand > 0].min())
            for agent in snapshot.agents.tolist()
            if not rest.is_out(client, agent)
        )
        found += [client] if fits >= tasks else []
    return found


def kept(life: Life, seen: Seen) -> list[int]:
    """Agents on which two gangs collect, or one that must not."""
    state = life.world.allocator.state
    over_budget, found = state.over_budget(hard=False), list[int]()
    counts = seen.snapshot.counts
    for client, its in state.clients.collecting.items():
        agents = set(its.agent)
        life.met["collects"] += 1
        wrong = over_budget[client] or not state.live_clients()[client]
        wrong |= counts is not None and bool(counts.limits_agents()[client])
        barred = set(np.flatnonzero(state.eligibility.excluded_of(client)).tolist())
        found += sorted(agents if wrong else agents & barred)
    every = Counter(agent for its in state.clients.collecting.values() for agent in set(its.agent))
    return found + [agent for agent, times in every.items() if times > 1]


def taken(life: Life, seen: Seen) -> list[int]:
    """Agents where others are granted what a gang keeps, and that it does not lend.

    Agents with special resources are left out: a gang may keep these instead of plain ones.
    """
    its, grants, found = seen.snapshot.gangs, seen.grants, list[int]()
    if its is None or seen.snapshot.bounds.required.any():
        return []
    snapshot, rest = seen.snapshot, Left(seen)
    collecting = life.world.allocator.state.clients.collecting
    if any(client in grants.client for client in its.collects):
        return []  # its own room is free again, and later gangs choose differently
    for client in its.collects.tolist():
        agents, wanted = gangs.kept_for(snapshot, client)
        for agent, amount in zip(agents.tolist(), wanted, strict=True):
            special = snapshot.specials.start[agent] < snapshot.specials.start[agent + 1]
            if special or int(snapshot.handle[agent]) in collecting[client].lent:
                continue
            if (rest.free[agent] < np.minimum(amount, snapshot.free[agent])).any():
                found.append(agent)
    return found


ALWAYS: tuple[Callable[[Life, Seen], list], ...] = (unmade, over, parts)
WHOLE: tuple[Callable[[Life, Seen], list], ...] = (left, idle, kept, taken)


def meetings(life: Life, seen: Seen) -> None:
    """Count which rules apply to gangs of this cycle."""
    its, snapshot, state = seen.snapshot.gangs, seen.snapshot, life.world.allocator.state
    if its is None:
        return
    life.met["granted"] += len(np.intersect1d(its.client, seen.grants.client))
    drains = state.agents.drained_from_ms
    soon = np.flatnonzero((drains > 0) & (drains <= life.world.now_ms + AHEAD_MS))
    for client in its.client.tolist():
        life.met["cap"] += len(snapshot.bounds.rows_of(client)) > 0
        life.met["cap on counts"] += snapshot.counts is not None
        life.met["soft budget"] += snapshot.over_budget is not None
        life.met["claim"] += snapshot.claimed is not None
        life.met["drain"] += bool(state.eligibility.late_of(client)[soon].any())
        life.met["plan"] += snapshot.plan is not None
    life.met["pause"] += bool(life.world.allocator.settings.pauses)


def faults(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Counter[str]]:
    life, found = Life(seed), list[str]()
    for at, (seen, whole) in enumerate(life.play(monkeypatch)):
        meetings(life, seen)
        for judge in (*ALWAYS, *WHOLE) if whole else ALWAYS:
            wrong = judge(life, seen)
            found += [f"world {seed}, cycle {at}: {judge.__name__} {wrong}"] if wrong else []
    life.world.allocator.check()
    return found, life.met


def met_in_worlds(
    faults: Callable[[int, pytest.MonkeyPatch], tuple[list[str], Counter[str]]],
    seeds: range,
    monkeypatch: pytest.MonkeyPatch,
) -> Counter[str]:
    """Play worlds, which must have no faults; returns how often what is counted occurred."""
    met = Counter[str]()
    for seed in seeds:
        found, counts = faults(seed, monkeypatch)
        assert not found
        met += counts
    return met


MET = (
    *("granted", "collects", "cap", "cap on counts", "soft budget", "claim", "drain", "plan"),
    "pause",
)


@pytest.mark.parametrize("seed", range(4))
def test_gangs_keep_to_rules_that_change(seed, monkeypatch):
    assert not faults(seed, monkeypatch)[0]


@pytest.mark.parametrize("first", long(*range(0, 1200, 60)))
def test_gangs_keep_to_rules_that_change_in_many_worlds(first, monkeypatch):
    met = met_in_worlds(faults, range(first, first + 60), monkeypatch)
    assert all(met[each] for each in MET), "each pair occurs"


def rules_ignored(patch: pytest.MonkeyPatch) -> None:
    """As if clients over budget, or under a cap on agents, could collect."""
    patch.setattr(collecting, "_may_collect", lambda snapshot: snapshot.gangs.client)


def nothing_kept(patch: pytest.MonkeyPatch) -> None:
    """As if what gangs collect were free for all."""
    patch.setattr(gangs, "collected", lambda snapshot, _: Grants.none(len(snapshot.resources)))


def never_placed(patch: pytest.MonkeyPatch) -> None:
    """As if no gang ever fitted."""
    patch.setattr(gangs, "_place", lambda *_: None)


def first_left_out(patch: pytest.MonkeyPatch) -> None:
    """As if a gang needed one agent less."""
    place = gangs._place

    def part(*given: Any) -> Grants | None:
        found = place(*given)
        return found if found is None or len(found) < 2 else found.some(np.arange(len(found)) > 0)

    patch.setattr(gangs, "_place", part)
    patch.setattr(gangs, "in_part", lambda _, grants, *__: np.zeros(len(grants), np.bool_))


@pytest.mark.parametrize(
    ("broken", "seed", "judge"),
    [
        (never_placed, 0, idle),
        (first_left_out, 0, parts),
        (nothing_kept, 17, taken),
        pytest.param(rules_ignored, 15, kept, marks=pytest.mark.long),
    ],
)
def test_a_core_that_breaks_a_rule_is_found_out(broken, seed, judge, monkeypatch):
    with monkeypatch.context() as patch:
        broken(patch)
        found, _ = faults(seed, patch)
    assert any(f": {judge.__name__} " in each for each in found)
