"""What gangs collect is lent beside caps, claims, quotas, budgets, pauses, drains and plans.

Guests are drawn at random: in small random worlds, learnt durations hardly ever allow lending.
"""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from allocator.core.books.state import State
from allocator.core.cycle import backfilling, collecting, within_counts
from allocator.core.cycle import cycle as cycles
from allocator.core.cycle.derived import joined
from allocator.core.snapshot import Grants, Snapshot
from tests.policies.test_gangs_beside_rules import ALWAYS, Life, idle, kept, met_in_worlds
from tests.tiers import long


class Lent(NamedTuple):
    """The grants of a cycle, and these with the grants to guests."""

    snapshot: Snapshot
    before: Grants
    grants: Grants

    @property
    def more(self) -> Grants:
        return self.grants.some(np.arange(len(self.grants)) >= len(self.before))


def drawn(state: State, snapshot: Snapshot, _: object) -> Snapshot:
    """Draw guests of each gang that collects, from the clients that may be guests."""
    its = snapshot.gangs
    if its is None or not len(its.collects):
        return snapshot
    chance = np.random.default_rng(state.now_ms)
    shape = len(its.collects), len(snapshot.leaf_of_client)
    guests = chance.random(shape) < chance.choice([0.3, 0.7, 1.0])
    guests &= snapshot.leaf_of_client >= 0
    guests[:, its.collects] = False
    if snapshot.over_budget is not None:
        guests[:, snapshot.over_budget] = False
    return replace(snapshot, gangs=its._replace(guests=guests))


def not_guests(lent: Lent) -> list[tuple[int, int]]:
    """Clients that were lent an agent although they are no guests of the gang there."""
    its = lent.snapshot.gangs
    assert its is not None
    assert its.guests is not None
    row = {client: at for at, client in enumerate(its.collects.tolist())}
    owner = dict(zip(its.collects_on.tolist(), its.collector.tolist(), strict=True))
    pairs = zip(lent.more.client.tolist(), lent.more.agent.tolist(), strict=True)
    return [
        (client, agent)
        for client, agent in pairs
        if agent in owner and not its.guests[row[owner[agent]], client]
    ]


def displaced(lent: Lent) -> list[int]:
    """Earlier grants that were changed, or no longer fit below caps on tasks and agents."""
    count = len(lent.before)
    same = lent.grants.pair[:count] == lent.before.pair
    fits = within_counts.within(lent.snapshot, lent.grants)[:count]
    return np.flatnonzero(~(same & fits)).tolist()


def meetings(lent: Lent, met: Counter[str]) -> None:
    """Count which rules apply to what is lent."""
    snapshot, its = lent.snapshot, lent.snapshot.gangs
    if not len(lent.more) or its is None:
        return
    met["lent"] += 1
    met["to a gang"] += bool(np.isin(lent.more.client, its.client).any())
    met["cap on counts"] += snapshot.counts is not None
    met["claim"] += snapshot.claimed is not None
    met["guarantee"] += bool(snapshot.bounds.required.any())
    met["soft budget"] += snapshot.over_budget is not None
    met["plan"] += snapshot.plan is not None


MET = ("lent", "to a gang", "cap on counts", "claim", "guarantee", "soft budget", "plan")


def faults(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Counter[str]]:
    life, found, made, met = Life(seed), list[str](), list[Lent](), Counter[str]()
    settings = life.world.allocator.settings
    settings.patience_cycles, settings.collect_ms = 1, 200_000  # gangs collect soon, and for long
    real = backfilling.with_backfill

    def noting(policy, snapshot: Snapshot, grants: Grants, seed: int) -> Grants:
        made.append(Lent(snapshot, grants, real(policy, snapshot, grants, seed)))
        return made[-1].grants

    with monkeypatch.context() as patch:
        patch.setattr(collecting, "with_guests", drawn)
        patch.setattr(cycles, "with_backfill", noting)
        for at, (seen, whole) in enumerate(life.play(patch)):
            wrong = dict[str, list]()
            for lent in made:
                meetings(lent, met)
                if lent.snapshot.gangs is not None and lent.snapshot.gangs.guests is not None:
                    wrong |= {"not_guests": not_guests(lent), "displaced": displaced(lent)}
            made.clear()
            judges = (*ALWAYS, idle, kept) if whole else ALWAYS
            wrong |= {judge.__name__: judge(life, seen) for judge in judges}
            found += [f"world {seed}, cycle {at}: {name} {w}" for name, w in wrong.items() if w]
    life.world.allocator.check()
    return found, met


@pytest.mark.parametrize("seed", range(4))
def test_what_is_lent_keeps_to_rules_that_change(seed, monkeypatch):
    assert not faults(seed, monkeypatch)[0]


@pytest.mark.parametrize("first", long(*range(0, 600, 200)))
def test_what_is_lent_keeps_to_rules_that_change_in_many_worlds(first, monkeypatch):
    met = met_in_worlds(faults, range(first, first + 200), monkeypatch)
    assert all(met[each] for each in MET), "each rule meets lending"


def lent_to_all(patch: pytest.MonkeyPatch) -> None:
    """As if every client were a guest of every gang."""
    patch.setattr(backfilling, "_barred", lambda left, _: (left.excluded, left.excluding))


def guests_first(patch: pytest.MonkeyPatch) -> None:
    """As if guests came before all others."""
    patch.setattr(backfilling, "joined", lambda snapshot, parts: joined(snapshot, parts[::-1]))


@pytest.mark.parametrize(
    ("broken", "seed", "name"), [(lent_to_all, 17, "not_guests"), (guests_first, 17, "displaced")]
)
def test_a_core_that_lends_wrongly_is_found_out(broken, seed, name, monkeypatch):
    with monkeypatch.context() as patch:
        broken(patch)
        found, _ = faults(seed, patch)
    assert any(f": {name} " in each for each in found)
