"""The schedulers with queues: G, GF, GFP, GFH and GFPH.

A task waits in the queues of the computers and racks that it prefers, and in that of the whole
cluster. A computer that is free takes the first ready task of its own queue, else of its rack's,
else of the cluster's. With fairness, tasks of a job that has its share are not ready (section 3
of the paper).

References
----------
.. [1] Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica. "Job Scheduling for Multi-User
   MapReduce Clusters." UC Berkeley, UCB/EECS-2009-55, 2009 (sticky slots).
"""

from collections import deque
from collections.abc import Sequence
from itertools import count

import numpy as np

from allocator.core import Ints
from allocator.lab.network.cluster import Decision, Slots, fair_shares
from allocator.lab.network.workflow import Task

MARGIN = 5
"""Hysteresis: how many tasks below its share a job is unblocked at once; not published."""

DELAY_S = 10.0
"""Hysteresis: after how long below its share a job is unblocked anyway; not published."""

_LOOKS_AGAIN_S = 1.0


class Queue:
    """Tasks in the order in which they came, for each job apart."""

    def __init__(self) -> None:
        self._by_job: dict[int, deque[tuple[int, Task]]] = {}

    def add(self, ticket: int, task: Task) -> None:
        """Put a task at the end; tickets grow."""
        self._by_job.setdefault(task.job, deque()).append((ticket, task))

    def first(self, blocked: set[int], tickets: dict[Task, int]) -> Task | None:
        """Find the first task whose job is not blocked.

        tickets: the valid ticket of each task that waits; what else is in the queue is dropped.
        """
        best, found = np.inf, None
        for job, tasks in list(self._by_job.items()):
            while tasks and tickets.get(tasks[0][1]) != tasks[0][0]:
                tasks.popleft()
            if not tasks:
                del self._by_job[job]
            elif job not in blocked and tasks[0][0] < best:
                best, found = tasks[0]
        return found


class QueueScheduler:
    """Greedy scheduling from queues.

    fair: F: a job that runs its share is blocked.
    preempts: P: tasks above the share are killed, the most recently begun first.
    sticky: H: a blocked job stays so until it is `MARGIN` tasks below its share, or for `DELAY_S`.
    """

    def __init__(
        self, seed: int, *, fair: bool = False, preempts: bool = False, sticky: bool = False
    ) -> None:
        """Begin with empty queues; the seed decides where roots run."""
        self.fair, self.preempts, self.sticky = fair, preempts, sticky
        self._rng = np.random.default_rng(seed)
        self._counter = count()
        self._tickets: dict[Task, int] = {}
        self._of_computer: dict[int, Queue] = {}
        self._of_rack: dict[int, Queue] = {}
        self._of_all = Queue()
        # Jobs that are blocked, and since when they run less than their share (hysteresis).
        self._blocked: set[int] = set()
        self._below_since: dict[int, float] = {}

    @property
    def looks_again_s(self) -> float:
        """With hysteresis jobs are unblocked as time passes."""
        return _LOOKS_AGAIN_S if self.sticky else np.inf

    def ready(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            ticket = self._tickets[task] = next(self._counter)
            for computer in task.input.preferred_computers().tolist():
                self._of_computer.setdefault(computer, Queue()).add(ticket, task)
            for rack in task.input.preferred_racks().tolist():
                self._of_rack.setdefault(rack, Queue()).add(ticket, task)
            self._of_all.add(ticket, task)

    def begun(self, task: Task) -> None:
        self._tickets.pop(task, None)

    def place_root(self, slots: Slots, now_s: float) -> int:
        """Any computer that runs no root."""
        usable = [computer for computer, job in enumerate(slots.root) if job < 0]
        return int(self._rng.choice(usable))

    def decide(self, slots: Slots, now_s: float) -> Decision:
        """Kill what is above the shares, then fill free computers."""
        decision, held = Decision(), slots.held
        shares = fair_shares(held + slots.waiting, slots.for_tasks)
        self._unblock(held, shares, now_s)
        free = slots.free
        if self.preempts:
            for job in np.flatnonzero(held > shares).tolist():
                over = list(slots.running[job])[int(shares[job]) :]
                decision.kill.extend(over)
                free += [task.computer for task in over]
                held[job] = shares[job]
        # Own tasks of all free computers first: so would they be matched if tasks came one by one.
        free.sort()
        for level in range(3):
            left = []
            for computer in free:
                task = self._first(slots, computer, level)
                if task is None:
                    left.append(computer)
                    continue
                del self._tickets[task]
                held[task.job] += 1
                if self.fair and held[task.job] >= shares[task.job]:
                    self._block(task.job)
                decision.start.append((task, computer))
            free = left
        return decision

    def _first(self, slots: Slots, computer: int, level: int) -> Task | None:
        """The first ready task for a computer: of its own queue, its rack's, or the cluster's."""
        if level == 0:
            queue = self._of_computer.get(computer)
        elif level == 1:
            queue = self._of_rack.get(int(slots.topology.rack_of[computer]))
        else:
            queue = self._of_all
        return queue.first(self._blocked, self._tickets) if queue is not None else None

    def _block(self, job: int) -> None:
        self._blocked.add(job)
        self._below_since.pop(job, None)

    def _unblock(self, held: Ints, shares: Ints, now_s: float) -> None:
        """Bring up to date which jobs get nothing now."""
        if not self.fair:
            return
        for job in np.flatnonzero(held >= shares).tolist():
            self._block(job)
        for job in np.flatnonzero(held < shares).tolist():
            since = self._below_since.setdefault(job, now_s)
            far_below = held[job] < shares[job] - MARGIN
            if not self.sticky or far_below or now_s - since >= DELAY_S:
                self._blocked.discard(job)
