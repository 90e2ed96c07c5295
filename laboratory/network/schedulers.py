"""Quincy's schedulers: the queue-based G, GF, GFP, GFH and GFPH, and the flow-based ones.

In the queue-based ones a task waits in the queues of its preferred computers, in those of its
preferred racks, and in the cluster's. A free computer takes the first ready task of its own queue,
else of its rack's, else of the cluster's. With fairness, tasks of a job that has its share are not
ready (section 3 of the paper).

References
----------
.. [1] Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica. "Job Scheduling for Multi-User
   MapReduce Clusters." UC Berkeley, UCB/EECS-2009-55, 2009 (sticky slots).
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from allocator.core import Ints
from allocator.solvers.flow.min_cost_flow import FlowSolution, solve
from laboratory.network.cluster import Decision, Slots, fair_shares
from laboratory.network.workflow import Crossing, TaskState, WorkflowTask
from laboratory.solvers.flow_repair import solve_again
from laboratory.solvers.quincy_network import QuincyCluster, QuincyNetwork, Tasks, build

MARGIN = 5
"""Hysteresis: a job this many tasks below its share is unblocked at once; value not published."""

DELAY_S = 10.0
"""Hysteresis: a job below its share for this long is unblocked, too; value not published."""

_STICKY_LOOKS_AGAIN_S = 1.0


class Queue:
    """Tasks in the order of arrival, separately for each job."""

    def __init__(self) -> None:
        self._by_job: dict[int, deque[tuple[int, WorkflowTask]]] = {}

    def add(self, ticket: int, task: WorkflowTask) -> None:
        """Append a task; tickets must increase."""
        self._by_job.setdefault(task.job, deque()).append((ticket, task))

    def first(self, blocked: set[int], tickets: dict[WorkflowTask, int]) -> WorkflowTask | None:
        """Find the first task whose job is not blocked.

        tickets: the valid ticket of each waiting task; entries with other tickets are dropped.
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
    preempts: P: tasks above the share are killed, the most recently started first.
    sticky: H: a job stays blocked until it is `MARGIN` tasks below its share, or below it for
        `DELAY_S`.
    """

    def __init__(
        self, seed: int, *, fair: bool = False, preempts: bool = False, sticky: bool = False
    ) -> None:
        """Start with empty queues; the seed determines the computers of roots."""
        self.fair, self.preempts, self.sticky = fair, preempts, sticky
        self._rng = np.random.default_rng(seed)
        self._counter = count()
        self._tickets: dict[WorkflowTask, int] = {}
        self._of_computer: dict[int, Queue] = {}
        self._of_rack: dict[int, Queue] = {}
        self._of_all = Queue()
        # Blocked jobs, and the times since which jobs have been below their shares (hysteresis).
        self._blocked: set[int] = set()
        self._below_since: dict[int, float] = {}

    @property
    def looks_again_s(self) -> float:
        """With hysteresis, time alone unblocks jobs."""
        return _STICKY_LOOKS_AGAIN_S if self.sticky else np.inf

    def ready(self, tasks: Sequence[WorkflowTask]) -> None:
        for task in tasks:
            ticket = self._tickets[task] = next(self._counter)
            for computer in task.input.preferred_computers().tolist():
                self._of_computer.setdefault(computer, Queue()).add(ticket, task)
            for rack in task.input.preferred_racks().tolist():
                self._of_rack.setdefault(rack, Queue()).add(ticket, task)
            self._of_all.add(ticket, task)

    def begun(self, task: WorkflowTask) -> None:
        self._tickets.pop(task, None)

    def place_root(self, slots: Slots, now_s: float) -> int:
        """Choose any computer that runs no root."""
        usable = [computer for computer, job in enumerate(slots.root) if job < 0]
        return int(self._rng.choice(usable))

    def decide(self, slots: Slots, now_s: float) -> Decision:
        """Kill tasks above the shares, then fill free computers."""
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
        # First the own queues of all free computers, as if tasks arrived one by one.
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

    def _first(self, slots: Slots, computer: int, level: int) -> WorkflowTask | None:
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
        """Update which jobs are blocked."""
        if not self.fair:
            return
        for job in np.flatnonzero(held >= shares).tolist():
            self._block(job)
        for job in np.flatnonzero(held < shares).tolist():
            since = self._below_since.setdefault(job, now_s)
            far_below = held[job] < shares[job] - MARGIN
            if not self.sticky or far_below or now_s - since >= DELAY_S:
                self._blocked.discard(job)


# The flow-based schedulers: Q, QF, QP, QFP and QFPX.
#
# Each decision sends all waiting tasks (with preemption, the running ones, too) through Quincy's
# network at minimum cost. Costs are data that crosses switches, waiting time, and work that would
# be lost. The capacities at the jobs' nodes enforce fair shares (section 4 of the paper, and its
# appendix).


# Tasks as columns, by number: fast for networks of thousands of tasks.


_FIRST = 256


class Triples:
    """A growing table with the columns task, place and cost."""

    def __init__(self) -> None:
        self._columns = np.zeros((3, 0), np.int64)
        self._new: list[tuple[int, int, int]] = []

    def add(self, number: int, place: int, cost: int) -> None:
        self._new.append((number, place, cost))

    def columns(self) -> Ints:
        """All triples, (3, P)."""
        if self._new:
            new = np.array(self._new, np.int64).T
            self._columns = np.concatenate([self._columns, new], axis=1)
            self._new.clear()
        return self._columns


class TaskTable:
    """The properties of each task, by its number.

    waits (N,) job, computer (N,): the computer is -1 for tasks that do not run. since_s, waited_s,
    ran_s (N,): as in `WorkflowTask`. anywhere, here (N,): cost of the data that crosses switches,
    in the worst case and on its computer. computers, racks: preferred ones, and the cost there: for
    a rack that of its worst computer.
    """

    def __init__(self, cost: Callable[[Crossing], int]) -> None:
        """Start without tasks; the function gives the cost of moving data."""
        self._cost = cost
        self.tasks: list[WorkflowTask] = []
        self.computers, self.racks = Triples(), Triples()
        self.waits = np.zeros(_FIRST, np.bool_)
        self.job, self.anywhere, self.here = (np.zeros(_FIRST, np.int64) for _ in range(3))
        self.computer = np.full(_FIRST, -1)
        self.since_s, self.waited_s, self.ran_s = (np.zeros(_FIRST) for _ in range(3))

    def wait(self, tasks: Sequence[WorkflowTask]) -> None:
        """Add waiting tasks: new ones, in the order of their numbers, or killed ones."""
        for task in tasks:
            if task.number == len(self.tasks):
                self._add(task)
            self.waits[task.number], self.computer[task.number] = True, -1
            self._times(task)

    def run(self, task: WorkflowTask) -> None:
        self.waits[task.number], self.computer[task.number] = False, task.computer
        self.here[task.number] = self._cost(task.input.crossing(task.computer))
        self._times(task)

    def _times(self, task: WorkflowTask) -> None:
        at = task.number
        self.since_s[at], self.waited_s[at], self.ran_s[at] = (
            task.since_s,
            task.waited_s,
            task.ran_s,
        )

    def _add(self, task: WorkflowTask) -> None:
        if task.number == len(self.waits):
            self._grow()
        self.tasks.append(task)
        at, read = task.number, task.input
        self.job[at], self.anywhere[at] = task.job, self._cost(read.worst())
        for computer in read.preferred_computers().tolist():
            self.computers.add(at, computer, self._cost(read.crossing(computer)))
        for rack in read.preferred_racks().tolist():
            self.racks.add(at, rack, self._cost(read.worst_in_rack(rack)))

    def _grow(self) -> None:
        for name in ("waits", "job", "anywhere", "here", "since_s", "waited_s", "ran_s"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
        self.computer = np.concatenate([self.computer, np.full_like(self.computer, -1)])


# The schedulers.

WAIT_COST = 0.5
"""Omega: cost of a second of waiting."""

RACK_COST = 1.0
"""Psi: cost of a GB through a rack's switch."""

CORE_COST = 2.0
"""Xi: cost of a GB through the core switch; 20 in QFPX."""

_FINE = 1000  # costs are whole thousandths
_FLOW_LOOKS_AGAIN_S = 5.0


class FlowScheduler:
    """Scheduling by a minimum-cost flow.

    fair: F: each job runs exactly its fair share.
    preempts: P: running tasks may be killed or moved.
    core_cost: cost of a GB through the core switch.
    """

    looks_again_s = _FLOW_LOOKS_AGAIN_S

    def __init__(
        self, *, fair: bool = False, preempts: bool = False, core_cost: float = CORE_COST
    ) -> None:
        """Begin without tasks."""
        self.fair, self.preempts, self.core_cost = fair, preempts, core_cost
        self._table = TaskTable(self._data_cost)
        self._before: tuple[QuincyNetwork, FlowSolution] | None = None

    def ready(self, tasks: Sequence[WorkflowTask]) -> None:
        self._table.wait(tasks)

    def begun(self, task: WorkflowTask) -> None:
        self._table.run(task)

    def place_root(self, slots: Slots, now_s: float) -> int:
        """A free computer, or the one whose task has run for the shortest time.

        The paper leaves the choice to the network. In its experiments a job's root replaces that of
        a job that has ended, so there is a free computer.
        """
        usable = [computer for computer, job in enumerate(slots.root) if job < 0]

        def lost_s(computer: int) -> float:
            task = slots.on[computer]
            return -1.0 if task is None else task.ran_s + now_s - task.since_s

        return min(usable, key=lost_s)

    def decide(self, slots: Slots, now_s: float) -> Decision:
        """Solve the network, and return the changes of its solution."""
        runs = [task for tasks in slots.running for task in tasks] if self.preempts else []
        network = build(self._tasks(runs, now_s), self._cluster(slots))
        numbers = network.tasks.number
        if not len(numbers):
            return Decision()
        if self._before is None:
            solution = solve(network.network)
        else:
            solution = solve_again(network.network, *network.begin_with(*self._before))
        self._before = network, solution
        place, decision = network.place(solution.flow), Decision()
        for row in np.flatnonzero(place != self._table.computer[numbers]).tolist():
            task, computer = self._table.tasks[numbers[row]], int(place[row])
            if task.state is TaskState.RUNNING:
                decision.kill.append(task)
            if computer >= 0:
                decision.start.append((task, computer))
        return decision

    def _data_cost(self, crossing: Crossing) -> int:
        """The cost of moving data, in thousandths."""
        cost = RACK_COST * crossing.rack_gb + self.core_cost * crossing.core_gb
        return round(_FINE * cost)

    def _tasks(self, runs: Sequence[WorkflowTask], now_s: float) -> Tasks:
        """The tasks to decide on: the waiting ones, and `runs`."""
        table = self._table
        numbers = np.flatnonzero(table.waits)
        running = np.array(sorted(task.number for task in runs), np.int64)
        numbers = np.sort(np.concatenate([numbers, running]))
        row_of = np.full(len(table.waits), -1)
        row_of[numbers] = np.arange(len(numbers))
        waited = table.waited_s[numbers]
        waited += np.where(table.waits[numbers], now_s - table.since_s[numbers], 0.0)
        # Preferred computers; for a running task its own, minus the work lost by killing it.
        pairs = table.computers.columns()
        pairs = pairs[:, (row_of[pairs[0]] >= 0) & (table.computer[pairs[0]] != pairs[1])]
        ran = table.ran_s[running] + now_s - table.since_s[running]
        stays = table.here[running] - (_FINE * ran).astype(np.int64)
        racks = table.racks.columns()
        racks = racks[:, row_of[racks[0]] >= 0]
        return Tasks(
            numbers,
            table.job[numbers],
            # At equal cost tasks run rather than wait.
            (_FINE * WAIT_COST * waited).astype(np.int64) + 1,
            table.anywhere[numbers],
            np.concatenate([row_of[pairs[0]], row_of[running]]),
            np.concatenate([pairs[1], table.computer[running]]),
            np.concatenate([pairs[2], stays]),
            row_of[racks[0]],
            racks[1],
            racks[2],
        )

    def _cluster(self, slots: Slots) -> QuincyCluster:
        """The usable computers, and the number of computers for each job."""
        usable = np.array(slots.root) < 0
        held, fixed = slots.held, np.zeros(len(slots.waiting), np.int64)
        if not self.preempts:
            usable &= np.array([task is None for task in slots.on])
            fixed = held
        wanted = held + slots.waiting
        if self.fair:
            least = most = fair_shares(wanted, slots.for_tasks, fixed)
        elif wanted.sum() <= slots.for_tasks:
            least = most = wanted
        else:
            # Each job gets at least one computer, if that is possible without killing tasks.
            lacking = np.minimum(wanted, 1) > fixed
            lacking &= np.cumsum(lacking) <= usable.sum()
            least, most = fixed + lacking, wanted
        return QuincyCluster(
            slots.topology.rack_of, usable.astype(np.int64), least - fixed, most - fixed
        )
