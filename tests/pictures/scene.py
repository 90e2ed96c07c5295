"""Clusters for the pictures: an emulated master with a real sidecar process.

The master plays a scenario as fast as the sidecar answers, up to a chosen moment. From then on it
runs in real time, as a master does, until the pictures are taken.
"""

import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from allocator.core import Decisions, Options
from laboratory.links.base import Batch, Opening
from laboratory.links.stream import StreamLink
from laboratory.scenarios.drawing import draw
from laboratory.scenarios.running import ScenarioWorld
from laboratory.scenarios.schema import read
from laboratory.workloads.play import Played, play
from laboratory.workloads.scenario import JobProgress
from tests.server.sidecar_process import SidecarProcess

SEED = 3
WATCH_S = 10
SETTINGS = ("policy.mode=characterised",)


class Moment(NamedTuple):
    """What is played until when.

    at_s: in the scenario's time; a multiple of the interval of `watch`.
    interval_s: the master's allocation interval.
    rules: commands of operators, before it begins.
    """

    scenario: str
    policy: str
    at_s: int
    interval_s: int = 1
    rules: tuple[str, ...] = ()


DAY_S = 86_400

BUSY = Moment("scene.toml", "ps-dsf", 420)
COLLECTING = Moment("gang.toml", "drf", 390)
USED = Moment(
    *("use.toml", "drf", 9 * DAY_S + 15 * 3600, 600),
    (
        "budget set research 'gpus:1800h;cpus:40000h' --per week",
        "budget set robotics gpus:200h --per week",
        "budget set analytics cpus:2500h --per day --hard",
    ),
)


class Scene(NamedTuple):
    """The addresses of the sidecar."""

    target: str
    http: str


@contextmanager
def at_work(moment: Moment) -> Iterator[Scene]:
    """Run a cluster in the background, from the moment of the pictures on."""
    with tempfile.TemporaryDirectory() as state:
        settings = (*SETTINGS, f"policy.name={moment.policy}", f"state.directory={state}")
        with SidecarProcess(*settings, compiled=True) as sidecar:
            for rule in moment.rules:
                words = (*shlex.split(rule), "--force", "--target", sidecar.targets[0])
                subprocess.run([sys.executable, "-m", "allocator", *words], check=True)
            player = _Player(sidecar.targets[0], moment)
            player.start()
            try:
                player.wait()
                yield Scene(sidecar.targets[0], sidecar.http)
            finally:
                player.end()


class _Over(Exception):  # noqa: N818 - no error: how the play is left
    """Stops the play once the pictures are taken."""


def _friday_ms() -> int:
    """When the last Friday began, in UTC."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return round((today - timedelta(days=(today.weekday() - 4) % 7)).timestamp() * 1000)


class _DatedLink(StreamLink):
    """A link to a master whose clock shows real dates; it is a Friday at the moment of pictures."""

    def __init__(self, target: str, at_s: int) -> None:
        super().__init__(target)
        self._origin_ms = _friday_ms() - at_s // DAY_S * DAY_S * 1000

    def open(self, opening: Opening) -> None:
        super().open(replace(opening, clock_ms=self._origin_ms + opening.clock_ms))

    def send(self, batch: Batch) -> None:
        super().send(replace(batch, clock_ms=self._origin_ms + batch.clock_ms))

    def exchange(self, batch: Batch) -> Decisions:
        return super().exchange(replace(batch, clock_ms=self._origin_ms + batch.clock_ms))


class _Player(threading.Thread):
    """Plays the scene."""

    def __init__(self, target: str, moment: Moment) -> None:
        super().__init__(name="scene", daemon=True)
        self._target, self._moment = target, moment
        self._looked = 0
        self._ready, self._enough = threading.Event(), threading.Event()
        self.played: Played | None = None

    def run(self) -> None:
        scenario = read(Path(__file__).with_name(self._moment.scenario))
        world = ScenarioWorld(scenario, draw(scenario, SEED))
        try:
            self.played = play(
                world,
                _DatedLink(self._target, self._moment.at_s),
                tell_demand=True,
                to_end=False,
                options=Options(self._moment.interval_s * 1000, filter_gpus=scenario.filter_gpus),
                watch=self._watch,
            )
        except _Over:
            pass
        finally:
            self._ready.set()

    def _watch(self, _progress: JobProgress) -> None:
        """Called every ten seconds of the scene: after its moment wait as long in real time."""
        self._looked += 1
        if self._looked * WATCH_S >= self._moment.at_s:
            self._ready.set()
            self._enough.wait(WATCH_S)
        if self._enough.is_set():
            raise _Over

    def wait(self) -> None:
        """Wait for the moment of the pictures."""
        self._ready.wait()
        assert self.is_alive(), "the scene was over before its moment"
        time.sleep(0.5)

    def end(self) -> None:
        """Stop the play, and wait for its end."""
        self._enough.set()
        self.join()
