"""Forecasts on a recorded day of MapReduce: `python tools/docs/mapreduce_day.py --trace FILE`.

`FILE` is a SWIM sample of Facebook's load. Results are kept in `data/mapreduce_day.json`;
`make docs` writes a section of the page about forecasts from what is kept.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import forecasts
from forecast_notes import Noted, Offered, look, play_all

from allocator.core import PolicySpec, Settings
from allocator.policies import build
from laboratory.frameworks.batch import Manner, Work
from laboratory.links.base import DirectLink
from laboratory.workloads.scenario import JobStage
from laboratory.workloads.traces import Arrival, Replay, SwimJob, read_swim, swim

INTERVAL_MS = 10_000
LOOK_MS = 240_000
LOOKED_AT = 6

AGENTS = 2
MAPS_MAX = 100
"""Jobs of more maps are left out."""

HOUR_MS = 3_600_000
UNTIL_MS = 30 * HOUR_MS

EDGES_S = (0, 10, 30, 60, 120, 300, 10**9)
"""Limits of the p50 of forecasts that are counted together."""


class _Day:
    """A day as a playable scenario; each user is a role and a principal."""

    def __init__(self, replay: Replay, link: DirectLink, notes: Offered) -> None:
        self._replay, self._link, self._notes = replay, link, notes
        self.kinds, self.agents, self.jobs = replay.kinds, replay.agents, replay.jobs

    def begin(self, stage: JobStage) -> None:
        for arrival in self._replay.arrivals:
            stage.at(arrival.time_ms, partial(self._submit, stage, arrival))
        see = partial(look, stage, self._link, self._notes, LOOK_MS, LOOKED_AT)
        stage.at(LOOK_MS, see)

    def _submit(self, stage: JobStage, arrival: Arrival) -> None:
        identity = stage.identity(arrival.name, arrival.role, arrival.need)
        made = Noted(
            replace(identity, principal=arrival.role),
            (Work(dict(arrival.need), arrival.durations_ms),),
            Manner(),
            lambda _cancelled: stage.ended(arrival.role),
        )
        made.notes = self._notes
        stage.submit(made)


def chosen(jobs: Sequence[SwimJob]) -> list[SwimJob]:
    """Choose the jobs that are played."""
    return [each for each in jobs if each.maps(MAPS_MAX + 1) <= MAPS_MAX]


def play(jobs: Sequence[SwimJob], seed: int = 0) -> Offered:
    """Play the jobs of a day, and forecast next offers."""
    notes, settings = Offered(), Settings(PolicySpec("drf", mode="characterised"))
    link = DirectLink(build, settings)
    play_all(_Day(swim(jobs, AGENTS, seed), link, notes), link, INTERVAL_MS, UNTIL_MS)
    return notes


def compute(trace: Path) -> None:
    """Play the day, and keep what came out."""
    from allocator.server.system import loop_cache

    loop_cache.prepare()
    jobs = chosen(read_swim(trace))
    keep(jobs, play(jobs).offered)


def keep(jobs: Sequence[SwimJob], offered: Sequence[forecasts.Judged]) -> None:
    """Keep all that the page says of the day."""
    data = {
        "jobs": len(jobs),
        "maps": sum(each.maps(MAPS_MAX) for each in jobs),
        "agents": AGENTS,
        "maps_max": MAPS_MAX,
        "interval_s": INTERVAL_MS // 1000,
        "look_s": LOOK_MS // 1000,
        "looked_at": LOOKED_AT,
        "rows": forecasts.binned(offered, EDGES_S),
        "width": forecasts.width(offered),
    }
    forecasts.MAPREDUCE.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, required=True)
    compute(parser.parse_args().trace)
