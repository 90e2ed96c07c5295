"""Runs of scenarios against real sidecars, a few at a time, each in a process of its own.

A sidecar serves one master. So every worker has a sidecar of its own, plays its runs on it one
after the other, and switches the policy in between as an operator would.
"""

import ctypes
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from allocator.core import PolicySpec
from allocator.core.snapshot import Floats
from allocator.sim.experiments.play import Played, play
from allocator.sim.links.sidecar_process import SidecarProcess, set_policy
from allocator.sim.links.stream import StreamLink
from allocator.sim.reports.run_report import Figures, figures, sampled
from allocator.sim.workloads.scenario import Progress, Scenario

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

CHARACTERISED = "characterised"
PR_SET_PDEATHSIG = 1

Note = tuple[str, int]
"""Name of a run, and how many of its jobs have ended."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to play, under which policy."""

    name: str
    policy: PolicySpec
    seed: int
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    Attributes
    ----------
    time_s, part : (T,) and (T, R) float64
        Allocated part of each resource, every second.
    memory_mib : float
        The most that the sidecar had resident up to the end of the run; 0 where it is not ours.
    """

    name: str
    figures: Figures
    kinds: tuple[str, ...]
    time_s: Floats
    part: Floats
    memory_mib: float = 0.0


def play_on(run: Run, target: str, watch: Callable[[Progress], None] | None = None) -> Played:
    """Play a run on a sidecar that serves at `target`."""
    set_policy(target, run.policy)
    tell_demand = run.policy.mode == CHARACTERISED
    return play(run.scenario, StreamLink(target), tell_demand=tell_demand, watch=watch)


def result_of(run: Run, played: Played) -> Result:
    """Keep of a run what is small."""
    numbers = figures(played, run.policy.name, run.policy.mode, run.seed)
    kinds = played.master.ledger.names
    return Result(run.name, numbers, kinds, *sampled(played))


def play_all(
    runs: Sequence[Run],
    *,
    target: str | None = None,
    workers: int = 1,
    watch: Callable[[str, int], None] = lambda _name, _ended: None,
) -> Iterator[Result]:
    """Play all runs, and give the results as they come.

    Parameters
    ----------
    runs : sequence of Run
    target : str
        A sidecar that runs already; then one run follows the other.
    workers : int
        How many sidecars to start otherwise.
    watch : callable
        Told now and then the name of a run and how many of its jobs have ended.
    """
    if target is not None:
        for run in runs:
            played = play_on(run, target, partial(_tell, watch, run.name))
            yield result_of(run, played)
        return
    with ExitStack() as until_end:
        sidecars = _start_sidecars(min(workers, len(runs)), until_end)
        yield from _play_in_workers(runs, sidecars, watch)


def _start_sidecars(count: int, until_end: ExitStack) -> dict[str, SidecarProcess]:
    """Start sidecars one after the other: the first compiles what is not compiled yet."""
    sidecars = {}
    for _ in range(count):
        directory = Path(until_end.enter_context(tempfile.TemporaryDirectory(prefix="demo-")))
        sidecar = until_end.enter_context(SidecarProcess(directory, {"log.level": "warning"}))
        sidecars[sidecar.target] = sidecar
    return sidecars


def _play_in_workers(
    runs: Sequence[Run], sidecars: Mapping[str, SidecarProcess], watch: Callable[[str, int], None]
) -> Iterator[Result]:
    """Play each run in one of as many processes as there are sidecars."""
    context = multiprocessing.get_context("spawn")
    notes: Queue[Note | None] = context.Queue()
    targets: Queue[str] = context.Queue()
    for target in sidecars:
        targets.put(target)
    listener = Thread(target=_listen, args=(notes, watch), daemon=True)
    listener.start()
    pool = ProcessPoolExecutor(len(sidecars), context, _begin_worker, (targets, notes))
    try:
        futures = [pool.submit(_play_in_worker, run) for run in runs]
        for future in as_completed(futures):
            target, result = future.result()
            yield replace(result, memory_mib=sidecars[target].memory_mib()[1])
    finally:
        pool.shutdown(cancel_futures=True)
        notes.put(None)
        listener.join()


def _tell(watch: Callable[[str, int], None], name: str, progress: Progress) -> None:
    watch(name, len(progress.ended_ms))


def _listen(notes: "Queue[Note | None]", watch: Callable[[str, int], None]) -> None:
    while (note := notes.get()) is not None:
        watch(*note)


# In a worker.


class _Worker:
    """What a worker process keeps: which sidecar is its own, and where it reports."""

    target: str
    notes: "Queue[Note | None]"


def _begin_worker(targets: "Queue[str]", notes: "Queue[Note | None]") -> None:
    _end_with_parent()
    _Worker.target = targets.get()
    _Worker.notes = notes


def _end_with_parent() -> None:
    """Have Linux tell this process to end when its parent is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _play_in_worker(run: Run) -> tuple[str, Result]:
    def watch(progress: Progress) -> None:
        _Worker.notes.put((run.name, len(progress.ended_ms)))

    played = play_on(run, _Worker.target, watch)
    return _Worker.target, result_of(run, played)
