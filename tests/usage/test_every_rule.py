"""Usage, averages and budgets are exact in lives with all rules together, and with failovers.

Gangs, caps, claims, limits, hard and soft budgets, drains that begin soon, pauses and averages that
count for shares: operators change all of them at any moment, and reset averages. The naive twins
visit the books after each record.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from allocator.core import (
    AGENTS,
    ForgetUsage,
    PolicySpec,
    SetBudget,
    SetGang,
    Settings,
    State,
    usage_of,
)
from allocator.core.demand.usage_memory import DECAY, SLOTS
from allocator.wire import OperatorEvent
from tests.laboratory.master.masters import wire_link
from tests.tiers import EVERYTHING, some
from tests.usage.test_account import Life, live
from tests.usage.twin import compare, look
from tests.wire.journal.following import Meddled

LIFE_MS = 8_000 if EVERYTHING else 3_000
HALF_LIFE_MS = 2_000
SLOT_MS = HALF_LIFE_MS // SLOTS


class Integrals:
    """What each role held in each piece of time in sessions.

    `pieces`: begin and length in milliseconds of elapsed time, and amounts by role and resource.
    `spent`: amounts times milliseconds by role with a budget, of the role and those below it.
    """

    def __init__(self) -> None:
        self.pieces: list[tuple[int, int, Counter[Any]]] = []
        self.spent: dict[str, Counter[str]] = {}
        self.elapsed_ms = 0
        self._state: State | None = None
        self._clock_ms = -1
        self._held = Counter[Any]()

    def follow(self, state: State) -> None:
        # The first message of a session only sets the clock, which is -1 before.
        clock_ms = state.memory.clock_ms
        if state is self._state and clock_ms > self._clock_ms >= 0:
            self._pass(clock_ms - self._clock_ms)
        self._state, self._clock_ms = state, clock_ms
        self._held = Counter()
        for ((role, *_), resource, _), amount in look(state).held.items():
            self._held[role, resource] += amount
        budgets = [role for (role,) in state.settings.budgets]
        self.spent = {role: self.spent.get(role, Counter()) for role in budgets}

    def _pass(self, span_ms: int) -> None:
        self.pieces.append((self.elapsed_ms, span_ms, self._held))
        self.elapsed_ms += span_ms
        for path, spent in self.spent.items():
            for (role, resource), amount in self._held.items():
                if f"{role}/".startswith(f"{path}/"):
                    spent[resource] += amount * span_ms

    def forget(self, event: ForgetUsage) -> None:
        for _, _, held in self.pieces:
            for role, resource in list(held):
                if event.concerns(role, ""):
                    del held[role, resource]

    def averages(self) -> dict[Any, float]:
        """By the definition: the integral over each slot, times the slot's weight."""
        last, found = self.elapsed_ms // SLOT_MS, defaultdict[Any, float](float)
        for begin_ms, span_ms, held in self.pieces:
            end_ms = begin_ms + span_ms
            weight = 0.0
            for slot in range(begin_ms // SLOT_MS, end_ms // SLOT_MS + 1):
                inside = min(end_ms, (slot + 1) * SLOT_MS) - max(begin_ms, slot * SLOT_MS)
                weight += max(inside, 0) * DECAY ** (last - slot)
            for key, amount in held.items():
                found[key] += amount * weight
        whole = SLOT_MS * DECAY / (1 - DECAY) + self.elapsed_ms % SLOT_MS
        return {key: amount / whole for key, amount in found.items()}


class RuledLife(Meddled, Life):
    """A life in which operators change rules, and reset averages."""

    forgotten = 0
    over = 0

    def __init__(self, seed: int, settings: Settings) -> None:
        self.integrals = Integrals()
        super().__init__(seed, settings)
        self.random = Random(seed)

    def _write(self, record):
        super()._write(record)
        if hasattr(self, "sidecar"):
            self.integrals.follow(self.allocator.state)
            self.over += bool(self.allocator.state.memory.budgets.over)

    def _meddling(self):
        every = super()._meddling()
        mine = {name: every[name] for name in ("change", "look", "unknown_client")}
        return {**mine, "forget": self._forget_some}

    def _changes(self) -> Iterator[OperatorEvent]:
        for each in super()._changes():
            if not isinstance(each, Settings):  # another half-life
                yield each

    def _forget_some(self) -> None:
        self.step(ForgetUsage(self.random.choice(("", "a", "a/x", "b"))))

    def step(self, event: OperatorEvent) -> None:
        before = len(self.records)
        super().step(event)
        if isinstance(event, ForgetUsage) and len(self.records) > before:
            self.integrals.forget(event)
            self.forgotten += 1


def lived(seed: int) -> RuledLife:
    spec = PolicySpec("drf", mode="characterised")
    settings = Settings(policy=spec, seed=seed, half_life_ms=HALF_LIFE_MS, usage_weight=0.7)
    settings.patience_cycles, settings.collect_ms = 2, 2000
    settings.put(SetGang("a*", "", 2))
    settings.put(SetBudget("a", {"cpus": 5}, "day"))
    link = wire_link(spec.name, spec.mode, seed)
    life = RuledLife(seed, settings)
    live(life, link, seed, LIFE_MS)
    return life


RICH = 1
"""A life in which everything happens."""


@pytest.mark.parametrize("seed", some(range(30), [RICH]))
def test_all_time_is_accounted_for_under_every_rule(seed):
    life = lived(seed)
    compare(life.twin, life.kept.hours())
    assert life.again.hours() == life.kept.hours()
    state = life.allocator.state
    found = defaultdict[Any, float](float)
    for (role, _), amounts in usage_of(state).items():
        for resource, amount in amounts.items():
            if resource != AGENTS:
                found[role, resource] += amount
    expected = life.integrals.averages()
    for key in {*found, *expected}:
        if key[1] in {"cpus", "mem"}:
            assert found[key] == pytest.approx(expected.get(key, 0.0), rel=1e-6, abs=2), key
    for role, spent in life.integrals.spent.items():
        its = state.memory.budgets.spent[role]
        assert its.used.get("cpus", 0) == spent["cpus"], role
    if seed == RICH:
        assert life.over
        assert life.forgotten
        assert life.gangs
        assert life.restarts
        assert len(life.integrals.pieces) > 20
