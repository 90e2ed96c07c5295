"""Play a scenario over a link to its end, and sample the roles' holdings."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from allocator.core import Floats, Options
from allocator.measures import resource_share
from laboratory.event_heap import Priority
from laboratory.links.base import Link
from laboratory.master.cycles import Timing
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.session import Record
from laboratory.workloads.scenario import JobProgress, Scenario, set_stage

WATCH_MS = 10_000

SAMPLE_MS = 10_000
"""Sampling interval of the roles' holdings."""

STALL_MS = 4 * 3_600_000
"""By default, a run has stalled if no task starts or ends for this long."""


class UnfinishedError(RuntimeError):
    """The time was up before all jobs had left."""


@dataclass(slots=True)
class RoleShares:
    """Samples of the amounts that each role's tasks hold.

    time_ms: times of the samples.
    held (R,): for each sample the holdings of the roles with frameworks.
    total (R,): the cluster's amounts.
    """

    time_ms: list[int] = field(default_factory=list)
    held: list[dict[str, Floats]] = field(default_factory=list)
    total: list[Floats] = field(default_factory=list)

    def look(self, master: EmulatedMaster) -> None:
        width = len(master.ledger.zero)  # later rows are reserved or not plain
        held: dict[str, Floats] = defaultdict(lambda: np.zeros(width))
        for member in master.members.values():
            role = member.framework.identity.roles[0]
            held[role] += 0.0
            for task in member.tasks:
                held[role][: len(task.amount)] += task.amount[:width]
        self.time_ms.append(master.event_heap.now_ms)
        self.held.append(dict(held))
        self.total.append(np.array(master.ledger.total[:width], np.float64))

    def shares(self, role: str) -> Floats:
        """Dominant share of a role at each sample, (T,); 0 while it has no framework."""
        return np.array(
            [
                resource_share(held[role][None], total).max(initial=0.0) if role in held else 0.0
                for held, total in zip(self.held, self.total, strict=True)
            ]
        )

    def there(self, role: str) -> np.ndarray:
        """Whether a role has a framework at each sample, (T,) bool."""
        return np.array([role in held for held in self.held], bool)


@dataclass(frozen=True, slots=True)
class Played:
    """A finished run."""

    master: EmulatedMaster
    progress: JobProgress
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
        """When the first source of jobs was exhausted: until then the load was full."""
        return min(self.progress.exhausted_ms)


def play(
    scenario: Scenario,
    link: Link,
    *,
    tell_demand: bool,
    options: Options | None = None,
    timing: Timing | None = None,
    watch: Callable[[JobProgress], None] | None = None,
    until_ms: int | None = None,
    to_end: bool = True,
    sample_ms: int = SAMPLE_MS,
    stall_ms: int | None = None,
    enough: Callable[[int], bool] = lambda _now_ms: False,
) -> Played:
    """Play a scenario until all its jobs have left, the time is up, or it stalls.

    tell_demand: whether frameworks declare the needs of a task.
    watch: called every ten simulated seconds.
    until_ms: when to give up.
    to_end: whether all jobs must have left.
    stall_ms: the run has stalled if no task starts or ends for this long; None: `STALL_MS`.
    enough: called with the time after each step; True stops the run.
    Raises UnfinishedError if jobs are left and `to_end` is set.
    """
    stall_ms = STALL_MS if stall_ms is None else stall_ms
    master = EmulatedMaster(link, scenario.kinds, options, timing=timing)
    progress = set_stage(scenario, master, tell_demand=tell_demand)
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
            if not master.step(until_ms) or _idle_ms(master) > stall_ms:
                break
            if enough(master.event_heap.now_ms):
                break
    finally:
        master.close()
    if to_end and not progress.done:
        now_ms = master.event_heap.now_ms
        raise UnfinishedError(f"{len(progress.ended_ms)} of {progress.jobs} jobs by {now_ms} ms")
    return Played(master, progress, role_shares)


def _idle_ms(master: EmulatedMaster) -> int:
    """Return for how long no task has started or ended."""
    last_ms = master.record.time_ms[-1] if master.record.time_ms else 0
    return master.event_heap.now_ms - last_ms
