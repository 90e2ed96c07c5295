"""Plays the jobs of a recorded cluster on the emulated master."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from forecast_notes import Noted, Offered, look, play_all
from gang_days_jobs import Job, Window

from allocator.core import GANG_LABEL, PolicySpec, Settings
from allocator.policies import build
from laboratory.frameworks.base import Identity
from laboratory.frameworks.batch import Manner, Work
from laboratory.links.base import DirectLink
from laboratory.master.gates import GPU_CAPABILITY
from laboratory.resources import AgentSpec
from laboratory.workloads.scenario import JobStage

LOOKED_AT = 10**6


class Pace(NamedTuple):
    """How fast things happen.

    holds_ms: how long frameworks keep offers.
    look_ms: time between forecasts; 0: none are made.
    """

    interval_ms: int = 120_000
    patience_ms: int = 120_000
    collect_s: int = 3600
    holds_ms: int = 480_000
    look_ms: int = 600_000


PACE = Pace()


class _Days:
    """A window as a playable scenario.

    `starts_ms`: when each job started; None: it did not.
    """

    kinds = ("cpus", "mem", "gpus")

    def __init__(
        self, window: Window, link: DirectLink, pace: Pace, *, stated: bool, notes: Offered
    ) -> None:
        self._window, self._link, self._pace = window, link, pace
        self._stated, self._notes = stated, notes
        self.jobs = len(window.jobs)
        self.starts_ms: list[int | None] = [None] * self.jobs
        self.agents = tuple(
            (0, AgentSpec(node.name, dict(node.capacity), {"gpu_model": node.model}))
            for node in window.nodes
        )

    def begin(self, stage: JobStage) -> None:
        for number, job in enumerate(self._window.jobs):
            stage.at(job.arrives_ms, partial(self._submit, stage, number, job))
        if every_ms := self._pace.look_ms:
            see = partial(look, stage, self._link, self._notes, every_ms, LOOKED_AT)
            stage.at(every_ms, see)

    def _submit(self, stage: JobStage, number: int, job: Job) -> None:
        size = len(job.lasts_ms)
        identity = Identity(
            f"{job.kind}-{number}",
            (job.role,),
            dict(job.need),
            {"gpu_model": job.models} if job.models else {},
            frozenset({GPU_CAPABILITY}),
            principal=job.role,
            more_labels={GANG_LABEL: f"tasks:{size}"} if self._stated and size > 1 else {},
        )

        def started() -> None:
            self.starts_ms[number] = stage.master.event_heap.now_ms

        made = Noted(
            identity,
            (Work(dict(job.need), job.lasts_ms),),
            Manner(gang=size, holds_ms=self._pace.holds_ms),
            lambda _cancelled: stage.ended(job.role),
            started,
        )
        made.notes = self._notes
        stage.submit(made)


def play(
    window: Window, way: str, notes: Offered, until_ms: int, pace: Pace = PACE
) -> Sequence[int | None]:
    """Play a window: when each job starts; None: it does not."""
    settings = Settings(
        PolicySpec("drf", selection="listed", mode="characterised"),
        patience_cycles=pace.patience_ms // pace.interval_ms,
        collect_ms=pace.collect_s * 1000,
    )
    if way == "collecting":
        settings.priors_max = 0
    link = DirectLink(build, settings)
    days = _Days(window, link, pace, stated=way != "hoarding", notes=notes)
    play_all(days, link, pace.interval_ms, until_ms)
    notes.end(until_ms)
    return days.starts_ms
