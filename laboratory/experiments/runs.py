"""One run of a scenario on a real sidecar under one policy, and its result."""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeAlias

from allocator.core import Floats, PolicySpec
from laboratory.links.borrowed import set_policy
from laboratory.links.sidecar_process import (
    SESSION_TOKEN_FILE,
    SidecarProcess,
    read_token,
    scratch_directory,
)
from laboratory.links.stream import StreamLink
from laboratory.reports.run_report import Figures, figures, sampled
from laboratory.workloads.play import Played, play
from laboratory.workloads.scenario import JobProgress, Scenario

CHARACTERISED = "characterised"

WORKER = "laboratory.experiments.run_worker"
"""Plays runs in a process of its own."""


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """A run to play: what, and under which policy."""

    name: str
    policy: PolicySpec
    seed: int
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    time_s, part (T,) (T, R): allocated part of each resource, every second.
    memory_mib: peak resident memory of the sidecar during the run; 0 if it was not started here.
    """

    name: str
    figures: Figures
    kinds: tuple[str, ...]
    time_s: Floats
    part: Floats
    memory_mib: float = 0.0


def play_on(
    run: ExperimentRun,
    target: str,
    watch: Callable[[JobProgress], None] | None = None,
    *,
    started_us: int = 1,
) -> Played:
    """Play a run on the sidecar at `target`.

    started_us: when our master began to lead; the newer of two masters gets the sidecar.
    """
    set_policy(target, run.policy)
    tell_demand = run.policy.mode == CHARACTERISED
    link = StreamLink(target, started_us, read_token(SESSION_TOKEN_FILE))
    return play(run.scenario, link, tell_demand=tell_demand, watch=watch)


def result_of(run: ExperimentRun, played: Played) -> Result:
    """Reduce a run to its result."""
    numbers = figures(played, run.policy.name, run.policy.mode, run.seed)
    kinds = played.master.ledger.names
    return Result(run.name, numbers, kinds, *sampled(played))


# Runs of scenarios against real sidecars, several at a time, each in a process of its own.
#
# A sidecar serves one master, so every worker has a sidecar of its own. It plays its runs on it one
# after another, and switches the policy in between as an operator would.
#
# If this process ends for any reason, the others end, too: workers exit when their connection is
# closed, the kernel kills the sidecars, and `scratch_directory` removes the files.

Watch = Callable[[str, int], None]

Note: TypeAlias = int | Result | str
"""A worker's message: number of ended jobs, the result, or the reason of a failure."""


class WorkerFailedError(RuntimeError):
    """A run failed in its worker; the message names it and the reason."""


def play_all(
    runs: Sequence[ExperimentRun],
    *,
    target: str | None = None,
    workers: int = 1,
    watch: Watch = lambda _name, _ended: None,
    started_us: int = 1,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Generator[Result, None, None]:
    """Play all runs, and yield the results as they arrive.

    target: a running sidecar, which plays one run after another.
    workers: how many sidecars to start otherwise.
    watch: called from time to time with the name of a run and the number of its ended jobs.
    started_us: when our masters began to lead, on a running sidecar.
    settings: options of the sidecars to start, such as ``policy.plugins``.
    Raises WorkerFailedError.
    """
    if target is not None:
        for number, run in enumerate(runs):
            told = partial(_tell, watch, run.name)
            # Each master is newer than the previous one, so none has to wait until that one ends.
            yield result_of(run, play_on(run, target, told, started_us=started_us + number))
        return
    with ExitStack() as until_end:
        directory = until_end.enter_context(scratch_directory("demo-"))
        team = [
            until_end.enter_context(_Worker(directory / str(number), settings))
            for number in range(min(workers, len(runs)))
        ]
        yield from _play_in(team, runs, watch)


def _tell(watch: Watch, name: str, progress: JobProgress) -> None:
    watch(name, len(progress.ended_ms))


class _Worker:
    """A worker process with its sidecar, as a context manager.

    run: the current run.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        directory.mkdir()
        self._until_end = ExitStack()
        self._sidecar = SidecarProcess(directory, {"log.level": "warning", **settings})
        self.run: ExperimentRun | None = None

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.enter_context(self._sidecar)
            self.connection, its = Pipe()
            undo.callback(self.connection.close)
            with its:
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    [
                        *(sys.executable, "-m", WORKER),
                        *(str(its.fileno()), self._sidecar.target),
                    ],
                    pass_fds=[its.fileno()],
                    # Ctrl-C on the terminal reaches us, and we end the workers.
                    start_new_session=True,
                )
            undo.callback(process.wait)
            undo.callback(process.kill)
            self._until_end = undo.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._until_end.close()

    def play(self, run: ExperimentRun) -> None:
        """Start a run; notes arrive over the connection."""
        self.run = run
        self._sidecar.forget_peak()
        self.connection.send(run)

    def hear(self) -> int | Result:
        """Handle a note: the number of ended jobs, or the result."""
        assert self.run is not None
        try:
            note: Note = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerFailedError(f"{self.run.name}: the worker ended") from None
        if isinstance(note, str):
            raise WorkerFailedError(f"{self.run.name}:\n{note.rstrip()}")
        if isinstance(note, Result):
            return replace(note, memory_mib=self._sidecar.memory_mib()[1])
        return note


def _play_in(
    team: Sequence[_Worker], runs: Sequence[ExperimentRun], watch: Watch
) -> Iterator[Result]:
    """Give each worker a run, and another whenever it has finished one, until all are done."""
    waiting = deque(runs)
    busy = {worker.connection: worker for worker in team}
    for worker in team:
        worker.play(waiting.popleft())
    while busy:
        said = wait(busy)
        for connection, worker in [pair for pair in busy.items() if pair[0] in said]:
            assert worker.run is not None
            note = worker.hear()
            if isinstance(note, int):
                watch(worker.run.name, note)
                continue
            if waiting:
                worker.play(waiting.popleft())
            else:
                del busy[connection]
            yield note
