"""Notes forecasts of next offers while a workload is played, and when the offers came."""

from collections.abc import Sequence
from functools import partial

from forecasts import Judged

from allocator.core import Options
from allocator.explain import Calibration, NextOffer, Picture, next_offer
from laboratory.frameworks.base import Offer
from laboratory.frameworks.batch import BatchJob
from laboratory.links.base import DirectLink
from laboratory.workloads import play as playing
from laboratory.workloads.scenario import JobStage, Scenario


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


class Noted(BatchJob):
    """A job whose offers are noted."""

    notes: Offered

    def offered(self, offers: list[Offer]) -> None:
        self.notes.comes(self, self._master.event_heap.now_ms)
        super().offered(offers)


def play_all(scenario: Scenario, link: DirectLink, interval_ms: int, until_ms: int) -> None:
    """Play a workload to a time; the master's books must agree with the sidecar's."""
    played = playing.play(
        scenario,
        link,
        tell_demand=True,
        options=Options(allocation_interval_ms=interval_ms),
        until_ms=until_ms,
        to_end=False,
        sample_ms=until_ms,
        stall_ms=until_ms,
    )
    assert not played.record.defects, played.record.defects


def look(stage: JobStage, link: DirectLink, notes: Offered, every_ms: int, most: int) -> None:
    """Forecast the next offers of jobs that wait, at most this many; again and again."""
    master, allocator = stage.master, link.allocator
    now_ms, handle_of = master.event_heap.now_ms, master.roles.handle
    waiting = [
        (each.framework, allocator.state.clients.row(handle, handle_of[each.roles[0]]))
        for handle, each in master.members.items()
        if isinstance(each.framework, BatchJob) and each.framework.waits
    ]
    waiting = waiting[:: max(1, -(-len(waiting) // most))]
    picture = Picture(allocator, [row for _, row in waiting])
    pairs = zip(waiting, picture.subjects, strict=True)
    notes.expect(now_ms, [(job, next_offer(picture, each)) for (job, _), each in pairs])
    stage.at(now_ms + every_ms, partial(look, stage, link, notes, every_ms, most))
