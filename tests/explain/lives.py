"""Random lives of frameworks, whose forecasts are compared with what happens.

`python -m tests.explain.lives --out tools/docs/data/forecasts.json` keeps how often forecasts of
many lives held, by how far ahead they were, for the page about forecasts.
"""

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from allocator.core import DEMAND_LABEL, PolicySpec
from allocator.explain import Calibration, NextOffer, Picture, next_offer
from tests.core.session import Session
from tests.docs import docs_scripts
from tests.world.rows import given_back

forecasts = docs_scripts.load("forecasts")

SECOND = 1000
DRF = PolicySpec("drf", selection="listed", mode="characterised")


class Life:
    """Frameworks that always want more, and whose tasks run for random times.

    `forecasts`: of each waiting client, p50 and p95, on the clock, without correction.
    `results`: what came of them.
    `calibration`: corrects forecasts of this life; they are `offered` with their offers.
    """

    def __init__(self, spec: PolicySpec, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.session = Session(spec, {1: "a", 2: "b"}, seed=seed)
        for agent in range(1, chance.randint(4, 8)):
            size = chance.randint(3, 6)
            self.session.agent(agent, size, size)
        self.count = chance.randint(3, 6)
        self.role = {each: chance.randint(1, 2) for each in range(1, self.count + 1)}
        self.cpus = {each: chance.choice([1, 1, 2, 3]) for each in self.role}
        self.mean_s = {each: chance.choice([5, 10, 20, 40]) for each in self.role}
        for each, cpus in self.cpus.items():
            labels = {DEMAND_LABEL: f"cpus:{cpus};mem:{cpus}"}
            self.session.framework(each, self.role[each], name="abcdefgh"[each], labels=labels)
        self.runs = list[tuple[int, int, int]]()
        self.forecasts = dict[int, tuple[int, int]]()
        self.results = Counter[str]()
        self.calibration = Calibration[int]()
        self.offered = list[Any]()  # of `Judged`
        self._waits = list[tuple[int, int, NextOffer, NextOffer]]()
        self.now_ms = 0

    def _lasts_ms(self, framework: int) -> int:
        mean = SECOND * self.mean_s[framework]
        return round(self.chance.choice([mean / 2, mean * self.chance.expovariate(1)])) + 1

    def cycle(self) -> None:
        self.now_ms += SECOND
        for run in [each for each in self.runs if each[0] <= self.now_ms]:
            when_ms, framework, agent = run
            self.runs.remove(run)
            self.session.allocator.advance(when_ms)
            cpus = self.cpus[framework]
            back = self.session.holdings(framework, self.role[framework], agent, cpus, cpus)
            self.session.allocator.step(given_back(back, used=True))
        self.runs.sort()
        offers = self.session.cycle(self.now_ms)
        for offer in offers:
            framework, role, agent, has = offer
            size = self.cpus[framework]
            assert has["cpus"] % size == 0
            for _ in range(has["cpus"] // size):
                self.session.use((framework, role, agent, {"cpus": size, "mem": size}))
                self.runs.append((self.now_ms + self._lasts_ms(framework), framework, agent))
        self.runs.sort()
        self._settle({each[0] for each in offers})

    def _settle(self, offered: set[int]) -> None:
        for each in [each for each in self._waits if each[0] in offered]:
            self._waits.remove(each)
            _, made_ms, offer, shown = each
            times_ms = shown.expected_ms, shown.latest_ms
            self.offered.append(
                forecasts.Judged(
                    offer.expected_ms, offer.latest_ms, times_ms, self.now_ms - made_ms
                )
            )
        for framework in sorted(offered):
            self.calibration.came(framework, self.now_ms)
        self.calibration.tick(self.now_ms)
        for framework, (expected_ms, latest_ms) in [*self.forecasts.items()]:
            if framework in offered:
                early, held = self.now_ms < expected_ms, self.now_ms <= latest_ms
                self.results["early" if early else "held" if held else "late"] += 1
                del self.forecasts[framework]
            elif self.now_ms > latest_ms:
                self.results["late"] += 1
                del self.forecasts[framework]

    def look(self) -> None:
        """Forecast the next offers of all clients that have none open."""
        state = self.session.state
        rows = {each: state.clients.row(each, role) for each, role in self.role.items()}
        picture = Picture(self.session.allocator, list(rows.values()))
        corrections = self.calibration.corrections(self.now_ms)
        for framework, subject in zip(rows, picture.subjects, strict=True):
            found = next_offer(picture, subject)
            shown = self.calibration.expect(framework, self.now_ms, found, corrections)
            if shown.latest_ms >= 0:
                self._waits.append((framework, self.now_ms, found, shown))
            if found.latest_ms < 0:
                self.results["none"] += 1
            elif framework not in self.forecasts:
                times = found.expected_ms, found.latest_ms
                self.forecasts[framework] = (self.now_ms + times[0], self.now_ms + times[1])

    def to_end(self) -> None:
        """Run until all offers that are forecast have come: long waits count like short ones."""
        for _ in range(CYCLES_MORE_MAX):
            if not self._waits:
                return
            self.cycle()
        raise AssertionError(f"still waiting after {self.now_ms} ms: {self._waits}")


CYCLES_MORE_MAX = 2000


def live(seed: int, policy: str = "drf", cycles: int = 400) -> Life:
    life = Life(replace(DRF, name=policy), seed)
    for number in range(cycles):
        life.cycle()
        if number >= 100 and number % 10 == 0:
            life.look()
    life.session.allocator.check()
    return life


EDGES_S = (0, 1, 2, 5, 10, 20, 40, 1000)


def calibration(lives: int) -> dict[str, object]:
    """How many offers came before the p50 and before the p95 of their forecast."""
    offered = []
    for seed in range(lives):
        life = live(seed)
        life.to_end()
        offered += life.offered
    rows = forecasts.binned(offered, EDGES_S)
    return {"lives": lives, "rows": rows, "width": forecasts.width(offered)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=40)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = calibration(arguments.lives)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
