"""Plays the jobs of a recorded cluster on the emulated master."""

from functools import partial

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

COLLECT_S = 3600
PATIENCE_MS = 120_000
INTERVAL_MS = 120_000
HOLDS_MS = 480_000
LOOK_MS = 600_000
LOOKED_AT = 10**6


class _Days:
    """A window as a playable scenario.

    `starts_ms`: when each job started; None: it did not.
    """

    kinds = ("cpus", "mem", "gpus")

    def __init__(self, window: Window, link: DirectLink, *, stated: bool, notes: Offered) -> None:
        self._window, self._link, self._stated, self._notes = window, link, stated, notes
        self.jobs = len(window.jobs)
        self.starts_ms: list[int | None] = [None] * self.jobs
        self.agents = tuple(
            (0, AgentSpec(node.name, dict(node.capacity), {"gpu_model": node.model}))
            for node in window.nodes
        )

    def begin(self, stage: JobStage) -> None:
        for number, job in enumerate(self._window.jobs):
            stage.at(job.arrives_ms, partial(self._submit, stage, number, job))
        see = partial(look, stage, self._link, self._notes, LOOK_MS, LOOKED_AT)
        stage.at(LOOK_MS, see)

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
            Manner(gang=size, holds_ms=HOLDS_MS),
            lambda _cancelled: stage.ended(job.role),
            started,
        )
        made.notes = self._notes
        stage.submit(made)


def play(window: Window, way: str, notes: Offered, until_ms: int) -> list[int | None]:
    """Play a window: when each job starts; None: it does not."""
    settings = Settings(
        PolicySpec("drf", selection="listed", mode="characterised"),
        patience_cycles=PATIENCE_MS // INTERVAL_MS,
        collect_ms=COLLECT_S * 1000,
    )
    if way == "collecting":
        settings.priors_max = 0
    link = DirectLink(build, settings)
    days = _Days(window, link, stated=way != "hoarding", notes=notes)
    play_all(days, link, INTERVAL_MS, until_ms)
    notes.end(until_ms)
    return days.starts_ms
