"""Plays the jobs of a recorded cluster on the emulated master."""

from collections.abc import Sequence
from functools import partial

from forecasts import Judged
from gang_days_jobs import Job, Window

from allocator.core import GANG_LABEL, Options, PolicySpec, Settings
from allocator.explain import Calibration, NextOffer, next_offer, take_clients
from allocator.policies import build
from laboratory.frameworks.base import Identity, Offer
from laboratory.frameworks.batch import BatchJob, Manner, Work
from laboratory.links.base import DirectLink
from laboratory.master.gates import GPU_CAPABILITY
from laboratory.resources import AgentSpec
from laboratory.workloads import play as playing
from laboratory.workloads.scenario import JobStage

COLLECT_S = 3600
PATIENCE_MS = 120_000
INTERVAL_MS = 120_000
HOLDS_MS = 480_000
LOOK_MS = 600_000


class Offered:
    """Forecasts of next offers, and when the offers came.

    Corrections rest on earlier forecasts, also on those of windows that were played before.
    """

    def __init__(self) -> None:
        self.offered: list[Judged] = []
        self._calibration: Calibration[BatchJob] = Calibration()
        self._waiting: dict[BatchJob, list[tuple[int, NextOffer, NextOffer]]] = {}
        self._before_ms = 0

    def end(self, until_ms: int) -> None:
        """Note the end of a window."""
        for job in self._calibration.everyone():
            self._calibration.left(job, self._before_ms + until_ms)
        self._waiting.clear()
        self._before_ms += until_ms

    def expect(self, now_ms: int, found: Sequence[tuple[BatchJob, NextOffer]]) -> None:
        """Note forecasts."""
        corrections = self._calibration.corrections(self._before_ms + now_ms)
        for job, offer in found:
            shown = self._calibration.expect(
                job, self._before_ms + now_ms, offer, corrections, job.identity.principal
            )
            if shown.latest_ms >= 0:
                self._waiting.setdefault(job, []).append((now_ms, offer, shown))

    def comes(self, job: BatchJob, now_ms: int) -> None:
        """Note an offer."""
        self._calibration.came(job, self._before_ms + now_ms)
        for made_ms, offer, shown in self._waiting.pop(job, ()):
            times_ms = shown.expected_ms, shown.latest_ms
            judged = Judged(offer.expected_ms, offer.latest_ms, times_ms, now_ms - made_ms)
            self.offered.append(judged)


class _Noted(BatchJob):
    """A job whose offers are noted."""

    notes: Offered

    def offered(self, offers: list[Offer]) -> None:
        self.notes.comes(self, self._master.event_heap.now_ms)
        super().offered(offers)


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
        stage.at(LOOK_MS, partial(self._look, stage))

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

        made = _Noted(
            identity,
            (Work(dict(job.need), job.lasts_ms),),
            Manner(gang=size, holds_ms=HOLDS_MS),
            lambda _cancelled: stage.ended(job.role),
            started,
        )
        made.notes = self._notes
        stage.submit(made)

    def _look(self, stage: JobStage) -> None:
        """Forecast the next offer of each job that waits; again in ten minutes."""
        master, allocator = stage.master, self._link.allocator
        now_ms = master.event_heap.now_ms
        handle_of = master.roles.handle
        waiting = [
            (each.framework, allocator.state.clients.row(handle, handle_of[each.roles[0]]))
            for handle, each in master.members.items()
            if isinstance(each.framework, BatchJob) and each.framework.waits
        ]
        picture = take_clients(allocator, [row for _, row in waiting])
        pairs = zip(waiting, picture.subjects, strict=True)
        self._notes.expect(now_ms, [(job, next_offer(picture, each)) for (job, _), each in pairs])
        stage.at(now_ms + LOOK_MS, partial(self._look, stage))


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
    played = playing.play(
        days,
        link,
        tell_demand=True,
        options=Options(allocation_interval_ms=INTERVAL_MS),
        until_ms=until_ms,
        to_end=False,
        sample_ms=until_ms,
    )
    assert not played.record.defects, played.record.defects
    notes.end(until_ms)
    return days.starts_ms
