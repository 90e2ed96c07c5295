"""Play a scenario against a link, to its end."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from allocator.core import Options
from allocator.lab.event_heap import Priority
from allocator.lab.links.base import Link
from allocator.lab.master.cycles import Timing
from allocator.lab.master.emulated import EmulatedMaster
from allocator.lab.reports.run_record import Record, RoleShares
from allocator.lab.workloads.scenario import Progress, Scenario, Stage

WATCH_MS = 10_000

SAMPLE_MS = 10_000
"""How often what roles hold is looked at."""

STALL_MS = 4 * 3_600_000
"""Where no task began or ended for so long, nothing ever will."""


class UnfinishedError(RuntimeError):
    """Jobs were left when the time was over."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run that is over."""

    master: EmulatedMaster
    progress: Progress
    role_shares: RoleShares

    @property
    def record(self) -> Record:
        return self.master.record

    @property
    def makespan_ms(self) -> int:
        """When the last job had left."""
        return max(ended_ms for _, ended_ms in self.progress.ended_ms)

    @property
    def loaded_ms(self) -> int:
        """When the first source of jobs had no further one: until then the load was full."""
        return min(self.progress.exhausted_ms)


def play(
    scenario: Scenario,
    link: Link,
    *,
    tell_demand: bool,
    options: Options | None = None,
    timing: Timing | None = None,
    watch: Callable[[Progress], None] | None = None,
    until_ms: int | None = None,
    to_end: bool = True,
    sample_ms: int = SAMPLE_MS,
    enough: Callable[[int], bool] = lambda _now_ms: False,
) -> Played:
    """Play a scenario until all its jobs have left, the time is over, or nothing happens any more.

    tell_demand: whether frameworks say what a task needs.
    watch: called every ten simulated seconds.
    until_ms: where to give up.
    to_end: whether all jobs must have left.
    enough: asked after each step, with the time, whether to stop already.
    Raises UnfinishedError where jobs are left that must have.
    """
    master = EmulatedMaster(link, scenario.kinds, options, timing=timing)
    progress = Progress(scenario.jobs)
    for register_ms, spec in scenario.agents:
        master.event_heap.at(register_ms, partial(master.add_agent, spec))
    scenario.begin(Stage(master, progress, tell_demand))
    role_shares = RoleShares()

    def sample() -> None:
        role_shares.look(master)
        master.event_heap.after(sample_ms, sample, Priority.OBSERVE)

    sample()
    master.open()

    def look() -> None:
        if watch is not None:
            watch(progress)
            master.event_heap.after(WATCH_MS, look, Priority.OBSERVE)

    master.event_heap.at(0, look, Priority.OBSERVE)
    try:
        while not progress.done:
            if not master.step(until_ms) or _stalled(master) or enough(master.event_heap.now_ms):
                break
    finally:
        master.close()
    if to_end and not progress.done:
        now_ms = master.event_heap.now_ms
        message = f"{len(progress.ended_ms)} of {progress.jobs} jobs by {now_ms} ms"
        raise UnfinishedError(message)
    return Played(master, progress, role_shares)


def _stalled(master: EmulatedMaster) -> bool:
    last_ms = master.record.time_ms[-1] if master.record.time_ms else 0
    return master.event_heap.now_ms - last_ms > STALL_MS
