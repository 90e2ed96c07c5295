"""Runs jobs on a cluster: tasks start where a scheduler places them, read input, compute and end.

A task starts reading `START_S` after its start, and computes once all its input has arrived; its
output is then on the computer where it ran. A killed task starts over (sections 2.2, 3.3, 4.3 and
5.1 of the paper).
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import numpy as np

from allocator.core import Floats, Ints
from laboratory.network.topology import Topology, Transfers
from laboratory.network.workflow import JobPlan, TaskState, WorkflowProgress, WorkflowTask

# The number of computers for each job.


def fair_shares(wanted: Ints, computers: int, least: Ints | None = None) -> Ints:
    """Divide computers equally among jobs, without giving a job more than it wants.

    wanted (J,): tasks that run or wait.
    least (J,): minimum of each job, at most what it wants; the sum is at most `computers`.
    Returns (J,): computers of each job; their sum is the smaller of `computers` and the sum of
        `wanted`. A remainder goes to the first jobs.

    Examples
    --------
    Ten computers: the first job wants two, the others divide eight.

    >>> fair_shares(np.array([2, 9, 9, 9]), 10).tolist()
    [2, 3, 3, 2]

    The second one has five already, and keeps them.

    >>> fair_shares(np.array([2, 9, 9, 9]), 10, np.array([0, 5, 0, 0])).tolist()
    [2, 5, 2, 1]
    """
    low = np.zeros(len(wanted), np.int64) if least is None else least
    # The highest level for which there are enough computers.
    level, above = 0, int(wanted.max(initial=0)) + 1
    while above - level > 1:
        middle = (level + above) // 2
        if int(np.clip(middle, low, wanted).sum()) <= computers:
            level = middle
        else:
            above = middle
    share = np.clip(level, low, wanted)
    left = computers - int(share.sum())
    more = np.flatnonzero((share < wanted) & (share == level))
    share[more[: max(left, 0)]] += 1
    return share


# The scheduler's view: what each computer runs, and which tasks wait.


@dataclass(eq=False, slots=True)
class Slots:
    """Computers, each of which runs one task or the root of a job.

    on: the task that each computer runs.
    root: the job whose root a computer runs; -1: none.
    running: running tasks of each job, in the order of their starts.
    waiting (J,): number of waiting tasks of each job.
    """

    topology: Topology
    on: list[WorkflowTask | None]
    root: list[int]
    running: list[dict[WorkflowTask, None]]
    waiting: Ints

    @property
    def for_tasks(self) -> int:
        """Number of computers without a root."""
        return sum(job < 0 for job in self.root)

    @property
    def free(self) -> list[int]:
        return [
            computer
            for computer, (task, job) in enumerate(zip(self.on, self.root, strict=True))
            if task is None and job < 0
        ]

    @property
    def held(self) -> Ints:
        """Number of running tasks of each job, (J,)."""
        return np.array([len(tasks) for tasks in self.running], np.int64)


def empty_slots(topology: Topology, jobs: int) -> Slots:
    count = topology.computers
    nothing: list[dict[WorkflowTask, None]] = [{} for _ in range(jobs)]
    return Slots(topology, [None] * count, [-1] * count, nothing, np.zeros(jobs, np.int64))


@dataclass(frozen=True, slots=True)
class Decision:
    """The actions of a scheduler.

    kill: tasks to stop first; they lose their work.
    start (Task, int): tasks to start then, including killed ones, with their computers.
    """

    kill: list[WorkflowTask] = field(default_factory=list)
    start: list[tuple[WorkflowTask, int]] = field(default_factory=list)


class Scheduler(Protocol):
    """Decides which tasks run on which computers."""

    @property
    def looks_again_s(self) -> float:
        """Interval at which to decide even without events; infinite: never."""

    def ready(self, tasks: Sequence[WorkflowTask]) -> None:
        """Add waiting tasks: new ones, or killed ones."""

    def begun(self, task: WorkflowTask) -> None:
        """Record that a task was started."""

    def place_root(self, slots: Slots, now_s: float) -> int:
        """Choose a computer without a root for the root of a job; its task is killed."""

    def decide(self, slots: Slots, now_s: float) -> Decision:
        """Return the tasks to kill and to start now."""


# A run.


START_S = 1.0
"""Time from the decision until a task reads."""

JOB_START_S = 7.0
"""Time from the start of a job until its first tasks are ready."""

DECIDE_S = 0.5
"""Minimum time between two decisions: events in between are decided on together.
The paper's scheduler decides at every event; with 0 this one does, too."""

USE_EVERY_S = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a run.

    job_s (J,): from the start of each job to its end.
    makespan_s: until the last job ended.
    moved_gb (3,): by `topology.Distance`.
    killed: number of kills.
    use (T, J): number of running tasks of each job, every `USE_EVERY_S`.
    """

    job_s: Floats
    makespan_s: float
    moved_gb: Floats
    killed: int
    use: Floats


class ClusterRun:
    """One run of a list of jobs."""

    def __init__(
        self,
        topology: Topology,
        jobs: Sequence[JobPlan],
        concurrency: int,
        scheduler: Scheduler,
        *,
        decide_s: float = DECIDE_S,
        apart_s: float = 0.0,
    ) -> None:
        """Start with an idle cluster that runs `concurrency` jobs at once, in order.

        The first jobs start `apart_s` apart, each later one when a job ends.
        """
        self.slots = empty_slots(topology, len(jobs))
        self.transfers = Transfers(topology.capacity())
        self.killed = 0
        self._jobs = [WorkflowProgress(plan, topology) for plan in jobs]
        self._scheduler = scheduler
        self._decide_s = decide_s
        self._to_come = list(range(len(jobs)))[::-1]
        self._begun = np.full(len(jobs), np.nan)
        self._ended = np.full(len(jobs), np.nan)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._counter = count()
        self._tasks: list[WorkflowTask] = []
        self._decides_at = np.inf
        self._decided_at = -np.inf
        self._use: list[list[int]] = []
        self._next_job()
        for number in range(1, min(concurrency, len(jobs))):
            self._at(number * apart_s, self._next_job)

    @property
    def now_s(self) -> float:
        return self.transfers.now_s

    def play(self) -> Outcome:
        """Run until all jobs have ended."""
        while np.isnan(self._ended).any():
            self.step()
        return Outcome(
            self._ended - self._begun,
            float(self._ended.max()),
            self.transfers.moved_gb.copy(),
            self.killed,
            np.array(self._use, np.float64),
        )

    def step(self) -> None:
        """Advance to the next event.

        Raises RuntimeError if there is none although jobs have not ended: the scheduler leaves
        tasks waiting.
        """
        happens = self._events[0][0] if self._events else np.inf
        now = min(happens, self.transfers.next_end_s(), self._decides_at)
        if np.isinf(now):
            raise RuntimeError(f"at {self.now_s:g} s nothing runs, and tasks wait")
        while len(self._use) * USE_EVERY_S < now:
            self._use.append([len(tasks) for tasks in self.slots.running])
        for owner in self.transfers.advance(now):
            task = self._tasks[owner]
            task.reads_left -= 1
            self._compute_if_read(task)
        while self._events and self._events[0][0] <= now:
            heapq.heappop(self._events)[2]()
        if self._decides_at <= now:
            self._decide()

    # Events.

    def _at(self, time_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._counter), action))

    def _next_job(self) -> None:
        if not self._to_come:
            return
        job = self._to_come.pop()
        self._begun[job] = self.now_s
        computer = self._scheduler.place_root(self.slots, self.now_s)
        there = self.slots.on[computer]
        if there is not None:
            self._kill(there)
        self.slots.root[computer] = job
        self._at(self.now_s + JOB_START_S, lambda: self._submit(job))

    def _submit(self, job: int) -> None:
        """Queue tasks that have become ready."""
        progress, new = self._jobs[job], list[WorkflowTask]()
        for stage, part, read in progress.newly_ready():
            compute_s = float(progress.plan.compute_s[stage][part])
            new.append(
                WorkflowTask(
                    len(self._tasks) + len(new), job, stage, part, read, compute_s, self.now_s
                )
            )
        self._tasks += new
        self.slots.waiting[job] += len(new)
        self._scheduler.ready(new)
        self._wake()

    def _begin(self, task: WorkflowTask, computer: int) -> None:
        slots = self.slots
        if slots.on[computer] is not None or slots.root[computer] >= 0:
            raise RuntimeError(f"computer {computer} is not free for task {task.number}")
        task.waited_s += self.now_s - task.since_s
        task.state, task.since_s, task.computer = TaskState.RUNNING, self.now_s, computer
        task.attempt += 1
        slots.on[computer] = task
        slots.running[task.job][task] = None
        slots.waiting[task.job] -= 1
        self._scheduler.begun(task)
        attempt = task.attempt
        self._at(self.now_s + START_S, lambda: self._read(task, attempt))

    def _read(self, task: WorkflowTask, attempt: int) -> None:
        """Start the reads of an attempt, unless it was killed."""
        if task.attempt != attempt or task.state is not TaskState.RUNNING:
            return
        task.reads_left = 0
        for path, distance, gb in task.input.reads(task.computer):
            self.transfers.start(task.number, path, distance, gb)
            task.reads_left += 1
        self._compute_if_read(task)

    def _compute_if_read(self, task: WorkflowTask) -> None:
        if not task.reads_left:
            attempt = task.attempt
            self._at(self.now_s + task.compute_s, lambda: self._end(task, attempt))

    def _end(self, task: WorkflowTask, attempt: int) -> None:
        """End an attempt, unless it was killed."""
        if task.attempt != attempt or task.state is not TaskState.RUNNING:
            return
        self._leave(task, TaskState.DONE)
        progress = self._jobs[task.job]
        progress.done(task.stage, task.part, task.computer)
        if progress.ended:
            self._ended[task.job] = self.now_s
            self.slots.root[self.slots.root.index(task.job)] = -1
            self._next_job()
        self._submit(task.job)

    def _kill(self, task: WorkflowTask) -> None:
        self._leave(task, TaskState.WAITING)
        self.killed += 1
        self.transfers.cancel(task.number)
        self.slots.waiting[task.job] += 1
        self._scheduler.ready([task])
        self._wake()

    def _leave(self, task: WorkflowTask, state: TaskState) -> None:
        task.ran_s += self.now_s - task.since_s
        task.state, task.since_s = state, self.now_s
        self.slots.on[task.computer] = None
        del self.slots.running[task.job][task]

    # Decisions.

    def _wake(self) -> None:
        self._decides_at = min(self._decides_at, max(self.now_s, self._decided_at + self._decide_s))

    def _decide(self) -> None:
        self._decided_at, self._decides_at = self.now_s, np.inf
        decision = self._scheduler.decide(self.slots, self.now_s)
        for task in decision.kill:
            self._kill(task)
        for task, computer in decision.start:
            self._begin(task, computer)
        # Killed tasks wait again, but this decision has already covered them.
        again = self._scheduler.looks_again_s if self.slots.waiting.any() else np.inf
        self._decides_at = self.now_s + again
